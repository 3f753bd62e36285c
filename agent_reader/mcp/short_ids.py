"""Ids as lists show them: a message's own id, cut where it still names one message only.

A list pays for its ids on every line. So it shows the first characters of each, and every tool takes them for the
whole: they are looked up among what the token shows at that moment. Where several begin so, they are refused with
their whole ids, and never is one of them chosen. What the token does not show neither answers nor makes anything
ambiguous.
"""

import re
from collections.abc import Iterable
from typing import Final

from agent_reader.mcp.refusals import ambiguous_id
from agent_reader.store.snapshot import Snapshot

# The kind and 50 bits of the digest: among a million messages two are alike by chance once in 2,000 mailboxes. Who
# writes both messages can make them alike; what that is good for is in docs/decisions/0016.
SHORT_CHARACTERS: Final = 11

_SHORTENED: Final = re.compile(rf"[MEX][0-9a-v]{{{SHORT_CHARACTERS - 1},31}}", re.ASCII)

# A refusal names so many; more begin alike only where somebody makes them.
_MAX_NAMED: Final = 4


def short(snapshot: Snapshot, email_id: str) -> str:
    """Return how a list shows the id of an Email that is shown: whole where another begins with the same characters."""
    start = email_id[:SHORT_CHARACTERS]
    return start if len(snapshot.ids_beginning(start, 2)) == 1 else email_id


def whole(snapshot: Snapshot, named: str) -> str:
    """Return the whole id of the Email that is named; what leads nowhere is returned as it is.

    Raises the refusal `ambiguous_id` where several begin so.
    """
    if _SHORTENED.fullmatch(named) is None:
        return named
    found = snapshot.ids_beginning(named, _MAX_NAMED)
    if len(found) > 1:
        raise ambiguous_id(found)
    return found[0] if found else named


def whole_ids(snapshot: Snapshot, named: Iterable[str]) -> tuple[str, ...]:
    """Return the whole ids of several, each once. Raises as `whole` does."""
    return tuple(dict.fromkeys(whole(snapshot, each) for each in named))

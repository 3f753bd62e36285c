"""Email/changes, Mailbox/changes and Thread/changes: what is different since a state (RFC 8620 §5.2).

And what /queryChanges of Emails and Mailboxes have in common (RFC 8620 §5.6).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from agent_reader.query import arguments
from agent_reader.query.errors import QueryRefused, invalid
from agent_reader.store.change_log import CannotCalculateChanges, ChangeList
from agent_reader.store.changes import DataType
from agent_reader.store.snapshot import Snapshot
from shared.message import JSON

# Where the asker names no number: as many ids as ten pages of Email/get take, some 160 KB of answer.
MAX_CHANGES: Final = 5_000

_ARGUMENTS: Final = frozenset({"accountId", "sinceState", "maxChanges"})


@dataclass(frozen=True, slots=True)
class ChangesArguments:
    """The arguments of /changes but accountId."""

    since_state: str
    max_changes: int


@dataclass(frozen=True, slots=True)
class QueryChanges:
    """RFC 8620 §5.6; `added` pairs an id with its index, lowest first."""

    old_query_state: str
    new_query_state: str
    removed: tuple[str, ...]
    added: tuple[tuple[str, int], ...]
    total: int | None


def parse_changes(untrusted: Mapping[str, JSON]) -> ChangesArguments:
    """Return the arguments, or raise `QueryRefused` naming the one that is wrong."""
    arguments.known_only(untrusted, _ARGUMENTS)
    most = untrusted.get("maxChanges")
    wanted = MAX_CHANGES if most is None else arguments.unsigned_value("maxChanges", most)
    if wanted == 0:
        raise invalid("maxChanges", "must be at least 1.")
    return ChangesArguments(
        since_state=arguments.string_value("sinceState", untrusted.get("sinceState")),
        max_changes=min(wanted, MAX_CHANGES),
    )


def changes(snapshot: Snapshot, data_type: DataType, asked: ChangesArguments) -> ChangeList:
    """Return what changed, never more ids than asked for. Raises `QueryRefused` (cannotCalculateChanges)."""
    try:
        return snapshot.changes(data_type, asked.since_state, asked.max_changes)
    except CannotCalculateChanges:
        raise cannot_calculate("sinceState") from None


def cannot_calculate(argument: str) -> QueryRefused:
    """Return the refusal of a state that is not known here, or no more (RFC 8620 §5.2, §5.6)."""
    return QueryRefused(
        "cannotCalculateChanges",
        f"{argument}: is no state of this server, or too old. Ask for everything anew.",
        (argument,),
    )


def too_many_changes() -> QueryRefused:
    """Return the refusal of an answer with more than `maxChanges` ids (RFC 8620 §5.6)."""
    return QueryRefused("tooManyChanges", "maxChanges: there are more. Ask with a larger one, or query anew.")

"""The sample mailbox: what lies in which mailbox of the demo's server."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from deploy.demo.messages import hostile, languages, machines, newsletters, notices, plain

MAILBOXES: Final = ("INBOX", "Incoming", "Processed", "Escalate", "Newsletters", "Archive", "Sent", "Trash")

# All keywords that the server keeps; it tells them in PERMANENTFLAGS.
KEYWORDS: Final = ("$Forwarded", "$Important", "$Junk", "$NotJunk", "vip")

# Between the Date that a sender writes and the arrival.
_TRANSIT: Final = timedelta(seconds=7)


@dataclass(frozen=True, slots=True)
class DemoMessage:
    r"""One message of the sample.

    `octets` has CRLF line ends; `flags` holds system flags (`\Seen`) and keywords; `received` is its INTERNALDATE;
    `slug` names it in scripts and tests.
    """

    mailbox: str
    octets: bytes
    flags: frozenset[str]
    received: datetime
    slug: str


def messages(now: datetime) -> list[DemoMessage]:
    """The whole sample in order of arrival, over the three weeks before `now` (with an offset from UTC).

    The same `now` gives the same octets. Slugs are unique. Raises ValueError for a `now` without an offset.
    """
    if now.tzinfo is None:
        raise ValueError("the sample's present needs an offset from UTC")
    letters = [
        *plain.letters(now),
        *languages.letters(),
        *newsletters.letters(),
        *notices.letters(),
        *machines.letters(now),
        *hostile.letters(),
    ]
    sample = [
        DemoMessage(letter.mailbox, letter.octets(now), letter.flags, letter.written(now) + _TRANSIT, letter.slug)
        for letter in letters
    ]
    return sorted(sample, key=lambda message: (message.received, message.slug))

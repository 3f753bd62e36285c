"""The first look at an account: what threads its newest messages, before any of them comes in (RFC 8621 §3).

Message ids of later messages join Threads that exist, and Threads never merge; so those of the newest messages of all
mailboxes are known before an id is given out. It costs some 300 octets a message, and goes on where it was interrupted.
"""

import heapq
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from agent_reader.errors import Refused
from agent_reader.imap.session import ReadOnlySession
from agent_reader.sync.ahead import Ahead
from agent_reader.sync.mirror import KnownMailbox, Mirror

# Some months to years of mail, six megabytes of headers: a few seconds.
MOST_HEADERS: Final = 20_000
# So many in one fetch and one transaction: an interruption loses no more. Of many mailboxes each gives fewer, since
# which of them have the newest mail is seen by what they gave.
_MOST_AT_A_TIME: Final = 1_000
_FEWEST_AT_A_TIME: Final = 50

_NEWEST: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(slots=True)
class _Shelf:
    """A mailbox, its UIDs that may be wanted (newest first), and the date of the last one that was looked at."""

    mailbox: KnownMailbox
    uidvalidity: int
    uids: Sequence[int]
    known: frozenset[int]
    reached: datetime = _NEWEST
    done: int = field(default=0)


def first_look(
    session: ReadOnlySession,
    mirror: Mirror,
    mailboxes: Iterable[KnownMailbox],
    refused: Callable[[KnownMailbox, Refused], None],
    most_headers: int = MOST_HEADERS,
) -> None:
    """Have the newest messages threaded, the account's newest first; what the server refuses is left out and told.

    UIDs stand for dates within a mailbox (RFC 9051 §2.3.1.1: they grow with each message that comes in). Raises
    `ImapFailure`, and what `refused` raises.
    """
    shelves: list[_Shelf] = []
    for mailbox in mailboxes:
        try:
            shelves.append(_open(session, mirror, mailbox, most_headers))
        except Refused as refusal:
            refused(mailbox, refusal)
    at_a_time = min(_MOST_AT_A_TIME, max(_FEWEST_AT_A_TIME, most_headers // max(1, len(shelves))))
    ahead = Ahead(mirror.await_backlog(sum(len(shelf.uids) - len(shelf.known) for shelf in shelves)))

    def look_further(shelf: _Shelf) -> set[int]:
        try:
            return _look_further(session, mirror, ahead, shelf, at_a_time)
        except Refused as refusal:
            refused(shelf.mailbox, refusal)
            shelf.done = len(shelf.uids)
            return set()

    try:
        _look_at_newest(shelves, look_further, most_headers)
    finally:
        # What was fetched is not fetched again, whatever ended it.
        ahead.flush()
    mirror.thread()


def _look_at_newest(shelves: Iterable[_Shelf], look_further: Callable[[_Shelf], set[int]], most_headers: int) -> None:
    order = itertools.count()
    waiting = [(_before(shelf.reached), next(order), shelf) for shelf in shelves if shelf.uids]
    # Views show the same messages again: each counts once.
    seen: set[int] = set()
    while waiting and len(seen) < most_headers:
        _, _, shelf = heapq.heappop(waiting)
        seen |= look_further(shelf)
        if shelf.done < len(shelf.uids):
            heapq.heappush(waiting, (_before(shelf.reached), next(order), shelf))


def _open(session: ReadOnlySession, mirror: Mirror, mailbox: KnownMailbox, most: int) -> _Shelf:
    examined = session.examine(mailbox.name)
    newest = sorted(session.uids(examined), reverse=True)[:most]
    known = frozenset(mirror.headers_known(mailbox.id, examined.uidvalidity))
    return _Shelf(mailbox, examined.uidvalidity, newest, known)


def _look_further(session: ReadOnlySession, mirror: Mirror, ahead: Ahead, shelf: _Shelf, at_a_time: int) -> set[int]:
    """Take in the next headers of a mailbox; what tells them apart."""
    uids = shelf.uids[shelf.done : shelf.done + at_a_time]
    shelf.done += len(uids)
    wanted = [uid for uid in uids if uid not in shelf.known]
    seen = {hash((shelf.mailbox.id, uid)) for uid in uids if uid in shelf.known}
    if not wanted:
        return seen
    # While it is open its UIDs mean what they meant; to open it anew can cost the server more than the headers.
    is_open = session.open_mailbox == shelf.mailbox.name
    if not is_open and session.examine(shelf.mailbox.name).uidvalidity != shelf.uidvalidity:
        shelf.done = len(shelf.uids)
        return seen
    headers = session.thread_headers(wanted)
    ahead.put(mirror.begin_headers(shelf.mailbox.id, shelf.uidvalidity, headers))
    if headers:
        shelf.reached = min(headers, key=lambda each: each.uid).internaldate
    return seen | {hash(each.header) for each in headers}


def _before(moment: datetime) -> float:
    return -moment.timestamp()

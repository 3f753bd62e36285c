"""What sync needs of the store: the Protocol that the store satisfies, and the values that cross.

All values are IMAP's. The crossing to JMAP's vocabulary happens in the store.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from agent_reader.imap.uid_ranges import UidRanges
from agent_reader.imap.values import (
    Examined,
    FetchedMessage,
    ListedMailbox,
    MailboxStatus,
    MessageState,
    ThreadHeader,
)

__all__ = [
    "Examined",
    "FetchedMessage",
    "KnownCopy",
    "KnownMailbox",
    "ListedMailbox",
    "MailboxStatus",
    "MessageState",
    "Mirror",
    "SetAside",
    "ThreadHeader",
    "UidRanges",
]


@dataclass(frozen=True, slots=True)
class KnownMailbox:
    """A mailbox as the mirror knows it; `uidvalidity` is None before the first look.

    `highestmodseq` is the value up to which the messages that the mirror holds are as the server has them, None where
    it has no CONDSTORE; `uidnext` the value up to which it holds all. `whole_at` is how the server's mailbox stood when
    the mirror last had all of it, None where something may be missing since.
    """

    id: str
    name: str
    selectable: bool
    uidvalidity: int | None
    uidnext: int
    highestmodseq: int | None
    whole_at: MailboxStatus | None = None


@dataclass(frozen=True, slots=True)
class SetAside:
    """A message that could not be fetched or read three times; sync moves on and says so."""

    uid: int
    code: str
    cause: str
    fix: str


@dataclass(frozen=True, slots=True)
class KnownCopy:
    """A message that the mirror has already, from another mailbox: its octets need not be fetched again."""

    uid: int
    state: MessageState
    of_mailbox_id: str
    of_uid: int


class Mirror(Protocol):
    """The store of one account as sync uses it. Each call is one transaction: all of it lands or nothing."""

    def put_mailboxes(self, listing: Iterable[ListedMailbox]) -> None:
        """Make the set of mailboxes equal to a full LIST; ids survive, gone mailboxes lose their copies."""

    def mailboxes(self) -> list[KnownMailbox]:
        """Return every mailbox that is listed now, INBOX first."""

    def is_threaded(self) -> bool:
        """Whether ids can be given: the newest messages were threaded, or some came in without that."""

    def headers_known(self, mailbox_id: str, uidvalidity: int) -> Collection[int]:
        """Return the UIDs whose headers wait to be threaded."""

    def await_backlog(self, messages: int) -> int:
        """So many messages will come in soon: reading them may be made ready. 0: what was made ready can end.

        Returns how many batches it pays to have begun at once. Raises `NoReadingProcess`.
        """

    def reads_in_place_of_processes(self) -> bool:
        """Whether so many messages are read in the reader itself, since no process for it could be started."""

    def stop_reading(self) -> None:
        """End at once what `begin_add` and `begin_headers` began: the reader ends. Any thread may call."""

    def begin_headers(self, mailbox_id: str, uidvalidity: int, headers: Iterable[ThreadHeader]) -> Callable[[], None]:
        """Begin to read headers of messages that did not come in yet, to be threaded together.

        What is returned waits for the reading and keeps them.
        """

    def thread(self) -> None:
        """Thread all headers that were kept; ids are given from now on."""

    def restart(self, mailbox_id: str, uidvalidity: int) -> None:
        """Begin a mailbox anew under another UIDVALIDITY: its copies are forgotten; their Emails are held, not gone."""

    def states(self, mailbox_id: str, uids: UidRanges | None = None) -> Mapping[int, MessageState]:
        """Return flags and MODSEQ of each UID that the mirror holds, of these only if they are given."""

    def count(self, mailbox_id: str) -> int:
        """Return how many messages of a mailbox are taken in or set aside."""

    def set_aside(self, mailbox_id: str) -> Mapping[int, SetAside]:
        """Return the messages set aside in this mailbox."""

    def begin_add(self, mailbox_id: str, messages: Iterable[FetchedMessage]) -> Callable[[], None]:
        """Begin to read new messages; other work can be done meanwhile.

        What is returned waits for the reading and takes them in, in one transaction: the same octets elsewhere are the
        same Email, one bad message is set aside alone. It may raise `ReadingEnded`, `NoReadingProcess`.
        """

    def add_copies(self, mailbox_id: str, copies: Iterable[KnownCopy]) -> Collection[int]:
        """Take in messages that the mirror has from another mailbox; return those UIDs that it has indeed."""

    def put_aside(self, mailbox_id: str, message: SetAside) -> None:
        """Remember a message that cannot be had."""

    def caught_up(
        self,
        mailbox_id: str,
        changed: Mapping[int, MessageState],
        gone: Collection[int],
        examined: Examined,
        *,
        whole: bool,
    ) -> None:
        """Take in changed flags, forget copies that are gone, and only with them the new HIGHESTMODSEQ.

        An Email without a copy is held until `settle`. `whole`: nothing is missing, so it is `looked` as well.
        """

    def received(self, octets: int) -> None:
        """Count octets that the server sent, whatever they were of: providers count them so."""

    def octets_today(self) -> int:
        """Return how many octets the server sent within 24 hours."""

    def mailbox_failed(self, mailbox_id: str, code: str, detail: str, fix: str) -> None:
        """Record why a mailbox cannot be looked at; the status says so until the next look."""

    def looked(self, mailbox_id: str, uidnext: int, highestmodseq: int | None) -> None:
        """Record that the mailbox was brought up to these values just now."""

    def found_unchanged(self, mailbox_ids: Collection[str]) -> None:
        """Record that these mailboxes, which were whole, are as they were just now."""

    def settle(self, unchanged: Collection[str] = ()) -> None:
        """Destroy held Emails whose every mailbox was looked at once after the last copy vanished: end of a round.

        `unchanged`: as `found_unchanged`, where nothing else was looked at in this round.
        """

    def release_overdue(self) -> None:
        """Destroy Emails held for longer than an hour: end of a round in which a mailbox could not be looked at."""

    def let_in(self) -> None:
        """Record that the server let this login in; a first sync, which is long, no longer says what prevented it."""

    def failed(self, code: str, detail: str, fix: str) -> None:
        """Record that a round ended early; the status says so until the next whole round."""

    def note_damage(self) -> None:
        """Remember that what is kept of some message is damaged, until `mend`. Any thread may call."""

    def is_damaged(self) -> bool:
        """Whether somebody met what is kept of a message and is damaged, since the last `mend`."""

    def mend(self) -> int:
        """Forget the copies of all messages of which what is kept is damaged; return of how many.

        Whoever remembers what the mirror has forgets it.
        """

    def is_over(self, code: str) -> None:
        """Forget a failure of this code, if it is what the status says."""

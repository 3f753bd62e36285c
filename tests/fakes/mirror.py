"""A mirror in memory that keeps what sync tells it, and checks that sync keeps the contract."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from agent_reader.imap.values import FetchedMessage, ListedMailbox, MailboxStatus, MessageState, ThreadHeader
from agent_reader.sync.mirror import KnownCopy, KnownMailbox, SetAside
from shared.identity import email_id, message_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from agent_reader.imap.uid_ranges import UidRanges
    from agent_reader.imap.values import Examined

_UNSELECTABLE = frozenset({"\\Noselect", "\\NonExistent"})


@dataclass
class FakeMailbox:
    """One mailbox; `looks` counts calls of looked."""

    id: str
    listed: ListedMailbox
    uidvalidity: int | None = None
    uidnext: int = 0
    highestmodseq: int | None = None
    messages: dict[int, FetchedMessage] = field(default_factory=dict)
    aside: dict[int, SetAside] = field(default_factory=dict)
    looks: int = 0
    exists: int | None = None


class FakeMirror:
    """Emails by id; `held` are those without a copy, until settle."""

    def __init__(self) -> None:
        self.known: dict[str, FakeMailbox] = {}
        self.held: set[str] = set()
        self.destroyed: set[str] = set()
        self.failures: list[str] = []
        self.overs: list[str] = []
        self.is_without_processes = False
        self.damaged = False
        self.added: list[tuple[str, int]] = []
        self.settled = 0
        self.octets_received = 0
        self.changes = 0
        self.copied: list[tuple[str, int]] = []
        self.restarts = 0
        self.let_ins = 0
        self.backlog = 0
        # Most tests are of what comes after the first look; one that is not takes this back.
        self.threaded = True
        self.headers: dict[tuple[str, int], set[int]] = {}
        self.happened = threading.Condition()
        # Called after each batch, with its UIDs.
        self.on_add: Callable[[list[int]], object] | None = None

    # What a test asks.

    def names(self) -> set[str]:
        return {mailbox.listed.name for mailbox in self.known.values()}

    def named(self, name: str) -> FakeMailbox:
        return next(mailbox for mailbox in self.known.values() if mailbox.listed.name == name)

    def octets(self, name: str) -> dict[int, bytes]:
        return {uid: message.octets or b"" for uid, message in self.named(name).messages.items()}

    def email_ids(self) -> set[str]:
        return {_id(message) for mailbox in self.known.values() for message in mailbox.messages.values()}

    def await_settled(self, at_least: int, seconds: float = 20.0) -> None:
        with self.happened:
            assert self.happened.wait_for(lambda: self.settled >= at_least, seconds), self.failures

    def await_failures(self, at_least: int, seconds: float = 20.0) -> None:
        with self.happened:
            assert self.happened.wait_for(lambda: len(self.failures) >= at_least, seconds)

    # What sync calls.

    def put_mailboxes(self, listing: Iterable[ListedMailbox]) -> None:
        listed = {mailbox.name: mailbox for mailbox in listing}
        for mailbox in list(self.known.values()):
            if mailbox.listed.name not in listed:
                self.vanish(mailbox.id, list(mailbox.messages))
                del self.known[mailbox.id]
        for name, entry in listed.items():
            if name in self.names():
                self.named(name).listed = entry
            else:
                mailbox_id = f"F{len(self.known)}{len(self.added)}{name}"
                self.known[mailbox_id] = FakeMailbox(mailbox_id, entry)

    def mailboxes(self) -> list[KnownMailbox]:
        ordered = sorted(self.known.values(), key=lambda mailbox: (mailbox.listed.name != "INBOX", mailbox.listed.name))
        return [
            KnownMailbox(
                mailbox.id,
                mailbox.listed.name,
                not mailbox.listed.attributes & _UNSELECTABLE,
                mailbox.uidvalidity,
                mailbox.uidnext,
                mailbox.highestmodseq,
                _whole_at(mailbox),
            )
            for mailbox in ordered
        ]

    def is_threaded(self) -> bool:
        return self.threaded

    def headers_known(self, mailbox_id: str, uidvalidity: int) -> set[int]:
        return self.headers.get((mailbox_id, uidvalidity), set())

    def put_headers(self, mailbox_id: str, uidvalidity: int, headers: Iterable[ThreadHeader]) -> None:
        kept = self.headers.setdefault((mailbox_id, uidvalidity), set())
        for header in headers:
            assert header.uid not in kept, "a header was fetched twice"
            kept.add(header.uid)

    def begin_headers(self, mailbox_id: str, uidvalidity: int, headers: Iterable[ThreadHeader]) -> Callable[[], None]:
        """It reads nothing, so it keeps them at once."""
        self.put_headers(mailbox_id, uidvalidity, headers)
        return lambda: None

    def thread(self) -> None:
        self.threaded = True

    def restart(self, mailbox_id: str, uidvalidity: int) -> None:
        mailbox = self.known[mailbox_id]
        self.restarts += mailbox.uidvalidity is not None
        self.vanish(mailbox_id, list(mailbox.messages))
        mailbox.aside.clear()
        mailbox.uidvalidity, mailbox.uidnext, mailbox.highestmodseq = uidvalidity, 0, None

    def states(self, mailbox_id: str, uids: UidRanges | None = None) -> Mapping[int, MessageState]:
        held = self.known[mailbox_id].messages
        wanted = held.keys() if uids is None else uids.among(held.keys())
        return {uid: held[uid].state for uid in wanted}

    def count(self, mailbox_id: str) -> int:
        return len(self.known[mailbox_id].messages) + len(self.known[mailbox_id].aside)

    def set_aside(self, mailbox_id: str) -> Mapping[int, SetAside]:
        return dict(self.known[mailbox_id].aside)

    def add(self, mailbox_id: str, messages: Iterable[FetchedMessage]) -> None:
        mailbox = self.known[mailbox_id]
        uids: list[int] = []
        for message in messages:
            uids.append(message.uid)
            assert message.uid not in mailbox.messages, "a message was fetched twice"
            assert message.internaldate.tzinfo is not None
            mailbox.messages[message.uid] = message
            self.held.discard(_id(message))
            self.added.append((mailbox.listed.name, message.uid))
        if self.on_add is not None:
            self.on_add(uids)

    def begin_add(self, mailbox_id: str, messages: Iterable[FetchedMessage]) -> Callable[[], None]:
        """It reads nothing, so it takes them in at once."""
        self.add(mailbox_id, messages)
        return lambda: None

    def await_backlog(self, messages: int) -> int:
        self.backlog = messages
        return 0

    def reads_in_place_of_processes(self) -> bool:
        return self.is_without_processes

    def note_damage(self) -> None:
        self.damaged = True

    def is_damaged(self) -> bool:
        return self.damaged

    def mend(self) -> int:
        self.damaged = False
        return 0

    def is_over(self, code: str) -> None:
        self.overs.append(code)

    def stop_reading(self) -> None:
        pass

    def put_aside(self, mailbox_id: str, message: SetAside) -> None:
        self.known[mailbox_id].aside[message.uid] = message

    def add_copies(self, mailbox_id: str, copies: Iterable[KnownCopy]) -> Collection[int]:
        taken = []
        for copy in copies:
            if message := self.known[copy.of_mailbox_id].messages.get(copy.of_uid):
                self.copied.append((mailbox_id, copy.uid))
                self.known[mailbox_id].messages[copy.uid] = replace(message, uid=copy.uid, state=copy.state)
                self.held.discard(_id(message))
                taken.append(copy.uid)
        return taken

    def caught_up(
        self,
        mailbox_id: str,
        changed: Mapping[int, MessageState],
        gone: Collection[int],
        examined: Examined,
        *,
        whole: bool,
    ) -> None:
        mailbox = self.known[mailbox_id]
        for uid, state in changed.items():
            mailbox.messages[uid] = replace(mailbox.messages[uid], state=state)
            self.changes += 1
        self.vanish(mailbox_id, gone)
        mailbox.highestmodseq, mailbox.uidnext, mailbox.exists = examined.highestmodseq, 0, examined.exists
        if whole:
            self.looked(mailbox_id, examined.uidnext, examined.highestmodseq)

    def vanish(self, mailbox_id: str, uids: Iterable[int]) -> None:
        mailbox = self.known[mailbox_id]
        gone = [mailbox.messages.pop(uid) for uid in uids if uid in mailbox.messages]
        for uid in uids:
            mailbox.aside.pop(uid, None)
        self.held |= {_id(message) for message in gone} - self.email_ids()

    def received(self, octets: int) -> None:
        self.octets_received += octets

    def octets_today(self) -> int:
        return self.octets_received

    def mailbox_failed(self, mailbox_id: str, code: str, detail: str, fix: str) -> None:
        assert code
        assert detail
        assert fix
        assert mailbox_id in self.known

    def looked(self, mailbox_id: str, uidnext: int, highestmodseq: int | None) -> None:
        mailbox = self.known[mailbox_id]
        mailbox.uidnext, mailbox.highestmodseq = uidnext, highestmodseq
        mailbox.looks += 1

    def found_unchanged(self, mailbox_ids: Collection[str]) -> None:
        for mailbox_id in mailbox_ids:
            assert _whole_at(self.known[mailbox_id]) is not None
            self.known[mailbox_id].looks += 1

    def settle(self, unchanged: Collection[str] = ()) -> None:
        self.found_unchanged(unchanged)
        with self.happened:
            self.destroyed |= self.held
            self.held.clear()
            self.settled += 1
            self.happened.notify_all()

    def release_overdue(self) -> None:
        """Nothing here is held for that long."""

    def let_in(self) -> None:
        self.let_ins += 1

    def failed(self, code: str, detail: str, fix: str) -> None:
        assert detail
        assert fix
        with self.happened:
            self.failures.append(code)
            self.happened.notify_all()


def _whole_at(mailbox: FakeMailbox) -> MailboxStatus | None:
    if not (mailbox.uidvalidity and mailbox.uidnext and mailbox.highestmodseq) or mailbox.exists is None:
        return None
    return MailboxStatus(mailbox.uidvalidity, mailbox.uidnext, mailbox.exists, mailbox.highestmodseq)


def _id(message: FetchedMessage) -> str:
    return email_id(message_digest(message.octets or message.header))

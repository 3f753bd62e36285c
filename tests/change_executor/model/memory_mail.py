"""A mail server in memory, of which the model knows everything: it tells each move to a judge before it makes it."""

from __future__ import annotations

import copy
import hashlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from change_executor.looking import MailboxStatus, OpenedMailbox, SeenMessage
from change_executor.move_reply import Answer, CopyUid, MoveReply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from shared.imap_login import ImapLogin

MAILBOXES = ("Incoming", "Processed", "Escalate", "Archive")
UIDVALIDITY = {name: 7 + number for number, name in enumerate(MAILBOXES)}


class Fate(StrEnum):
    """What becomes of the next MOVE."""

    ANSWERED = "answered"
    # it runs, and no answer comes
    ANSWER_LOST = "answer lost"
    # it never arrives
    COMMAND_LOST = "command lost"
    # the server's process sleeps, and runs it when it wakes
    LATE = "late"
    # the executor is gone as soon as it has run, or before
    DIES_AFTER = "dies after"
    DIES_BEFORE = "dies before"


class Died(BaseException):
    """The executor is gone."""


@dataclass
class MemoryMail:
    """Mailboxes as octets by UID. `judge` is called with (source, UID, octets, target) of each move that happens."""

    mailboxes: dict[str, dict[int, bytes]] = field(default_factory=lambda: {name: {} for name in MAILBOXES})
    uidnext: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MAILBOXES, 1))
    sleeping: list[tuple[str, int, str]] = field(default_factory=list)
    fate: Fate = Fate.ANSWERED

    def put(self, mailbox: str, octets: bytes) -> int:
        uid = self.uidnext[mailbox]
        self.mailboxes[mailbox][uid] = octets
        self.uidnext[mailbox] += 1
        return uid

    def find(self, octets: bytes) -> tuple[str, int] | None:
        """The first place where a message of these octets lies."""
        return next(
            ((name, uid) for name, found in self.mailboxes.items() for uid, each in found.items() if each == octets),
            None,
        )

    def copy(self) -> MemoryMail:
        return copy.deepcopy(self)

    def key(self) -> tuple[object, ...]:
        lying = tuple((name, uid, octets) for name, found in self.mailboxes.items() for uid, octets in found.items())
        return (lying, tuple(self.sleeping), self.fate)


class MemorySession:
    """One connection."""

    def __init__(self, mail: MemoryMail, judge: Callable[[str, int, bytes, str], None]) -> None:
        self._mail, self._judge, self._opened = mail, judge, ""

    def select(self, mailbox: str) -> OpenedMailbox:
        self._opened = mailbox
        return OpenedMailbox(UIDVALIDITY[mailbox], self._mail.uidnext[mailbox], read_only=False)

    def examine(self, mailbox: str) -> OpenedMailbox:
        return self.select(mailbox)

    def status(self, mailbox: str) -> MailboxStatus:
        return MailboxStatus(UIDVALIDITY[mailbox], self._mail.uidnext[mailbox], len(self._mail.mailboxes[mailbox]))

    def fetch(self, uid: int, *, spool: bool = False) -> SeenMessage | None:
        octets = self._mail.mailboxes[self._opened].get(uid)
        if octets is None:
            return None
        digest = hashlib.sha256(octets).hexdigest()
        return SeenMessage(uid, digest, len(octets), "2026-11-29T12:00:00+00:00", frozenset(), octets if spool else b"")

    def has(self, uid: int) -> bool:
        return uid in self._mail.mailboxes[self._opened]

    def uids_from(self, uid: int) -> list[int]:
        return sorted(each for each in self._mail.mailboxes[self._opened] if each >= uid)

    def has_capability(self, name: str) -> bool:
        return name in {"MOVE", "UIDPLUS"}

    def copy_one(self, uid: int, target: str) -> MoveReply:
        raise AssertionError(f"a server with MOVE copies nothing: {uid} to {target}")

    def flag_deleted(self, uid: int) -> Answer:
        raise AssertionError(f"nothing is flagged: {uid}")

    def expunge_one(self, uid: int) -> Answer:
        raise AssertionError(f"nothing is expunged: {uid}")

    def move_one(self, uid: int, target: str) -> MoveReply:
        fate, self._mail.fate = self._mail.fate, Fate.ANSWERED
        match fate:
            case Fate.DIES_BEFORE:
                raise Died
            case Fate.COMMAND_LOST:
                return MoveReply(Answer.UNKNOWN)
            case Fate.LATE:
                self._mail.sleeping.append((self._opened, uid, target))
                return MoveReply(Answer.UNKNOWN)
        new_uid = run_move(self._mail, self._judge, self._opened, uid, target)
        if fate is Fate.DIES_AFTER:
            raise Died
        if fate is Fate.ANSWER_LOST:
            return MoveReply(Answer.UNKNOWN)
        return MoveReply(Answer.OK, None if new_uid is None else CopyUid(UIDVALIDITY[target], uid, new_uid))


def run_move(
    mail: MemoryMail, judge: Callable[[str, int, bytes, str], None], source: str, uid: int, target: str
) -> int | None:
    """Run a MOVE as servers do: of a UID that is gone it is OK and does nothing."""
    octets = mail.mailboxes[source].get(uid)
    if octets is None:
        return None
    judge(source, uid, octets, target)
    del mail.mailboxes[source][uid]
    return mail.put(target, octets)


class MemoryMover:
    """Opens sessions; the mailboxes that a session may name are checked as the guard does."""

    def __init__(self, mail: Callable[[], MemoryMail], judge: Callable[[str, int, bytes, str], None]) -> None:
        self._mail, self._judge = mail, judge

    @contextmanager
    def session(
        self, login: ImapLogin, mailboxes: Iterable[str] = MAILBOXES, *, copying: bool = False
    ) -> Iterator[MemorySession]:
        assert set(mailboxes) <= set(MAILBOXES), (login.id, copying)
        yield MemorySession(self._mail(), self._judge)

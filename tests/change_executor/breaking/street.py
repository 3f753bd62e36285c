"""Mailboxes with neighbours: what may move, its byte-identical twin, and others that nobody may touch."""

from __future__ import annotations

import hashlib
import itertools
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from imapclient import IMAPClient
from imapclient.exceptions import IMAPClientError

from shared.identity import email_id
from tests.servers.snapshot import _mailbox as read_mailbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.change_executor.breaking.rig import MailServer, Rig
    from tests.servers.snapshot import MailboxState, MessageState

MAILBOXES = ("Incoming", "Processed", "Escalate", "Archive")

# What lies there before: flagged Deleted by somebody else, read, kept apart by a keyword, and one as it came.
_FLAGS = (("\\Deleted",), ("\\Seen", "\\Answered"), ("\\Flagged",), ())


def letter(name: str) -> bytes:
    return (
        f"From: ann@example.org\r\nTo: shop@example.org\r\nMessage-ID: <same@example.org>\r\nSubject: {name}\r\n"
        f"\r\nThe same to everybody: {name}\r\n"
    ).encode()


@dataclass(frozen=True)
class Trial:
    """One message that is to be moved, at `uid` of incoming, and its twin."""

    octets: bytes
    uid: int
    twin: int

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.octets).hexdigest()


class Street:
    """Delivers, and knows what every mailbox must look like afterwards; its owner stays signed in meanwhile."""

    def __init__(self, server: MailServer) -> None:
        self._server = server
        self._numbers = itertools.count(1)
        self._owner: IMAPClient | None = None
        self._named: Callable[[str, str], str] = getattr(server, "named", lambda _login, mailbox: mailbox)
        for mailbox in MAILBOXES:
            for flags in _FLAGS:
                self._append(mailbox, letter(f"neighbour of {mailbox} {' '.join(flags)}"), flags)
        # A twin of a neighbour, in the same mailbox.
        self._append("Incoming", letter("neighbour of Incoming "), ())
        self._before = self._look()
        self._uidvalidity = self._before["Incoming"].uidvalidity

    def close(self) -> None:
        if self._owner is not None:
            self._owner.shutdown()
            self._owner = None

    def deliver(self, rig: Rig) -> Trial:
        """A message and its twin; a reader knows both, and the one with the lower UID may move."""
        octets = letter(f"trial {next(self._numbers)}")
        uid, twin = (self._append("Incoming", octets, ("\\Flagged",)) for _ in range(2))
        places = [(self._uidvalidity, uid), (self._uidvalidity, twin)]
        rig.reader.places[email_id(hashlib.sha256(octets).digest())] = places
        return Trial(octets, uid, twin)

    def places(self, trial: Trial) -> list[tuple[str, int]]:
        """Where it lies, its twin aside; the twin lies where it lay, and everything else is as it was."""
        after = self._look()
        moved: list[tuple[str, int]] = []
        for name, mailbox in after.items():
            others = {uid: message for uid, message in mailbox.messages.items() if message.sha256 != trial.digest}
            assert _seen(self._before[name].messages) == _seen(others), name
            for uid, message in mailbox.messages.items():
                if message.sha256 == trial.digest and (name, uid) != ("Incoming", trial.twin):
                    assert {"\\Flagged"} == message.flags, message
                    moved.append((name, uid))
        assert {"\\Flagged"} == after["Incoming"].messages[trial.twin].flags
        return moved

    def check(self, trial: Trial, where: str) -> None:
        """It lies there and nowhere else, once, with its flags."""
        moved = self.places(trial)
        assert [where] == [name for name, _ in moved], f"lies in {moved}, and not once in {where}"

    def clear(self, trial: Trial) -> None:
        """Take it and its twin away, by their owner, so that the next trial begins with the same street."""
        for name, uid in [*self.places(trial), ("Incoming", trial.twin)]:
            self.take_away(name, uid)

    def take_away(self, mailbox: str, uid: int) -> None:
        """What another mail client does to a message."""
        with self._signed_in() as owner:
            owner.select_folder(self._named("owner", mailbox))
            owner.set_flags([uid], ["\\Deleted"], silent=True)
            owner.uid_expunge([uid])
            owner.select_folder(self._named("owner", "Archive"), readonly=True)

    def move(self, source: str, uid: int, target: str) -> None:
        """What another mail client does to a message, on a server without MOVE too."""
        with self._signed_in() as owner:
            owner.select_folder(self._named("owner", source), readonly=True)
            owner.copy([uid], self._named("owner", target))
        self.take_away(source, uid)

    def _append(self, mailbox: str, octets: bytes, flags: tuple[str, ...]) -> int:
        with self._signed_in() as owner:
            answer = owner.append(self._named("owner", mailbox), octets, flags)
        found = re.search(rb"APPENDUID \d+ (\d+)", answer)
        assert found, answer
        return int(found[1])

    def _look(self) -> dict[str, MailboxState]:
        with self._signed_in() as owner:
            return {name: read_mailbox(owner, self._named("owner", name)) for name in MAILBOXES}

    @contextmanager
    def _signed_in(self) -> Iterator[IMAPClient]:
        if self._owner is None or not self._is_alive():
            self._owner = IMAPClient("127.0.0.1", self._server.port, ssl=False, timeout=30)
            self._owner.login("owner", self._server.passwords["owner"])
            self._owner.normalise_times = False
        yield self._owner

    def _is_alive(self) -> bool:
        assert self._owner is not None
        try:
            self._owner.noop()
        except (IMAPClientError, OSError):
            self.close()
            return False
        return True


def _seen(messages: Mapping[int, MessageState]) -> dict[int, tuple[object, ...]]:
    return {uid: (each.sha256, each.flags, each.keywords, each.internaldate) for uid, each in sorted(messages.items())}

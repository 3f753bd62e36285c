"""Every moment at which something can break: before and after each commit and each command of a mail session.

Death after an answer is death before the next command or commit, whichever comes first, since nothing lasts in between;
so these are all the moments that there are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import event

from change_executor.connections import Connections

if TYPE_CHECKING:
    from collections.abc import Iterator

    from change_executor.journal.journal import Journal
    from shared.imap_guard import VerbTable
    from shared.imap_login import GuardedClient, ImapLogin

_VERB = re.compile(rb"^\S+ ((?:UID )?[A-Z]+)", re.IGNORECASE)


class Died(BaseException):
    """The executor is gone: nothing of it writes or says anything after this."""


# Called at every moment with its position, from 0, and its name.
Handler = Callable[["Points", int, str], None]
Act = Callable[["Points"], None]


class Points:
    """Names the moments as they pass; the armed handler may do something at any of them."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.client: GuardedClient | None = None
        self.paused = True
        self._handler: Handler = _nothing

    def arm(self, handler: Handler) -> None:
        """Begin to count, and let this be called."""
        self._handler = handler
        self.passed.clear()
        self.paused = False

    def disarm(self) -> None:
        self.paused = True

    def pass_by(self, name: str) -> None:
        if not self.paused:
            self.passed.append(name)
            self._handler(self, len(self.passed) - 1, name)

    def break_off(self) -> None:
        """Break the connection that is open, if one is."""
        if self.client is not None:
            self.client.break_off()


def _nothing(_points: Points, _position: int, _name: str) -> None:
    pass


def die(points: Points) -> None:
    raise Died(points.passed[-1])


def at_position(due: int, act: Act) -> Handler:
    def handler(points: Points, position: int, _name: str) -> None:
        if position == due:
            act(points)

    return handler


def at_names(*steps: tuple[str, Act]) -> Handler:
    """Act at the first moment of the first name, then at the first one of the second name after it, and so on."""
    left = list(steps)

    def handler(points: Points, _position: int, name: str) -> None:
        if left and left[0][0] == name:
            left.pop(0)[1](points)

    return handler


class WatchedConnections(Connections):
    """Connections of which every command passes a point before its first octet and after its last."""

    def __init__(self, points: Points, session_seconds: float = 600.0) -> None:
        super().__init__(session_seconds=session_seconds)
        self._points = points

    @contextmanager
    def opened(self, login: ImapLogin, table: VerbTable) -> Iterator[GuardedClient]:
        with super().opened(login, table) as client:
            self._points.client = client
            said, send = bytearray(), client._imap.send

            def watched(octets: bytes) -> None:
                if not said:
                    self._points.pass_by(f"before {_verb(octets)}")
                said.extend(octets)
                send(octets)
                if said.endswith(b"\r\n"):
                    verb = _verb(bytes(said))
                    said.clear()
                    self._points.pass_by(f"sent {verb}")

            client._imap.send = watched
            try:
                yield client
            finally:
                self._points.client = None


def watch_journal(journal: Journal, points: Points, *, first: bool = True) -> None:
    """Let every commit of this journal pass a point before it and one after it; its engine is watched once."""
    if first:
        event.listen(journal._writer, "commit", lambda _connection: points.pass_by("before a commit"))
    journal.listen(lambda: points.pass_by("committed"))


def _verb(octets: bytes) -> str:
    found = _VERB.match(octets)
    return found[1].decode().upper() if found else "a command"

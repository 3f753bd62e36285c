"""Octets that somebody waits for, fetched on connections of their own: few, read-only, and ahead of the sync."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from agent_reader.errors import Refused, Throttled
from agent_reader.imap.precedence import Precedence
from agent_reader.imap.session import ReadOnlySession
from agent_reader.imap.values import Place
from shared.imap_login import ImapFailure, ImapLogin
from shared.settings import ConfigurationError
from shared.time_and_chance import Monotonic

# Providers count connections (Gmail allows 15 a user, some hosts 4); the sync has one more.
MOST_CONNECTIONS: Final = 2
# Whoever waits longer for a connection is better told so, and asks again.
TURN_SECONDS: Final = 20.0
# An agent waits for it: shorter than the sync's patience.
FETCH_READ_SECONDS: Final = 30.0
# The largest message over a slow line; past it the mail server is as good as down.
MOST_FETCH_SECONDS: Final = 180.0
# The next attachment of the same message is asked for within seconds; then the server has its connection back.
IDLE_SECONDS: Final = 20.0

# How long a failure is answered without trying again. Many refused logins in a row lock an account.
_REMEMBERED_SECONDS: Final = {"login_refused": 300.0, "throttled": 60.0, "configuration": 30.0}
_REMEMBERED_OTHERWISE_SECONDS: Final = 2.0


@dataclass(slots=True, eq=False)
class _Idle:
    session: ReadOnlySession
    timer: threading.Timer | None = None


@dataclass(slots=True)
class _Remembered:
    failure: ImapFailure
    until: float


@dataclass(slots=True)
class _Connections:
    idle: list[_Idle] = field(default_factory=list)
    running: set[ReadOnlySession] = field(default_factory=set)
    remembered: _Remembered | None = None
    closed: bool = False


class Fetcher:
    """Fetches messages of one account; any thread may call, `close` when done.

    `precedence` is the account's: its sync stands back meanwhile. Connections are opened when needed and given back
    after `idle_seconds`.
    """

    def __init__(
        self,
        login: ImapLogin,
        precedence: Precedence,
        *,
        idle_seconds: float = IDLE_SECONDS,
        turn_seconds: float = TURN_SECONDS,
        monotonic: Monotonic = time.monotonic,
    ) -> None:
        self._login, self._precedence = login, precedence
        self._idle_seconds, self._turn_seconds, self._monotonic = idle_seconds, turn_seconds, monotonic
        self._turns = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._lock = threading.Lock()
        self._connections = _Connections()

    def fetch(self, place: Place, write: Callable[[bytes], None]) -> bool:
        """Give the octets of the message at a place to `write`, in order; False where it is not there (any more).

        Nothing has been written then. Raises `ImapFailure` (also for a server that refuses), and what `write` raises.
        """
        self._raise_remembered()
        if not self._turns.acquire(timeout=self._turn_seconds):
            raise ImapFailure(
                "busy",
                f"{MOST_CONNECTIONS} other messages of this account are being fetched.",
                "Ask again in a moment, for one message at a time.",
                retryable=True,
            )
        try:
            with self._precedence.foreground(), self._remembering(), self._session_at(place) as session:
                return session is not None and self._copy(session, place.uid, write)
        finally:
            self._turns.release()

    def close(self) -> None:
        """Interrupt what runs, and drop every connection."""
        with self._lock:
            self._connections.closed = True
            idle, self._connections.idle = self._connections.idle, []
            for session in self._connections.running:
                session.interrupt()
        for each in idle:
            if each.timer is not None:
                each.timer.cancel()
            each.session.close()

    def _copy(self, session: ReadOnlySession, uid: int, write: Callable[[bytes], None]) -> bool:
        until = self._monotonic() + MOST_FETCH_SECONDS
        found = False
        for piece in session.pieces(uid):
            found = True
            write(piece)
            if self._monotonic() > until:
                session.close()
                raise ImapFailure(
                    "unreachable",
                    f"The message did not come within {MOST_FETCH_SECONDS:.0f} seconds.",
                    "Try again later.",
                    retryable=True,
                )
        return found

    @contextmanager
    def _session_at(self, place: Place) -> Iterator[ReadOnlySession | None]:
        """A session with the place's mailbox open, or None where the mailbox is gone or became another."""
        session, is_there = self._examined(place)
        try:
            yield session if is_there else None
        except Refused:
            self._keep(session)
            raise
        except BaseException:
            self._drop(session)
            raise
        self._keep(session)

    def _examined(self, place: Place) -> tuple[ReadOnlySession, bool]:
        kept = self._taken()
        if kept is not None:
            try:
                return kept, self._examine(kept, place)
            except ImapFailure:
                # It was closed while nobody used it; once more, on a new one.
                self._drop(kept)
        session = self._opened()
        try:
            return session, self._examine(session, place)
        except BaseException:
            self._drop(session)
            raise

    def _examine(self, session: ReadOnlySession, place: Place) -> bool:
        try:
            return session.examine(place.mailbox).uidvalidity == place.uidvalidity
        except Refused as refusal:
            # RFC 5530 §3: gone, or not ours to see any more. Anything else may pass.
            if refusal.code in {"NONEXISTENT", "NOPERM"}:
                return False
            if refusal.is_throttling:
                raise
        # Many servers refuse without a code. A list tells whether it is there, and how the server spells its name.
        if all(listed.name != place.mailbox for listed in session.list_mailboxes()):
            return False
        return session.examine(place.mailbox).uidvalidity == place.uidvalidity

    def _opened(self) -> ReadOnlySession:
        session = ReadOnlySession.open(self._login, FETCH_READ_SECONDS)
        with self._lock:
            self._connections.running.add(session)
            if self._connections.closed:
                session.interrupt()
        return session

    def _taken(self) -> ReadOnlySession | None:
        with self._lock:
            if not self._connections.idle:
                return None
            kept = self._connections.idle.pop()
            self._connections.running.add(kept.session)
        if kept.timer is not None:
            kept.timer.cancel()
        return kept.session

    def _keep(self, session: ReadOnlySession) -> None:
        kept = _Idle(session)
        with self._lock:
            self._connections.running.discard(session)
            if not self._connections.closed:
                kept.timer = threading.Timer(self._idle_seconds, self._let_go, (kept,))
                kept.timer.daemon = True
                kept.timer.start()
                self._connections.idle.append(kept)
                return
        session.close()

    def _let_go(self, kept: _Idle) -> None:
        with self._lock:
            if kept not in self._connections.idle:
                return
            self._connections.idle.remove(kept)
        kept.session.log_out()

    def _drop(self, session: ReadOnlySession) -> None:
        with self._lock:
            self._connections.running.discard(session)
        session.close()

    def _raise_remembered(self) -> None:
        with self._lock:
            remembered = self._connections.remembered
            if remembered is None:
                return
            if self._monotonic() >= remembered.until:
                self._connections.remembered = None
                return
        failure = remembered.failure
        raise ImapFailure(failure.code, failure.detail, failure.fix, retryable=failure.retryable)

    @contextmanager
    def _remembering(self) -> Iterator[None]:
        """Every way in which the server fails comes out as one `ImapFailure`, and is remembered for a while."""
        try:
            yield
        except ImapFailure as failure:
            self._remember(failure)
            raise
        except ConfigurationError as error:
            unusable = ImapFailure("configuration", f"{error.where}: {error.what}", error.fix, retryable=True)
            self._remember(unusable)
            raise unusable from None
        except Refused as refusal:
            if refusal.is_throttling:
                throttled = Throttled("The mail server", refusal.text)
                self._remember(throttled)
                raise throttled from None
            raise ImapFailure(
                "refused", f"The mail server refuses to give it now ({refusal}).", "Try again later.", retryable=True
            ) from None

    def _remember(self, failure: ImapFailure) -> None:
        seconds = _REMEMBERED_SECONDS.get(failure.code, _REMEMBERED_OTHERWISE_SECONDS)
        if isinstance(failure, Throttled) and failure.wait_seconds is not None:
            seconds = failure.wait_seconds
        with self._lock:
            self._connections.remembered = _Remembered(failure, self._monotonic() + seconds)

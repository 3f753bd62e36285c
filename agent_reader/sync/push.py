"""Listens to one account so that new mail is seen at once: NOTIFY on one connection, else IDLE, one a mailbox.

It only wakes the account's own thread, which looks; a server that can do neither is polled and nothing is lost.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from structlog.typing import FilteringBoundLogger

from agent_reader.errors import Refused, Throttled
from agent_reader.imap.push import PushConnection
from agent_reader.imap.values import Heard
from agent_reader.sync.backoff import pause_after, pause_of
from agent_reader.sync.wakings import Wakings
from shared.imap_login import ImapFailure, ImapLogin
from shared.settings import ConfigurationError
from shared.time_and_chance import Monotonic

# A connection that lived so long did listen: its end is the first failure, not one of many.
_LIVED_SECONDS: Final = 60.0
# The server does not mean it for now; it is polled, and asked again.
_REFUSED_PAUSE_SECONDS: Final = 600.0


class Push:
    """Listens until `stop`. `names`: the mailboxes to listen to where the server has no NOTIFY, each a connection."""

    def __init__(
        self,
        login: ImapLogin,
        names: Sequence[str],
        renew_seconds: float,
        wakings: Wakings,
        log: FilteringBoundLogger,
        chance: Callable[[], float],
        monotonic: Monotonic = time.monotonic,
    ) -> None:
        self._login, self._names, self._renew_seconds = login, tuple(names), renew_seconds
        self._wakings, self._log, self._chance, self._monotonic = wakings, log, chance, monotonic
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._connections: set[PushConnection] = set()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin to listen; the first mailbox's connection finds out what the server can do."""
        if self._names:
            self._spawn(self._names[0])

    def stop(self) -> None:
        """Ask every listener to end: what it waits for is interrupted. See `join`."""
        self._ended.set()
        with self._lock:
            for connection in self._connections:
                connection.interrupt()

    def join(self, seconds: float) -> bool:
        """Wait for their end; whether it came."""
        until = self._monotonic() + seconds
        with self._lock:
            threads = tuple(self._threads)
        for thread in threads:
            thread.join(max(0.0, until - self._monotonic()))
        return not any(thread.is_alive() for thread in threads)

    def _spawn(self, name: str) -> None:
        # A daemon: a connection attempt cannot be interrupted, and must not hold up the end of the process.
        thread = threading.Thread(target=self._run, args=(name,), name=f"push-{self._login.id}", daemon=True)
        with self._lock:
            if self._ended.is_set():
                return
            self._threads.append(thread)
        thread.start()

    def _run(self, name: str) -> None:
        failures = 0
        while not self._ended.is_set():
            connection, began = None, self._monotonic()
            try:
                connection = self._opened()
                if not connection.can("IDLE"):
                    self._log.info("push:polling", mailbox=name)
                    return
                self._listen(connection, name)
            except Throttled as throttled:
                failures += 1
                pause = pause_of(throttled, failures, self._chance())
            except (ImapFailure, ConfigurationError) as trouble:
                # What is wrong with the login or the server is told by the account's own thread.
                code = trouble.code if isinstance(trouble, ImapFailure) else "login_refused"
                failures = 1 if self._monotonic() - began > _LIVED_SECONDS else failures + 1
                pause = pause_after(failures, code, self._chance())
            except Refused as refusal:
                self._log.warning("push:refused", mailbox=name, verb=refusal.verb, answer=refusal.text)
                pause = _REFUSED_PAUSE_SECONDS
            finally:
                self._drop(connection)
            self._ended.wait(pause)

    def _listen(self, connection: PushConnection, name: str) -> None:
        """Listen for as long as the connection lives. Raises `ImapFailure`, `Refused`."""
        by_notify = name == self._names[0] and self._notified(connection)
        if by_notify:
            self._wakings.wake_all()
        else:
            connection.examine(name)
            # What came between the last look and this is not told by IDLE.
            self._wakings.wake([name])
            self._spawn_others(name)
        while not self._ended.is_set():
            heard = connection.listen(self._renew_seconds, self._monotonic)
            self._pass_on(heard, name)

    def _notified(self, connection: PushConnection) -> bool:
        if not connection.can("NOTIFY"):
            return False
        try:
            connection.notify()
        except Refused as refusal:
            self._log.info("push:no_notify", answer=refusal.text)
            return False
        return True

    def _spawn_others(self, name: str) -> None:
        with self._lock:
            is_alone = len(self._threads) == 1
        if is_alone and name == self._names[0]:
            for other in self._names[1:]:
                self._spawn(other)

    def _pass_on(self, heard: Heard, name: str) -> None:
        if heard.anything:
            self._wakings.wake_all()
        elif heard:
            self._wakings.wake({*heard.mailboxes, name} if heard.selected else heard.mailboxes)

    def _opened(self) -> PushConnection:
        connection = PushConnection.open(self._login)
        with self._lock:
            self._connections.add(connection)
            if self._ended.is_set():
                connection.interrupt()
        return connection

    def _drop(self, connection: PushConnection | None) -> None:
        if connection is None:
            return
        with self._lock:
            self._connections.discard(connection)
        connection.close()

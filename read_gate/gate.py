"""Runs the gate: accepts readers, one thread for each connection, until a signal ends it."""

import contextlib
import select
import signal
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import SecretStr
from structlog.typing import FilteringBoundLogger

from read_gate.config import GatedAccount, GateSettings
from read_gate.front import SignedIn, sign_in
from read_gate.peers import allowed_uids, stranger
from read_gate.reader_side import ReaderSide
from read_gate.relay import ProtocolBroken, Relay
from read_gate.tables import FRONT_TABLE, PASSED_TABLE
from shared.imap_guard import GuardRefusal
from shared.imap_login import GuardedClient, ImapFailure, connect
from shared.imap_stream import TooLarge
from shared.reader_verbs import READER_TABLE
from shared.repeats import Repeats
from shared.service_manager import ServiceManager, handed_over
from shared.settings import ConfigurationError

# FileDescriptorName= in the .socket unit.
_SOCKET_NAME: Final = "gate"
_BACKLOG: Final = 64
_ENDING_SECONDS: Final = 3.0


class Gate:
    """The accounts behind the gate, and the connections that are open."""

    def __init__(self, settings: GateSettings, log: FilteringBoundLogger) -> None:
        self._accounts: dict[str, GatedAccount] = {account.id: account for account in settings.accounts}
        self._secrets: dict[str, SecretStr] = {account.id: account.local_secret() for account in settings.accounts}
        self._allowed = allowed_uids(settings.gate.allow_uids)
        self._places = threading.BoundedSemaphore(settings.gate.max_connections)
        self._repeats = Repeats(time.monotonic)
        self._log = log
        self._lock = threading.Lock()
        self._open: dict[threading.Thread, list[socket.socket]] = {}
        self._is_ending = False

    def admit(self, connection: socket.socket, peer: tuple[str, int, *tuple[int, ...]]) -> None:
        """Serve one reader in a thread of its own; a stranger, and one too many, is told so and let go."""
        # On some systems what is accepted takes after the listener, which never waits.
        connection.setblocking(True)
        if (whose := stranger(peer[:2], connection.getsockname()[:2], self._allowed)) is not None:
            self._let_go(connection, "gate:stranger", b"your user may not connect: [gate] allow_uids", whose=whose)
            return
        if not self._places.acquire(blocking=False):
            self._let_go(connection, "gate:full", b"too many connections")
            return
        thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
        with self._lock:
            self._open[thread] = [connection]
        thread.start()

    def _let_go(self, connection: socket.socket, event: str, reason: bytes, **more: str) -> None:
        # Whoever knocks again and again must not fill the log.
        if (left_out := self._repeats.left_out(event)) is not None:
            self._log.warning(event, left_out=left_out, **more)
        with connection, contextlib.suppress(OSError):
            # A line fits into what the kernel keeps for a new connection.
            connection.sendall(b"* BYE [UNAVAILABLE] " + reason + b"\r\n")

    def end(self) -> None:
        """End every connection, and wait a bounded time for their threads."""
        with self._lock:
            self._is_ending = True
            threads = list(self._open)
            for each in (each for ends in self._open.values() for each in ends):
                _break_off(each)
        until = time.monotonic() + _ENDING_SECONDS
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                self._converse(connection)
        finally:
            with self._lock:
                del self._open[threading.current_thread()]
            self._places.release()

    def _converse(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        side = ReaderSide(connection, FRONT_TABLE, time.monotonic)
        try:
            signed_in = sign_in(side, self._secrets)
            if signed_in is None:
                self._log.info("gate:not_signed_in")
                return
            side.judge_by(PASSED_TABLE)
            with self._connected(side, signed_in) as server:
                if server is not None:
                    side.say(signed_in.tag + b" OK signed in\r\n")
                    Relay(side, server, time.monotonic).run()
        except GuardRefusal as refusal:
            # The one thing that must be seen: somebody tried. Of the line it says the verb at most.
            self._log.error("gate:refused", what=str(refusal))
            _last_words(side, b"* BYE refused by the gate\r\n")
        except (ProtocolBroken, TooLarge, OSError) as error:
            if not self._is_ending:
                self._log.info("gate:broken", error=type(error).__name__)
            _last_words(side, b"* BYE the connection broke\r\n")

    @contextlib.contextmanager
    def _connected(self, side: ReaderSide, signed_in: SignedIn) -> Iterator[GuardedClient | None]:
        account = self._accounts[signed_in.account_id]
        try:
            server = connect(account, READER_TABLE)
        except (ImapFailure, ConfigurationError) as failure:
            code = failure.code if isinstance(failure, ImapFailure) else "configuration"
            self._log.error("gate:login_failed", account=account.id, code=code, error=str(failure))
            is_passing = isinstance(failure, ImapFailure) and failure.retryable
            response = b"UNAVAILABLE" if is_passing else b"AUTHENTICATIONFAILED"
            side.say(signed_in.tag + b" NO [" + response + b"] the gate's own login: " + code.encode() + b"\r\n")
            yield None
            return
        try:
            with self._lock:
                self._open[threading.current_thread()].append(server.socket())
                is_ending = self._is_ending
            self._log.info("gate:open", account=account.id)
            yield None if is_ending else server
        finally:
            server.close_connection()


def _break_off(sock: socket.socket) -> None:
    # Not SSLSocket.shutdown, which would take the encryption off under the other thread's hands.
    with contextlib.suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _last_words(side: ReaderSide, octets: bytes) -> None:
    with contextlib.suppress(OSError):
        side.say(octets)


def serve(settings: GateSettings, log: FilteringBoundLogger) -> None:
    """Run until SIGTERM or SIGINT. Raises `ConfigurationError`."""
    gate = Gate(settings, log)
    with contextlib.ExitStack() as stack:
        ended, woken_by = (stack.enter_context(end) for end in socket.socketpair())
        woken_by.setblocking(False)
        signal.set_wakeup_fd(woken_by.fileno())
        stack.callback(signal.set_wakeup_fd, -1)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        listeners = [stack.enter_context(each) for each in _listeners(settings)]
        stack.callback(gate.end)
        _accept_until(ended, listeners, gate, log)
    log.info("gate:ended")


def _accept_until(
    ended: socket.socket, listeners: Sequence[socket.socket], gate: Gate, log: FilteringBoundLogger
) -> None:
    manager = ServiceManager()
    by_descriptor = {listener.fileno(): listener for listener in listeners}
    poll = select.poll()
    for descriptor in (*by_descriptor, ended.fileno()):
        poll.register(descriptor, select.POLLIN)
    host, port = listeners[0].getsockname()[:2]
    log.info("gate:ready", host=host, port=port)
    manager.ready(f"passes reading on at {host}:{port}")
    between = None if manager.watchdog_seconds is None else manager.watchdog_seconds * 500
    while True:
        speaking = {descriptor for descriptor, _ in poll.poll(between)}
        manager.alive()
        if ended.fileno() in speaking:
            manager.stopping()
            return
        for descriptor in speaking:
            # Whoever gave up meanwhile is not there any more.
            with contextlib.suppress(OSError):
                gate.admit(*by_descriptor[descriptor].accept())


def _listeners(settings: GateSettings) -> list[socket.socket]:
    if given := handed_over().get(_SOCKET_NAME):
        return given
    host, port = settings.gate.address
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ConfigurationError(
            "[gate] listen", f"{settings.gate.listen} cannot be listened at: {error.strerror}.", "Name a free port."
        ) from None
    listener.setblocking(False)
    return [listener]

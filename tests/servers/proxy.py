"""A TCP proxy on loopback that breaks the connection at a chosen point of a chosen command (plain IMAP only)."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Self, assert_never

if TYPE_CHECKING:
    from collections.abc import Callable

HOST: Final = "127.0.0.1"
_CHUNK: Final = 65_536
# Seconds; a proxy that is asked to close while it waits for the server notices within this time at the latest.
_WAIT: Final = 20.0
# SO_LINGER on with zero seconds: close() sends RST instead of FIN.
_LINGER_ZERO: Final = struct.pack("ii", 1, 0)


class BreakPoint(StrEnum):
    """Where the connection breaks, seen from the server: what of the command arrives, and how it ends."""

    BEFORE_COMMAND = "before the first byte of the command"
    INSIDE_COMMAND = "inside the command, six bytes short of its end"
    BEFORE_CRLF = "after all but the final CR LF"
    AFTER_COMMAND_RST = "after the whole command, by RST at once"
    AFTER_COMMAND_FIN = "after the whole command, by FIN at once"
    RESPONSE_DROPPED = "after the whole command was answered; the answer is dropped"
    BLACKHOLE = "never: the command is swallowed and nothing is ever answered again"


class BreakingProxy:
    """Forwards to `upstream` (a port) until a client's line contains `matcher` (any case), then breaks.

    It breaks `times` connections (the first matching line of each), and afterwards forwards all it gets. `port` is
    where it listens, `broken` is set once the break has happened, `dropped` holds the server's answer that
    RESPONSE_DROPPED kept back. With BLACKHOLE and an empty matcher the server is never even greeted.
    """

    def __init__(self, upstream: int, matcher: bytes, at: BreakPoint, *, times: int = 1) -> None:
        self.broken = threading.Event()
        self.dropped = b""
        self._upstream = upstream
        self._matcher = matcher.upper()
        self._at = at
        self._left = times
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        # Closing the far end wakes every thread that waits in select().
        self._closing, self._closer = socket.socketpair()

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._closer.close()
        for thread in self._threads:
            thread.join(_WAIT)
            assert not thread.is_alive()
        self._listener.close()
        self._closing.close()

    def arm(self, matcher: bytes, at: BreakPoint, *, times: int = 1) -> None:
        """Break again: the next connections that say this, there."""
        with self._lock:
            self._matcher, self._at, self._left = matcher.upper(), at, times
            self.broken.clear()

    def _spawn(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while self._listener in self._readable(self._listener):
            client, _ = self._listener.accept()
            self._spawn(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(ConnectionError):
            if self._at is BreakPoint.BLACKHOLE and not self._matcher and self._claim_break():
                self._swallow(client)
                return
            with socket.create_connection((HOST, self._upstream), timeout=_WAIT) as server:
                # A command must leave at once, not wait to be joined by the end that follows it.
                server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._forward(client, server)

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        held = b""
        while True:
            ready = self._readable(client, server)
            if server in ready:
                octets = server.recv(_CHUNK)
                if not octets:
                    return
                client.sendall(octets)
            elif client in ready:
                octets = client.recv(_CHUNK)
                if not octets:
                    return
                # imapclient sends one command in pieces; only whole lines can be judged.
                *lines, held = (held + octets).splitlines(keepends=True) or [b""]
                if held.endswith(b"\n"):
                    lines, held = [*lines, held], b""
                for line in lines:
                    if self._matcher in line.upper() and self._claim_break():
                        self._break(client, server, line)
                        return
                    server.sendall(line)
            else:
                return

    def _claim_break(self) -> bool:
        with self._lock:
            if self._left == 0:
                return False
            self._left -= 1
            return True

    def _break(self, client: socket.socket, server: socket.socket, line: bytes) -> None:
        match self._at:
            case BreakPoint.BEFORE_COMMAND:
                _reset(server)
            case BreakPoint.INSIDE_COMMAND:
                server.sendall(line[:-6])
                _finish(server)
            case BreakPoint.BEFORE_CRLF:
                server.sendall(line.rstrip(b"\r\n"))
                _finish(server)
            case BreakPoint.AFTER_COMMAND_RST:
                server.sendall(line)
                _reset(server)
            case BreakPoint.AFTER_COMMAND_FIN:
                server.sendall(line)
                _finish(server)
            case BreakPoint.RESPONSE_DROPPED:
                server.sendall(line)
                self.dropped = self._answer_to(server, line.split(b" ", 1)[0])
                _reset(server)
            case BreakPoint.BLACKHOLE:
                self._swallow(client)
                return
            case _:
                assert_never(self._at)
        _reset(client)
        self.broken.set()

    def _answer_to(self, server: socket.socket, tag: bytes) -> bytes:
        answer = b""
        while not any(line.startswith(tag + b" ") for line in answer.splitlines()):
            octets = server.recv(_CHUNK) if server in self._readable(server) else b""
            if not octets:
                break
            answer += octets
        return answer

    def _swallow(self, client: socket.socket) -> None:
        self.broken.set()
        while client in self._readable(client) and client.recv(_CHUNK):
            pass

    def _readable(self, *sockets: socket.socket) -> list[socket.socket]:
        """Those that can be read, or none once the proxy closes."""
        ready = select.select([*sockets, self._closing], [], [])[0]
        return [] if self._closing in ready else ready


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
    connection.close()


def _finish(connection: socket.socket) -> None:
    # ENOTCONN: the other side has gone already, which is an end as well.
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)

"""A TCP proxy that alters what a real server says, line by line: hides a capability, or ends after so many lines."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable

HOST: Final = "127.0.0.1"
_WAIT: Final = 20.0


class AlteringProxy:
    """`alter` gets each line that the server sends, with its end, and gives what is passed on; None ends both sides."""

    def __init__(self, upstream: int, alter: Callable[[bytes], bytes | None]) -> None:
        self._upstream, self._alter = upstream, alter
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._closing = False

    def __enter__(self) -> Self:
        self._accepting = self._spawn(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._closing = True
        # A connection of our own wakes accept().
        socket.create_connection((HOST, self.port)).close()
        # One that connected just before has its sockets among the others then.
        self._accepting.join(_WAIT)
        for each in self._sockets:
            _end(each)
        for thread in self._threads:
            thread.join(_WAIT)
            assert not thread.is_alive()
        for each in (*self._sockets, self._listener):
            each.close()

    def _spawn(self, work: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            if self._closing:
                client.close()
                return
            server = socket.create_connection((HOST, self._upstream), timeout=_WAIT)
            server.settimeout(None)
            self._sockets += [client, server]
            self._spawn(self._up, client, server)
            self._spawn(self._down, client, server)

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while octets := client.recv(65_536):
                server.sendall(octets)
        _end(server)

    def _down(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError), server.makefile("rb") as lines:
            for line in lines:
                altered = self._alter(line)
                if altered is None:
                    break
                client.sendall(altered)
        # Not closed: while the other thread still reads, that would end nothing.
        _end(client)
        _end(server)


def hiding(*capabilities: bytes) -> Callable[[bytes], bytes]:
    """Leave these words out of every list of capabilities, and do not say that they were enabled."""

    def alter(line: bytes) -> bytes:
        if b"CAPABILITY " in line[:24] or line.startswith(b"* ENABLED"):
            for capability in capabilities:
                line = line.replace(b" " + capability + b" ", b" ").replace(b" " + capability + b"\r\n", b"\r\n")
        return line

    return alter


def _end(connection: socket.socket) -> None:
    # ENOTCONN, EBADF: it has ended already.
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)

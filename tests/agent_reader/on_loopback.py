"""An ASGI app of the reader on a port of this machine, spoken to over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

import uvicorn

from shared.bounded_http import BoundedProtocol

if TYPE_CHECKING:
    from fastapi import FastAPI

SECONDS = 20.0


class _Server(uvicorn.Server):
    loop: asyncio.AbstractEventLoop | None = None

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        await super().serve(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Signals are pytest's.
        yield


@dataclass
class Served:
    """A running server."""

    port: int
    server: _Server

    def tasks(self) -> int:
        """How many tasks its loop has, the one that counts left out."""

        async def count() -> int:
            return len(asyncio.all_tasks()) - 1

        assert self.server.loop is not None
        return asyncio.run_coroutine_threadsafe(count(), self.server.loop).result(SECONDS)

    def connections(self) -> int:
        return len(self.server.server_state.connections)

    def connect(self, path: str, *, method: str = "GET", **headers: str) -> Client:
        return Client.asking(self.port, path, method, headers)


@dataclass
class Client:
    """One connection, one request, and what comes back as it comes."""

    socket: socket.socket
    octets: bytearray = field(default_factory=bytearray)

    @classmethod
    def asking(cls, port: int, path: str, method: str, headers: dict[str, str]) -> Self:
        connection = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
        fields = {"Host": f"localhost:{port}", "Connection": "close"} | headers
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
        connection.sendall(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode())
        return cls(connection)

    def until(self, wanted: bytes) -> bytes:
        """Everything so far, once it holds this."""
        while wanted not in self.octets:
            got = self.socket.recv(65_536)
            assert got, f"{wanted!r} never came: {bytes(self.octets)!r}"
            self.octets += got
        return bytes(self.octets)

    def to_the_end(self) -> bytes:
        while got := self.socket.recv(65_536):
            self.octets += got
        return bytes(self.octets)

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def on_loopback(app: FastAPI) -> Iterator[Served]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    config = uvicorn.Config(
        app,
        http=BoundedProtocol,
        lifespan="off",
        log_config=None,
        access_log=False,
        ws="none",
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )
    server = _Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    try:
        await_true(lambda: server.started)
        yield Served(listener.getsockname()[1], server)
    finally:
        server.should_exit = True
        thread.join(SECONDS)
        assert not thread.is_alive()
        listener.close()


def descriptors() -> int:
    """How many files and sockets this process holds; the store keeps connections for later, and those do not count."""
    found = 0
    for each in Path("/proc/self/fd").iterdir():
        # One of them is the listing's own, and gone by now.
        with contextlib.suppress(FileNotFoundError):
            found += not str(each.readlink()).endswith((".db", ".db-wal", ".db-shm"))
    return found


def await_true(condition: Callable[[], bool]) -> None:
    """Wait until it holds, looking often; it fails at the deadline."""
    pause = threading.Event()
    for _ in range(int(SECONDS * 100)):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("it never came")

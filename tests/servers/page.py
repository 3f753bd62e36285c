"""A review page on a real port: uvicorn in a thread of its own, stopped and joined at the end."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Any, Self

import uvicorn

from shared.bounded_http import BoundedProtocol

if TYPE_CHECKING:
    from starlette.types import ASGIApp


class Served:
    """An ASGI application on 127.0.0.1, or on a socket that is given; `port` is known before it is made."""

    def __init__(self, bound: socket.socket | None = None) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0)) if bound is None else bound
        self.port: int = self._socket.getsockname()[1]
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    def serve(self, app: ASGIApp) -> Self:
        config = uvicorn.Config(
            app,
            http=BoundedProtocol,
            log_config=None,
            access_log=False,
            lifespan="on",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=2,
            ws="none",
        )
        server = self._server = uvicorn.Server(config)
        ready = threading.Event()
        startup = server.startup

        async def started(*arguments: Any, **options: Any) -> None:
            await startup(*arguments, **options)
            ready.set()

        server.startup = started  # type: ignore[method-assign]  # uvicorn has no other way to tell that it listens
        self._thread = threading.Thread(target=server.run, args=([self._socket],), name="page")
        self._thread.start()
        assert ready.wait(20), "the page did not start"
        return self

    def close(self) -> None:
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(20)
            assert not self._thread.is_alive(), "the page did not stop"
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

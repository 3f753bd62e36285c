"""The gate behind a real uvicorn, on a thread of the test."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Self

import uvicorn

from change_executor.accepting import ListenerProtocol
from change_executor.peers import PeerUidGate
from shared.bounded_http import BACKLOG
from tests.servers.bounded import let_head_seconds_pass

if TYPE_CHECKING:
    import socket

    from starlette.types import Receive, Scope, Send


class Inner:
    """An application that remembers whether anything reached it."""

    def __init__(self) -> None:
        self.requests = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert ("http", True) == (scope["type"], callable(receive))
        self.requests += 1
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


class Serving:
    """The gate behind a real uvicorn, as the executor runs it."""

    def __init__(self, listener: socket.socket, allow_uids: frozenset[int]) -> None:
        self.inner = Inner()
        self.gate = PeerUidGate(self.inner, allow_uids)
        self._listener = listener
        config = uvicorn.Config(
            self.gate,
            http=ListenerProtocol,
            backlog=BACKLOG,
            ws="none",
            lifespan="off",
            log_config=None,
            proxy_headers=False,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._listener]))

    def let_head_seconds_pass(self) -> None:
        """See there."""
        let_head_seconds_pass(self._server)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=30)
        self._listener.close()

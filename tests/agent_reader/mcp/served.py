"""The MCP door on a port of its own, in this process, and the SDK's clients at it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final

import httpx2
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from agent_reader.door.keeper import Places
from agent_reader.mcp.desk import Desk
from agent_reader.mcp.door import McpDoor, beside
from shared.bounded_http import BACKLOG, BoundedProtocol
from tests.agent_reader.served import House

if TYPE_CHECKING:
    from starlette.types import ASGIApp

# Both protocol eras: the handshake of 2025-11-25, and 2026-07-28, which asks what the server is and has none.
ERAS: Final = ("legacy", "auto")
# Long enough for an answer on a busy machine; httpx would wait for five.
SECONDS: Final = 30.0


def app_of(desk: Desk, house: House, public_url: str | None = None) -> ASGIApp:
    """Both doors of the reader, as it serves them."""
    return beside(McpDoor(desk, house.access, Places(), public_url), house.app)


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[str]:
    """Serve an app on a free port, and give its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(
            app,
            http=BoundedProtocol,
            backlog=BACKLOG,
            ws="none",
            lifespan="on",
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        server = _Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            # uvicorn has a flag for this, and no event.
            while not server.started:  # noqa: ASYNC110 - see above
                await asyncio.sleep(0.005)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving


@asynccontextmanager
async def client(address: str, token: str, era: str, **headers: str) -> AsyncIterator[Client]:
    """The SDK's client with a token, speaking one era."""
    right = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=right | headers, timeout=SECONDS, trust_env=False) as http:
        transport = streamable_http_client(f"{address}/mcp", http_client=http)
        async with Client(transport, mode=era) as opened:
            yield opened


def text_of(result: Any) -> str:
    """The one text of a tool's result."""
    (content,) = result.content
    return str(content.text)

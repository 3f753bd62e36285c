"""The HTTP door: who may come in, how much at once, and then the SDK's transport. POST /mcp; beside it `agent_doors`.

The SDK takes half a second of CPU to import. A thread does it once the first client knocks, or some seconds after the
start: by then the reader has answered whoever waited for it, and no later client pays.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_reader.access import Access, Agent
from agent_reader.door.gate import HostGate, read_body, wrong_method
from agent_reader.door.keeper import Keeper, Places
from agent_reader.door.leaving import watched
from agent_reader.mcp.agent_doors import agent_doors
from agent_reader.mcp.desk import AGENT_IN_SCOPE, IS_GONE_IN_SCOPE, Desk
from agent_reader.query.patience import Abandoned

PATH: Final = "/mcp"

# A call's arguments are a few hundred octets; the longest list of ids takes one thousand.
MAX_BODY_OCTETS: Final = 64 * 1024
MAX_BODY_SECONDS: Final = 10.0

# What a first round over a small mailbox takes, twice over; a reader that lives for less never imports the SDK unasked.
WARM_AFTER_SECONDS: Final = 10.0


class _Transport(Protocol):
    """What the door needs of the SDK's session manager."""

    def run(self) -> Any:  # noqa: ANN401 - an asynchronous context manager of the SDK's
        """Serve while the block lasts."""

    async def handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""


class McpDoor:
    """The ASGI app of the door. `running` has to be entered before the first request.

    It makes itself ready after `warm_after` seconds, or at the first request.
    """

    def __init__(
        self,
        desk: Desk,
        access: Access,
        places: Places,
        public_url: str | None = None,
        *,
        warm_after: float = WARM_AFTER_SECONDS,
    ) -> None:
        self._desk, self._places, self._public_url, self._warm_after = desk, places, public_url, warm_after
        self._keeper = Keeper(access, desk.faults, self._exchange, PATH)
        self._transport: asyncio.Future[_Transport] | None = None
        self._knocked: asyncio.Event | None = None
        self.app: ASGIApp = HostGate(self._answer, () if public_url is None else (urlsplit(public_url).netloc,))
        self.beside = agent_doors(desk, access, places, public_url)

    @property
    def is_ready(self) -> bool:
        """Whether the SDK serves: the next request waits for nothing."""
        return self._transport is not None and self._transport.done()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve while the block lasts."""
        self._transport = asyncio.get_running_loop().create_future()
        self._knocked, ended = asyncio.Event(), asyncio.Event()
        serving = asyncio.create_task(self._serve(self._transport, self._knocked, ended))
        try:
            yield
        finally:
            ended.set()
            if not self._transport.done():
                serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            self._transport = None

    async def _serve(
        self, transport: "asyncio.Future[_Transport]", knocked: asyncio.Event, ended: asyncio.Event
    ) -> None:
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(knocked.wait(), self._warm_after)
            manager: _Transport = await asyncio.to_thread(self._load)
            async with manager.run():
                transport.set_result(manager)
                await ended.wait()
        except Exception as error:  # noqa: BLE001 - the other door stays open; each request at this one is refused
            self._desk.faults.note(PATH, error)
            if not transport.done():
                transport.set_exception(error)
                transport.exception()

    def _load(self) -> _Transport:
        from agent_reader.mcp.server import make_manager  # noqa: PLC0415 - the SDK takes half a second

        return make_manager(self._desk, MAX_BODY_OCTETS, self._public_url)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            response = wrong_method("POST")
        else:
            response = await self._keeper.answer(Request(scope, receive))
        await response(scope, receive, send)

    async def _exchange(self, request: Request, agent: Agent) -> Response:
        with self._places.place(agent):
            body = await read_body(request, MAX_BODY_OCTETS, MAX_BODY_SECONDS)
            assert self._transport is not None, "the door is not running"
            assert self._knocked is not None, "the door is not running"
            self._knocked.set()
            transport = await asyncio.shield(self._transport)
            answer = _Answer()
            async with watched(request) as is_gone:
                scope = {**request.scope, AGENT_IN_SCOPE: agent, IS_GONE_IN_SCOPE: is_gone}
                await transport.handle_request(scope, _replayed(body), answer.take)
                if is_gone():
                    raise Abandoned
        return answer.response()


class _Answer:
    """The transport's answer, small and whole, so that a refusal on the way is still one."""

    def __init__(self) -> None:
        self._status = 500
        self._headers: list[tuple[bytes, bytes]] = []
        self._body = bytearray()

    async def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], list(message.get("headers", ()))
        else:
            self._body += message.get("body", b"")

    def response(self) -> Response:
        response = Response(bytes(self._body), self._status)
        for name, value in self._headers:
            if name.lower() != b"content-length":
                response.headers[name.decode("latin-1")] = value.decode("latin-1")
        return response


def _replayed(body: bytes) -> Callable[[], Any]:
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        if not waiting:
            # Whether the client leaves is watched by the door. Whoever waits for it here is cancelled with the request.
            await asyncio.Event().wait()
        return waiting.pop()

    return replay


def beside(door: McpDoor, other: ASGIApp) -> ASGIApp:
    """Return one app for one address: the MCP door and the agent's at their paths, the other door at every other."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with door.running():
            yield

    app = Starlette(
        routes=[Route(PATH, door.app), *(Route(path, app) for path, app in door.beside.items())],
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    # No Mount: its pattern ends at a line feed, and the refusal of such a path would be the library's.
    app.router.default = other
    return app

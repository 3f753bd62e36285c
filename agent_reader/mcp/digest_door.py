"""The route of the digest: POST /agent/digest, the news of every account that a token opens, as JSON.

For `agent-reader digest`, which runs as the agent and has nothing but the agent's tokens.
"""

import json
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from agent_reader.access import Access, Agent
from agent_reader.door import problems
from agent_reader.door.gate import HostGate, read_body, refusal
from agent_reader.door.keeper import Keeper, Places
from agent_reader.mcp.desk import Desk
from shared.problem import Problem

DIGEST_PATH: Final = "/agent/digest"

# `{"peek": true}`, and room for what a client may add to it.
_MAX_BODY_OCTETS: Final = 1_024
_MAX_BODY_SECONDS: Final = 10.0


class DigestDoor:
    """The ASGI app of the route."""

    def __init__(self, desk: Desk, access: Access, places: Places, public_url: str | None = None) -> None:
        self._desk, self._places = desk, places
        self._keeper = Keeper(access, desk.faults, self._digest, DIGEST_PATH)
        self.app: ASGIApp = HostGate(self._answer, () if public_url is None else (urlsplit(public_url).netloc,))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            response = refusal(problems.method_not_allowed("POST"))
        else:
            response = await self._keeper.answer(Request(scope, receive))
        await response(scope, receive, send)

    async def _digest(self, request: Request, agent: Agent) -> Response:
        with self._places.place(agent):
            peek = _peek(await read_body(request, _MAX_BODY_OCTETS, _MAX_BODY_SECONDS))
            answer = await run_in_threadpool(self._desk.digest, agent, peek=peek)
        return Response(answer, media_type="application/json")


def _peek(untrusted_body: bytes) -> bool:
    try:
        asked: Any = json.loads(untrusted_body)
    except (ValueError, RecursionError):
        raise _malformed() from None
    match asked:
        case {"peek": bool(peek)} if len(asked) == 1:
            return peek
        case _:
            raise _malformed()


def _malformed() -> Problem:
    return Problem(
        400, "malformed_digest_request", "The body is not an object with `peek` alone.", 'Send {"peek": true} or false.'
    )

"""The routes for the programs that run as the agent, with nothing but its tokens: JSON in, JSON out.

`POST /agent/digest` gives the news of every account that a token opens, for `agent-reader digest`.
`POST /agent/email-id` gives the whole id of the one message whose id begins so, for the relay: it proposes whole ids.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from agent_reader.access import Access, Agent
from agent_reader.door.gate import HostGate, read_body, wrong_method
from agent_reader.door.keeper import MOST_THREADS, Keeper, Places
from agent_reader.door.leaving import watched
from agent_reader.mcp.desk import Desk, IsGone
from agent_reader.query import QueryRefused
from agent_reader.query.errors import TIME_LIMIT
from agent_reader.query.patience import Abandoned
from agent_reader.tool_answers.refusals import ToolRefused
from shared.problem import Problem

DIGEST_PATH: Final = "/agent/digest"
EMAIL_ID_PATH: Final = "/agent/email-id"

# One short member, and room for what a client may add to it.
_MAX_BODY_OCTETS: Final = 1_024
_MAX_BODY_SECONDS: Final = 10.0

_Answer = Callable[[Agent, bytes, IsGone], bytes]


def agent_doors(desk: Desk, access: Access, places: Places, public_url: str | None = None) -> Mapping[str, ASGIApp]:
    """Return the ASGI app of each route by its path."""

    def digest(agent: Agent, untrusted_body: bytes, is_gone: IsGone) -> bytes:
        try:
            return desk.digest(agent, peek=_peek(untrusted_body), is_gone=is_gone)
        except QueryRefused as refused:
            if is_gone():
                raise Abandoned from None
            raise digest_refused(refused) from None

    def email_id(agent: Agent, untrusted_body: bytes, _is_gone: IsGone) -> bytes:
        try:
            return json.dumps({"emailId": desk.email_id(agent, _named(untrusted_body))}).encode()
        except ToolRefused as refused:
            raise email_id_refused(refused) from None

    netlocs = () if public_url is None else (urlsplit(public_url).netloc,)
    answers = {DIGEST_PATH: digest, EMAIL_ID_PATH: email_id}
    return {
        path: HostGate(_AgentDoor(desk, access, places, path, answer).answer, netlocs)
        for path, answer in answers.items()
    }


def digest_refused(refused: QueryRefused) -> Problem:
    """Return the refusal of a digest that takes too long or is too large as a problem document."""
    if refused.code == TIME_LIMIT:
        return Problem(
            503,
            "digest_too_slow",
            "The digest took too long and was ended; nothing of it was left out or counted as told.",
            "Ask again when less is going on, or use whats_new.",
            retryable=True,
        )
    return Problem(
        413, "digest_too_large", "The digest would be larger than `max_answer_octets`.", "Use whats_new, which pages."
    )


def email_id_refused(refused: ToolRefused) -> Problem:
    """Return a tool's refusal of an id as a problem document."""
    return Problem(404, refused.code, refused.detail, refused.fix)


class _AgentDoor:
    def __init__(self, desk: Desk, access: Access, places: Places, path: str, answer: _Answer) -> None:
        self._places, self._work = places, answer
        self._threads = anyio.CapacityLimiter(MOST_THREADS)
        self._keeper = Keeper(access, desk.faults, self._answered, path)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            response = wrong_method("POST")
        else:
            response = await self._keeper.answer(Request(scope, receive))
        await response(scope, receive, send)

    async def _answered(self, request: Request, agent: Agent) -> Response:
        with self._places.place(agent):
            body = await read_body(request, _MAX_BODY_OCTETS, _MAX_BODY_SECONDS)
            async with watched(request) as is_gone:
                answer = await anyio.to_thread.run_sync(self._work, agent, body, is_gone, limiter=self._threads)
        return Response(answer, media_type="application/json")


def _peek(untrusted_body: bytes) -> bool:
    match _asked(untrusted_body):
        case {"peek": bool(peek), **rest} if not rest:
            return peek
        case _:
            raise Problem(
                400,
                "malformed_digest_request",
                "The body is not an object with `peek` alone.",
                'Send {"peek": true} or false.',
            )


def _named(untrusted_body: bytes) -> str:
    match _asked(untrusted_body):
        case {"beginsWith": str(start), **rest} if not rest:
            return start
        case _:
            raise Problem(
                400,
                "malformed_id_request",
                "The body is not an object with `beginsWith` alone.",
                'Send {"beginsWith": "M..."}.',
            )


def _asked(untrusted_body: bytes) -> Any:  # noqa: ANN401 - JSON of anybody
    try:
        return json.loads(untrusted_body)
    except (ValueError, RecursionError):
        return None

"""What the executor may ask the reader, on a Unix socket: the closed table of `shared.link`, and nothing more.

The peer's uid is asked of the kernel (`agent_reader.peers`); tokens open nothing here. No mailbox name crosses, nor
any text of a mail.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, TypeVar

from fastapi import FastAPI
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from agent_reader.access import Access
from agent_reader.door.bare_app import Route, bare_app
from agent_reader.door.faults import Faults
from agent_reader.errors import AccessUnavailable
from agent_reader.peers import PeerGate
from agent_reader.store.status import Location
from shared.ijson import NotIJson, load
from shared.link import (
    MAX_ANSWER_OCTETS,
    MAX_READS,
    AccountStatus,
    Agents,
    Copy,
    Locate,
    Located,
    Opened,
    Read,
    Reads,
    ReadsPage,
    Status,
    WasOpened,
)
from shared.problem import MEDIA_TYPE, Problem
from shared.wrong_forms import wrong_form

# The longest question is a handful of short members.
_MAX_BODY_OCTETS: Final = 8 * 1024
_BODY_SECONDS: Final = 2.0

# Room for the rest of the page beside its lines.
_MAX_LINES_OCTETS: Final = MAX_ANSWER_OCTETS - 1024

# The keys of the read log are SQLite's.
_MAX_CURSOR: Final = 2**63 - 1

Question = TypeVar("Question", bound=BaseModel)


class Index(Protocol):
    """What the private socket needs of the store."""

    def locate(self, account_id: str, email_id: str) -> Location:
        """Return where copies of an Email lie."""

    def account_status(self, account_id: str) -> AccountStatus:
        """Return how whole and fresh an account's mirror is."""


# The whole door; each names a method of `_Endpoints`.
ROUTES: Final = (
    Route("/locate", "POST", "locate"),
    Route("/opened", "POST", "opened"),
    Route("/reads", "POST", "reads"),
    Route("/agents", "GET", "agents"),
    Route("/status", "GET", "status"),
)


def make_app(
    index: Index, access: Access, account_ids: Sequence[str], allow_uids: frozenset[int], faults: Faults
) -> FastAPI:
    """Return the ASGI app of the private socket; serve it with `agent_reader.peers.PeerProtocol`."""
    endpoints = _Endpoints(index, access, account_ids)
    app = bare_app(_not_in_the_table)
    for route in ROUTES:
        app.add_route(route.path, _doorway(getattr(endpoints, route.endpoint), faults), methods=[route.http_method])
    app.add_middleware(PeerGate, allow_uids=allow_uids)
    return app


class _Endpoints:
    """Each answers one question with one document of `shared.link`."""

    def __init__(self, index: Index, access: Access, account_ids: Sequence[str]) -> None:
        self._index, self._access, self._account_ids = index, access, account_ids

    async def locate(self, request: Request) -> BaseModel:
        asked = await _question(request, Locate)
        self._check_account(asked.account)
        found = await run_in_threadpool(self._index.locate, asked.account, asked.email_id)
        copies = [Copy(uidvalidity=uidvalidity, uid=uid) for uidvalidity, uid in found.copies]
        return Located(copies=copies, fresh=found.fresh)

    async def opened(self, request: Request) -> WasOpened:
        asked = await _question(request, Opened)
        self._check_account(asked.account)
        return await run_in_threadpool(self._access.opened, asked.agent, asked.account, asked.email_id)

    async def reads(self, request: Request) -> BaseModel:
        asked = await _question(request, Reads)
        if asked.since is not None and asked.since.utcoffset() is None:
            raise _bad_question("`since` has no offset from UTC")
        if asked.cursor is not None and not 0 <= asked.cursor <= _MAX_CURSOR:
            raise _bad_question("`cursor` is none of ours")
        lines = await run_in_threadpool(self._access.reads, asked.agent, asked.since, asked.cursor, limit=MAX_READS + 1)
        return _page(lines)

    async def agents(self, _request: Request) -> BaseModel:
        return Agents(agents=await run_in_threadpool(self._access.agents))

    async def status(self, _request: Request) -> BaseModel:
        accounts = [await run_in_threadpool(self._index.account_status, account) for account in self._account_ids]
        # Of an error its code crosses; the words may name a mailbox, as this login sees it.
        return Status(
            accounts=[
                account.model_copy(update={"error": account.error and account.error.partition(":")[0]})
                for account in accounts
            ]
        )

    def _check_account(self, account: str) -> None:
        if account not in self._account_ids:
            raise Problem(
                404,
                "unknown_account",
                "This reader has no account of this id.",
                "Give the queue the id that `[[accounts]]` of reader.toml has.",
            )


def _page(lines: Sequence[tuple[int, Read]]) -> ReadsPage:
    """As many lines as fit; the first always does, since the log keeps its rows short."""
    taken: list[Read] = []
    octets, last = 0, None
    for key, line in lines:
        octets += len(line.model_dump_json(by_alias=True)) + 1
        if len(taken) == MAX_READS or (taken and octets > _MAX_LINES_OCTETS):
            return ReadsPage(reads=taken, cursor=last)
        taken.append(line)
        last = key
    return ReadsPage(reads=taken, cursor=None)


async def _question(request: Request, kind: type[Question]) -> Question:
    """Return the question in a body, or raise a `Problem`; no value of it is repeated."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Problem(415, "not_json", "The content type is not application/json.", "Send JSON.")
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > _MAX_BODY_OCTETS:
                    raise Problem(413, "question_too_large", "The question is over 8 KiB.", "Ask one thing.")
    except TimeoutError:
        raise Problem(408, "body_too_slow", "The body did not arrive in time.", "Send it whole.", True) from None
    try:
        load(bytes(body))
        # From JSON, where a time is a string also under strict reading.
        return kind.model_validate_json(bytes(body))
    except NotIJson as error:
        raise _bad_question(str(error)) from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"])[:60]
        raise _bad_question(f"{where} {wrong_form(first)}") from None


def _bad_question(why: str) -> Problem:
    return Problem(400, "bad_question", f"This is no question of the table: {why}.", "See `shared.link`.")


def _doorway(
    endpoint: Callable[[Request], Awaitable[BaseModel]], faults: Faults
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            found = await endpoint(request)
            encoded = found.model_dump_json(by_alias=True).encode()
            return (
                _too_large() if len(encoded) > MAX_ANSWER_OCTETS else Response(encoded, media_type="application/json")
            )
        except Problem as problem:
            return _refusal(problem)
        except ClientDisconnect:
            # Nobody is there to read it; ASGI wants an answer all the same.
            return Response(status_code=400)
        except AccessUnavailable as error:
            faults.note(request.url.path, error)
            return _refusal(
                Problem(503, "read_log_unavailable", "The read log cannot be used now.", "Try again in a minute.", True)
            )
        except Exception as error:  # noqa: BLE001 - the last resort: an id for the caller, the place for the log
            fault = faults.note(request.url.path, error)
            return _refusal(Problem(500, "internal_fault", f"The reader failed (fault {fault}).", "See its log.", True))

    return answer


def _too_large() -> Response:
    return _refusal(Problem(500, "answer_too_large", "The answer is over 256 KiB.", "Revoke tokens not in use."))


def _refusal(problem: Problem) -> Response:
    return Response(problem.encoded(), problem.status, media_type=MEDIA_TYPE)


async def _not_in_the_table(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    problem = Problem(error.status_code, "not_in_the_table", "There is no such question.", "See `shared.link`.")
    response = _refusal(problem)
    response.headers.update(error.headers or {})
    return response

"""The routes of the JMAP server: authenticate, parse, call one function, encode."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import msgspec
from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from structlog.typing import FilteringBoundLogger

from agent_reader.access import Access, Agent
from agent_reader.errors import AccessUnavailable
from agent_reader.jmap import problems
from agent_reader.jmap.capabilities import DEFAULT_LIMITS, Limits
from agent_reader.jmap.dispatch import Dispatch, Snapshots
from agent_reader.jmap.door import ClosingRefusal, HostGate, read_body, refusal
from agent_reader.jmap.faults import Faults
from agent_reader.jmap.methods import METHODS, Method
from agent_reader.jmap.request import check_content_type, parse_request
from agent_reader.jmap.session import ServedAccount, SessionMaker
from agent_reader.query import SORT_OPTIONS
from shared.problem import Problem

_JSON: Final = "application/json"

Endpoint = Callable[[Request, Agent], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    """One row of the table of routes; each needs a reader token. `endpoint` names a method of `_Endpoints`."""

    path: str
    http_method: str
    endpoint: str


# The whole door. A test walks it with every kind of token and every HTTP method.
ROUTES: Final = (
    Route("/.well-known/jmap", "GET", "session"),
    Route("/jmap/session", "GET", "session"),
    Route("/jmap/api", "POST", "api"),
    Route("/jmap/download/{account_id}/{blob_id}/{name:path}", "GET", "download"),
    Route("/jmap/upload/{account_id}/", "POST", "upload"),
    Route("/jmap/eventsource", "GET", "event_source"),
)


def make_app(
    store: Snapshots,
    access: Access,
    accounts: Sequence[ServedAccount],
    *,
    log: FilteringBoundLogger,
    randomness: Callable[[int], bytes],
    public_url: str | None = None,
    methods: Mapping[str, Method] = METHODS,
    limits: Limits = DEFAULT_LIMITS,
) -> FastAPI:
    """Return the ASGI app of the JMAP server; it serves these accounts to every agent with a token.

    `public_url` is the address that agents use, without a path, where it is another than the one that they connect
    to; its host is then allowed besides the loopback names. `randomness` names faults.
    """
    faults = Faults(log, randomness)
    dispatch = Dispatch(store, frozenset(account.id for account in accounts), methods, limits, faults)
    endpoints = _Endpoints(access, dispatch, SessionMaker(accounts, tuple(SORT_OPTIONS), limits), public_url)
    app = FastAPI(
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        exception_handlers={HTTPException: _not_in_the_table},
    )
    for route in ROUTES:
        door = _Door(access, faults, getattr(endpoints, route.endpoint), route.path)
        app.add_route(route.path, door.answer, methods=[route.http_method])
    app.add_middleware(HostGate, hosts=() if public_url is None else (urlsplit(public_url).netloc,))
    return app


class _Door:
    """Authenticates, and turns every refusal into a problem document."""

    def __init__(self, access: Access, faults: Faults, endpoint: Endpoint, path: str) -> None:
        self._access, self._faults, self._endpoint, self._path = access, faults, endpoint, path

    async def answer(self, request: Request) -> Response:
        try:
            return await self._endpoint(request, self._agent(request))
        except Problem as problem:
            return ClosingRefusal(problem) if problem.status in {408, 413} else refusal(problem)
        except AccessUnavailable as error:
            self._faults.note(self._path, error)
            return refusal(problems.log_unavailable())
        except ClientDisconnect:
            # Nobody is there to read it; ASGI wants an answer all the same.
            return Response(status_code=400)
        except Exception as error:  # noqa: BLE001 - the last resort: an id for the caller, the place for the log
            return refusal(problems.internal_fault(self._faults.note(self._path, error)))

    def _agent(self, request: Request) -> Agent:
        # In the event loop: one indexed look takes some microseconds and waits for no writer.
        fields = request.headers.getlist("authorization")
        found = self._access.authenticate(fields[0] if len(fields) == 1 else None)
        if isinstance(found, Problem):
            raise found
        return found


class _Endpoints:
    """What the routes lead to."""

    def __init__(self, access: Access, dispatch: Dispatch, sessions: SessionMaker, public_url: str | None) -> None:
        self._access, self._dispatch, self._sessions = access, dispatch, sessions
        self._public_url = public_url
        self._places: Counter[str] = Counter()

    async def session(self, request: Request, agent: Agent) -> Response:
        session = self._sessions.session(agent.name, self._base_url(request))
        return Response(msgspec.json.encode(session), media_type=_JSON)

    async def api(self, request: Request, agent: Agent) -> Response:
        with self._place(agent):
            check_content_type(request.headers.get("content-type"))
            limits = self._dispatch.limits
            untrusted_body = await read_body(request, limits.max_size_request, limits.max_body_seconds)
            base_url = self._base_url(request)
            # One hop: everything that blocks happens in it.
            answer = await run_in_threadpool(self._answer, untrusted_body, agent, base_url)
        return Response(answer, media_type=_JSON)

    async def download(self, _request: Request, _agent: Agent) -> Response:
        raise problems.download_unavailable()

    async def upload(self, _request: Request, _agent: Agent) -> Response:
        raise problems.upload_refused()

    async def event_source(self, _request: Request, _agent: Agent) -> Response:
        raise problems.push_unavailable()

    def _answer(self, untrusted_body: bytes, agent: Agent, base_url: str) -> bytes:
        request = parse_request(untrusted_body, self._dispatch.limits)
        answer = self._dispatch.answer(request)
        # On record before anything leaves; where that fails, nothing leaves.
        self._access.record(agent, answer.shown)
        document = {
            "methodResponses": [
                [response.name, msgspec.Raw(response.encoded), response.call_id] for response in answer.responses
            ],
            "sessionState": self._sessions.session(agent.name, base_url)["state"],
        }
        if request.created_ids is not None:
            document["createdIds"] = request.created_ids
        return msgspec.json.encode(document)

    @contextmanager
    def _place(self, agent: Agent) -> Iterator[None]:
        most = self._dispatch.limits.max_concurrent_requests
        if self._places[agent.name] >= most:
            raise problems.too_many_requests(most)
        self._places[agent.name] += 1
        try:
            yield
        finally:
            self._places[agent.name] -= 1
            if not self._places[agent.name]:
                del self._places[agent.name]

    def _base_url(self, request: Request) -> str:
        # The Host field passed the gate.
        return self._public_url or f"{request.url.scheme}://{request.headers['host']}"


async def _not_in_the_table(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:  # noqa: PLR2004 - Starlette's only other is 404
        response = refusal(problems.method_not_allowed())
        response.headers.update(error.headers or {})
        return response
    return refusal(problems.not_found())

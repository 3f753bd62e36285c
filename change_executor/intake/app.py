"""The intake's routes; each is a doorway: who asks, what exactly, one function, the answer.

This is all that an agent's token opens anywhere in the executor: no route here decides, and none waits for IMAP.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.telemetry import TelemetryConfig
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from change_executor.condition import Hindrance, hindrances
from change_executor.config import ExecutorSettings
from change_executor.errors import JournalUnavailable
from change_executor.intake import problems, proposing
from change_executor.intake.doorway import caller, idempotency_key, listing, no_parameters, proposal_request
from change_executor.intake.problems import RefusedByRule
from change_executor.intake.proposer_tokens import Proposer
from change_executor.intake.proposing import Proposed, RandomOctets
from change_executor.intake.refusals import Refusals
from change_executor.journal.group import MAX_GROUP
from change_executor.journal.journal import Journal, Writing
from change_executor.policy import FROM_ROLE
from shared.handing_in import HandedIn
from shared.problem import MEDIA_TYPE, Problem
from shared.proposal import ProposalView

_log = structlog.get_logger()

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")

# Nothing of ours leaves the machine, and FastAPI would look for collectors.
_NO_TELEMETRY: Final[TelemetryConfig] = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}

# A machine's trouble is looked at within minutes; asking each second would add to it.
_RETRY_AFTER_SECONDS: Final = {503: "30", 429: "60"}


def make_app(journal: Journal, settings: ExecutorSettings, random_octets: RandomOctets) -> FastAPI:
    """Return the intake's ASGI application (`app.state.refusals` counts)."""
    refusals = Refusals(journal)
    desk = _Desk(journal, settings, random_octets, refusals)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(desk.close)
        await asyncio.to_thread(refusals.close)

    app = FastAPI(
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=_NO_TELEMETRY,
        lifespan=lifespan,
    )
    app.state.refusals = refusals
    desk.open(app)
    _add_refusals(app, refusals)
    return app


class _Desk:
    """The routes, and what they share."""

    def __init__(
        self, journal: Journal, settings: ExecutorSettings, random_octets: RandomOctets, refusals: Refusals
    ) -> None:
        self._journal, self._settings, self._random_octets = journal, settings, random_octets
        self._refusals = refusals
        self._handed_in: HandedIn[Callable[[Writing], Proposed]] = HandedIn(journal, "journal", MAX_GROUP)

    def close(self) -> None:
        """Wait for what was handed in to be written; the journal may be closed then."""
        self._handed_in.close()

    def open(self, app: FastAPI) -> None:
        """Add the routes: the whole API."""
        # What all of them send most, without what FastAPI does for parameters that it would have to find: a third of
        # what a request costs.
        app.add_route("/v1/proposals", self.propose, methods=["POST"])
        app.add_api_route("/v1/proposals", self.own_proposals, methods=["GET"])
        app.add_api_route("/v1/proposals/{proposal_id}", self.own_proposal, methods=["GET"])
        app.add_api_route("/v1/proposals/{proposal_id}/withdraw", self.withdraw, methods=["POST"])
        app.add_api_route("/v1/queues", self.queues, methods=["GET"])
        app.add_api_route("/v1/health", self.health, methods=["GET"])

    async def propose(self, request: Request) -> Response:
        """Record a proposal: 201, or 200 where the agent has the same one open."""
        proposer = await self._caller(request)
        no_parameters(request)
        asked = await proposal_request(request)
        key = idempotency_key(request, asked)
        act = partial(
            proposing.propose_in,
            settings=self._settings,
            proposer=proposer,
            request=asked,
            random_octets=self._random_octets,
            key=key,
        )
        done: Proposed = await self._on_record(proposer, self._handed_in.write(act))
        return _json(_encoded(done.view), 201 if done.created else 200)

    async def own_proposals(self, request: Request) -> Response:
        """List the agent's own, newest first."""
        proposer = await self._caller(request)
        page = await self._act(proposer, proposing.own_proposals, self._journal, proposer, listing(request))
        document = {"proposals": [view.model_dump(mode="json", by_alias=True) for view in page.proposals]}
        return _json(_dumped(document | {"cursor": page.cursor}))

    async def own_proposal(self, request: Request, proposal_id: str) -> Response:
        """Show one of the agent's own."""
        proposer = await self._caller(request)
        no_parameters(request)
        return _json(_encoded(await self._act(proposer, proposing.own_proposal, self._journal, proposer, proposal_id)))

    async def withdraw(self, request: Request, proposal_id: str) -> Response:
        """Withdraw one of the agent's own."""
        proposer = await self._caller(request)
        no_parameters(request)
        return _json(_encoded(await self._act(proposer, proposing.withdraw, self._journal, proposer, proposal_id)))

    async def queues(self, request: Request) -> Response:
        """Show what the token opens: roles, never mailbox names."""
        proposer = await self._caller(request)
        no_parameters(request)
        return _json(_dumped({"queues": _queues(self._settings, proposer)}))

    async def health(self, request: Request) -> Response:
        """Tell whether the journal can be written and proposals go on; the one route without a caller."""
        no_parameters(request)
        found = await asyncio.to_thread(self._hindrances)
        return _json(_dumped({"status": "degraded" if found else "ok", "codes": [each.value for each in found]}))

    def _hindrances(self) -> tuple[Hindrance, ...]:
        self._journal.probe()
        with self._journal.reading() as connection:
            return hindrances(connection)

    async def _caller(self, request: Request) -> Proposer:
        return await caller(request, self._journal, self._journal.now())

    async def _act(
        self, proposer: Proposer, act: Callable[_Given, _Found], *given: _Given.args, **named: _Given.kwargs
    ) -> _Found:
        # The journal blocks.
        return await self._on_record(proposer, asyncio.to_thread(act, *given, **named))

    async def _on_record(self, proposer: Proposer, done: Awaitable[_Found]) -> _Found:
        # What a rule refuses goes on record before it is told.
        try:
            return await done
        except RefusedByRule as refusal:
            await asyncio.to_thread(self._refusals.record, proposer, refusal)
            raise


def _add_refusals(app: FastAPI, refusals: Refusals) -> None:
    @app.exception_handler(Problem)
    async def problem(_: Request, error: Problem) -> Response:
        return _refuse(refusals, error)

    @app.exception_handler(JournalUnavailable)
    async def journal_unavailable(_: Request, error: JournalUnavailable) -> Response:
        _log.error("journal:unavailable", cause=str(error))
        return _refuse(refusals, problems.journal_unavailable())

    @app.exception_handler(HTTPException)
    async def no_route(request: Request, error: HTTPException) -> Response:
        if error.status_code == 405:  # noqa: PLR2004 - RFC 9110 §15.5.6
            allowed = _allowed(app, request)
            return _refuse(refusals, problems.method_not_allowed(allowed), {"allow": allowed})
        return _refuse(refusals, problems.not_found())

    @app.exception_handler(Exception)
    async def our_mistake(_: Request, error: Exception) -> Response:
        _log.error("intake:mistake", kind=type(error).__name__)
        return _refuse(refusals, problems.internal())


def _allowed(app: FastAPI, request: Request) -> str:
    # Starlette names the methods of the first route of a path alone; a path may have one for each method.
    routes = [route for route in app.routes if isinstance(route, Route)]
    partial_matches = [route for route in routes if route.matches(request.scope)[0] is Match.PARTIAL]
    return ", ".join(sorted({method for route in partial_matches for method in route.methods or ()}))


def _refuse(refusals: Refusals, problem: Problem, headers: dict[str, str] | None = None) -> Response:
    refusals.count(problem)
    # What was not read of a body must not be taken for the next request.
    sent = {"connection": "close", "cache-control": "no-store"} | (headers or {})
    if problem.status == 401:  # noqa: PLR2004 - RFC 9110 §15.5.2
        sent["www-authenticate"] = 'Bearer realm="intake"'
    if problem.retryable and problem.status in _RETRY_AFTER_SECONDS:
        sent["retry-after"] = _RETRY_AFTER_SECONDS[problem.status]
    return Response(problem.encoded(), problem.status, sent, MEDIA_TYPE)


def _json(encoded: bytes, status: int = 200) -> Response:
    return Response(encoded, status, {"cache-control": "no-store"}, "application/json")


def _dumped(document: dict[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode()


def _encoded(view: ProposalView) -> bytes:
    return view.model_dump_json(by_alias=True).encode()


def _queues(settings: ExecutorSettings, proposer: Proposer) -> list[dict[str, Any]]:
    queue = settings.queue(proposer.queue)
    if queue is None:
        return []
    return [{"id": queue.id, "from": FROM_ROLE, "to": sorted(queue.to), "expiryDays": queue.expiry_days}]

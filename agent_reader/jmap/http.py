"""The routes of the JMAP server: authenticate, parse, call one function, encode."""

import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import msgspec
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from structlog.typing import FilteringBoundLogger

from agent_reader.access import Access, Agent, Shown
from agent_reader.door.bare_app import Route, bare_app
from agent_reader.door.faults import Faults
from agent_reader.door.gate import HostGate, read_body, refusal
from agent_reader.door.keeper import MOST_THREADS, Keeper, Places
from agent_reader.door.leaving import watched
from agent_reader.door.limits import DEFAULT_LIMITS, Limits
from agent_reader.jmap import problems
from agent_reader.jmap.attempts import Attempts
from agent_reader.jmap.cross_origin import CrossOrigin
from agent_reader.jmap.dispatch import Dispatch, Snapshots
from agent_reader.jmap.download import Downloads
from agent_reader.jmap.event_source import EventSources
from agent_reader.jmap.large_bodies import LargeBodies
from agent_reader.jmap.methods import METHODS, Method
from agent_reader.jmap.request import check_content_type, parse_request
from agent_reader.jmap.sending import SheetResponse
from agent_reader.jmap.session import ServedAccount, SessionMaker
from agent_reader.jmap.sheet import Sheet
from agent_reader.jmap.turns import Turns
from agent_reader.query import SORT_OPTIONS, BlobReader
from agent_reader.query.patience import Abandoned
from agent_reader.state_watch import StateWatch
from agent_reader.store.reading_room import RoomAtOnce
from shared.time_and_chance import RandomOctets

_JSON: Final = "application/json"

# A search and what it found take some hundred octets; this is read in a tenth of a millisecond.
_SHORT_BODY_OCTETS: Final = 16 * 1024

# The whole door: each needs a reader token, and names a method of `_Endpoints`. A test walks it with every kind of
# token and every HTTP method.
ROUTES: Final = (
    Route("/.well-known/jmap", "GET", "session"),
    Route("/jmap/session", "GET", "session"),
    Route("/jmap/api", "POST", "api"),
    Route("/jmap/download/{account_id}/{blob_id}/{name:path}", "GET", "download"),
    Route("/jmap/upload/{account_id}/", "POST", "upload"),
    Route("/jmap/eventsource", "GET", "event_source"),
)


def make_app(  # noqa: PLR0913 - names at the call say what each is
    store: Snapshots,
    access: Access,
    accounts: Sequence[ServedAccount],
    *,
    blobs: BlobReader,
    watch: StateWatch,
    log: FilteringBoundLogger,
    random_octets: RandomOctets,
    public_url: str | None = None,
    allow_origins: Collection[str] = (),
    methods: Mapping[str, Method] = METHODS,
    limits: Limits = DEFAULT_LIMITS,
    places: Places | None = None,
) -> FastAPI:
    """Return the ASGI app of the JMAP server; it serves these accounts to every agent with a token.

    `public_url` is the address that agents use, without a path, where it is another than the one that they connect
    to; its host is then allowed besides the loopback names. Web pages of `allow_origins` may read the answers.
    `random_octets` names faults; `watch` hears of the store's commits; `blobs` opens what is downloaded. `places` are
    shared with the other doors; left out, this one has its own.
    """
    faults = Faults(log, random_octets)
    dispatch = Dispatch(store, frozenset(account.id for account in accounts), methods, limits, faults, blobs)
    places = places or Places(limits.max_concurrent_requests)
    account_ids = tuple(account.id for account in accounts)
    downloading = Places(limits.max_concurrent_downloads, problems.too_many_downloads)
    streaming = Places(limits.max_event_streams, problems.too_many_streams)
    endpoints = _Endpoints(
        access,
        dispatch,
        SessionMaker(accounts, tuple(SORT_OPTIONS), limits),
        public_url,
        places,
        Downloads(store, account_ids, access, blobs, downloading),
        EventSources(store, account_ids, access, watch, streaming),
    )
    app = bare_app(_not_in_the_table)
    for route in ROUTES:
        door = Keeper(access, faults, getattr(endpoints, route.endpoint), route.path)
        app.add_route(route.path, door.answer, methods=[route.http_method])
    if allow_origins:
        app.add_middleware(CrossOrigin, origins=allow_origins)
    app.add_middleware(HostGate, hosts=() if public_url is None else (urlsplit(public_url).netloc,))
    return app


class _Endpoints:
    """What the routes lead to."""

    def __init__(
        self,
        access: Access,
        dispatch: Dispatch,
        sessions: SessionMaker,
        public_url: str | None,
        places: Places,
        downloads: Downloads,
        event_sources: EventSources,
    ) -> None:
        self._access, self._dispatch, self._sessions = access, dispatch, sessions
        self._public_url, self._places = public_url, places
        # Each answer says it; an agent comes by one address and place, as a rule.
        self._session_state = lru_cache(maxsize=256)(lambda agent, base_url: sessions.session(agent, base_url)["state"])
        self._threads = anyio.CapacityLimiter(MOST_THREADS)
        self._attempts, self._room, self._turns = Attempts(time.monotonic), RoomAtOnce(Abandoned), Turns()
        self._large_bodies = LargeBodies(dispatch.limits.max_small_body_octets)
        self.download, self.event_source = downloads.answer, event_sources.answer

    async def session(self, request: Request, agent: Agent) -> Response:
        session = self._sessions.session(agent, self._base_url(request))
        return Response(msgspec.json.encode(session), media_type=_JSON)

    async def api(self, request: Request, agent: Agent) -> Response:
        with contextlib.ExitStack() as holding:
            # Until the answer is sent: an agent that reads none of them has no more than its places.
            holding.enter_context(self._places.place(agent))
            check_content_type(request.headers.getlist("content-type"))
            sheet = holding.enter_context(Sheet(self._dispatch.blobs.folder))
            async with self._large_bodies.turn(request, agent):
                limits = self._dispatch.limits
                untrusted_body = await read_body(request, limits.max_size_request, limits.max_body_seconds)
                base_url = self._base_url(request)
                work = partial(self._work_out, untrusted_body, agent, base_url, sheet)
                shown = self._tried(work, agent, len(untrusted_body))
                if shown is None:
                    sheet.cut(0)
                    async with watched(request) as is_gone, self._turns.turn():
                        # One hop for everything that blocks.
                        shown = await anyio.to_thread.run_sync(work, is_gone, limiter=self._threads)
            # Charged and on record before anything leaves; where either fails, nothing leaves.
            await self._access.record_soon(agent, shown, sheet.octets)
            still_opens = partial(self._access.still_opens, agent.token_id)
            return SheetResponse(sheet, _JSON, holding.pop_all(), still_opens)

    async def upload(self, _request: Request, _agent: Agent) -> Response:
        raise problems.upload_refused()

    def _tried(self, work: Callable[..., Sequence[Shown]], agent: Agent, octets: int) -> Sequence[Shown] | None:
        """Return what the answer shows, or None where a thread has to work it out."""
        if octets > _SHORT_BODY_OCTETS:
            return None
        return self._attempts.answer(agent.name, partial(work, room=self._room))

    def _work_out(
        self,
        untrusted_body: bytes,
        agent: Agent,
        base_url: str,
        sheet: Sheet,
        is_abandoned: Callable[[], bool],
        room: RoomAtOnce | None = None,
    ) -> Sequence[Shown]:
        """Write the answer on the sheet; return what it shows."""
        request = parse_request(untrusted_body, self._dispatch.limits)
        if room is not None and not self._dispatch.may_be_tried(request):
            raise Abandoned
        sheet.write(b'{"methodResponses":')
        answer = self._dispatch.answer(request, agent.scope, sheet, is_abandoned, room)
        rest: dict[str, Any] = {"sessionState": self._session_state(agent, base_url)}
        if request.created_ids is not None:
            rest["createdIds"] = request.created_ids
        sheet.write(b"," + msgspec.json.encode(rest)[1:])
        if is_abandoned():
            raise Abandoned
        return answer.shown

    def _base_url(self, request: Request) -> str:
        # The Host field passed the gate.
        return self._public_url or f"{request.scope['scheme']}://{request.headers['host']}"


async def _not_in_the_table(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:  # noqa: PLR2004 - Starlette's only other is 404
        response = refusal(problems.method_not_allowed())
        response.headers.update(error.headers or {})
        return response
    return refusal(problems.not_found())

"""Builds the reader and runs it: the only place that constructs."""

import asyncio
import contextlib
import gc
import os
import secrets
import signal
import socket
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp
from structlog.typing import FilteringBoundLogger

from agent_reader import listening
from agent_reader.access import Access
from agent_reader.config import ReaderSettings
from agent_reader.door.faults import Faults
from agent_reader.door.keeper import Places
from agent_reader.door.limits import Limits
from agent_reader.imap.fetcher import Fetcher
from agent_reader.imap.precedence import Precedence
from agent_reader.jmap.http import make_app as make_jmap_app
from agent_reader.jmap.session import ServedAccount
from agent_reader.mcp.cursors import Cursors
from agent_reader.mcp.desk import Desk
from agent_reader.mcp.door import McpDoor, beside
from agent_reader.mcp.views import Views
from agent_reader.metrics import health, metrics
from agent_reader.peers import PeerProtocol, allowed_uids
from agent_reader.private_socket import make_app as make_private_app
from agent_reader.query import BlobCache, BlobReader
from agent_reader.state_watch import StateWatch
from agent_reader.store.store import Store
from agent_reader.sync.proven import FILE_NAME as PROVEN_NAME
from agent_reader.sync.proven import ProvenLogins
from agent_reader.sync.worker import Worker
from shared.bounded_http import BACKLOG, BoundedProtocol
from shared.imap_login import ImapFailure
from shared.metrics import listener_of, metrics_app
from shared.service_manager import ServiceManager, handed_over, signs_of_life
from shared.settings import ConfigurationError
from shared.time_and_chance import utc_now

_BLOBS_NAME: Final = "blobs"

# FileDescriptorName= in the .socket units.
JMAP_SOCKET: Final = "jmap"
LINK_SOCKET: Final = "link"

# Everything ends within five seconds: answers that run get two, then the workers share the rest.
_GRACE_SECONDS: Final = 2
_WORKERS_SECONDS: Final = 2.0
# A request may take as long as so many of its slowest searches.
_QUERIES_IN_A_REQUEST: Final = 4
_ENDING: Final = (signal.SIGTERM, signal.SIGINT)


def serve(settings: ReaderSettings, log: FilteringBoundLogger) -> None:
    """Run until SIGTERM or SIGINT. Raises `ConfigurationError`, also for a mail login that fails at the first start."""
    folder = settings.store.folder
    listening.check_owner(folder)
    with contextlib.ExitStack() as stack:
        stack.enter_context(listening.sole_use_of(folder))
        access = stack.enter_context(Access(folder, utc_now, secrets.token_bytes, keep=settings.reads.keep))
        cursors = stack.enter_context(contextlib.closing(Cursors(folder)))
        watch = StateWatch()
        retention = {account.id: account.retention for account in settings.accounts}
        identities = {account.id: account.named_by for account in settings.accounts}
        store = Store(folder, utc_now, announce=watch.announce, retention=retention, identities=identities)
        stack.callback(store.close)
        cache = stack.enter_context(contextlib.closing(BlobCache(folder / _BLOBS_NAME, settings.blobs.cache_octets)))
        early = stack.enter_context(_early_signals())
        given = handed_over()
        tcp = given.get(JMAP_SOCKET) or listening.bind_tcp(settings.server)
        for listener in tcp:
            stack.callback(listener.close)
        private = given.get(LINK_SOCKET) or [stack.enter_context(listening.bound_unix(settings.server.socket))]
        for listener in private:
            stack.callback(listener.close)
        proven = ProvenLogins(folder / PROVEN_NAME)
        precedences = {account.id: Precedence() for account in settings.accounts}
        workers = _workers(settings, store, proven, precedences, log)
        faults = Faults(log, secrets.token_bytes)
        fetchers = {account.id: Fetcher(account, precedences[account.id]) for account in settings.accounts}
        blobs = BlobReader(fetchers, cache, settings.blobs.largest_octets)
        # An agent's places are its own, whichever of the two doors it comes by.
        places = Places(settings.jmap.max_concurrent_requests)
        jmap = _jmap(settings, store, access, blobs, watch, log, places)
        desk = _desk(settings, store, access, cursors, faults, blobs)
        mcp = McpDoor(desk, access, places, settings.server.public_url)
        doors = [
            Door(beside(mcp, jmap), tuple(tcp), BoundedProtocol),
            Door(_private(settings, store, access, faults), tuple(private), PeerProtocol),
        ]
        if (asked_at := listener_of(settings.metrics)) is not None:
            stack.callback(asked_at.close)
            doors.append(Door(_metrics(settings, store, access, workers), (asked_at,), BoundedProtocol))
        unproven = [worker for worker in workers if not proven.knows(worker.account)]
        asyncio.run(_ended(until_signalled(doors, workers, unproven, log, early), tuple(fetchers.values())))
    log.info("reader:ended")


def _workers(
    settings: ReaderSettings,
    store: Store,
    proven: ProvenLogins,
    precedences: Mapping[str, Precedence],
    log: FilteringBoundLogger,
) -> list[Worker]:
    chance = secrets.SystemRandom().random
    return [
        Worker(
            account, store.account(account.id), proven, log, chance, precedence=precedences[account.id], clock=utc_now
        )
        for account in settings.accounts
    ]


@contextlib.contextmanager
def _early_signals() -> Iterator[list[int]]:
    # A bound socket takes connections before the loop runs. Whoever saw that may end the reader: the signal is kept for
    # the loop, which ends in order. Not a signal mask: threads that run already would not have it.
    early: list[int] = []
    before = {number: signal.signal(number, lambda number, _: early.append(number)) for number in _ENDING}
    try:
        yield early
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True, slots=True)
class Door:
    """An ASGI app, the sockets that lead to it, and the HTTP protocol that is spoken there."""

    app: ASGIApp
    sockets: tuple[socket.socket, ...]
    protocol: type[BoundedProtocol]


def _jmap(
    settings: ReaderSettings,
    store: Store,
    access: Access,
    blobs: BlobReader,
    watch: StateWatch,
    log: FilteringBoundLogger,
    places: Places,
) -> FastAPI:
    accounts = [ServedAccount(account.id, account.name or account.user) for account in settings.accounts]
    return make_jmap_app(
        store,
        access,
        accounts,
        blobs=blobs,
        watch=watch,
        log=log,
        random_octets=secrets.token_bytes,
        public_url=settings.server.public_url,
        allow_origins=settings.jmap.allow_origins,
        limits=_limits(settings),
        places=places,
    )


def _limits(settings: ReaderSettings) -> Limits:
    asked = settings.jmap
    return Limits(
        max_size_request=asked.max_size_request,
        max_calls_in_request=asked.max_calls_in_request,
        max_objects_in_get=asked.max_objects_in_get,
        max_concurrent_requests=asked.max_concurrent_requests,
        max_query_seconds=asked.max_query_seconds,
        max_request_seconds=_QUERIES_IN_A_REQUEST * asked.max_query_seconds,
        max_answer_octets=asked.max_answer_octets,
    )


def _desk(
    settings: ReaderSettings, store: Store, access: Access, cursors: Cursors, faults: Faults, blobs: BlobReader
) -> Desk:
    return Desk(
        index=store,
        access=access,
        cursors=cursors,
        account_ids=[account.id for account in settings.accounts],
        faults=faults,
        clock=utc_now,
        random_octets=secrets.token_bytes,
        blobs=blobs,
        limits=_limits(settings),
        views=Views({each.id: each.authserv_id for each in settings.accounts if each.authserv_id is not None}),
    )


def _private(settings: ReaderSettings, store: Store, access: Access, faults: Faults) -> FastAPI:
    account_ids = [account.id for account in settings.accounts]
    return make_private_app(
        store, access, account_ids, allowed_uids(settings.server.executor_uid, os.geteuid()), faults
    )


def _metrics(settings: ReaderSettings, store: Store, access: Access, workers: Sequence[Worker]) -> ASGIApp:
    return metrics_app(
        lambda: metrics(settings.accounts, store, access, utc_now),
        lambda: health(settings.accounts, store, access, lambda: all(worker.is_alive for worker in workers)),
    )


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Two servers share one loop; it ends both.
        yield


async def _ended(serving: Coroutine[Any, Any, None], fetchers: Sequence[Fetcher]) -> None:
    """Serve; and interrupt the fetchers within the loop, whose end their threads would hold up."""
    try:
        await serving
    finally:
        for fetcher in fetchers:
            fetcher.close()


async def until_signalled(
    doors: Sequence[Door],
    workers: Sequence[Worker],
    unproven: Sequence[Worker],
    log: FilteringBoundLogger,
    early: Sequence[int],
) -> None:
    """Serve until a signal, which may be among the `early`. Raises `ConfigurationError` where a login is wrong.

    Nothing is served before the logins in `unproven` were tried. The others are tried meanwhile: an unreachable server
    is waited for, a refused login ends the reader.
    """
    ended = asyncio.Event()
    manager = ServiceManager()
    loop = asyncio.get_running_loop()
    for number in _ENDING:
        loop.add_signal_handler(number, ended.set)
    if early:
        ended.set()
    ending = asyncio.create_task(ended.wait())
    with running(workers, log), signs_of_life(manager, lambda: all(worker.is_alive for worker in workers)):
        tried = asyncio.create_task(_first_contacts(unproven, may_be_unreachable=False))
        await asyncio.wait({tried, ending}, return_when=asyncio.FIRST_COMPLETED)
        if not ended.is_set():
            await tried
            others = [worker for worker in workers if worker not in unproven]
            watching = asyncio.create_task(_first_contacts(others, may_be_unreachable=True))
            await _serve_until(ending, watching, doors, log, manager)
        manager.stopping()


async def _serve_until(
    ending: asyncio.Task[Any],
    watching: asyncio.Task[None],
    doors: Sequence[Door],
    log: FilteringBoundLogger,
    manager: ServiceManager,
) -> None:
    servers = [_server(door) for door in doors]
    serving = {
        asyncio.create_task(server.serve(sockets=list(door.sockets)))
        for server, door in zip(servers, doors, strict=True)
    }
    try:
        # uvicorn has a flag for this, and no event.
        while not all(server.started for server in servers) and not any(each.done() for each in serving):  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.01)
        # What the start made stays to the end: to look through it for garbage takes a tenth of all the time of answers.
        gc.collect()
        gc.freeze()
        host, port = doors[0].sockets[0].getsockname()[:2]
        log.info("reader:ready", address=f"http://{host}:{port}")
        manager.ready(f"answers at http://{host}:{port}")
        awaited = {ending, watching, *serving}
        while not ending.done() and not any(task.done() for task in serving):
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            if watching in awaited and watching.done():
                watching.result()
                awaited.discard(watching)
    finally:
        watching.cancel()
        for server in servers:
            server.should_exit = True
        await asyncio.gather(*serving)


def _server(door: Door) -> _Server:
    return _Server(
        uvicorn.Config(
            door.app,
            http=door.protocol,
            backlog=BACKLOG,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
    )


async def _first_contacts(workers: Sequence[Worker], *, may_be_unreachable: bool) -> None:
    contacts = {asyncio.wrap_future(worker.first_contact): worker.account for worker in workers}
    pending = set(contacts)
    while pending:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for contact in done:
            error = None if contact.cancelled() else contact.exception()
            match error:
                case None:
                    pass
                case ImapFailure() if may_be_unreachable and error.code != "login_refused":
                    pass
                case ImapFailure():
                    raise ConfigurationError(f"the account `{contacts[contact].id}`", error.detail, error.fix) from None
                case _:
                    raise error


@contextlib.contextmanager
def running(workers: Sequence[Worker], log: FilteringBoundLogger) -> Iterator[None]:
    """Run the workers for as long as the block lasts, and a bounded time longer."""
    try:
        for worker in workers:
            worker.start()
        yield
    finally:
        for worker in workers:
            worker.stop()
        until = time.monotonic() + _WORKERS_SECONDS
        for worker in workers:
            if not worker.join(max(0.0, until - time.monotonic())):
                log.warning("sync:left", account=worker.account.id)

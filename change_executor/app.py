"""The executor put together: the only place that constructs, and the only one that knows the mover.

Two listeners and a crew of workers in one process: agents' requests and people's clicks write rows, the crew acts on
rows.
"""

import asyncio
import contextlib
import gc
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import structlog
import uvicorn
from starlette.types import ASGIApp

from change_executor import checkpoints
from change_executor.accepting import ListenerProtocol, counted_by
from change_executor.checkpoints import Checkpoint
from change_executor.config import ExecutorSettings
from change_executor.connections import Connections
from change_executor.crew import Crew, make_crew
from change_executor.evidence.reader_link import AccountUnknown, ReaderFailure, ReaderLink
from change_executor.examine import examine_queues, examined_before
from change_executor.heads import HeadPublisher, newest_told
from change_executor.holding_back import hold_back_where_behind
from change_executor.intake.app import make_app as make_intake
from change_executor.intake.refusals import Refusals
from change_executor.journal.file import journal_path
from change_executor.journal.journal import Journal
from change_executor.journal.open import open_journal
from change_executor.listening import listeners
from change_executor.logs import configure_logs
from change_executor.metrics import health, metrics
from change_executor.mover import Mover
from change_executor.notify.notifier import Notifier
from change_executor.peers import PeerUidGate
from change_executor.review.app import make_app as make_review
from change_executor.sign_ins import SignIns
from change_executor.watch import Watch
from change_executor.worker import take_worker_lock
from shared.bounded_http import BACKLOG
from shared.imap_login import ImapFailure
from shared.metrics import listener_of, metrics_app
from shared.service_manager import ServiceManager, handed_over, signs_of_life
from shared.settings import ConfigurationError
from shared.tcp_peer import can_tell_tcp_peers
from shared.time_and_chance import utc_now

_log = structlog.get_logger()

# A stop within five seconds: requests get three to end, a move that is under way gets as long to finish, then whoever
# waits for a mail server is broken off. Whatever still hangs is cut: every step survives that, as it does a power cut.
_REQUESTS_SECONDS: Final = 3
_MOVE_SECONDS: Final = 3.0
_LAST_SECONDS: Final = 4.5


def serve(settings: ExecutorSettings, checkpoint: Checkpoint = checkpoints.pass_by) -> None:
    """Run until SIGTERM or SIGINT.

    Raises `ConfigurationError` for what keeps it from starting, `JournalUnavailable` where that is the journal.
    `checkpoint` is told each step of the worker.
    """
    configure_logs()
    journal = open_journal(settings.journal.url, utc_now)
    told = settings.journal
    heads = HeadPublisher(journal, _log, file=told.heads_file, every_seconds=told.heads_every_seconds)
    connections = Connections(SignIns(journal.now))
    deadline = _Deadline(connections)
    try:
        # Before anything is written: a second executor must leave no trace in the journal of the first.
        lock = take_worker_lock(settings.journal.url)
        # And before the first head of now is told: it would be the newest, and hide the one that is missing.
        _compare_with_what_was_told(journal, told.heads_file)
        heads.start()
        mover = Mover(connections)
        _examine(settings, journal, mover)
        _ask_reader(settings)
        crew = make_crew(journal, settings, mover=mover, connections=connections, log=_log, checkpoint=checkpoint)
        crew.hold(lock)
        notifier = Notifier(journal, settings, _log, secrets.token_bytes)
        watch = Watch(journal, journal_path(settings.journal.url), settings.stop_file, crew.wake, _log)
        watch.start()
        notifier.start()
        try:
            asyncio.run(_Serving(settings, journal, crew, deadline).run())
        finally:
            notifier.stop()
            watch.stop()
        heads.stop()
    finally:
        heads.close()
        deadline.cancel()
        journal.close()


def _compare_with_what_was_told(journal: Journal, heads_file: Path | None) -> None:
    newest = newest_told(heads_file)
    if newest is not None and hold_back_where_behind(journal, newest):
        fix = "Find out who put a copy of the journal back, and read docs/backup.md before you resume."
        _log.error("journal:behind", events=newest.events, head=newest.head, fix=fix)


def _examine(settings: ExecutorSettings, journal: Journal, mover: Mover) -> None:
    try:
        for examination in examine_queues(settings, mover.session, journal):
            _log.info("queue:examined", queue=examination.queue, undo_permitted=examination.undo_permitted)
            if examination.lossy:
                fix = "Give the login the rights `lrswi` on them, or flags and keywords are lost by a move."
                _log.warning("queue:flags_not_kept", queue=examination.queue, mailboxes=examination.lossy, fix=fix)
    except ImapFailure as failure:
        if not (failure.retryable and examined_before(settings, journal)):
            raise ConfigurationError("the mail server", failure.detail, failure.fix) from None
        # Nothing that was accepted is lost by a restart while the server is down: proposals wait, visibly.
        _log.warning("mail_server:unreachable", code=failure.code)


def _ask_reader(settings: ExecutorSettings) -> None:
    # Only told: proposals wait, visibly, until the reader is there.
    try:
        status = ReaderLink(settings.reader.socket, settings.reader.uid).status()
    except ReaderFailure:
        return
    known = {account.account for account in status.accounts}
    for queue in settings.queues:
        if queue.account not in known:
            _log.warning("reader:account_unknown", queue=queue.id, account=queue.account, fix=AccountUnknown.fix)


class _Server(uvicorn.Server):
    """uvicorn's server, which leaves the signals to us and says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    def capture_signals(self) -> contextlib.AbstractContextManager[None]:  # type: ignore[override]  # a generator there
        return contextlib.nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()


class _Serving:
    """One run: from bound sockets to the last log line."""

    def __init__(self, settings: ExecutorSettings, journal: Journal, crew: Crew, deadline: "_Deadline") -> None:
        self._settings, self._journal, self._crew, self._deadline = settings, journal, crew, deadline

    async def run(self) -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        review_app = make_review(
            self._settings,
            self._journal,
            clock=utc_now,
            random_octets=secrets.token_bytes,
            separated=_is_separated(self._settings),
            secure=self._settings.review.url.startswith("https:"),
        )
        intake_app = make_intake(self._journal, self._settings, secrets.token_bytes)
        manager = ServiceManager()
        with (
            _bound(self._settings) as (intake_sockets, review_sockets),
            signs_of_life(manager, lambda: self._crew.is_alive),
            contextlib.ExitStack() as stack,
        ):
            refusals: Refusals = intake_app.state.refusals
            gated_intake = _gated(intake_app, "intake", self._settings.intake.allow_uids)
            servers = [
                (_Server(_config(gated_intake, counted_by(refusals.count))), intake_sockets),
                (_Server(_config(_gated(review_app, "review", self._settings.review.allow_uids))), review_sockets),
            ]
            if (asked_at := listener_of(self._settings.metrics)) is not None:
                servers.append((_Server(_config(self._metrics(refusals))), [stack.enter_context(asked_at)]))
            self._crew.start()
            running = [asyncio.create_task(server.serve(sockets)) for server, sockets in servers]
            stopping = asyncio.create_task(_set(stop))
            ready = asyncio.create_task(_all_listening(servers))
            done, _ = await asyncio.wait({ready, *running}, return_when=asyncio.FIRST_COMPLETED)
            if ready in done:
                # What the start made stays to the end: to look through it for garbage stops everything for 50 ms.
                gc.collect()
                gc.freeze()
                _log.info("executor:ready", intake=self._settings.intake.listen, review=self._settings.review.listen)
                manager.ready(f"the page is at {self._settings.review.url}")
            await asyncio.wait({stopping, *running}, return_when=asyncio.FIRST_COMPLETED)
            _log.info("executor:stop")
            manager.stopping()
            self._deadline.begin()
            review_app.state.hub.close()
            for server, _ in servers:
                server.should_exit = True
            await asyncio.gather(asyncio.to_thread(self._crew.stop), *running)
            stopping.cancel()
            ready.cancel()

    def _metrics(self, refusals: Refusals) -> ASGIApp:
        return metrics_app(
            lambda: metrics(self._journal, self._settings, utc_now, refusals.counted.copy()),
            lambda: health(self._journal, lambda: self._crew.is_alive),
        )


async def _all_listening(servers: list[tuple[_Server, list[socket.socket]]]) -> None:
    for server, _ in servers:
        await server.listening.wait()


async def _set(event: asyncio.Event) -> None:
    await event.wait()


class _Deadline:
    """The end of a stop: whoever waits for a mail server is broken off, then everything is cut."""

    def __init__(self, connections: Connections) -> None:
        self._timers = [
            threading.Timer(_MOVE_SECONDS, connections.break_all),
            threading.Timer(_LAST_SECONDS, _cut),
        ]

    def begin(self) -> None:
        for timer in self._timers:
            timer.daemon = True
            timer.start()

    def cancel(self) -> None:
        for timer in self._timers:
            timer.cancel()


def _cut() -> None:
    _log.warning("executor:cut")
    sys.stderr.flush()
    os._exit(0)


@contextlib.contextmanager
def _bound(settings: ExecutorSettings) -> Iterator[tuple[list[socket.socket], list[socket.socket]]]:
    given = handed_over()
    with contextlib.ExitStack() as open_sockets:
        found = []
        # The first of each is FileDescriptorName= in the .socket units.
        for name, address, both in (
            ("intake", settings.intake.listen, False),
            ("review", settings.review.listen, True),
        ):
            sockets = given.get(name) or listeners(address, f"[{name}] listen", both=both)
            for listener in sockets:
                open_sockets.enter_context(listener)
            found.append(sockets)
        yield found[0], found[1]


def _config(app: ASGIApp, protocol: type[ListenerProtocol] = ListenerProtocol) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="asyncio",
        http=protocol,
        backlog=BACKLOG,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        # Addresses come from the socket: a header must not name another peer.
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_REQUESTS_SECONDS,
    )


def _gated(app: ASGIApp, section: str, allow_uids: frozenset[int]) -> ASGIApp:
    # An empty list lets any local process propose, and nobody decide.
    if section == "intake" and not allow_uids:
        return app
    if sys.platform != "linux" and not can_tell_tcp_peers():
        _log.warning("peer:cannot_tell", detail="this system does not tell whose process connects")
        return app
    return PeerUidGate(app, allow_uids, key=f"[{section}] allow_uids")


def _is_separated(settings: ExecutorSettings) -> bool:
    """Whether agents are known to run as other users than the reviewers, and than this process."""
    agents = settings.intake.allow_uids
    return bool(agents) and can_tell_tcp_peers() and not agents & (settings.review.allow_uids | {os.geteuid()})

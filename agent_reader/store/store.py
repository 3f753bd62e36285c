"""The store: one file for each account, its one writer, and snapshots to answer questions from."""

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from secrets import token_bytes
from typing import Final

import apsw

from agent_reader.damage import MessageDamaged
from agent_reader.errors import IndexFull
from agent_reader.identity import Identity
from agent_reader.keep import Retention
from agent_reader.scope import WHOLE, Depth, Scope
from agent_reader.store import database, scoped
from agent_reader.store.deliveries import Deliveries
from agent_reader.store.mirror import AccountMirror
from agent_reader.store.progress import Progress, read_progress
from agent_reader.store.reading_pool import ReadingPool, ReadingShare, process_count
from agent_reader.store.reading_room import ReadingRoom
from agent_reader.store.snapshot import MailboxCounts, Snapshot, ended_by
from agent_reader.store.status import Failure, Location, MirrorStatus, Standing, read_standing, read_status
from agent_reader.store.thread_pages import ThreadPages
from agent_reader.store.written import WrittenEmails
from shared.link import MAX_COPIES, AccountStatus
from shared.time_and_chance import Clock, RandomOctets

# Idle connections kept for the next question; more than this at once are made and closed again.
_IDLE_CONNECTIONS: Final = 4

# Scopes whose connections and counts are kept: as many as agents that are at work at once on one small machine. Each
# may hold a page cache.
_NARROW_VIEWS: Final = 16

_EPOCH_OCTETS: Final = 4

# The smallest transaction of sync is some pages; less room than this is none.
_LEAST_ROOM_OCTETS: Final = 64 * 1024


# Who ends what is asked, beside the time limit of one question.
_WHOLE_VIEW: Final = "whole view"


def _never() -> bool:
    return False


def _pool() -> ReadingPool:
    return ReadingPool(process_count(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2))


class _NarrowView:
    """What is kept of one scope of one account between its snapshots. Any thread may call."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, int], dict[int, MailboxCounts]] = {}
        self.hidden: dict[int, scoped.Hidden] = {}
        self.deliveries = Deliveries()
        self._lock = threading.Lock()
        self._idle: list[apsw.Connection] = []
        self._closed = False
        # What the scope came to, the number of the account's state, and that of the last state that is seen.
        self._last: tuple[str, int, int] | None = None

    def take(self) -> apsw.Connection | None:
        """Return an idle connection."""
        with self._lock:
            return self._idle.pop() if self._idle else None

    def give_back(self, connection: apsw.Connection) -> bool:
        """Keep a connection; False where it is not wanted any more."""
        with self._lock:
            if self._closed or len(self._idle) >= _IDLE_CONNECTIONS:
                return False
            self._idle.append(connection)
            return True

    def last_state(self, connection: apsw.Connection, told: str, number: int) -> int:
        """Return the number of the last state that differs in what is seen; 0 for none that is remembered.

        A state of the account that differs in hidden mail alone is no new state here.
        """
        with self._lock:
            last = self._last
        seen = last[2] if last is not None and last[0] == told and last[1] <= number else None
        if seen is None or last is None:
            seen = scoped.last_state(connection, 0) or 0
        elif last[1] < number:
            seen = scoped.last_state(connection, last[1]) or seen
        with self._lock:
            if self._last is None or self._last[0] != told or self._last[1] < number:
                self._last = (told, number, seen)
        return seen

    def close(self) -> None:
        """Close the idle connections, and keep no more."""
        with self._lock:
            self._closed = True
            while self._idle:
                self._idle.pop().close()


class Store:
    """The accounts' mirrors under one folder. Any thread may call; `close` when done.

    `announce` is called with the account's id after each commit that made a new state, from the thread that wrote;
    `boot` names this run of the machine; `retention` says by account what is kept of messages, everything where it says
    nothing; `identities` what names messages, their octets where it says nothing; `processes` gives a share in those
    that read a long backlog; left out, one pool reads for all accounts.
    """

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        *,
        random_octets: RandomOctets = token_bytes,
        announce: Callable[[str], None] = lambda _: None,
        boot: Callable[[], str | None] = database.boot_id,
        retention: Mapping[str, Retention] | None = None,
        identities: Mapping[str, Identity] | None = None,
        processes: Callable[[], ReadingShare] | None = None,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._random_octets = random_octets
        self._announce = announce
        self._boot = boot
        self._retention = dict(retention or {})
        self._identities = dict(identities or {})
        self._processes = processes or _pool().share
        self._lock = threading.Lock()
        self._mirrors: dict[str, AccountMirror] = {}
        self._idle: dict[str, list[apsw.Connection]] = {}
        self._counts: dict[str, dict[tuple[str, int], dict[int, MailboxCounts]]] = {}
        self._deliveries: dict[str, Deliveries] = {}
        self._narrow: OrderedDict[tuple[str, Scope], _NarrowView] = OrderedDict()
        self._room = ReadingRoom()
        self._written = WrittenEmails()
        self._thread_pages = ThreadPages()
        self._closed = False

    def account(self, account_id: str) -> AccountMirror:
        """Return the mirror of an account, its file made or migrated first. Raises `ConfigurationError`."""
        with self._lock:
            assert not self._closed, "the store is closed"
            if account_id not in self._mirrors:
                path = database.account_file(self._folder, account_id)
                connection = database.open_file(path, self._random_octets(_EPOCH_OCTETS).hex(), self._boot())
                self._mirrors[account_id] = AccountMirror(
                    connection,
                    self._clock,
                    self._random_octets,
                    partial(self._announce, account_id),
                    partial(self._written.forget, account_id),
                    self._retention.get(account_id, Retention()),
                    self._processes,
                    self._identities.get(account_id, Identity.OCTETS),
                )
                self._idle[account_id] = []
                self._counts[account_id] = {}
                self._deliveries[account_id] = Deliveries()
            return self._mirrors[account_id]

    @contextmanager
    def snapshot(
        self, account_id: str, scope: Scope = WHOLE, is_over: Callable[[], bool] = _never
    ) -> Iterator[Snapshot]:
        """Give one consistent view of what a scope lets through of an account.

        Nothing that is written meanwhile is seen in it, and nothing outside the scope, whatever is asked. The account
        must be one that the scope allows. Once `is_over`, whatever is asked of it raises `apsw.InterruptError`, and so
        may opening it.
        """
        assert scope.allows_account(account_id), "a door asked for an account that its token has not"
        note_damage = self.account(account_id).note_damage
        try:
            with database.faults_told(), self._snapshot(account_id, scope, is_over) as snapshot:
                snapshot.note_damage = note_damage
                yield snapshot
        except MessageDamaged:
            note_damage()
            raise

    @contextmanager
    def _snapshot(self, account_id: str, scope: Scope, is_over: Callable[[], bool]) -> Iterator[Snapshot]:
        if scope.hides_emails or scope.depth is not Depth.FULL:
            with self._narrow_snapshot(account_id, scope, is_over) as snapshot:
                yield snapshot
            return
        written = self._written.seen_by(account_id, scope.depth)
        connection = self._take(account_id)
        try:
            # The first read fixes what is seen; the search table is in the same file, so it is fixed with the rest.
            connection.execute("BEGIN")
            with ended_by(connection, is_over, _WHOLE_VIEW):
                epoch, state = connection.execute("SELECT epoch, state FROM account").fetchone() or ("", 0)
                counts = self._counts[account_id]
                yield Snapshot(
                    connection,
                    account_id,
                    f"{epoch}-{state}",
                    counts,
                    room=self._room,
                    written=written,
                    thread_pages=self._thread_pages,
                    deliveries=self._deliveries[account_id],
                )
        finally:
            self._give_back(account_id, connection)

    def locate(self, account_id: str, email_id: str) -> Location:
        """Return where copies of an Email lie, as far as the mirror knows."""
        with self.snapshot(account_id) as snapshot:
            copies = snapshot.copies(email_id, MAX_COPIES)
            standing = read_standing(snapshot.connection)
        return Location(copies, self._is_fresh(standing))

    def status(self, account_id: str) -> MirrorStatus:
        """Return how whole and fresh the mirror of an account is."""
        with self.snapshot(account_id) as snapshot:
            status = read_status(snapshot.connection)
        return replace(status, failure=self._failure(status))

    def standing(self, account_id: str) -> Standing:
        """Return how fresh the mirror of an account is, without counting anything."""
        with self.snapshot(account_id) as snapshot:
            standing = read_standing(snapshot.connection)
        return replace(standing, failure=self._failure(standing))

    def is_fresh(self, account_id: str) -> bool:
        """Whether the mirror of an account is as fresh as it should be."""
        return self._is_fresh(self.standing(account_id))

    def progress(self, account_id: str) -> Progress:
        """Return how far each mailbox of an account has come."""
        with self.snapshot(account_id) as snapshot:
            return read_progress(snapshot.connection, self._clock())

    def account_status(self, account_id: str) -> AccountStatus:
        """Return the status as the private socket says it."""
        status = self.status(account_id)
        failure = status.failure
        return AccountStatus(
            account=account_id,
            fresh=self._is_fresh(status),
            messages=status.messages,
            lastSyncAt=status.settled_at,
            error=None if failure is None else f"{failure.code}: {failure.detail} {failure.fix}",
        )

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            self._closed = True
            for mirror in self._mirrors.values():
                mirror.close()
            for connections in self._idle.values():
                while connections:
                    connections.pop().close()
            for view in self._narrow.values():
                view.close()
            self._narrow.clear()
            self._mirrors.clear()
        self._written.clear()
        self._thread_pages.clear()

    @contextmanager
    def _narrow_snapshot(self, account_id: str, scope: Scope, is_over: Callable[[], bool]) -> Iterator[Snapshot]:
        view = self._view(account_id, scope)
        written = self._written.seen_by(account_id, scope.depth)
        connection = view.take() or self._narrowed(account_id, scope)
        try:
            # What is narrowed is narrowed whole.
            told = scoped.begin(connection, scope)
            with ended_by(connection, is_over, _WHOLE_VIEW):
                epoch, number = connection.execute("SELECT epoch, state FROM account").fetchone() or ("", 0)
                # Hexadecimal like the other, so that it has the same form; of another scope it is a foreign one.
                own_epoch = hashlib.sha256(f"{epoch}-{told}".encode()).hexdigest()[:24]
                state = f"{own_epoch}-{view.last_state(connection, told, number)}"
                yield Snapshot(
                    connection,
                    account_id,
                    state,
                    view.counts,
                    scope,
                    view.hidden,
                    self._room,
                    written,
                    self._thread_pages,
                    view.deliveries,
                )
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if not view.give_back(connection):
                connection.close()

    def _narrowed(self, account_id: str, scope: Scope) -> apsw.Connection:
        connection = database.connect(database.account_file(self._folder, account_id), read_only=True)
        try:
            scoped.narrow(connection, scope)
        except BaseException:
            connection.close()
            raise
        return connection

    def _view(self, account_id: str, scope: Scope) -> "_NarrowView":
        self.account(account_id)
        with self._lock:
            assert not self._closed, "the store is closed"
            place = (account_id, scope)
            view = self._narrow.pop(place, None) or _NarrowView()
            self._narrow[place] = view
            if len(self._narrow) > _NARROW_VIEWS:
                self._narrow.popitem(last=False)[1].close()
            return view

    def _has_no_room(self) -> bool:
        disk = os.statvfs(self._folder)
        return disk.f_bavail * disk.f_frsize < _LEAST_ROOM_OCTETS

    def _failure(self, standing: Standing) -> Failure | None:
        if standing.failure is None and self._has_no_room():
            # On a full disk no failure can be noted, so it is seen here.
            return Failure(self._clock(), IndexFull.code, IndexFull.detail, IndexFull.fix)
        return standing.failure

    def _is_fresh(self, standing: Standing) -> bool:
        return standing.is_fresh(self._clock())

    def _take(self, account_id: str) -> apsw.Connection:
        self.account(account_id)
        with self._lock:
            idle = self._idle[account_id]
            if idle:
                return idle.pop()
        return database.connect(database.account_file(self._folder, account_id), read_only=True)

    def _give_back(self, account_id: str, connection: apsw.Connection) -> None:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        with self._lock:
            idle = self._idle[account_id]
            if not self._closed and len(idle) < _IDLE_CONNECTIONS:
                idle.append(connection)
                return
        connection.close()

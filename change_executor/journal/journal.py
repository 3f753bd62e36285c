"""Writing and reading the journal: transactions, the one way to append, the one way to advance a proposal."""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Self

import rfc8785
from sqlalchemy import Connection, Engine, create_engine, event, insert, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, NotSupportedError, ProgrammingError
from sqlalchemy.exc import TimeoutError as NoConnectionFree
from sqlalchemy.pool import ConnectionPoolEntry

from change_executor import lifecycle
from change_executor.errors import AnotherIsOpen, JournalUnavailable, NoSuchProposal, VersionChanged
from change_executor.journal import chain, schema
from change_executor.lifecycle import Event
from shared.proposal import State

Clock = Callable[[], datetime]

# A writer of another process (a command) holds the lock for milliseconds; ten seconds means that something is stuck.
BUSY_MILLISECONDS: Final = 10_000

# Wrong statements and refused rows are our own mistakes, or answers that the caller asked for; all other errors are
# the machine's: full, locked, unreadable.
_OURS: Final = (IntegrityError, ProgrammingError, DataError, NotSupportedError)


# Made once: making a statement costs as much as running it.
_HEAD: Final = select(schema.events.c.seq, schema.events.c.hash).order_by(schema.events.c.seq.desc()).limit(1)
_APPEND: Final = insert(schema.events)


@dataclass(frozen=True, slots=True)
class NewProposal:
    """What a proposal begins with; `expires_at` aware UTC, `predecessor` the last ended one for queue and Email."""

    id: str
    agent: str
    queue: str
    email_id: str
    from_role: str
    to_role: str
    expires_at: datetime
    predecessor: str | None


@dataclass(frozen=True, slots=True)
class Proposal:
    """A row of `proposals`; times are aware UTC, `policy_version` and `shown` belong to the last approval."""

    id: str
    agent: str
    queue: str
    email_id: str
    from_role: str
    to_role: str
    state: State
    version: int
    created_at: datetime
    expires_at: datetime
    ended_at: datetime | None
    predecessor: str | None
    waiting_code: str | None
    waiting_since: datetime | None
    decided_by: str | None
    decided_at: datetime | None
    policy_version: str | None
    shown: str | None
    outcome_code: str | None
    outcome_at: datetime | None
    copies_left: int | None
    evidence: int | None

    @classmethod
    def from_row(cls, row: RowMapping) -> Self:
        """Return the frozen value of a full row."""
        return cls(**{**row, "state": State(row["state"])})


class Writing:
    """One transaction that holds the journal's write lock; everything in it commits together or not at all."""

    def __init__(self, connection: Connection, now: datetime) -> None:
        self.connection = connection
        self.now = now

    def append(self, kind: str, subject: str, actor: str, details: dict[str, Any] | None = None) -> str:
        """Append one event to the chain and return its hash. `details`: ids, digests and codes, never content."""
        head = self.connection.execute(_HEAD).first()
        seq, previous = (1, chain.FIRST_PREVIOUS) if head is None else (head.seq + 1, head.hash)
        content = {} if details is None else details
        digest = chain.event_hash(
            seq=seq,
            at=schema.to_microseconds(self.now),
            kind=kind,
            subject=subject,
            actor=actor,
            details=content,
            previous=previous,
        )
        self.connection.execute(
            _APPEND,
            {
                "seq": seq,
                "at": self.now,
                "kind": kind,
                "subject": subject,
                "actor": actor,
                "details": rfc8785.dumps(content).decode(),
                "previous": previous,
                "hash": digest,
            },
        )
        return digest

    def proposal(self, proposal_id: str) -> Proposal:
        """Return a proposal as this transaction sees it, or raise `NoSuchProposal`."""
        return read_proposal(self.connection, proposal_id)

    def create(self, new: NewProposal) -> Proposal:
        """Insert a pending proposal of its agent; journalled as `proposal:propose`.

        Raises `AnotherIsOpen` where queue and Email have an open one.
        """
        values: dict[str, Any] = {
            "id": new.id,
            "agent": new.agent,
            "queue": new.queue,
            "email_id": new.email_id,
            "from_role": new.from_role,
            "to_role": new.to_role,
            "state": State.PENDING.value,
            "version": 1,
            "created_at": self.now,
            "expires_at": new.expires_at,
            "predecessor": new.predecessor,
        }
        with _one_open(new.id):
            self.connection.execute(insert(schema.proposals).values(**values))
        stated = {key: value for key, value in values.items() if key not in {"id", "state", "version"}}
        details = {"from": None, "to": State.PENDING.value, "version": 1, "set": recorded(stated)}
        self.append("proposal:propose", new.id, f"agent:{new.agent}", details)
        return self.proposal(new.id)

    def advance(
        self,
        proposal_id: str,
        happened: Event,
        actor: str,
        *,
        expected_version: int | None = None,
        details: dict[str, Any] | None = None,
        **values: Any,  # noqa: ANN401 - columns of proposals
    ) -> Proposal:
        """Let an event happen to a proposal: the row and the chain change together.

        `values` are columns that change with it; they stand in the event too, so that the chain covers the whole row.
        Leaving the open states stamps `ended_at`; any step clears `waiting`. Raises `TransitionRefused`,
        `VersionChanged` where `expected_version` is not the row's, `NoSuchProposal`, and `AnotherIsOpen` where an
        ended proposal would open again beside a newer one.
        """
        before = self.proposal(proposal_id)
        if expected_version is not None and before.version != expected_version:
            raise VersionChanged(proposal_id)
        state = lifecycle.advance(before.state, happened)
        changes: dict[str, Any] = {"waiting_code": None, "waiting_since": None}
        changes["ended_at"] = None if state in lifecycle.OPEN else self.now
        changes |= values
        self._update(before, state, f"proposal:{happened.value}", actor, details, changes)
        return self.proposal(proposal_id)

    def change(
        self,
        proposal_id: str,
        what: str,
        actor: str,
        details: dict[str, Any] | None = None,
        **values: Any,  # noqa: ANN401 - columns of proposals
    ) -> Proposal:
        """Change columns of a proposal without a change of state (new evidence, a reason to wait); journalled too."""
        before = self.proposal(proposal_id)
        self._update(before, before.state, f"proposal:{what}", actor, details, values)
        return self.proposal(proposal_id)

    def stopped(self) -> bool:
        """Whether the stop button is pressed."""
        return is_stopped(self.connection)

    def _update(
        self,
        before: Proposal,
        state: State,
        kind: str,
        actor: str,
        details: dict[str, Any] | None,
        values: dict[str, Any],
    ) -> None:
        with _one_open(before.id):
            done = self.connection.execute(
                update(schema.proposals)
                .where(schema.proposals.c.id == before.id, schema.proposals.c.version == before.version)
                .values(version=before.version + 1, state=state.value, **values)
            )
        assert done.rowcount == 1, "the write lock is held, so the row cannot have changed"
        changed = {column: value for column, value in values.items() if getattr(before, column) != value}
        stated = {"from": before.state.value, "to": state.value, "version": before.version + 1}
        self.append(kind, before.id, actor, (details or {}) | stated | {"set": recorded(changed)})


@contextmanager
def _one_open(proposal_id: str) -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        # SQLite names the columns of a unique index, and no other one has these two.
        if "proposals.queue, proposals.email_id" in str(error.orig):
            raise AnotherIsOpen(proposal_id) from None
        raise


def recorded(values: dict[str, Any]) -> dict[str, Any]:
    """Return columns as an event records them: times in UTC microseconds since 1970, all else as it is."""
    return {
        column: schema.to_microseconds(value) if isinstance(value, datetime) else value
        for column, value in values.items()
    }


def read_proposal(connection: Connection, proposal_id: str) -> Proposal:
    """Return a proposal, or raise `NoSuchProposal`."""
    row = connection.execute(select(schema.proposals).where(schema.proposals.c.id == proposal_id)).mappings().first()
    if row is None:
        raise NoSuchProposal(proposal_id)
    return Proposal.from_row(row)


def is_stopped(connection: Connection) -> bool:
    """Whether the stop button is pressed."""
    return (
        connection.execute(select(schema.switches.c.name).where(schema.switches.c.name == "stop")).first() is not None
    )


def event_details(text: str) -> dict[str, Any]:
    """Return the details of an event row as an object."""
    details = json.loads(text)
    assert isinstance(details, dict), "events hold objects"
    return details


class Journal:
    """The journal of one executor; thread-safe: writers take turns on one held connection, readers have their own.

    Made by `change_executor.journal.open`. Raises `JournalUnavailable` where the database cannot be used; then
    nothing was written.
    """

    def __init__(self, url: str, clock: Clock) -> None:
        self._clock = clock
        self._writer = writer_engine(url)
        self._reader = _engine(url, "BEGIN")
        self._turn = threading.Lock()
        self._whose_turn: int | None = None
        self._listeners: tuple[Callable[[], None], ...] = ()

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        """Open a write transaction; it commits at the end of the block and wakes the listeners after that.

        An exception that leaves the block takes everything in it back.
        """
        assert self._whose_turn != threading.get_ident(), "a write transaction inside another would wait for itself"
        with self._turn, _machine_errors():
            self._whose_turn = threading.get_ident()
            try:
                with self._writer.begin() as connection:
                    yield Writing(connection, self._clock())
                    _still_in_transaction(connection)
            finally:
                self._whose_turn = None
        for listener in self._listeners:
            # What was committed stays committed: a loop that is closed meanwhile must not turn it into a refusal.
            with suppress(RuntimeError):
                listener()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a read transaction: one consistent snapshot."""
        with _machine_errors(), self._reader.begin() as connection:
            yield connection

    def now(self) -> datetime:
        """Return the journal's clock."""
        return self._clock()

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each commit of this process, on the committing thread; it must only wake somebody."""
        self._listeners = (*self._listeners, listener)

    def unlisten(self, listener: Callable[[], None]) -> None:
        """Stop calling `listener`."""
        self._listeners = tuple(known for known in self._listeners if known != listener)

    def close(self) -> None:
        """Close every connection."""
        self._writer.dispose()
        self._reader.dispose()


@contextmanager
def _machine_errors() -> Iterator[None]:
    try:
        yield
    except _OURS:
        raise
    except DBAPIError as error:
        raise JournalUnavailable(str(error.orig)) from error
    except (sqlite3.Error, NoConnectionFree) as error:
        raise JournalUnavailable(str(error)) from error


def _still_in_transaction(connection: Connection) -> None:
    # SQLite may end a transaction by itself on a full disk; what was caught and went on would be written piecemeal.
    driver_connection = connection.connection.driver_connection
    if driver_connection is None or not driver_connection.in_transaction:
        raise JournalUnavailable("the database ended the transaction by itself")


def writer_engine(url: str) -> Engine:
    """Return an engine whose transactions hold the write lock from their beginning, across processes."""
    return _engine(url, "BEGIN IMMEDIATE")


def _engine(url: str, begin: str) -> Engine:
    # Errors are logged, and parameters hold what agents and people wrote.
    engine = create_engine(url, connect_args={"check_same_thread": False}, hide_parameters=True)
    read_only = begin == "BEGIN"

    @event.listens_for(engine, "connect")
    def _set_up(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
        # None: transactions are begun by us, in the mode that we choose.
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in (
            f"busy_timeout={BUSY_MILLISECONDS}",
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            "trusted_schema=OFF",
            # What is forgotten is overwritten too.
            "secure_delete=ON",
            f"query_only={'ON' if read_only else 'OFF'}",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine

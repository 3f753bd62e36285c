"""Writing and reading the journal: transactions, the one way to append, the one way to advance a proposal."""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Self

import rfc8785
from sqlalchemy import Connection, Engine, create_engine, event, insert, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from change_executor import lifecycle
from change_executor.errors import JournalUnavailable, NoSuchProposal, VersionChanged
from change_executor.journal import chain, schema
from change_executor.lifecycle import Event
from shared.proposal import State

Clock = Callable[[], datetime]

# A writer of another process (a command) holds the lock for milliseconds; ten seconds means that something is stuck.
BUSY_MILLISECONDS: Final = 10_000


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
        head = self.connection.execute(
            select(schema.events.c.seq, schema.events.c.hash).order_by(schema.events.c.seq.desc()).limit(1)
        ).first()
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
            insert(schema.events).values(
                seq=seq,
                at=self.now,
                kind=kind,
                subject=subject,
                actor=actor,
                details=rfc8785.dumps(content).decode(),
                previous=previous,
                hash=digest,
            )
        )
        return digest

    def proposal(self, proposal_id: str) -> Proposal:
        """Return a proposal as this transaction sees it, or raise `NoSuchProposal`."""
        return read_proposal(self.connection, proposal_id)

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

        `values` are columns that change with it. Leaving the open states stamps `ended_at`; any step clears `waiting`.
        Raises `TransitionRefused`, `VersionChanged` where `expected_version` is not the row's, `NoSuchProposal`.
        """
        before = self.proposal(proposal_id)
        if expected_version is not None and before.version != expected_version:
            raise VersionChanged(proposal_id)
        state = lifecycle.advance(before.state, happened)
        changes: dict[str, Any] = {"waiting_code": None, "waiting_since": None}
        changes["ended_at"] = None if state in lifecycle.OPEN else self.now
        changes |= values
        self._update(before, state=state.value, **changes)
        self.append(
            f"proposal:{happened.value}",
            proposal_id,
            actor,
            {"from": before.state.value, "to": state.value, "version": before.version + 1} | (details or {}),
        )
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
        self._update(before, **values)
        self.append(
            f"proposal:{what}",
            proposal_id,
            actor,
            {"from": before.state.value, "to": before.state.value, "version": before.version + 1} | (details or {}),
        )
        return self.proposal(proposal_id)

    def stopped(self) -> bool:
        """Whether the stop button is pressed."""
        return is_stopped(self.connection)

    def _update(self, before: Proposal, **values: Any) -> None:  # noqa: ANN401 - columns of proposals
        done = self.connection.execute(
            update(schema.proposals)
            .where(schema.proposals.c.id == before.id, schema.proposals.c.version == before.version)
            .values(version=before.version + 1, **values)
        )
        assert done.rowcount == 1, "the write lock is held, so the row cannot have changed"


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

    Raises `JournalUnavailable` where the database cannot be used; then nothing was written.
    """

    def __init__(self, url: str, clock: Clock) -> None:
        self._clock = clock
        self._writer = _engine(url, "BEGIN IMMEDIATE")
        self._reader = _engine(url, "BEGIN")
        self._turn = threading.Lock()
        self._listeners: list[Callable[[], None]] = []

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        """Open a write transaction; it commits at the end of the block and wakes the listeners after that."""
        with self._turn:
            try:
                with self._writer.begin() as connection:
                    yield Writing(connection, self._clock())
            except DBAPIError as error:
                raise JournalUnavailable(str(error.orig)) from error
        for listener in self._listeners:
            listener()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a read transaction: one consistent snapshot."""
        try:
            with self._reader.begin() as connection:
                yield connection
        except DBAPIError as error:
            raise JournalUnavailable(str(error.orig)) from error

    def now(self) -> datetime:
        """Return the journal's clock."""
        return self._clock()

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each commit of this process, on the committing thread; it must only wake somebody."""
        self._listeners.append(listener)

    def unlisten(self, listener: Callable[[], None]) -> None:
        """Stop calling `listener`."""
        self._listeners.remove(listener)

    def close(self) -> None:
        """Close every connection."""
        self._writer.dispose()
        self._reader.dispose()


def _engine(url: str, begin: str) -> Engine:
    engine = create_engine(url, connect_args={"check_same_thread": False})
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
            f"query_only={'ON' if read_only else 'OFF'}",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine

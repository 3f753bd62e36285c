"""Writing and reading the journal: transactions, the one way to append, the one way to advance a proposal."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Self, TypeVar

from sqlalchemy import Connection, bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError

from change_executor import lifecycle
from change_executor.errors import AnotherIsOpen, NoSuchProposal, VersionChanged
from change_executor.journal import batch, chain, coverage, schema
from change_executor.journal.engine import Glance, Readers, driver_of, writer_engine
from change_executor.journal.file import JournalFile
from change_executor.journal.group import GroupCommit
from change_executor.journal.statement import Statement
from change_executor.journal.steady import Steady, since_boot
from change_executor.journal.troubles import Troubles
from change_executor.lifecycle import Event
from shared.proposal import State

Clock = Callable[[], datetime]
_Found = TypeVar("_Found")

_HEAD: Final = "SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1"
_APPEND: Final = (
    "INSERT INTO events (seq, at, kind, subject, actor, details, previous, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)

_PROBE: Final = "INSERT INTO probes (name, at) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET at = excluded.at"

# A monitor asks each minute or so; more often would tell it nothing new.
PROBE_EVERY: Final = timedelta(seconds=5)

_KEEP_TEXT: Final = Statement(schema.keep_text)
_READ: Final = Statement(select(schema.proposals).where(schema.proposals.c.id == bindparam("wanted")))
_STOPPED: Final = Statement(select(schema.switches.c.name).where(schema.switches.c.name == "stop"))

# What the event of a new proposal says of its row beside state and version; all other columns are null.
_STATED: Final = ("agent", "queue", "email_id", "from_role", "to_role", "created_at", "expires_at", "predecessor")

_CREATE: Final = Statement(insert(schema.proposals), ("id", "state", "version", *_STATED))

_NO_TEXTS: Final[Mapping[str, str]] = MappingProxyType({})


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
    ended_at: datetime | None = None
    predecessor: str | None = None
    waiting_code: str | None = None
    waiting_since: datetime | None = None
    decided_by: str | None = None
    decided_at: datetime | None = None
    policy_version: str | None = None
    shown: str | None = None
    outcome_code: str | None = None
    outcome_at: datetime | None = None
    copies_left: int | None = None
    evidence: int | None = None

    @classmethod
    def from_row(cls, row: Mapping[Any, Any]) -> Self:
        """Return the frozen value of a full row."""
        return cls(**{**row, "state": State(row["state"])})


class Writing:
    """One transaction that holds the journal's write lock; everything in it commits together or not at all."""

    def __init__(self, connection: Connection, now: datetime, steady: Steady = since_boot) -> None:
        self.connection = connection
        self.now, self._steady = now, steady
        # Digests of texts that were written and stand in no event yet, by proposal and kind.
        self._unstated: dict[str, dict[str, str]] = {}

    def append(
        self,
        kind: str,
        subject: str,
        actor: str,
        details: dict[str, Any] | None = None,
        *,
        row: coverage.Row | None = None,
    ) -> str:
        """Append one event to the chain and return its hash. `details`: ids, digests and codes, never content.

        `row` is the covered row, as it stands now, that the event is about; of some kinds the subject names it.
        """
        content = {} if details is None else dict(details)
        covered = row or coverage.row_of(kind, subject)
        if covered is not None:
            content["row"] = coverage.stated(self.connection, covered)
        if (texts := self._unstated.pop(subject, None)) is not None:
            content["texts"] = texts
        text, at = chain.canonical(content), schema.to_microseconds(self.now)
        # Straight to the driver: the expression language costs several times what an event costs.
        driver = driver_of(self.connection)
        head = driver.execute(_HEAD).fetchone()
        seq, previous = (1, chain.FIRST_PREVIOUS) if head is None else (head[0] + 1, head[1])
        digest = chain.event_hash_of(
            seq=seq, at=at, kind=kind, subject=subject, actor=actor, details=text, previous=previous
        )
        driver.execute(_APPEND, (seq, at, kind, subject, actor, text, previous, digest))
        return digest

    def keep_text(self, proposal_id: str, kind: str, text: str) -> None:
        """Write a text of a proposal, in place of the one of this kind; its next event states the digest."""
        _KEEP_TEXT.run(self.connection, {"proposal": proposal_id, "kind": kind, "text": text})
        self._unstated.setdefault(proposal_id, {})[kind] = coverage.text_digest(text)

    def state_texts(self) -> None:
        """Append an event for each proposal whose texts stand in none yet: what no event covers could change unseen."""
        for proposal_id in tuple(self._unstated):
            self.append("text:keep", proposal_id, "executor")

    def proposal(self, proposal_id: str) -> Proposal:
        """Return a proposal as this transaction sees it, or raise `NoSuchProposal`."""
        return read_proposal(self.connection, proposal_id)

    def create(self, new: NewProposal, texts: Mapping[str, str] = _NO_TEXTS) -> Proposal:
        """Insert a pending proposal of its agent, with its texts by kind; journalled as `proposal:propose`.

        Raises `AnotherIsOpen` where queue and Email have an open one.
        """
        made = Proposal(
            id=new.id,
            agent=new.agent,
            queue=new.queue,
            email_id=new.email_id,
            from_role=new.from_role,
            to_role=new.to_role,
            state=State.PENDING,
            version=1,
            created_at=self.now,
            expires_at=new.expires_at,
            predecessor=new.predecessor,
        )
        stated = {name: getattr(made, name) for name in _STATED}
        with _one_open(new.id):
            _CREATE.run(self.connection, stated | {"id": new.id, "state": State.PENDING.value, "version": 1})
        for kind, text in texts.items():
            self.keep_text(new.id, kind, text)
        details = {"from": None, "to": State.PENDING.value, "version": 1, "set": schema.recorded(stated)}
        self.append("proposal:propose", new.id, f"agent:{new.agent}", details)
        return made

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
        if happened is Event.DOUBT:
            # The quiet time goes by it: a wall clock can be set.
            details = (details or {}) | {"steady": self._steady().note()}
        return self._update(before, state, f"proposal:{happened.value}", actor, details, changes)

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
        return self._update(before, before.state, f"proposal:{what}", actor, details, values)

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
    ) -> Proposal:
        with _one_open(before.id):
            changed_to = values | {"version": before.version + 1, "state": state.value}
            which = {"wanted": before.id, "known_version": before.version}
            changed_rows = _update_of(tuple(changed_to)).run(self.connection, changed_to | which)
        assert changed_rows == 1, "the write lock is held, so the row cannot have changed"
        changed = {column: value for column, value in values.items() if getattr(before, column) != value}
        stated = {"from": before.state.value, "to": state.value, "version": before.version + 1}
        looked_at = values.get("evidence")
        self.append(
            kind,
            before.id,
            actor,
            (details or {}) | stated | {"set": schema.recorded(changed)},
            row=None if looked_at is None else ("evidence", looked_at),
        )
        # Just what was written to what was read, in one transaction that holds the write lock.
        return replace(before, version=before.version + 1, state=state, **values)


# One for each set of columns that steps change together: a dozen.
@cache
def _update_of(columns: tuple[str, ...]) -> Statement:
    return Statement(
        update(schema.proposals)
        .where(schema.proposals.c.id == bindparam("wanted"), schema.proposals.c.version == bindparam("known_version"))
        .values({column: bindparam(column) for column in columns})
    )


@contextmanager
def _one_open(proposal_id: str) -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        # SQLite names the columns of a unique index, and no other one has these two.
        if "proposals.queue, proposals.email_id" in str(error.orig):
            raise AnotherIsOpen(proposal_id) from None
        raise


def read_proposal(connection: Connection, proposal_id: str) -> Proposal:
    """Return a proposal, or raise `NoSuchProposal`."""
    row = _READ.first(connection, {"wanted": proposal_id})
    if row is None:
        raise NoSuchProposal(proposal_id)
    return Proposal.from_row(row)


def is_stopped(connection: Connection) -> bool:
    """Whether the stop button is pressed."""
    return _STOPPED.first(connection) is not None


class Journal:
    """The journal of one executor; thread-safe: writers take turns on one held connection, readers have their own.

    Made by `change_executor.journal.open`. Raises `JournalUnavailable` where the database cannot be used; then
    nothing was written. `troubles` is where those who find that tell it; `steady` reads the clock that nobody sets.
    """

    def __init__(self, url: str, clock: Clock, steady: Steady = since_boot) -> None:
        self._clock, self.steady = clock, steady
        self._file = JournalFile(url)
        self.troubles = Troubles()
        self._writer = writer_engine(url)
        self._readers = Readers(url, self._file.check)
        self._group = GroupCommit(self._writer, self._file.check)
        self._listeners: tuple[Callable[[], None], ...] = ()
        self._glance = Glance(url, self._file.check)
        self._probing = threading.Lock()
        self._probed: datetime | None = None

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        """Open a write transaction; it commits after the block, with those of other threads that waited meanwhile.

        What is committed wakes the listeners. An exception that leaves the block takes everything in it back.
        """
        with self._group.turn() as connection:
            writing = Writing(connection, self._clock(), self.steady)
            yield writing
            writing.state_texts()
        self._tell_listeners()

    def write_all(self, acts: Sequence[Callable[[Writing], _Found]]) -> list[_Found | Exception]:
        """Let acts write one after the other in one transaction; return what each returned, or raised.

        What one of them did wrong is taken back alone; where it had written, all of them are called once more, and what
        they came to before is forgotten. All have ended when this returns, and what is told holds: it is after the
        commit. Raises `JournalUnavailable` where nothing of it could be committed.
        """
        return self._told(batch.write_all(self._group, acts, self._perform))

    def begin_all(self, acts: Sequence[Callable[[Writing], _Found]]) -> Callable[[], list[_Found | Exception]] | None:
        """Let acts write as `write_all` does, waiting for nobody; what is returned must be called, by any thread.

        It commits, returns and raises as `write_all` does; until then no other thread has a turn. None where one would
        have to wait for a turn or a lock: then no act was called.
        """
        commit = batch.begin_all(self._group, acts, self._perform)
        return None if commit is None else lambda: self._told(commit())

    def _perform(self, connection: Connection, act: Callable[[Writing], _Found]) -> _Found:
        writing = Writing(connection, self._clock(), self.steady)
        found = act(writing)
        writing.state_texts()
        return found

    def _told(self, ended: list[_Found | Exception]) -> list[_Found | Exception]:
        if not all(isinstance(each, Exception) for each in ended):
            self._tell_listeners()
        return ended

    def _tell_listeners(self) -> None:
        for listener in self._listeners:
            # What was committed stays committed: a loop that is closed meanwhile must not turn it into a refusal.
            with suppress(RuntimeError):
                listener()

    def reading(self) -> AbstractContextManager[Connection]:
        """Open a read transaction: one consistent snapshot."""
        return self._readers.reading()

    def glancing(self) -> AbstractContextManager[Connection]:
        """Open a read for one question that waits for nobody: for an event loop (`Glance`)."""
        return self._glance.asking()

    def probe(self) -> None:
        """Raise `JournalUnavailable` where the journal cannot be read or written; writes at most once a few seconds.

        Who asks for health need not be known, so asking does not cost a wait for the disk each time.
        """
        with self._probing:
            with self.reading() as connection:
                connection.exec_driver_sql("SELECT 1 FROM events LIMIT 1")
            now = self._clock()
            if self._probed is not None and timedelta(0) <= now - self._probed < PROBE_EVERY:
                return
            self._probed = None
            # A database that can be read may be full, or on a disk that is.
            with self._group.turn() as connection:
                driver_of(connection).execute(_PROBE, ("health", schema.to_microseconds(now)))
            self._probed = now

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
        self._glance.close()
        self._group.close()
        self._writer.dispose()
        self._readers.close()

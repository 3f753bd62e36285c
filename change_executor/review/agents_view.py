"""The agents: their tokens, what they proposed and what became of it, and what the reader says that they read."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import ColumnElement, Connection, Select, func, select

from change_executor.evidence.reader_link import ReaderFailure, ReaderLink
from change_executor.intake.proposer_tokens import TokenRow
from change_executor.journal import schema
from change_executor.journal.journal import Proposal
from change_executor.outcomes import Waiting
from change_executor.review.searching import first_line
from shared.link import Read
from shared.proposal import State

# Long enough that a quiet week tells nothing, short enough that an agent can better itself.
RATE_WINDOW: Final = timedelta(days=90)
# Half a hundred a day; an older one would not change what a person thinks of the agent.
MOST_COUNTED: Final = 5_000
READS_WINDOW: Final = timedelta(days=7)
# Each page has at most 500 reads; past this the page says "more than".
_MAX_READ_PAGES: Final = 4
_SHOWN: Final = 50
# A few agents serve a mailbox; the reader is asked about each in turn.
_MAX_AGENTS_ASKED: Final = 20

_TAKEN_BACK: Final = (State.UNDOING.value, State.UNDO_DOUBTFUL.value, State.UNDONE.value)

_columns = schema.proposals.c
_tokens = schema.tokens.c


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of an agent's proposals in the last 90 days; `more`: of the newest ones, there may be others."""

    proposed: int = 0
    waiting: int = 0
    approved: int = 0
    rejected: int = 0
    # approved first, and then taken back or on its way back: a person found that it was not right
    taken_back: int = 0
    more: bool = False

    @property
    def acceptance(self) -> int | None:
        """How many of a hundred decided ones were approved and left so, None where none was decided.

        Rounded down: a hundred means that nobody ever objected.
        """
        decided = self.approved + self.rejected
        return None if decided == 0 else 100 * (self.approved - self.taken_back) // decided


@dataclass(frozen=True, slots=True)
class ReadsSaid:
    """What the reader says that an agent read in the last seven days, newest first; `more` where it is not all.

    `failure` where it says nothing.
    """

    reads: tuple[Read, ...] = ()
    count: int = 0
    more: bool = False
    failure: Waiting | None = None

    @property
    def per_day(self) -> str:
        """How many reads a day, as the page says it."""
        if self.failure is not None:
            return "unknown"
        each = self.count / READS_WINDOW.days
        return f"{'more than ' if self.more else ''}{each:.0f}" if each >= 1 or not each else f"{each:.1f}"


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent; `reads` is the reader's word. `has_reader_token` is None where the reader does not say."""

    name: str
    tokens: list[TokenRow]
    counts: Counts
    reads: ReadsSaid
    has_reader_token: bool | None


@dataclass(frozen=True, slots=True)
class Proposed:
    """A proposal of an agent, with the subject of its message where that is kept."""

    proposal: Proposal
    subject: str | None


def read_tokens(connection: Connection) -> list[TokenRow]:
    """Return every proposer token, newest first."""
    shown = [column for column in schema.tokens.columns if column.name != "digest"]
    return [
        TokenRow(*row) for row in connection.execute(select(*shown).order_by(_tokens.created_at.desc(), _tokens.id))
    ]


def read_counts(connection: Connection, now: datetime, most: int = MOST_COUNTED) -> dict[str, Counts]:
    """Return what became of each agent's proposals, its newest `most` where it made more."""
    agents = [row.agent for row in connection.execute(_who_proposed()) if row.agent is not None]
    counted = {agent: _counts_of(connection, agent, now - RATE_WINDOW, most) for agent in agents}
    return {agent: counts for agent, counts in counted.items() if counts.proposed}


def _who_proposed() -> Select[tuple[str | None]]:
    # From one name to the next in the index: DISTINCT would read every proposal that there ever was.
    names = select(func.min(_columns.agent).label("agent")).cte("names", recursive=True)
    following = select(func.min(_columns.agent)).where(_columns.agent > names.c.agent).scalar_subquery()
    return select(names.union_all(select(following).where(names.c.agent.is_not(None))).c.agent)


def _counts_of(connection: Connection, agent: str, since: datetime, most: int) -> Counts:
    newest = (
        select(_columns.state, _columns.decided_at)
        .where(_columns.agent == agent, _columns.created_at > since)
        .order_by(_columns.created_at.desc())
        .limit(most)
        .subquery()
        .c
    )

    def count(*which: ColumnElement[bool]) -> ColumnElement[int]:
        return func.count().filter(*which)

    proposed, waiting, decided, rejected, taken_back = connection.execute(
        select(
            func.count(),
            count(newest.state == State.PENDING.value),
            func.count(newest.decided_at),
            count(newest.state == State.REJECTED.value, newest.decided_at.is_not(None)),
            count(newest.state.in_(_TAKEN_BACK)),
        )
    ).one()
    return Counts(proposed, waiting, decided - rejected, rejected, taken_back, more=proposed == most)


def read_proposed(connection: Connection, agent: str) -> list[Proposed]:
    """Return the latest proposals of an agent, newest first."""
    texts = schema.texts.c
    rows = connection.execute(
        select(schema.proposals, texts.text)
        .outerjoin(schema.texts, (texts.proposal == _columns.id) & (texts.kind == "reading"))
        .where(_columns.agent == agent)
        .order_by(_columns.created_at.desc(), _columns.id)
        .limit(_SHOWN)
    ).mappings()
    return [
        Proposed(
            Proposal(**{name: row[name] for name in Proposal.__slots__} | {"state": State(row["state"])}),
            first_line(row["text"], "subject"),
        )
        for row in rows
    ]


def ask_reads(reader: ReaderLink, agent: str, now: datetime) -> ReadsSaid:
    """Return what the reader says that an agent read lately."""
    reads: list[Read] = []
    cursor: int | None = None
    try:
        for _ in range(_MAX_READ_PAGES):
            page = reader.reads(agent, now - READS_WINDOW, cursor)
            reads += page.reads
            cursor = page.cursor
            if cursor is None:
                break
    except ReaderFailure as failure:
        return ReadsSaid(failure=failure.waiting)
    return ReadsSaid(tuple(reversed(reads))[:_SHOWN], len(reads), cursor is not None)


def ask_who_read(reader: ReaderLink, email_id: str, now: datetime) -> list[tuple[str, Read]] | None:
    """Return the reads that showed a message lately, newest first, with each agent; None where the reader is silent."""

    def reads_of(agent: str) -> list[tuple[str, Read]]:
        page = reader.reads(agent, now - READS_WINDOW)
        found = [(agent, read) for read in page.reads if email_id in read.email_ids]
        for _ in range(_MAX_READ_PAGES - 1):
            if page.cursor is None:
                break
            page = reader.reads(agent, now - READS_WINDOW, page.cursor)
            found += [(agent, read) for read in page.reads if email_id in read.email_ids]
        return found

    try:
        agents = reader.agents().agents[:_MAX_AGENTS_ASKED]
        found = [each for agent in agents for each in reads_of(agent)]
    except ReaderFailure:
        return None
    return sorted(found, key=lambda each: each[1].at, reverse=True)[:_SHOWN]


def agents_of(tokens: list[TokenRow], counts: dict[str, Counts], reader: ReaderLink, now: datetime) -> list[Agent]:
    """Return every agent that has a token of either kind or proposed lately, by name."""
    try:
        readers: set[str] | None = set(reader.agents().agents)
    except ReaderFailure:
        readers = None
    names = sorted({*(token.agent for token in tokens), *counts, *(readers or ())})
    return [
        Agent(
            name=name,
            tokens=[token for token in tokens if token.agent == name],
            counts=counts.get(name, Counts()),
            reads=_reads_of(name, readers, reader, now),
            has_reader_token=None if readers is None else name in readers,
        )
        for name in names
    ]


def _reads_of(name: str, readers: set[str] | None, reader: ReaderLink, now: datetime) -> ReadsSaid:
    if readers is None:
        return ReadsSaid(failure=Waiting.READER_UNREACHABLE)
    return ask_reads(reader, name, now) if name in readers else ReadsSaid()

"""The queue: what waits for a decision, what needs a look, what is under way, and what ended lately."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, Connection, Select, func, select, tuple_

from change_executor.config import ExecutorSettings
from change_executor.journal import schema
from change_executor.journal.journal import Proposal, is_stopped
from change_executor.review.case import checked_reading, evidence_of, mailboxes_of, read_texts
from change_executor.shown import Mailboxes
from shared.proposal import State

# People stop reading and start clicking past some fifty rows.
PAGE_ROWS: Final = 50
ENDED_ROWS: Final = 20

_columns = schema.proposals.c


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the list; `subject` is None before the executor has read the message, or after it was forgotten."""

    proposal: Proposal
    mailboxes: Mailboxes | None
    subject: str | None
    sender: str
    warnings: int
    copies: int


@dataclass(frozen=True, slots=True)
class QueueView:
    """What the first page shows; `more_after` leads to the next rows that wait."""

    waiting: list[Row]
    waiting_count: int
    more_after: str | None
    doubtful: list[Row]
    under_way: list[Row]
    ended: list[Row]
    stopped: bool


@dataclass(frozen=True, slots=True)
class After:
    """The last row of a page: where the next one begins."""

    created_at: datetime
    proposal_id: str


def read_queue(connection: Connection, settings: ExecutorSettings, after: After | None) -> QueueView:
    """Return the queue in this transaction; rows that wait come oldest first, from `after` on."""
    pending = select(schema.proposals).where(_columns.state == State.PENDING.value)
    page = pending if after is None else pending.where(_is_later(after))
    waiting = _proposals(connection, page.order_by(_columns.created_at, _columns.id).limit(PAGE_ROWS + 1))
    last = waiting[PAGE_ROWS - 1] if len(waiting) > PAGE_ROWS else None
    doubtful = _in_states(connection, [State.DOUBTFUL, State.UNDO_DOUBTFUL])
    under_way = _in_states(connection, [State.APPROVED, State.APPLYING, State.UNDOING])
    ended = _proposals(
        connection,
        select(schema.proposals)
        .where(_columns.ended_at.is_not(None))
        .order_by(_columns.ended_at.desc(), _columns.id)
        .limit(ENDED_ROWS),
    )
    rows = _rows(connection, settings, [*waiting[:PAGE_ROWS], *doubtful, *under_way, *ended])
    return QueueView(
        waiting=[rows[proposal.id] for proposal in waiting[:PAGE_ROWS]],
        waiting_count=count_waiting(connection),
        more_after=None if last is None else f"{schema.to_microseconds(last.created_at)}.{last.id}",
        doubtful=[rows[proposal.id] for proposal in doubtful],
        under_way=[rows[proposal.id] for proposal in under_way],
        ended=[rows[proposal.id] for proposal in ended],
        stopped=is_stopped(connection),
    )


def count_waiting(connection: Connection) -> int:
    """Return how many proposals wait for a decision."""
    return connection.execute(
        select(func.count()).select_from(schema.proposals).where(_columns.state == State.PENDING.value)
    ).scalar_one()


def _is_later(after: After) -> ColumnElement[bool]:
    moment = schema.to_microseconds(after.created_at)
    return tuple_(_columns.created_at, _columns.id) > tuple_(moment, after.proposal_id)


def _in_states(connection: Connection, states: Sequence[State]) -> list[Proposal]:
    return _proposals(
        connection,
        select(schema.proposals)
        .where(_columns.state.in_([state.value for state in states]))
        .order_by(_columns.created_at, _columns.id)
        .limit(PAGE_ROWS),
    )


def _proposals(connection: Connection, query: Select[tuple[object, ...]]) -> list[Proposal]:
    return [Proposal.from_row(row) for row in connection.execute(query).mappings()]


def _rows(connection: Connection, settings: ExecutorSettings, proposals: list[Proposal]) -> dict[str, Row]:
    texts = read_texts(connection, [proposal.id for proposal in proposals])
    evidence = evidence_of(connection, proposals)
    rows = {}
    for proposal in proposals:
        seen = evidence.get(proposal.id)
        reading = checked_reading(texts.get(proposal.id, {}).get("reading"), seen)
        rows[proposal.id] = Row(
            proposal=proposal,
            mailboxes=mailboxes_of(settings, proposal),
            subject=None if reading is None else reading.subject,
            sender=", ".join(reading.sender[:2]) if reading is not None else "",
            warnings=0 if reading is None else len(reading.warnings),
            copies=1 if seen is None else seen.copies,
        )
    return rows

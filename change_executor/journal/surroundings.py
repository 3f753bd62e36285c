"""What the journal itself knows around a message: its earlier proposals, others in its thread, and its sender before.

From this executor's own evidence, as digests that stay when the texts are forgotten (the thread's go with them). Every
answer is a count for a person to weigh; nothing is decided by it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, Connection, Select, delete, func, insert, select

from change_executor.journal import schema
from change_executor.journal.coverage import text_digest
from change_executor.journal.journal import Proposal, Writing
from shared.proposal import State

# A person looks at the first few; the count tells the rest.
MAX_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Other proposals around one, newest first and at most `MAX_NAMED`, each with how many there are.

    `earlier`: ended ones for the same message in the queue. `in_thread`: pending ones for other messages of the thread.
    `sender_seen` counts other messages of the sender that were looked at before, the first at `sender_since`; both None
    where the message has not one sender.
    """

    earlier: tuple[str, ...]
    earlier_count: int
    in_thread: tuple[str, ...]
    in_thread_count: int
    sender_seen: int | None
    sender_since: datetime | None


def sender_digest(address: str) -> str:
    """Return what evidence keeps of a sender's address."""
    return text_digest(address.strip().lower())


def keep_thread(writing: Writing, proposal_id: str, marks: Sequence[str]) -> None:
    """Keep what ties a proposal's message to its thread, in place of what was kept."""
    table = schema.threads
    writing.connection.execute(delete(table).where(table.c.proposal == proposal_id))
    if marks:
        rows = [{"proposal": proposal_id, "id_sha256": mark} for mark in dict.fromkeys(marks)]
        writing.connection.execute(insert(table), rows)


def read_surroundings(connection: Connection, proposal: Proposal) -> Surroundings:
    """Return what is known around a proposal now."""
    columns = schema.proposals.c
    earlier, earlier_count = _named(
        connection,
        (columns.queue == proposal.queue)
        & (columns.email_id == proposal.email_id)
        & (columns.created_at <= proposal.created_at)
        & columns.ended_at.is_not(None)
        & (columns.id != proposal.id),
    )
    marks = select(schema.threads.c.id_sha256).where(schema.threads.c.proposal == proposal.id)
    tied: Select[tuple[str]] = select(schema.threads.c.proposal).where(schema.threads.c.id_sha256.in_(marks))
    in_thread, in_thread_count = _named(
        connection,
        columns.id.in_(tied) & (columns.state == State.PENDING.value) & (columns.email_id != proposal.email_id),
    )
    seen, since = _sender(connection, proposal)
    return Surroundings(earlier, earlier_count, in_thread, in_thread_count, seen, since)


def _named(connection: Connection, wanted: ColumnElement[bool]) -> tuple[tuple[str, ...], int]:
    columns = schema.proposals.c
    ids = connection.execute(
        select(columns.id).where(wanted).order_by(columns.created_at.desc(), columns.id).limit(MAX_NAMED)
    ).scalars()
    count = connection.execute(select(func.count()).select_from(schema.proposals).where(wanted)).scalar_one()
    return tuple(ids), count


def _sender(connection: Connection, proposal: Proposal) -> tuple[int | None, datetime | None]:
    table = schema.evidence.c
    mine = connection.execute(
        select(table.id, table.sender_sha256, table.octets_sha256).where(table.id == proposal.evidence)
    ).first()
    if mine is None or mine.sender_sha256 is None:
        return None, None
    count, since = connection.execute(
        select(func.count(table.octets_sha256.distinct()), func.min(table.made_at)).where(
            table.sender_sha256 == mine.sender_sha256,
            table.octets_sha256 != mine.octets_sha256,
            table.id < mine.id,
        )
    ).one()
    return count, since

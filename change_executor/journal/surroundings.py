"""What the journal itself knows around a message: its earlier proposals, others in its thread, and its sender before.

From this executor's own evidence, as digests that stay when the texts are forgotten (the thread's go with them). Every
answer is a count for a person to weigh; nothing is decided by it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import ColumnElement, Connection, Select, delete, func, insert, select

from change_executor.journal import schema
from change_executor.journal.coverage import text_digest
from change_executor.journal.journal import Proposal, Writing
from change_executor.journal.moves import NOTHING_SENT, MoveKind
from shared.proposal import State

# A person looks at the first few; the count tells the rest.
MAX_NAMED: Final = 5
# Who writes here is among the latest two hundred whose mail was moved; each of their readings is looked into.
_KNOWN_BY: Final = 200


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Other proposals around one, newest first and at most `MAX_NAMED`, each with how many there are.

    `earlier`: ended ones for the same message in the queue. `in_thread`: pending ones for other messages of the thread.
    `sender_moved` says whether another message of the sender had been moved, and was not moved back, when this one was
    proposed; None where the message has not one sender. `anything_moved` says whether any message had been by then.
    What is decided while somebody works through a batch changes neither. Neither takes longer the more were moved.
    """

    earlier: tuple[str, ...]
    earlier_count: int
    in_thread: tuple[str, ...]
    in_thread_count: int
    sender_moved: bool | None
    anything_moved: bool


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
    return Surroundings(
        earlier,
        earlier_count,
        in_thread,
        in_thread_count,
        _sender_moved(connection, proposal),
        connection.execute(_moved_before(proposal).limit(1)).first() is not None,
    )


def known_hosts(connection: Connection) -> list[str]:
    """Return the hosts of senders whose mail was moved lately and not back, as far as their texts are kept."""
    columns, texts = schema.proposals.c, schema.texts.c
    lately = (
        select(func.json_extract(texts.text, "$.sender[0]"))
        .join(schema.texts, (texts.proposal == columns.id) & (texts.kind == "reading"))
        .where(columns.state == State.APPLIED.value, columns.ended_at.is_not(None))
        .order_by(columns.ended_at.desc())
        .limit(_KNOWN_BY)
    )
    senders = connection.execute(lately).scalars()
    hosts = (str(sender).rpartition("@")[2].removesuffix(">") for sender in senders if "@" in str(sender))
    return list(dict.fromkeys(hosts))


def _named(connection: Connection, wanted: ColumnElement[bool]) -> tuple[tuple[str, ...], int]:
    columns = schema.proposals.c
    ids = connection.execute(
        select(columns.id).where(wanted).order_by(columns.created_at.desc(), columns.id).limit(MAX_NAMED)
    ).scalars()
    count = connection.execute(select(func.count()).select_from(schema.proposals).where(wanted)).scalar_one()
    return tuple(ids), count


def _moved_before(proposal: Proposal) -> Select[tuple[str]]:
    """Proposals whose messages had been moved when this one was made, and lie there still."""
    columns, moves = schema.proposals.c, schema.moves.c
    return (
        select(columns.id)
        .join(schema.moves, moves.proposal == columns.id)
        .where(
            columns.state == State.APPLIED.value,
            moves.kind == MoveKind.MOVE.value,
            moves.conclusion != NOTHING_SENT,
            moves.concluded_at < proposal.created_at,
        )
    )


def _sender_moved(connection: Connection, proposal: Proposal) -> bool | None:
    table = schema.evidence.c
    mine = connection.execute(
        select(table.id, table.sender_sha256, table.octets_sha256).where(table.id == proposal.evidence)
    ).first()
    if mine is None or mine.sender_sha256 is None:
        return None
    # Of each of the sender's: joined, SQLite would walk all that was ever moved.
    was_moved = _moved_before(proposal).where(schema.proposals.c.id == table.proposal).exists()
    of_sender = (
        select(table.id)
        .where(table.sender_sha256 == mine.sender_sha256, table.octets_sha256 != mine.octets_sha256, was_moved)
        .limit(1)
    )
    return connection.execute(of_sender).first() is not None

"""Asking for moves to be taken back: one, several, or all that an agent's proposals did since a moment.

Each is a step of its own proposal, so it survives restarts, and one that cannot be undone does not hold up the others.
The worker does the rest, and does it only where the message still lies where it was put.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from sqlalchemy import Connection, func, select

from change_executor.config import ExecutorSettings
from change_executor.errors import AnotherIsOpen, NoSuchProposal
from change_executor.journal import moves, schema
from change_executor.journal.journal import Journal, Proposal, Writing
from change_executor.journal.moves import MoveKind
from change_executor.lifecycle import Event, TransitionRefused
from shared.proposal import State

# Of ten thousand each alone would wait for the disk; so many together keep an agent waiting no longer than it takes.
_AT_ONCE: Final = 50


class UndoRefusal(StrEnum):
    """Why a move cannot be taken back."""

    UNKNOWN_PROPOSAL = "unknown_proposal"
    # it was not moved, or it is being moved back already
    NOT_APPLIED = "not_applied"
    # the queue does not allow it, or is not configured any more
    UNDO_NOT_PERMITTED = "undo_not_permitted"
    # a person settled the move, so that nobody knows the UID that the message got
    UNDO_PLACE_UNKNOWN = "undo_place_unknown"
    # another proposal about the message is open in the queue
    ANOTHER_IS_OPEN = "another_is_open"


@dataclass(frozen=True, slots=True)
class UndoAsked:
    """What became of a request to undo: the proposals that are being undone, and why the others are not."""

    undoing: tuple[str, ...]
    refused: tuple[tuple[str, UndoRefusal], ...]


def undo_proposals(journal: Journal, settings: ExecutorSettings, proposal_ids: Sequence[str], actor: str) -> UndoAsked:
    """Ask for these moves to be taken back, as `actor` (`person:NAME` or `operator`). Raises `JournalUnavailable`.

    What was asked for before a failure stays asked for.
    """
    undoing: list[str] = []
    refused: list[tuple[str, UndoRefusal]] = []
    for first in range(0, len(proposal_ids), _AT_ONCE):
        some = proposal_ids[first : first + _AT_ONCE]
        with journal.writing() as writing:
            answers = [ask_undo(writing, settings, each, actor) for each in some]
        undoing += [each for each, refusal in zip(some, answers, strict=True) if refusal is None]
        refused += [(each, refusal) for each, refusal in zip(some, answers, strict=True) if refusal is not None]
    return UndoAsked(tuple(undoing), tuple(refused))


class ListChanged(Exception):  # noqa: N818 - names the state of things
    """What would be taken back is not what the person was shown: something was moved, or went back, meanwhile."""


def undo_since(
    journal: Journal, settings: ExecutorSettings, agent: str, since: datetime, actor: str, *, listed: str | None = None
) -> UndoAsked:
    """Ask for everything to be taken back that was moved since then because this agent proposed it, newest first.

    `listed` is the digest of the ids that a person was shown: anything else is not taken back, and `ListChanged` is
    raised with nothing written. Raises `JournalUnavailable`.
    """
    with journal.writing() as writing:
        # Read once, under the lock: what was compared is what goes back, and what is on record.
        ids = moved_since(writing.connection, agent, since)
        if listed is not None and listed != list_digest(ids):
            raise ListChanged
        details = {"since": schema.to_microseconds(since), "proposals": len(ids)}
        writing.append("undo:ask", f"agent:{agent}", actor, details)
    return undo_proposals(journal, settings, ids, actor)


def list_digest(ids: Sequence[str]) -> str:
    """Return the digest by which a list of proposals is known again."""
    return hashlib.sha256(" ".join(ids).encode()).hexdigest()


def moved_since(connection: Connection, agent: str, since: datetime) -> list[str]:
    """Return the ids of an agent's proposals whose messages were moved at or after a moment and not back, newest first.

    A move counts from when it began, so that none falls between two moments.
    """
    table, begun = schema.proposals, func.max(schema.moves.c.started_at)
    found = connection.execute(
        select(table.c.id)
        .join(schema.moves, schema.moves.c.proposal == table.c.id)
        .where(
            table.c.agent == agent,
            table.c.state == State.APPLIED.value,
            schema.moves.c.kind == MoveKind.MOVE.value,
            schema.moves.c.started_at >= since,
        )
        .group_by(table.c.id)
        .order_by(begun.desc(), table.c.id)
    )
    return list(found.scalars())


def ask_undo(writing: Writing, settings: ExecutorSettings, proposal_id: str, actor: str) -> UndoRefusal | None:
    """Ask for one move to be taken back in this transaction; returns why not, and then nothing was written."""
    try:
        proposal = writing.proposal(proposal_id)
        if (refusal := cannot_undo(writing.connection, settings, proposal)) is not None:
            return refusal
        writing.advance(proposal_id, Event.UNDO, actor)
    except NoSuchProposal:
        return UndoRefusal.UNKNOWN_PROPOSAL
    except TransitionRefused:
        return UndoRefusal.NOT_APPLIED
    except AnotherIsOpen:
        return UndoRefusal.ANOTHER_IS_OPEN
    return None


def cannot_undo(connection: Connection, settings: ExecutorSettings, proposal: Proposal) -> UndoRefusal | None:
    """Return why an undo would be refused as things stand, or None."""
    if proposal.state is not State.APPLIED:
        return UndoRefusal.NOT_APPLIED
    queue = settings.queue(proposal.queue)
    if queue is None or not queue.undo or not _server_seems_to_permit(connection, queue.id):
        return UndoRefusal.UNDO_NOT_PERMITTED
    if moves.last_moved(connection, proposal.id) is None:
        return UndoRefusal.UNDO_PLACE_UNKNOWN
    return None


# What an examination found; a queue that was never examined is tried, and the server's refusal is believed.
_PERMITTED: Final = schema.examinations.c.undo_permitted


def _server_seems_to_permit(connection: Connection, queue: str) -> bool:
    found = connection.execute(select(_PERMITTED).where(schema.examinations.c.queue == queue)).scalar_one_or_none()
    return found is None or found == 1

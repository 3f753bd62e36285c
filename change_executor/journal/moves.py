"""Intents: what a MOVE was meant to do, committed before its first octet leaves, and what became of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Self

import rfc8785
from sqlalchemy import ColumnElement, Connection, ScalarSelect, bindparam, func, insert, select, update

from change_executor.journal import schema
from change_executor.journal.journal import Writing
from change_executor.journal.statement import Statement
from change_executor.lifecycle import IN_FLIGHT

EXECUTOR: Final = "executor"


class MoveMethod(StrEnum):
    """How a message gets from one mailbox into the other: UID MOVE, or COPY, STORE and UID EXPUNGE where it is none."""

    MOVE = "move"
    COPY = "copy"


class CopyStep(StrEnum):
    """How far a move by copy is known to have come: the copy lies in the target; the source is flagged Deleted."""

    COPIED = "copied"
    FLAGGED = "flagged"


class MoveKind(StrEnum):
    """Whether a move follows a proposal or takes it back."""

    MOVE = "move"
    UNDO = "undo"


# Of an intent that ended without an octet sent; it counts against no cap.
NOTHING_SENT: Final = "nothing_sent"

# Of an intent that looking could not conclude and a person did.
SETTLED: Final = "settled_by_person"

# Conclusions of a move after which the message lies in the target under a known UID.
_MOVED: Final = ("moved", "found_in_target")


@dataclass(frozen=True, slots=True)
class Intent:
    """A row of `moves` as it is committed: one message, by UID and digest, from one mailbox to another.

    `elsewhere` holds UIDVALIDITY and UIDNEXT of the queue's other destinations, by name.
    """

    proposal: str
    kind: MoveKind
    credential: str
    source_mailbox: str
    source_uidvalidity: int
    source_uid: int
    target_mailbox: str
    target_uidvalidity: int
    target_uidnext: int
    octets_sha256: str
    size: int
    internaldate: str
    method: MoveMethod = MoveMethod.MOVE
    elsewhere: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Move:
    """An intent with its id and what became of it; times are aware UTC, `new_uid` the UID in the target once known."""

    id: int
    intent: Intent
    started_at: datetime
    concluded_at: datetime | None
    conclusion: str | None
    new_uid: int | None
    step: CopyStep | None = None

    @classmethod
    def from_row(cls, row: Mapping[Any, Any]) -> Self:
        """Return the frozen value of a full row."""
        own = {name: row[name] for name in ("id", "started_at", "concluded_at", "conclusion", "new_uid")}
        rest = {name: row[name] for name in Intent.__slots__}
        rest |= {"kind": MoveKind(row["kind"]), "method": MoveMethod(row["method"])}
        rest["elsewhere"] = {name: (both[0], both[1]) for name, both in json.loads(row["elsewhere"] or "{}").items()}
        return cls(intent=Intent(**rest), step=None if row["step"] is None else CopyStep(row["step"]), **own)


_BEGIN: Final = Statement(insert(schema.moves), (*Intent.__slots__, "started_at"))
_UNDER_WAY: Final = Statement(
    select(schema.moves).where(schema.moves.c.proposal == bindparam("wanted"), schema.moves.c.concluded_at.is_(None))
)
_OPEN: Final = (
    update(schema.moves)
    .where(schema.moves.c.id == bindparam("move"), schema.moves.c.concluded_at.is_(None))
    .returning(schema.moves.c.proposal)
)
_COME_AS_FAR: Final = Statement(_OPEN.values(step=bindparam("step"), new_uid=bindparam("new_uid")))
_CONCLUDE: Final = Statement(
    _OPEN.values(
        concluded_at=bindparam("concluded_at"), conclusion=bindparam("conclusion"), new_uid=bindparam("new_uid")
    )
)


def begin(writing: Writing, intent: Intent) -> int:
    """Write an intent and its event, and return its id. The mailbox names stay out of the chain."""
    values = {name: getattr(intent, name) for name in Intent.__slots__}
    values["elsewhere"] = rfc8785.dumps({name: list(both) for name, both in intent.elsewhere.items()}).decode()
    move_id = _BEGIN.insert(writing.connection, values | {"started_at": writing.now})
    writing.append(
        "move:intended",
        intent.proposal,
        EXECUTOR,
        {
            "move": move_id,
            "kind": intent.kind.value,
            "source": {"uidvalidity": intent.source_uidvalidity, "uid": intent.source_uid},
            "target": {"uidvalidity": intent.target_uidvalidity, "uidnext": intent.target_uidnext},
            "sha256": intent.octets_sha256,
            "method": intent.method.value,
        },
        row=("moves", move_id),
    )
    return move_id


def come_as_far(writing: Writing, move_id: int, step: CopyStep, new_uid: int) -> None:
    """Write that a move by copy has come as far as `step`: its event is the proof that the next step may be taken."""
    values = {"step": step.value, "new_uid": new_uid}
    changed = _COME_AS_FAR.first(writing.connection, values | {"move": move_id})
    assert changed is not None, "an intent that is concluded takes no more steps"
    details = {"move": move_id, "step": step.value, "newUid": new_uid}
    writing.append("move:step", changed["proposal"], EXECUTOR, details, row=("moves", move_id))


def conclude(writing: Writing, move_id: int, conclusion: str, new_uid: int | None = None) -> None:
    """Write what became of an intent, and its event."""
    values = {"concluded_at": writing.now, "conclusion": conclusion, "new_uid": new_uid}
    changed = _CONCLUDE.first(writing.connection, values | {"move": move_id})
    assert changed is not None, "an intent is concluded once"
    details = {"move": move_id, "conclusion": conclusion, "newUid": new_uid}
    writing.append("move:concluded", changed["proposal"], EXECUTOR, details, row=("moves", move_id))


def under_way(connection: Connection, proposal_id: str) -> Move | None:
    """Return the intent of a proposal that is not concluded, or None."""
    row = _UNDER_WAY.first(connection, {"wanted": proposal_id})
    return None if row is None else Move.from_row(row)


_NOT_SEEN_TO_RUN: Final = Statement(
    select(schema.moves)
    .where(
        schema.moves.c.proposal == bindparam("wanted"),
        schema.moves.c.kind == bindparam("kind"),
        schema.moves.c.conclusion == bindparam("conclusion"),
    )
    .order_by(schema.moves.c.id)
    .limit(1)
)


def not_seen_to_run(connection: Connection, proposal_id: str, kind: MoveKind) -> Intent | None:
    """Return the first intent of a proposal whose message was found only where it lay when the quiet time was over.

    Its command was taken for lost, and may have run since.
    """
    conclusion = "found_in_source" if kind is MoveKind.MOVE else "found_in_target"
    row = _NOT_SEEN_TO_RUN.first(connection, {"wanted": proposal_id, "kind": kind.value, "conclusion": conclusion})
    return None if row is None else Move.from_row(row).intent


def last_moved(connection: Connection, proposal_id: str) -> Move | None:
    """Return the move by which a proposal's message came to lie where it lies, or None where nobody knows its UID."""
    row = (
        connection.execute(
            select(schema.moves)
            .where(schema.moves.c.proposal == proposal_id, schema.moves.c.kind == MoveKind.MOVE.value)
            .order_by(schema.moves.c.id.desc())
            .limit(1)
        )
        .mappings()
        .first()
    )
    move = None if row is None else Move.from_row(row)
    return move if move is not None and move.conclusion in _MOVED and move.new_uid is not None else None


def begun_since(queue: ColumnElement[str], since: ColumnElement[datetime]) -> ScalarSelect[int]:
    """Return the question how many moves (no undos) of a queue began since and may have sent an octet."""
    of_queue = schema.proposals.alias()
    # Asked of each move that began lately: joined, SQLite would walk all that the queue ever had.
    its_queue = select(of_queue.c.queue).where(of_queue.c.id == schema.moves.c.proposal).scalar_subquery()
    return (
        select(func.count())
        .select_from(schema.moves)
        .where(
            its_queue == queue,
            schema.moves.c.kind == MoveKind.MOVE.value,
            schema.moves.c.started_at >= since,
            schema.moves.c.conclusion.is_(None) | (schema.moves.c.conclusion != NOTHING_SENT),
        )
        .scalar_subquery()
    )


def under_way_for_another(proposal: ColumnElement[str], evidence: ColumnElement[int | None]) -> ColumnElement[bool]:
    """Return the question whether an intent of another proposal is open about the same octets.

    By digest: another queue's login may name the mailbox otherwise.
    """
    seen, begun = schema.evidence.alias(), schema.moves.alias()
    return (
        select(begun.c.id)
        .join(seen, seen.c.octets_sha256 == begun.c.octets_sha256)
        .where(seen.c.id == evidence, begun.c.concluded_at.is_(None), begun.c.proposal != proposal)
        .exists()
    )


def settled(connection: Connection) -> list[int]:
    """Return the intents that are not concluded and whose proposals are not in flight: a person settled them."""
    return [move["id"] for move in _SETTLED.all(connection)]


_SETTLED: Final = Statement(
    select(schema.moves.c.id)
    .join(schema.proposals, schema.moves.c.proposal == schema.proposals.c.id)
    .where(
        schema.moves.c.concluded_at.is_(None),
        schema.proposals.c.state.not_in([state.value for state in sorted(IN_FLIGHT)]),
    )
    .order_by(schema.moves.c.id)
)


def conclude_settled(writing: Writing) -> None:
    """Conclude the intents of proposals that a person settled: nobody reconciles them any more."""
    for move_id in settled(writing.connection):
        conclude(writing, move_id, SETTLED)

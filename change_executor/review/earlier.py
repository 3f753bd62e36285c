"""What was decided before about the same message, its thread and its sender: the latest, newest first.

As far as texts are still kept; older decisions are in the log, without their texts. Texts are read of those that are
shown alone, and no question walks all that was ever decided.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, RowMapping, func, or_, select

from change_executor.journal import schema
from change_executor.journal.journal import Proposal
from change_executor.journal.surroundings import Surroundings, read_surroundings
from change_executor.lifecycle import OPEN
from change_executor.review.case import Case
from shared.proposal import State

# Decisions are looked through, not searched: a sender who matters is among the latest thousand.
_LOOKED_THROUGH: Final = 1_000
_SHOWN: Final = 5

_columns = schema.proposals.c


@dataclass(frozen=True, slots=True)
class Decided:
    """An earlier proposal with the subject of its message, empty for none."""

    proposal: Proposal
    subject: str


@dataclass(frozen=True, slots=True)
class Earlier:
    """`thread`: about messages that share a Message-ID with this one, or are it; `sender`: of its one sender.

    `around` is what is known whether or not texts are kept.
    """

    thread: list[Decided]
    sender: list[Decided]
    around: Surroundings


def read_earlier(connection: Connection, case: Case) -> Earlier:
    """Return the earlier decisions that bear on a case."""
    same = select(schema.proposals).where(
        _columns.email_id == case.proposal.email_id, _columns.queue == case.proposal.queue
    )
    found = {
        row["id"]: Decided(Proposal.from_row(row), case.reading.subject if case.reading is not None else "")
        for row in connection.execute(same.order_by(_columns.created_at.desc()).limit(_SHOWN + 1)).mappings()
        if row["id"] != case.proposal.id
    }
    threads = schema.threads.c
    marks = select(threads.id_sha256).where(threads.proposal == case.proposal.id)
    tied = _columns.id.in_(select(threads.proposal).where(threads.id_sha256.in_(marks)))
    thread = [*found.values(), *_decided(connection, tied, {case.proposal.id, *found})]
    sender = None if case.evidence is None else case.evidence.sender_sha256
    left_out = {case.proposal.id, *(each.proposal.id for each in thread)}
    of_sender = [] if sender is None else _decided(connection, _is_of(sender), left_out)
    return Earlier(thread[:_SHOWN], of_sender, read_surroundings(connection, case.proposal))


def _is_of(sender_sha256: str) -> ColumnElement[bool]:
    ended = _columns.ended_at.is_not(None)
    latest = select(_columns.id).where(ended).order_by(_columns.ended_at.desc()).limit(_LOOKED_THROUGH)
    of_one = schema.evidence.alias()
    # Not by the index of senders: of one there may be any number.
    its_sender = select(func.coalesce(of_one.c.sender_sha256, "")).where(of_one.c.id == _columns.evidence)
    among = _columns.id.in_(latest) | (~ended & _columns.state.in_([state.value for state in sorted(OPEN)]))
    return among & (its_sender.scalar_subquery() == sender_sha256)


def _decided(connection: Connection, which: ColumnElement[bool], left_out: Iterable[str]) -> list[Decided]:
    texts = schema.texts
    rows = connection.execute(
        select(schema.proposals, texts.c.text)
        .join(texts, (texts.c.proposal == _columns.id) & (texts.c.kind == "reading"))
        .where(which, _columns.id.not_in(left_out))
        .where(or_(_columns.ended_at.is_not(None), _columns.decided_at.is_not(None)))
        .order_by(_columns.ended_at.desc())
        .limit(_SHOWN)
    ).mappings()
    return [Decided(_proposal(row), str(_object(row["text"]).get("subject", ""))) for row in rows]


def _proposal(row: RowMapping) -> Proposal:
    values = {name: row[name] for name in Proposal.__slots__}
    return Proposal(**values | {"state": State(row["state"])})


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}

"""What was decided before about the same message, its thread and its sender: the latest, newest first.

Found in the texts that are still kept; older decisions are in the log, without their texts.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, RowMapping, or_, select

from change_executor.journal import schema
from change_executor.journal.journal import Proposal
from change_executor.journal.surroundings import Surroundings, read_surroundings
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
    """`thread`: about messages that share a Message-ID with this one, or are it; `sender`: of the same first sender.

    `around` is what is known whether or not texts are kept.
    """

    thread: list[Decided]
    sender: list[Decided]
    around: Surroundings


def read_earlier(connection: Connection, case: Case) -> Earlier:
    """Return the earlier decisions that bear on a case."""
    mine = case.reading
    marks = set(mine.thread) if mine is not None else set()
    sender = mine.sender[0] if mine is not None and mine.sender else None
    same = select(schema.proposals).where(
        _columns.email_id == case.proposal.email_id, _columns.queue == case.proposal.queue
    )
    found = {
        row["id"]: Decided(Proposal.from_row(row), mine.subject if mine is not None else "")
        for row in connection.execute(same.order_by(_columns.created_at.desc()).limit(_SHOWN + 1)).mappings()
        if row["id"] != case.proposal.id
    }
    thread, of_sender = list(found.values()), []
    for proposal, reading in _latest(connection, case.proposal.id):
        decided = Decided(proposal, str(reading.get("subject", "")))
        if proposal.id not in found and marks & set(_list(reading.get("thread"))):
            thread.append(decided)
        elif sender is not None and sender in _list(reading.get("sender"))[:1]:
            of_sender.append(decided)
    return Earlier(thread[:_SHOWN], of_sender[:_SHOWN], read_surroundings(connection, case.proposal))


def _latest(connection: Connection, proposal_id: str) -> list[tuple[Proposal, dict[str, Any]]]:
    texts = schema.texts
    rows = connection.execute(
        select(schema.proposals, texts.c.text)
        .join(texts, (texts.c.proposal == _columns.id) & (texts.c.kind == "reading"))
        .where(_columns.id != proposal_id, or_(_columns.ended_at.is_not(None), _columns.decided_at.is_not(None)))
        .order_by(_columns.ended_at.desc())
        .limit(_LOOKED_THROUGH)
    ).mappings()
    return [(_proposal(row), _object(row["text"])) for row in rows]


def _proposal(row: RowMapping) -> Proposal:
    values = {name: row[name] for name in Proposal.__slots__}
    return Proposal(**values | {"state": State(row["state"])})


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []

"""What one snapshot of the journal says is to be done: read once for each pass of the worker.

However many wait for a person's decision: they are asked about by index and not read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from sqlalchemy import bindparam, func, or_, select

from change_executor.agents import revoked_with_proposals
from change_executor.journal import schema
from change_executor.journal.journal import Journal, Proposal
from change_executor.journal.moves import settled
from change_executor.journal.statement import Statement
from change_executor.lifecycle import OPEN
from change_executor.switch import is_frozen
from shared.proposal import State

EXPIRING: Final = (State.PENDING, State.APPROVED)

_columns = schema.proposals.c
_NOW: Final = bindparam("now", type_=schema.UtcMicroseconds)
_MAY_EXPIRE: Final = _columns.state.in_([state.value for state in EXPIRING])

# All that is open, but for what a person can decide on: that is theirs.
_WITH_THE_WORKER: Final = Statement(
    select(schema.proposals)
    .where(
        _columns.state.in_([state.value for state in sorted(OPEN)]),
        or_(_columns.state != State.PENDING.value, _columns.evidence.is_(None)),
    )
    .order_by(_columns.created_at, _columns.id)
)
_OVER: Final = Statement(
    select(_columns.id).where(_MAY_EXPIRE, _columns.expires_at <= _NOW).order_by(_columns.created_at, _columns.id)
)
_NEXT_EXPIRY: Final = Statement(
    select(func.min(_columns.expires_at).label("at")).where(_MAY_EXPIRE, _columns.expires_at > _NOW)
)


@dataclass(frozen=True, slots=True)
class Seen:
    """Whoever does what it tells reads again in a transaction of their own.

    `proposals` are with the worker, oldest first; `over` the ids of those that have expired, `next_expiry` when the
    next one does; `revoked` agents that have proposals to take back; `settled` whether a person ended a doubt.
    """

    proposals: list[Proposal]
    over: list[str]
    next_expiry: datetime | None
    revoked: list[str]
    settled: bool
    stopped: bool


def look(journal: Journal, stop_file: Path | None, takes: Callable[[str], bool] = lambda _: True) -> Seen:
    """Read it, with the proposals of the queues that somebody takes. Raises `JournalUnavailable`."""
    with journal.reading() as connection:
        now = {"now": journal.now()}
        expiry = _NEXT_EXPIRY.first(connection, now)
        return Seen(
            proposals=[Proposal.from_row(row) for row in _WITH_THE_WORKER.all(connection) if takes(row["queue"])],
            over=[row["id"] for row in _OVER.all(connection, now)],
            next_expiry=None if expiry is None else expiry["at"],
            revoked=revoked_with_proposals(connection),
            settled=bool(settled(connection)),
            stopped=is_frozen(connection, stop_file),
        )

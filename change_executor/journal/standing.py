"""Where a proposal stands just before its move: it and all that the policy judges it by, read by one question."""

from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import Connection, bindparam, func, or_, select

from change_executor.errors import NoSuchProposal
from change_executor.journal import moves, schema
from change_executor.journal.journal import Proposal
from change_executor.journal.statement import Statement

_columns = schema.proposals.c


class Standing(NamedTuple):
    """A proposal; how many moves of its queue began in the hour and in the day; whether agent and house are stopped.

    `being_moved`: a command for the same message, of another proposal, may be under way.
    """

    proposal: Proposal
    begun: tuple[int, int]
    revoked: bool
    stopped: bool
    being_moved: bool


_proposed, _revoked = schema.events.alias(), schema.events.alias()
_began: Final = (
    select(func.min(_proposed.c.seq))
    .where(_proposed.c.subject == _columns.id)
    .correlate(schema.proposals)
    .scalar_subquery()
)
# By their order in the chain, which no clock changes: an agent that has a new token was revoked all the same.
_REVOKED_SINCE: Final = (
    select(_revoked.c.seq)
    .where(_revoked.c.subject == _columns.agent, _revoked.c.kind == "agent:revoke", _revoked.c.seq > _began)
    .exists()
)

_STANDING: Final = Statement(
    select(
        schema.proposals,
        moves.begun_since(_columns.queue, bindparam("hour", type_=schema.UtcMicroseconds)).label("in_hour"),
        moves.begun_since(_columns.queue, bindparam("day", type_=schema.UtcMicroseconds)).label("in_day"),
        or_(
            select(schema.revoked_agents.c.name).where(schema.revoked_agents.c.name == _columns.agent).exists(),
            _REVOKED_SINCE,
        ).label("revoked"),
        select(schema.switches.c.name).where(schema.switches.c.name == "stop").exists().label("stopped"),
        moves.under_way_for_another(_columns.id, _columns.evidence).label("being_moved"),
    ).where(_columns.id == bindparam("wanted"))
)


def read(connection: Connection, proposal_id: str, hour: datetime, day: datetime) -> Standing:
    """Return where a proposal stands in this transaction; `hour` and `day` are where those windows begin.

    Raises `NoSuchProposal`.
    """
    own = _STANDING.first(connection, {"wanted": proposal_id, "hour": hour, "day": day})
    if own is None:
        raise NoSuchProposal(proposal_id)
    begun = own.pop("in_hour"), own.pop("in_day")
    revoked, stopped, being_moved = (bool(own.pop(name)) for name in ("revoked", "stopped", "being_moved"))
    return Standing(Proposal.from_row(own), begun, revoked, stopped, being_moved)

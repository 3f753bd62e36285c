"""Revoking an agent: its tokens open nothing any more, and what it asked for and nobody has moved yet is taken back.

What is in flight is concluded first, since a command may have left; if the message then still lies in incoming, the
worker takes the proposal back instead of moving it.
"""

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, delete, insert, select, update

from change_executor.journal import schema
from change_executor.journal.journal import Journal, Proposal, Writing
from change_executor.journal.statement import Statement
from change_executor.lifecycle import IN_FLIGHT, Event
from change_executor.outcomes import Outcome
from shared.proposal import State

# What can be taken back: nothing of it has left.
_NOT_BEGUN: Final = (State.PENDING, State.APPROVED)


_REVOKED_WITH_PROPOSALS: Final = Statement(
    select(schema.proposals.c.agent)
    .distinct()
    .where(
        schema.proposals.c.state.in_(_NOT_BEGUN),
        schema.proposals.c.agent.in_(select(schema.revoked_agents.c.name)),
    )
)


@dataclass(frozen=True, slots=True)
class Revoked:
    """What a revocation did: the ids of the tokens and proposals that ended, and of proposals still in flight."""

    tokens: tuple[str, ...]
    proposals: tuple[str, ...]
    in_flight: tuple[str, ...]


def revoke_agent(journal: Journal, agent: str, actor: str) -> Revoked:
    """Revoke an agent as `actor` (`person:NAME` or `operator`): once more changes nothing. Raises `JournalUnavailable`.

    A name that nobody holds is revoked too, so that a token for it cannot be in use unseen.
    """
    with journal.writing() as writing:
        if not is_revoked(writing.connection, agent):
            writing.connection.execute(insert(schema.revoked_agents).values(name=agent, since=writing.now, by=actor))
            writing.append("agent:revoke", agent, actor)
        tokens = _revoke_tokens(writing, agent, actor)
        proposals = take_back(writing, agent, actor)
        flying = _ids(writing.connection, agent, tuple(IN_FLIGHT))
        return Revoked(tokens, proposals, flying)


def admit_again(writing: Writing, agent: str, actor: str) -> None:
    """Let a revoked agent propose again, in the transaction that makes its new token."""
    if is_revoked(writing.connection, agent):
        writing.connection.execute(delete(schema.revoked_agents).where(schema.revoked_agents.c.name == agent))
        writing.append("agent:admit", agent, actor)


def is_revoked(connection: Connection, agent: str) -> bool:
    """Whether an agent is revoked."""
    table = schema.revoked_agents
    return connection.execute(select(table.c.name).where(table.c.name == agent)).first() is not None


def revoked_with_proposals(connection: Connection) -> list[str]:
    """Return the revoked agents that have proposals which can be taken back."""
    return [row["agent"] for row in _REVOKED_WITH_PROPOSALS.all(connection)]


def take_back(writing: Writing, agent: str, actor: str) -> tuple[str, ...]:
    """End an agent's proposals of which nothing has left; returns their ids."""
    ids = _ids(writing.connection, agent, _NOT_BEGUN)
    for proposal_id in ids:
        end_revoked(writing, writing.proposal(proposal_id), actor)
    return ids


def end_revoked(writing: Writing, proposal: Proposal, actor: str) -> None:
    """End a proposal because its agent is revoked."""
    values: dict[str, Any] = {"outcome_code": Outcome.AGENT_REVOKED.value, "outcome_at": writing.now}
    writing.advance(proposal.id, Event.REVOKE, actor, details={"outcome": Outcome.AGENT_REVOKED.value}, **values)


def _ids(connection: Connection, agent: str, states: tuple[State, ...]) -> tuple[str, ...]:
    columns = schema.proposals.c
    found = connection.execute(
        select(columns.id).where(columns.agent == agent, columns.state.in_(states)).order_by(columns.created_at)
    )
    return tuple(found.scalars())


def _revoke_tokens(writing: Writing, agent: str, actor: str) -> tuple[str, ...]:
    table = schema.tokens
    good = select(table.c.id, table.c.queue).where(table.c.agent == agent, table.c.revoked_at.is_(None))
    rows = writing.connection.execute(good.order_by(table.c.id)).all()
    for row in rows:
        writing.connection.execute(update(table).where(table.c.id == row.id).values(revoked_at=writing.now))
        writing.append("token:revoke", row.id, actor, {"agent": agent, "queue": row.queue})
    return tuple(row.id for row in rows)

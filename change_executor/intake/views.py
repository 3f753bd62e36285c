"""A row of the journal as its agent may see it: no person's name, no mailbox name, nothing of other agents."""

from collections.abc import Mapping
from typing import Final

from sqlalchemy import Connection, bindparam, select

from change_executor.journal import schema
from change_executor.journal.journal import Proposal
from change_executor.journal.statement import Statement
from shared.proposal import Decision, Outcome, ProposalView, Waiting

_TEXTS: Final = Statement(
    select(schema.texts.c.kind, schema.texts.c.text).where(
        schema.texts.c.proposal == bindparam("proposal"), schema.texts.c.kind.in_(["reason", "decision_reason"])
    )
)
_OF_AGENT: Final = Statement(
    select(schema.proposals.c.id).where(
        schema.proposals.c.id == bindparam("wanted"), schema.proposals.c.agent == bindparam("agent")
    )
)


def view(connection: Connection, row: Proposal) -> ProposalView:
    """Return a proposal as its agent sees it; texts that were forgotten are null."""
    texts = {found["kind"]: found["text"] for found in _TEXTS.all(connection, {"proposal": row.id})}
    return view_of(row, texts, _own_predecessor(connection, row))


def view_of(row: Proposal, texts: Mapping[str, str], predecessor: str | None) -> ProposalView:
    """Return a proposal as its agent sees it, where its texts by kind and its own agent's predecessor are known."""
    # By the names on the wire, since two of them are no Python names.
    return ProposalView.model_validate(
        {
            "id": row.id,
            "state": row.state,
            "queue": row.queue,
            "emailId": row.email_id,
            "from": row.from_role,
            "to": row.to_role,
            "reason": texts.get("reason"),
            "createdAt": row.created_at,
            "expiresAt": row.expires_at,
            "predecessor": predecessor,
            "waiting": _waiting(row),
            "decision": _decision(row, texts.get("decision_reason")),
            "outcome": _outcome(row),
        }
    )


def _own_predecessor(connection: Connection, row: Proposal) -> str | None:
    """The one before it, where it was the same agent's: another's tells that there is such a message."""
    if row.predecessor is None:
        return None
    found = _OF_AGENT.first(connection, {"wanted": row.predecessor, "agent": row.agent})
    return None if found is None else row.predecessor


def _waiting(row: Proposal) -> Waiting | None:
    if row.waiting_code is None or row.waiting_since is None:
        return None
    return Waiting(code=row.waiting_code, since=row.waiting_since)


def _decision(row: Proposal, reason: str | None) -> Decision | None:
    return None if row.decided_at is None else Decision(by="person", at=row.decided_at, reason=reason)


def _outcome(row: Proposal) -> Outcome | None:
    if row.outcome_code is None or row.outcome_at is None:
        return None
    return Outcome(code=row.outcome_code, at=row.outcome_at, copiesLeft=row.copies_left)

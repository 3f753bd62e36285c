"""A row of the journal as its agent may see it: no person's name, no mailbox name, nothing of other agents."""

from sqlalchemy import Connection, select

from change_executor.journal import schema
from change_executor.journal.journal import Proposal
from shared.proposal import Decision, Outcome, ProposalView, Waiting


def view(connection: Connection, row: Proposal) -> ProposalView:
    """Return a proposal as its agent sees it; texts that were forgotten are null."""
    table = schema.texts
    found = connection.execute(
        select(table.c.kind, table.c.text).where(
            table.c.proposal == row.id, table.c.kind.in_(["reason", "decision_reason"])
        )
    )
    texts = {text.kind: text.text for text in found}
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
            "predecessor": _own_predecessor(connection, row),
            "waiting": _waiting(row),
            "decision": _decision(row, texts.get("decision_reason")),
            "outcome": _outcome(row),
        }
    )


def _own_predecessor(connection: Connection, row: Proposal) -> str | None:
    """The one before it, where it was the same agent's: another's tells that there is such a message."""
    table = schema.proposals
    return connection.execute(
        select(table.c.id).where(table.c.id == row.predecessor, table.c.agent == row.agent)
    ).scalar_one_or_none()


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

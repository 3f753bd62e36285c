"""One proposal with everything that its page shows, read in one snapshot of the journal."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from pydantic import ValidationError
from sqlalchemy import Connection, select

from change_executor.config import ExecutorSettings
from change_executor.evidence.reading import Reading
from change_executor.journal import schema
from change_executor.journal.chain import event_details
from change_executor.journal.evidence import Evidence
from change_executor.journal.journal import Proposal, read_proposal
from change_executor.journal.moves import last_moved
from change_executor.policy import policy_version
from change_executor.shown import Mailboxes, shown_digest
from shared.fence import Cleaned, clean
from shared.proposal import State

# A life has some ten events; more means that evidence was made again and again, and the latest tell enough.
MAX_EVENTS_SHOWN: Final = 100

# What a page about a proposal shows of its texts; the source is read when it is asked for.
SHOWN_TEXTS: Final = ("reason", "decision_reason", "reading", "hints")


class TakingBack(StrEnum):
    """How a decision is taken back: a move that has not begun is rejected after all, one that was made is undone."""

    REJECT = "reject"
    UNDO = "undo"


@dataclass(frozen=True, slots=True)
class Happened:
    """An event of a proposal's life, as the history lists it."""

    at: datetime
    kind: str
    actor: str
    details: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """What there is to know about one proposal.

    `mailboxes` is None where the configuration no longer has the queue or the role; `reading` is None before there is
    evidence, after texts were forgotten, or where the stored text is not the one recorded (`reading_damaged`).
    """

    proposal: Proposal
    mailboxes: Mailboxes | None
    policy_version: str
    evidence: Evidence | None
    reading: Reading | None
    reading_damaged: bool
    reason: Cleaned | None
    decision_reason: str | None
    hints: str | None
    undo_offered: bool
    shown: str

    @property
    def taking_back(self) -> TakingBack | None:
        """How the decision can be taken back now, or None."""
        return taking_back(self.proposal, undo_offered=self.undo_offered)


def read_case(connection: Connection, settings: ExecutorSettings, proposal_id: str) -> Case:
    """Return the case of a proposal in this transaction. Raises `NoSuchProposal`."""
    proposal = read_proposal(connection, proposal_id)
    evidence = evidence_of(connection, [proposal]).get(proposal_id)
    texts = read_texts(connection, [proposal_id]).get(proposal_id, {})
    reading = checked_reading(texts.get("reading"), evidence)
    mailboxes = mailboxes_of(settings, proposal)
    queue = settings.queue(proposal.queue)
    version = "" if queue is None else policy_version(settings, queue)
    return Case(
        proposal=proposal,
        mailboxes=mailboxes,
        policy_version=version,
        evidence=evidence,
        reading=reading,
        reading_damaged=evidence is not None and reading is None and "reading" in texts,
        reason=clean(texts["reason"]) if "reason" in texts else None,
        decision_reason=texts.get("decision_reason"),
        hints=texts.get("hints"),
        undo_offered=proposal.state is State.APPLIED and undo_is_offered(connection, settings, proposal),
        shown=shown_digest(proposal, mailboxes or Mailboxes("", ""), evidence, reading, version),
    )


def read_events(connection: Connection, subject: str) -> list[Happened]:
    """Return the latest events of a proposal, oldest first."""
    rows = connection.execute(
        select(schema.events.c.at, schema.events.c.kind, schema.events.c.actor, schema.events.c.details)
        # That a text was kept goes with the event beside it.
        .where(schema.events.c.subject == subject, schema.events.c.kind != "text:keep")
        .order_by(schema.events.c.seq.desc())
        .limit(MAX_EVENTS_SHOWN)
    ).all()
    return [Happened(row.at, row.kind, row.actor, event_details(row.details)) for row in reversed(rows)]


def read_texts(
    connection: Connection, proposal_ids: list[str], kinds: Sequence[str] = SHOWN_TEXTS
) -> dict[str, dict[str, str]]:
    """Return texts of proposals by id and kind."""
    found: dict[str, dict[str, str]] = {}
    wanted = select(schema.texts).where(schema.texts.c.proposal.in_(proposal_ids), schema.texts.c.kind.in_(kinds))
    for row in connection.execute(wanted):
        found.setdefault(row.proposal, {})[row.kind] = row.text
    return found


def checked_reading(text: str | None, evidence: Evidence | None) -> Reading | None:
    """Return the stored reading if it is the one that the evidence recorded, else None."""
    if text is None or evidence is None:
        return None
    if hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() != evidence.reading_sha256:
        return None
    try:
        return Reading.model_validate(json.loads(text))
    except (ValidationError, ValueError):
        return None


def mailboxes_of(settings: ExecutorSettings, proposal: Proposal) -> Mailboxes | None:
    """Return the names of both mailboxes, from the configuration alone; None where it has them no longer."""
    queue = settings.queue(proposal.queue)
    if queue is None or proposal.from_role != "incoming" or proposal.to_role not in queue.to:
        return None
    return Mailboxes(queue.incoming, queue.to[proposal.to_role].mailbox)


def evidence_of(connection: Connection, proposals: list[Proposal]) -> dict[str, Evidence]:
    """Return the evidence now shown of each proposal that has any."""
    columns = schema.evidence.c
    numbers = [proposal.evidence for proposal in proposals if proposal.evidence is not None]
    rows = connection.execute(select(*(columns[name] for name in Evidence.__slots__)).where(columns.id.in_(numbers)))
    return {row["proposal"]: Evidence(**row) for row in rows.mappings()}


def undo_is_offered(connection: Connection, settings: ExecutorSettings, proposal: Proposal) -> bool:
    """Whether an applied proposal can be taken back, as far as the journal and the configuration tell."""
    queue = settings.queue(proposal.queue)
    if queue is None or not queue.undo or proposal.to_role not in queue.to:
        return False
    permitted = connection.execute(
        select(schema.examinations.c.undo_permitted).where(schema.examinations.c.queue == proposal.queue)
    ).scalar_one_or_none()
    return (
        permitted == 1 and last_moved(connection, proposal.id) is not None and not another_is_open(connection, proposal)
    )


def taking_back(proposal: Proposal, *, undo_offered: bool) -> TakingBack | None:
    """Return how the decision about a proposal can be taken back now; None where there is none, or none any more."""
    if proposal.state is State.APPROVED:
        return TakingBack.REJECT
    return TakingBack.UNDO if undo_offered else None


def another_is_open(connection: Connection, proposal: Proposal) -> bool:
    """Whether another proposal about the same message is open in the same queue: at most one may be."""
    columns = schema.proposals.c
    return (
        connection.execute(
            select(columns.id)
            .where(
                columns.queue == proposal.queue,
                columns.email_id == proposal.email_id,
                columns.id != proposal.id,
                columns.ended_at.is_(None),
            )
            .limit(1)
        ).first()
        is not None
    )

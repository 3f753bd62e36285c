"""What a person can do to a proposal, each in one transaction: look again, compare with what was shown, write.

Nothing here moves a message. An approval is a row; the apply worker acts on rows and checks everything again.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from change_executor.config import ExecutorSettings
from change_executor.errors import VersionChanged
from change_executor.journal.evidence import keep_text
from change_executor.journal.journal import Journal, Proposal, Writing
from change_executor.lifecycle import Event, advance
from change_executor.outcomes import Outcome
from change_executor.review.case import Case, another_is_open, read_case
from change_executor.review.sessions import Session, still_good
from change_executor.switch import is_frozen

# A line or two that the agent reads; longer is a letter.
MAX_DECISION_REASON_CHARACTERS: Final = 500


class DecisionRefused(Exception):  # noqa: N818 - a refusal is what it is
    """The proposal is as it was shown, and still this cannot be decided; `code` chooses the page's sentence."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class SessionEnded(Exception):  # noqa: N818 - names the state of things
    """The session ended between the request and the deciding transaction."""


class Settled(StrEnum):
    """What a person found out about a doubtful move by looking at the mailboxes."""

    APPLIED = "applied"
    FAILED = "failed"
    UNDONE = "undone"


_SETTLING: Final = {
    Settled.APPLIED: Event.SETTLE_APPLIED,
    Settled.FAILED: Event.SETTLE_FAILED,
    Settled.UNDONE: Event.SETTLE_UNDONE,
}


@dataclass(frozen=True, slots=True)
class LookedAt:
    """What the form says that the person saw: the proposal's version and the digest of what was shown."""

    proposal_id: str
    version: int
    shown: str


@dataclass(frozen=True, slots=True)
class Desk:
    """Where one signed-in person decides.

    Every method raises `VersionChanged` where the proposal is not as it was shown, `TransitionRefused`,
    `DecisionRefused`, `SessionEnded`, `NoSuchProposal` or `JournalUnavailable`, and then nothing was written.
    """

    journal: Journal
    settings: ExecutorSettings
    session: Session

    def approve(self, looked_at: LookedAt) -> Proposal:
        """Approve the move of just the copy that was shown, under the policy that was shown; not while stopped."""
        with self.journal.writing() as writing:
            case = self._look_again(writing, looked_at)
            advance(case.proposal.state, Event.APPROVE)
            frozen = is_frozen(writing.connection, self.settings.stop_file)
            if (obstacle := cannot_approve(case, writing.now, frozen=frozen)) is not None:
                raise DecisionRefused(obstacle)
            return writing.advance(
                case.proposal.id,
                Event.APPROVE,
                self._actor,
                expected_version=looked_at.version,
                details=_relied_on(case),
                decided_by=self.session.person.name,
                decided_at=writing.now,
                policy_version=case.policy_version,
                shown=case.shown,
            )

    def reject(self, looked_at: LookedAt, reason: str) -> Proposal:
        """Reject, with a reason that the agent can read; empty for none."""
        with self.journal.writing() as writing:
            case = self._look_again(writing, looked_at)
            if reason:
                keep_text(writing, case.proposal.id, "decision_reason", reason)
            return writing.advance(
                case.proposal.id,
                Event.REJECT,
                self._actor,
                expected_version=looked_at.version,
                details=_relied_on(case) | {"reasonGiven": bool(reason)},
                decided_by=self.session.person.name,
                decided_at=writing.now,
            )

    def undo(self, looked_at: LookedAt) -> Proposal:
        """Ask for the message to be moved back, where the queue and the login's rights allow it."""
        with self.journal.writing() as writing:
            case = self._look_again(writing, looked_at)
            advance(case.proposal.state, Event.UNDO)
            if another_is_open(writing.connection, case.proposal):
                raise DecisionRefused("another_is_open")
            if not case.undo_offered:
                raise DecisionRefused("undo_not_permitted")
            return writing.advance(
                case.proposal.id,
                Event.UNDO,
                self._actor,
                expected_version=looked_at.version,
                details=_relied_on(case),
            )

    def settle(self, looked_at: LookedAt, outcome: Settled) -> Proposal:
        """End a doubt by what the person found in the mailboxes; the worker concludes the intent that was open."""
        happened = _SETTLING[outcome]
        with self.journal.writing() as writing:
            case = self._look_again(writing, looked_at)
            return writing.advance(
                case.proposal.id,
                happened,
                self._actor,
                expected_version=looked_at.version,
                details=_relied_on(case),
                outcome_code=Outcome.SETTLED_BY_PERSON.value,
                outcome_at=writing.now,
            )

    @property
    def _actor(self) -> str:
        return f"person:{self.session.person.name}"

    def _look_again(self, writing: Writing, looked_at: LookedAt) -> Case:
        if not still_good(writing.connection, self.session.digest, writing.now):
            raise SessionEnded
        case = read_case(writing.connection, self.settings, looked_at.proposal_id)
        if (case.proposal.version, case.shown) != (looked_at.version, looked_at.shown):
            raise VersionChanged(looked_at.proposal_id)
        return case


def cannot_approve(case: Case, now: datetime, *, frozen: bool) -> str | None:
    """Return the code of what stands against approving a pending case, or None; `frozen` while all is stopped.

    What only takes away stays possible then: rejecting is how somebody empties what must not go on after the stop.
    """
    if case.mailboxes is None:
        return "queue_changed"
    if case.reading_damaged:
        return "reading_damaged"
    if case.evidence is None or case.reading is None:
        return "no_evidence"
    if case.proposal.expires_at <= now:
        return "expired"
    return "stopped" if frozen else None


def _relied_on(case: Case) -> dict[str, Any]:
    """Ids and digests of what the person saw; the hints' digest too, since they were shown beside it."""
    return {
        "shown": case.shown,
        "policyVersion": case.policy_version,
        "evidence": case.proposal.evidence,
        "hints": None if case.hints is None else hashlib.sha256(case.hints.encode()).hexdigest(),
    }

"""Named points between any two steps of the worker, where a test ends the process to see what a restart makes of it."""

from collections.abc import Callable
from typing import Final

# Called with one of CHECKPOINTS; in the running program it does nothing.
Checkpoint = Callable[[str], None]

CLAIM_BEFORE: Final = "claim:before"
CLAIM_COMMITTED: Final = "claim:committed"
TARGET_ASKED: Final = "target:asked"
SOURCE_OPENED: Final = "source:opened"
MESSAGE_READ: Final = "message:read"
INTENT_BEFORE: Final = "intent:before"
INTENT_COMMITTED: Final = "intent:committed"
MOVE_BEFORE: Final = "move:before"
MOVE_ANSWERED: Final = "move:answered"
COPY_ANSWERED: Final = "copy:answered"
COPY_NOTED: Final = "copy:noted"
FLAG_ANSWERED: Final = "flag:answered"
FLAG_NOTED: Final = "flag:noted"
EXPUNGE_ANSWERED: Final = "expunge:answered"
MOVE_VERIFIED: Final = "move:verified"
OUTCOME_BEFORE: Final = "outcome:before"
OUTCOME_COMMITTED: Final = "outcome:committed"
RECOVERY_BEFORE: Final = "recovery:before"
RECOVERY_COMMITTED: Final = "recovery:committed"
RECONCILE_LOOKED: Final = "reconcile:looked"
CONCLUSION_BEFORE: Final = "conclusion:before"
CONCLUSION_COMMITTED: Final = "conclusion:committed"
EVIDENCE_READ: Final = "evidence:read"
EVIDENCE_BEFORE: Final = "evidence:before"
EVIDENCE_COMMITTED: Final = "evidence:committed"

CHECKPOINTS: Final = (
    EVIDENCE_READ,
    EVIDENCE_BEFORE,
    EVIDENCE_COMMITTED,
    CLAIM_BEFORE,
    CLAIM_COMMITTED,
    TARGET_ASKED,
    SOURCE_OPENED,
    MESSAGE_READ,
    INTENT_BEFORE,
    INTENT_COMMITTED,
    MOVE_BEFORE,
    MOVE_ANSWERED,
    # of a move by copy, between the two before
    COPY_ANSWERED,
    COPY_NOTED,
    FLAG_ANSWERED,
    FLAG_NOTED,
    EXPUNGE_ANSWERED,
    MOVE_VERIFIED,
    OUTCOME_BEFORE,
    OUTCOME_COMMITTED,
    RECOVERY_BEFORE,
    RECOVERY_COMMITTED,
    RECONCILE_LOOKED,
    CONCLUSION_BEFORE,
    CONCLUSION_COMMITTED,
)


def pass_by(name: str) -> None:
    """Do nothing at a checkpoint."""
    assert name in CHECKPOINTS, name

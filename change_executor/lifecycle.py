"""The life of a proposal: one table of states and events. What is not listed is refused.

From the moment the MOVE's first octet may have left (`applying`, `undoing`) no reject, expire, withdraw or retry
exists until the worker, or reconcile after a doubt, concludes.
"""

from enum import StrEnum
from typing import Final

from shared.proposal import State


class Event(StrEnum):
    """What can happen to a proposal, and by whose act."""

    # a person, in the review page
    APPROVE = "approve"
    REJECT = "reject"
    UNDO = "undo"
    SETTLE_APPLIED = "settle_applied"
    SETTLE_FAILED = "settle_failed"
    SETTLE_UNDONE = "settle_undone"
    # the agent, by intake
    WITHDRAW = "withdraw"
    # the clock and the policy
    EXPIRE = "expire"
    POLICY_CHANGED = "policy_changed"
    # a person, who put an older copy of the journal back
    RESTORE = "restore"
    # a person, who revokes the agent
    REVOKE = "revoke"
    # evidence
    ABSENT = "absent"
    # the apply worker
    CLAIM = "claim"
    MOVED = "moved"
    CHANGED = "changed"
    REFUSED = "refused"
    DOUBT = "doubt"
    NOTHING_SENT = "nothing_sent"
    # reconcile, after a doubt
    FOUND_IN_TARGET = "found_in_target"
    FOUND_IN_SOURCE = "found_in_source"
    FOUND_IN_NEITHER = "found_in_neither"


TRANSITIONS: Final[dict[tuple[State, Event], State]] = {
    (State.PENDING, Event.APPROVE): State.APPROVED,
    (State.PENDING, Event.REJECT): State.REJECTED,
    (State.PENDING, Event.WITHDRAW): State.WITHDRAWN,
    (State.PENDING, Event.EXPIRE): State.EXPIRED,
    (State.PENDING, Event.REVOKE): State.WITHDRAWN,
    (State.PENDING, Event.ABSENT): State.STALE,
    (State.APPROVED, Event.CLAIM): State.APPLYING,
    (State.APPROVED, Event.REJECT): State.REJECTED,
    (State.APPROVED, Event.WITHDRAW): State.WITHDRAWN,
    (State.APPROVED, Event.EXPIRE): State.EXPIRED,
    (State.APPROVED, Event.REVOKE): State.WITHDRAWN,
    (State.APPROVED, Event.POLICY_CHANGED): State.PENDING,
    (State.APPROVED, Event.RESTORE): State.PENDING,
    (State.APPLYING, Event.MOVED): State.APPLIED,
    (State.APPLYING, Event.ABSENT): State.STALE,
    (State.APPLYING, Event.CHANGED): State.STALE,
    (State.APPLYING, Event.REFUSED): State.FAILED,
    (State.APPLYING, Event.DOUBT): State.DOUBTFUL,
    (State.APPLYING, Event.NOTHING_SENT): State.APPROVED,
    (State.DOUBTFUL, Event.FOUND_IN_TARGET): State.APPLIED,
    (State.DOUBTFUL, Event.FOUND_IN_NEITHER): State.STALE,
    # only after the quiet time: an orphaned command of a frozen server process may still run
    (State.DOUBTFUL, Event.FOUND_IN_SOURCE): State.APPROVED,
    (State.DOUBTFUL, Event.SETTLE_APPLIED): State.APPLIED,
    (State.DOUBTFUL, Event.SETTLE_FAILED): State.FAILED,
    (State.APPLIED, Event.UNDO): State.UNDOING,
    (State.UNDOING, Event.MOVED): State.UNDONE,
    (State.UNDOING, Event.ABSENT): State.APPLIED,
    (State.UNDOING, Event.CHANGED): State.APPLIED,
    (State.UNDOING, Event.REFUSED): State.APPLIED,
    (State.UNDOING, Event.DOUBT): State.UNDO_DOUBTFUL,
    # of an undo, the source is the mailbox that the message was moved from in the first place
    (State.UNDO_DOUBTFUL, Event.FOUND_IN_SOURCE): State.UNDONE,
    # only after the quiet time, as above
    (State.UNDO_DOUBTFUL, Event.FOUND_IN_TARGET): State.APPLIED,
    (State.UNDO_DOUBTFUL, Event.SETTLE_UNDONE): State.UNDONE,
    (State.UNDO_DOUBTFUL, Event.SETTLE_APPLIED): State.APPLIED,
}

# A message has at most one proposal in these states in each queue.
OPEN: Final = frozenset(
    {
        State.PENDING,
        State.APPROVED,
        State.APPLYING,
        State.DOUBTFUL,
        State.UNDOING,
        State.UNDO_DOUBTFUL,
    }
)

# A command may be under way, or may still run late: nobody but the worker and reconcile advances these.
IN_FLIGHT: Final = frozenset({State.APPLYING, State.DOUBTFUL, State.UNDOING, State.UNDO_DOUBTFUL})


class TransitionRefused(Exception):  # noqa: N818 - a refusal is what it is
    """The table does not list this event for this state."""

    def __init__(self, state: State, event: Event) -> None:
        super().__init__(f"a proposal that is {state.value} cannot {event.value}")
        self.state, self.event = state, event


def advance(state: State, event: Event) -> State:
    """Return the state that follows, or raise `TransitionRefused`."""
    following = TRANSITIONS.get((state, event))
    if following is None:
        raise TransitionRefused(state, event)
    return following

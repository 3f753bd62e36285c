"""What a queue allows; pure: settings, numbers and a clock in, a judgement out.

Every proposal goes to a person: nothing here approves. What is counted is counted by the caller, in the transaction
that acts on the judgement.
"""

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Final

import rfc8785

from change_executor.config import ExecutorSettings, Queue

# Shown beside decisions and compared at apply: 64 bits of a digest tell any two policies apart.
_VERSION_CHARACTERS: Final = 16

# The only place that a message may be moved from; going back is an undo, which only a person can ask for.
FROM_ROLE: Final = "incoming"

# `max_proposals_per_hour`, `max_unfound_per_hour` and those of the day count the proposals made since this long ago.
PROPOSALS_WINDOW: Final = timedelta(hours=1)
PROPOSALS_DAY: Final = timedelta(days=1)

# `max_moves_per_hour` and `max_moves_per_day` count the moves that were begun since this long ago.
MOVES_WINDOW: Final = timedelta(hours=1)
MOVES_DAY: Final = timedelta(days=1)


class ProposingRuling(StrEnum):
    """Whether a proposal may be made; all but `ALLOWED` are refusals, and the words are their codes."""

    ALLOWED = "allowed"
    STOPPED = "stopped"
    UNKNOWN_QUEUE = "unknown_queue"
    UNKNOWN_ROLE = "unknown_role"
    AGENT_REVOKED = "agent_revoked"
    TOO_MANY_PENDING = "too_many_pending"
    TOO_MANY_PROPOSALS = "too_many_proposals"
    TOO_MANY_PROPOSALS_TODAY = "too_many_proposals_today"
    TOO_MANY_UNFOUND = "too_many_unfound"


class MovingRuling(StrEnum):
    """Whether an approved proposal may be moved now.

    A stop, the caps and another's move of the message wait; the others end it or ask again.
    """

    ALLOWED = "allowed"
    STOPPED = "stopped"
    EXPIRED = "expired"
    POLICY_CHANGED = "policy_changed"
    AGENT_REVOKED = "agent_revoked"
    TOO_MANY_MOVES = "too_many_moves"
    TOO_MANY_MOVES_TODAY = "too_many_moves_today"
    BEING_MOVED = "being_moved"


@dataclass(frozen=True, slots=True)
class Made:
    """How many proposals an agent made in a queue within some time, whatever became of them.

    `unfound` are those of a message that was never there when the executor looked.
    """

    count: int = 0
    unfound: int = 0


@dataclass(frozen=True, slots=True)
class Asker:
    """Who proposes: the agent, the one queue that its token opens, and whether a person has revoked the agent.

    `pending` counts its pending proposals in the queue; `in_last_hour` and `in_last_day` go by the windows above.
    """

    agent: str
    token_queue: str
    revoked: bool
    pending: int
    in_last_hour: Made
    in_last_day: Made


@dataclass(frozen=True, slots=True)
class Approval:
    """What bears on a move beside the settings; times aware UTC, `policy_version` of the decision."""

    to_role: str
    expires_at: datetime
    policy_version: str | None


def judge_proposing(
    queue: Queue | None, asker: Asker, *, from_role: str, to_role: str, stopped: bool
) -> ProposingRuling:
    """Judge a proposal before it is recorded.

    `queue` is the one asked for, None where it is not configured; a queue that the token does not open, or that does
    not list the agent, is answered like one that does not exist.
    """
    if queue is None or queue.id != asker.token_queue or not queue.takes_from(asker.agent):
        return ProposingRuling.UNKNOWN_QUEUE
    if from_role != FROM_ROLE or to_role not in queue.to:
        return ProposingRuling.UNKNOWN_ROLE
    if asker.revoked:
        return ProposingRuling.AGENT_REVOKED
    if stopped:
        return ProposingRuling.STOPPED
    if asker.pending >= queue.max_pending_per_agent:
        return ProposingRuling.TOO_MANY_PENDING
    return _judge_pace(queue, asker)


def _judge_pace(queue: Queue, asker: Asker) -> ProposingRuling:
    if asker.in_last_hour.count >= queue.max_proposals_per_hour:
        return ProposingRuling.TOO_MANY_PROPOSALS
    if asker.in_last_day.count >= queue.max_proposals_per_day:
        return ProposingRuling.TOO_MANY_PROPOSALS_TODAY
    if (
        asker.in_last_hour.unfound >= queue.max_unfound_per_hour
        or asker.in_last_day.unfound >= queue.max_unfound_per_day
    ):
        return ProposingRuling.TOO_MANY_UNFOUND
    return ProposingRuling.ALLOWED


@dataclass(frozen=True, slots=True)
class Moves:
    """How many moves of a queue were begun within `MOVES_WINDOW` and within `MOVES_DAY`."""

    in_last_hour: int
    in_last_day: int


def judge_moving(
    queue: Queue | None,
    approval: Approval,
    *,
    policy_now: str,
    now: datetime,
    moves: Moves,
    revoked: bool,
    stopped: bool,
    being_moved: bool,
) -> MovingRuling:
    """Judge an approved proposal just before its move; what ends an approval is told even while stopped.

    `queue` is None where it is no longer configured; `revoked` says that a person has revoked the agent; `being_moved`
    that a command for the same message, of another proposal, may be under way.
    """
    if revoked:
        return MovingRuling.AGENT_REVOKED
    if now >= approval.expires_at:
        return MovingRuling.EXPIRED
    if queue is None or approval.policy_version != policy_now or approval.to_role not in queue.to:
        return MovingRuling.POLICY_CHANGED
    if stopped:
        return MovingRuling.STOPPED
    # MOVE is no claim: of two at the same moment both succeed, and the message lies in two mailboxes.
    if being_moved:
        return MovingRuling.BEING_MOVED
    if moves.in_last_hour >= queue.max_moves_per_hour:
        return MovingRuling.TOO_MANY_MOVES
    if moves.in_last_day >= queue.max_moves_per_day:
        return MovingRuling.TOO_MANY_MOVES_TODAY
    return MovingRuling.ALLOWED


def expires_at(queue: Queue, now: datetime) -> datetime:
    """Return when a proposal made now expires."""
    return now + timedelta(days=queue.expiry_days)


def policy_version(settings: ExecutorSettings, queue: Queue) -> str:
    """Return the version of a queue's policy: it changes whenever anything an approval relied on changes."""
    login = settings.credential(queue.credential)
    return _version(queue.model_dump_json(), login.host, login.port, login.user)


# It is asked for three times before each move; a house has a few queues, and a new policy comes with a start.
@lru_cache(maxsize=64)
def _version(queue: str, host: str, port: int, user: str) -> str:
    relied_on = {"queue": json.loads(queue), "server": {"host": host, "port": port, "user": user}}
    return hashlib.sha256(rfc8785.dumps(relied_on)).hexdigest()[:_VERSION_CHARACTERS]

"""What a queue allows, rule by rule."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from change_executor.config import ExecutorSettings, Queue
from change_executor.policy import (
    Approval,
    Asker,
    Made,
    Moves,
    MovingRuling,
    ProposingRuling,
    expires_at,
    judge_moving,
    judge_proposing,
    policy_version,
)

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def settings(queue: dict[str, Any] | None = None, login: dict[str, Any] | None = None) -> ExecutorSettings:
    return ExecutorSettings.model_validate(
        {
            "review": {"allow_uids": [1000]},
            "journal": {"url": "sqlite:////nowhere/journal.db"},
            "credentials": [{"id": "move", "host": "localhost", "user": "u", "secret_file": "/s"} | (login or {})],
            "queues": [
                {
                    "id": "support",
                    "credential": "move",
                    "account": "a",
                    "incoming": "INBOX",
                    "to": {"processed": {"mailbox": "Done"}, "escalate": {"mailbox": "Boss"}},
                    "max_pending_per_agent": 3,
                    "max_moves_per_hour": 2,
                    "max_moves_per_day": 4,
                }
                | (queue or {})
            ],
        }
    )


QUEUE = settings().queues[0]
LISTING = settings({"agents": ["mailbot"]}).queues[0]


def proposing(queue: Queue | None = QUEUE, **change: Any) -> ProposingRuling:
    asker: dict[str, Any] = {
        "agent": "mailbot",
        "token_queue": "support",
        "revoked": False,
        "pending": 0,
        "in_last_hour": Made(),
        "in_last_day": Made(),
    }
    asked: dict[str, Any] = {"from_role": "incoming", "to_role": "processed", "stopped": False}
    of_asker = {name: change.pop(name) for name in asker if name in change}
    return judge_proposing(queue, Asker(**(asker | of_asker)), **(asked | change))


def moving(queue: Queue | None = QUEUE, approval: dict[str, Any] | None = None, **change: Any) -> MovingRuling:
    approved: dict[str, Any] = {"to_role": "processed", "expires_at": NOW + timedelta(days=1), "policy_version": "v"}
    state: dict[str, Any] = {"policy_now": "v", "now": NOW, "moves": Moves(0, 0), "stopped": False, "revoked": False}
    state["being_moved"] = False
    return judge_moving(queue, Approval(**(approved | (approval or {}))), **(state | change))


@pytest.mark.parametrize(
    ("expected", "ruling"),
    [
        (ProposingRuling.ALLOWED, proposing()),
        (ProposingRuling.ALLOWED, proposing(pending=2)),
        (ProposingRuling.TOO_MANY_PENDING, proposing(pending=3)),
        (ProposingRuling.AGENT_REVOKED, proposing(revoked=True, stopped=True)),
        (ProposingRuling.ALLOWED, proposing(LISTING)),
        (ProposingRuling.UNKNOWN_QUEUE, proposing(LISTING, agent="another")),
        (ProposingRuling.UNKNOWN_QUEUE, proposing(LISTING, agent="another", to_role="nowhere")),
        (ProposingRuling.ALLOWED, proposing(in_last_hour=Made(199, 19), in_last_day=Made(999, 59))),
        (ProposingRuling.TOO_MANY_PROPOSALS, proposing(in_last_hour=Made(200))),
        (ProposingRuling.TOO_MANY_PROPOSALS_TODAY, proposing(in_last_day=Made(1_000))),
        (ProposingRuling.TOO_MANY_UNFOUND, proposing(in_last_hour=Made(20, 20))),
        (ProposingRuling.TOO_MANY_UNFOUND, proposing(in_last_day=Made(60, 60))),
        (ProposingRuling.STOPPED, proposing(stopped=True)),
        (ProposingRuling.UNKNOWN_QUEUE, proposing(None)),
        (ProposingRuling.UNKNOWN_QUEUE, proposing(token_queue="billing")),
        (ProposingRuling.UNKNOWN_QUEUE, proposing(token_queue="billing", to_role="nowhere", stopped=True)),
        (ProposingRuling.UNKNOWN_ROLE, proposing(to_role="nowhere")),
        (ProposingRuling.UNKNOWN_ROLE, proposing(to_role="incoming")),
        (ProposingRuling.UNKNOWN_ROLE, proposing(from_role="processed", to_role="escalate")),
    ],
)
def test_a_proposal_is_judged_by_the_first_rule_that_it_breaks(
    expected: ProposingRuling, ruling: ProposingRuling
) -> None:
    assert expected is ruling


@pytest.mark.parametrize(
    ("expected", "ruling"),
    [
        (MovingRuling.ALLOWED, moving()),
        (MovingRuling.ALLOWED, moving(moves=Moves(1, 3))),
        (MovingRuling.TOO_MANY_MOVES, moving(moves=Moves(2, 4))),
        (MovingRuling.TOO_MANY_MOVES_TODAY, moving(moves=Moves(1, 4))),
        (MovingRuling.AGENT_REVOKED, moving(revoked=True, stopped=True)),
        (MovingRuling.AGENT_REVOKED, moving(revoked=True, now=NOW + timedelta(days=1))),
        (MovingRuling.STOPPED, moving(stopped=True, being_moved=True)),
        (MovingRuling.BEING_MOVED, moving(being_moved=True, moves=Moves(2, 4))),
        (MovingRuling.POLICY_CHANGED, moving(None, being_moved=True)),
        (MovingRuling.EXPIRED, moving(now=NOW + timedelta(days=1))),
        (MovingRuling.EXPIRED, moving(now=NOW + timedelta(days=1), stopped=True)),
        (MovingRuling.ALLOWED, moving(now=NOW + timedelta(days=1, microseconds=-1))),
        (MovingRuling.POLICY_CHANGED, moving(policy_now="w")),
        (MovingRuling.POLICY_CHANGED, moving(approval={"policy_version": None})),
        (MovingRuling.POLICY_CHANGED, moving(None)),
        (MovingRuling.POLICY_CHANGED, moving(approval={"to_role": "gone"})),
    ],
)
def test_a_move_is_judged_again_just_before_it(expected: MovingRuling, ruling: MovingRuling) -> None:
    assert expected is ruling


def test_a_proposal_expires_after_the_days_of_its_queue() -> None:
    assert NOW + timedelta(days=5) == expires_at(QUEUE, NOW)


@pytest.mark.parametrize(
    ("queue", "login"),
    [
        ({"incoming": "Other"}, None),
        ({"to": {"processed": {"mailbox": "Elsewhere"}, "escalate": {"mailbox": "Boss"}}}, None),
        ({"max_moves_per_hour": 3}, None),
        ({"undo": False}, None),
        ({"max_moves_per_day": 3}, None),
        ({"agents": ["mailbot"]}, None),
        ({"without_move": "copy"}, None),
        ({"to": {"processed": {"mailbox": "Done", "dangerous": True}, "escalate": {"mailbox": "Boss"}}}, None),
        (None, {"host": "127.0.0.1"}),
        (None, {"user": "another"}),
        (None, {"port": 143}),
    ],
)
def test_the_version_changes_with_everything_that_an_approval_relied_on(
    queue: dict[str, Any] | None, login: dict[str, Any] | None
) -> None:
    before, after = settings(), settings(queue, login)
    assert policy_version(before, before.queues[0]) != policy_version(after, after.queues[0])


def test_the_version_does_not_change_with_the_secret_or_with_time() -> None:
    before, after = settings(), settings(None, {"secret_file": "/other"})
    assert policy_version(before, before.queues[0]) == policy_version(after, after.queues[0])


(_CAPPED,) = settings(
    {f"max_{cap}": 4 for cap in ("proposals_per_hour", "proposals_per_day", "unfound_per_hour", "unfound_per_day")}
).queues


def _counted(pending: int, hour: int, unfound_in_hour: int, day: int, unfound_in_day: int) -> ProposingRuling:
    return proposing(
        _CAPPED, pending=pending, in_last_hour=Made(hour, unfound_in_hour), in_last_day=Made(day, unfound_in_day)
    )


def test_more_proposals_never_make_it_kinder() -> None:
    """The intake asks with too many first, and believes what is allowed so."""
    counts = range(6)
    for exactly in itertools.product(counts, repeat=5):
        if _counted(*exactly) is ProposingRuling.ALLOWED:
            continue
        for number in range(5):
            more = [count + (place == number) for place, count in enumerate(exactly)]
            assert _counted(*more) is not ProposingRuling.ALLOWED, (exactly, more)


@pytest.mark.parametrize(
    ("queue", "what"),
    [
        ({"to": {"incoming": {"mailbox": "Done"}}}, "another role name"),
        ({"incoming": "Inbox", "to": {"processed": {"mailbox": "INBOX"}}}, "same mailbox"),
        ({"to": {"processed": {"mailbox": "Done"}, "escalate": {"mailbox": "DONE"}}}, "same mailbox"),
    ],
)
def test_roles_that_cannot_be_told_apart_are_refused(queue: dict[str, Any], what: str) -> None:
    with pytest.raises(ValidationError, match=what):
        settings(queue)

"""No move without a matching decision: in every state that a few acts reach, and in long random lives."""

from __future__ import annotations

import tempfile
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from change_executor import apply
from change_executor.journal import standing
from change_executor.policy import MovingRuling
from tests.change_executor.breaking.conftest import LONG
from tests.change_executor.breaking.rig import DOUBTS, FOR_A_PERSON
from tests.change_executor.model.world import ACTS, World

if TYPE_CHECKING:
    from collections.abc import Sequence

# Acts from nothing. The other walks begin where three or four acts have led already, and go one act less far.
DEPTH = 5 if LONG else 3

# Where walks begin: nothing yet; two that can be decided; one that is approved; one that was moved.
ROOTS: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "proposed": ("a proposes one", "b proposes two", "the worker works"),
    "approved": ("a proposes one", "the worker works", "ann approves the first"),
    "moved": ("a proposes one", "the worker works", "ann approves the first", "the worker works"),
}


# What two agents and a person ask for, and what comes of it while nothing breaks.
ASKED = (*(act for act in ACTS if act.startswith(("a ", "b ", "ann "))), "the worker works", "the policy changes")


def walk(world: World, root: Sequence[str], depth: int, acts: Sequence[str] = ACTS) -> int:
    """Try every act in every distinct state that `depth` acts reach; returns how many states there are."""
    for act in root:
        world.do(act)
    known: set[tuple[object, ...]] = {world.key()}
    waiting = deque([(world.save(), 0)])
    while waiting:
        snapshot, at = waiting.popleft()
        key: tuple[object, ...] | None = None
        before: tuple[object, ...] | None = None
        for act in acts:
            # An act that was refused leaves the state as it was.
            if before is None or key != before:
                world.restore(snapshot)
                before = world.key()
            world.do(act)
            world.check()
            key = world.key()
            if key not in known:
                known.add(key)
                if at + 1 < depth:
                    waiting.append((world.save(), at + 1))
    return len(known)


@pytest.mark.timeout(0 if LONG else 300)
@pytest.mark.parametrize("root", ROOTS)
def test_g5_no_state_within_reach_moves_what_nobody_decided(tmp_path: Path, root: str) -> None:
    world = World(tmp_path)
    depth, acts = (DEPTH, ASKED) if root == "nothing" else (DEPTH - 1, ACTS)
    assert walk(world, ROOTS[root], depth, acts) > DEPTH
    world.journal.close()


@pytest.mark.parametrize("hole", ["every ruling allows", "the stop button is not looked at"])
def test_a_hole_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hole: str) -> None:
    if hole == "every ruling allows":
        monkeypatch.setattr(apply, "judge_moving", lambda *_, **__: MovingRuling.ALLOWED)
    else:
        read = standing.read
        monkeypatch.setattr(standing, "read", lambda *asked: read(*asked)._replace(stopped=False))
        monkeypatch.setattr(apply.Apply, "_stopped", lambda *_: False)
    world = World(tmp_path)
    with pytest.raises(AssertionError, match="a move without a decision"):
        walk(world, ROOTS["approved"], 2)
    world.journal.close()


class Life(RuleBasedStateMachine):
    """Acts of two agents, a person, another client, the clock, and of an executor that dies."""

    @initialize()
    def begin(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.world = World(Path(self._folder.name))

    @rule(act=st.sampled_from(ACTS))
    def act(self, act: str) -> None:
        self.world.do(act)

    @rule()
    def a_whole_approval(self) -> None:
        for act in ("a proposes one", "the worker works", "ann approves the last"):
            self.world.do(act)

    @invariant()
    def nothing_is_lost(self) -> None:
        if hasattr(self, "world"):
            self.world.check()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            for proposal in self.world.settle_down():
                # No doubt stays that a person is not told of.
                assert proposal.state not in DOUBTS or proposal.waiting_code in FOR_A_PERSON, proposal
            self.world.journal.close()
            self._folder.cleanup()


TestLife = Life.TestCase
TestLife.settings = settings(
    max_examples=300 if LONG else 8,
    stateful_step_count=40 if LONG else 25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

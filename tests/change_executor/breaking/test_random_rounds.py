"""Round after round something breaks at random: nothing is lost, moved twice, or moved wrongly, and no doubt stays."""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import pytest

from change_executor.review.decisions import Settled
from tests.change_executor.breaking.conftest import LONG
from tests.change_executor.breaking.points import Act, Handler, Points, at_names, at_position, die
from tests.change_executor.breaking.rig import DOUBTS, ROLES, Rig
from tests.change_executor.breaking.street import Street
from tests.servers.proxy import BreakingProxy, BreakPoint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers.dovecot import Dovecot

ROUNDS, SERVER_KILLS = (int(os.environ.get("EXECUTOR_ROUNDS", "2000")), 60) if LONG else (60, 3)
# A run is told by its seed; give it to see the same again.
SEED = int(os.environ.get("EXECUTOR_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)

BREAKS = [point for point in BreakPoint if point is not BreakPoint.BLACKHOLE]
# A move has some thirty moments on Dovecot; past them nothing breaks.
MOMENTS = 40


@pytest.fixture
def proxy(server: Dovecot) -> Iterator[BreakingProxy]:
    # It breaks nothing until a round arms it.
    with BreakingProxy(server.port, b"UID MOVE", BreakPoint.BEFORE_COMMAND, times=0) as opened:
        yield opened


@pytest.fixture
def broken_rig(server: Dovecot, proxy: BreakingProxy, tmp_path: Path) -> Iterator[Rig]:
    opened = Rig(server, tmp_path, port=proxy.port)
    yield opened
    opened.close()


class Rounds:
    def __init__(self, rig: Rig, street: Street, proxy: BreakingProxy, server: Dovecot) -> None:
        self._rig, self._street, self._proxy, self._server = rig, street, proxy, server
        self._random = random.Random(SEED)
        self.counts: Counter[str] = Counter()

    def play(self, what: str) -> None:
        """One message, one trouble in its move and one in its undo, where that comes."""
        trial = self._street.deliver(self._rig)
        role, mailbox = self._random.choice(sorted(ROLES.items()))
        self._rig.points.arm(self._trouble(what))
        proposal = self._rig.carry(trial.octets, role)
        where = mailbox
        if proposal.state.value == "applied" and self._random.random() < 0.4:
            self._street.check(trial, where)
            self._rig.points.arm(self._trouble(what))
            proposal, where = self._rig.take_back(proposal.id), "Incoming"
        self._rig.points.disarm()
        self._proxy.arm(b"UID MOVE", BreakPoint.BEFORE_COMMAND, times=0)
        if proposal.state in DOUBTS:
            self._hand_over(proposal.id, [name for name, _ in self._street.places(trial)], mailbox)
            self.counts["handed to a person"] += 1
        else:
            assert proposal.state.value in {"applied", "undone"}, proposal
            self._street.check(trial, where)
            self.counts[proposal.state.value] += 1
        self._street.clear(trial)

    def _hand_over(self, proposal_id: str, places: list[str], mailbox: str) -> None:
        # Never nowhere, never in a mailbox that nobody named.
        assert places
        assert set(places) <= {"Incoming", mailbox}
        self._rig.desk().settle(self._rig.looked_at(proposal_id), Settled.APPLIED)
        self._rig.work()

    def _trouble(self, what: str) -> Handler:
        match what:
            case "dies":
                return self._deaths()
            case "breaks":
                self._proxy.arm(b"UID MOVE", self._random.choice(BREAKS))
                return at_position(-1, die)
            case "breaks anywhere":
                return at_position(self._random.randrange(MOMENTS), Points.break_off)
            case "sleeps":
                return at_names(("before UID MOVE", self._put_to_sleep), ("sent UID MOVE", self._dies_or_breaks()))
            case "server is killed":
                return at_names(("sent UID MOVE", partial(self._kill, whole=self._random.random() < 0.3)))
            case _:
                raise AssertionError(what)

    def _deaths(self) -> Handler:
        due = {self._random.randrange(MOMENTS) for _ in range(self._random.randint(1, 3))}

        def handler(points: Points, position: int, _name: str) -> None:
            if position in due:
                die(points)

        return handler

    def _dies_or_breaks(self) -> Act:
        return self._random.choice([die, Points.break_off])

    def _put_to_sleep(self, _points: Points) -> None:
        self._server.freeze("executor")
        self._rig.asleep = partial(self._server.thaw, "executor")

    def _kill(self, _points: Points, *, whole: bool) -> None:
        self._server.kill_session("executor")
        if whole:
            self._server.stop()
            self._server.start()
        if not LONG:
            # The long form waits for the minutes in which nobody gets past it.
            self._server.override_stale_locks()


@pytest.fixture(autouse=True)
def _seed_shown() -> None:
    """A failure shows which run it was."""
    sys.stdout.write(f"EXECUTOR_SEED={SEED}\n")


def test_g6_rounds_of_deaths_broken_connections_and_commands_that_wake_up_late(
    server: Dovecot, broken_rig: Rig, street: Street, proxy: BreakingProxy
) -> None:
    rounds = Rounds(broken_rig, street, proxy, server)
    kinds = ["dies", "breaks", "breaks anywhere", "dies", "breaks", "sleeps"]
    for number in range(ROUNDS):
        rounds.play(kinds[number % len(kinds)])
    # Only a server that is killed leaves what looking cannot settle.
    assert ROUNDS == rounds.counts["applied"] + rounds.counts["undone"], rounds.counts


def test_g6_rounds_in_which_the_mail_server_is_killed_in_the_middle_of_a_move(
    server: Dovecot, broken_rig: Rig, street: Street, proxy: BreakingProxy
) -> None:
    rounds = Rounds(broken_rig, street, proxy, server)
    for _ in range(SERVER_KILLS):
        rounds.play("server is killed")
    assert SERVER_KILLS == sum(rounds.counts.values())

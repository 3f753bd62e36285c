"""The quiet time after a doubt goes by a clock that nobody sets: a leap of the other one makes it no shorter."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from change_executor.journal.steady import Reading, since_boot
from tests.change_executor.moving.workshop import QUIET_SECONDS, Workshop
from tests.servers.proxy import BreakingProxy, BreakPoint

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.dovecot import Dovecot

SECOND = 1_000_000


class Machine:
    """A machine's own clock, which goes on when the test says so."""

    def __init__(self) -> None:
        self.boot, self.seconds = "first", 5

    def __call__(self) -> Reading:
        return Reading(self.boot, self.seconds * SECOND)


def workshop_on(machine: Machine, dovecot: Dovecot, folder: Path, port: int) -> Workshop:
    opened = Workshop(dovecot, folder, port=port)
    opened.journal.steady = machine
    return opened


def left(workshop: Workshop, proposal: str) -> timedelta:
    with workshop.journal.reading() as connection:
        return workshop.reconcile.quiet_left(connection, proposal)


def test_g6_a_clock_set_forward_by_a_day_makes_the_quiet_time_no_shorter_nor_does_a_restart(
    dovecot: Dovecot, tmp_path: Path
) -> None:
    machine = Machine()
    with BreakingProxy(dovecot.port, b"UID MOVE", BreakPoint.BEFORE_COMMAND, times=2) as proxy:
        first = workshop_on(machine, dovecot, tmp_path, proxy.port)
        proposal = first.approved(first.deliver())
        first.apply.move(proposal)
        first.clock.advance(days=1)
        first.reconcile.reconcile(proposal)
        assert ("doubtful", None, "quiet_time") == first.told(proposal)
        first.close()
        # The same machine goes on counting, whoever asks it.
        machine.seconds += QUIET_SECONDS - 10
        again = workshop_on(machine, dovecot, tmp_path, proxy.port)
        again.clock.advance(days=2)
        again.reconcile.reconcile(proposal)
        assert ("doubtful", None, "quiet_time") == again.told(proposal)
        assert timedelta(seconds=10) == left(again, proposal)
        # Nor does one that is set back make it longer.
        again.clock.advance(days=-9)
        machine.seconds += 10
        again.reconcile.reconcile(proposal)
        assert ("approved", None, None) == again.told(proposal)
        # Another doubt about it has a quiet time of its own.
        again.apply.move(proposal)
        assert timedelta(seconds=QUIET_SECONDS) == left(again, proposal)
        again.close()


def test_g6_after_the_machine_began_again_the_quiet_time_counts_anew(dovecot: Dovecot, tmp_path: Path) -> None:
    machine = Machine()
    with BreakingProxy(dovecot.port, b"UID MOVE", BreakPoint.BEFORE_COMMAND) as proxy:
        first = workshop_on(machine, dovecot, tmp_path, proxy.port)
        proposal = first.approved(first.deliver())
        first.apply.move(proposal)
        first.close()
        # Whatever its clock says of the time since: it may never have been set.
        machine.boot, machine.seconds = "second", 10 * QUIET_SECONDS
        again = workshop_on(machine, dovecot, tmp_path, proxy.port)
        again.clock.advance(days=365)
        again.reconcile.reconcile(proposal)
        assert ("doubtful", None, "quiet_time") == again.told(proposal)
        machine.seconds += QUIET_SECONDS - 1
        assert timedelta(seconds=1) == left(again, proposal)
        machine.seconds += 1
        again.reconcile.reconcile(proposal)
        assert ("approved", None, None) == again.told(proposal)
        again.close()


def test_a_reading_says_nothing_of_another_boot_nor_of_a_clock_that_went_back() -> None:
    later = Reading("first", 9)
    assert (4, 0) == (later.since(Reading("first", 5)), later.since(later))
    for earlier in (None, Reading("second", 5), Reading("first", 10)):
        assert later.since(earlier) is None
    assert later == Reading.noted({"steady": later.note()})
    assert Reading.noted({"move": 1}) is None
    now = since_boot()
    assert since_boot().since(now) is not None

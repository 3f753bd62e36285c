"""The connection breaks at each point of a MOVE: it is moved once or not at all, and the journal says which."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from change_executor.apply import Apply
from change_executor.lifecycle import Event
from change_executor.mover import Mover
from tests.change_executor.moving.impatient import Impatient
from tests.change_executor.moving.workshop import QUIET_SECONDS, Workshop
from tests.servers.processes import await_end, send
from tests.servers.proxy import BreakingProxy, BreakPoint

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.dovecot import Dovecot

BREAKS = [point for point in BreakPoint if point is not BreakPoint.BLACKHOLE]


def _conclude(workshop: Workshop, proposal: str) -> None:
    """What the worker does after a doubt: it looks, and where that settles nothing it waits for the quiet time."""
    workshop.dovecot.await_no_session("executor")
    workshop.reconcile.reconcile(proposal)
    if workshop.proposal(proposal).waiting_code is not None:
        workshop.clock.advance(seconds=QUIET_SECONDS)
        workshop.reconcile.reconcile(proposal)


@pytest.mark.parametrize("at", BREAKS)
def test_a_break_during_the_move_ends_with_the_message_moved_once(
    dovecot: Dovecot, tmp_path: Path, at: BreakPoint
) -> None:
    with BreakingProxy(dovecot.port, b"UID MOVE", at) as proxy:
        workshop = Workshop(dovecot, tmp_path, port=proxy.port)
        proposal = workshop.approved(workshop.deliver())
        twin = workshop.deliver()
        workshop.apply.move(proposal)
        assert ("doubtful", None, None) == workshop.told(proposal)
        _conclude(workshop, proposal)
        if workshop.proposal(proposal).state.value == "approved":
            workshop.apply.move(proposal)
        assert ("applied", "moved", None) == workshop.told(proposal)
        assert {"Incoming": 1, "Processed": 1} == workshop.copies()
        assert twin == dovecot.snapshot()["Incoming"].one().uid
        workshop.happen(proposal, Event.UNDO)
        workshop.apply.undo(proposal)
        assert ("undone", "moved_back", None) == workshop.told(proposal)
        workshop.close()


@pytest.mark.parametrize("at", BREAKS)
def test_a_break_during_the_undo_ends_with_the_message_in_one_place(
    dovecot: Dovecot, tmp_path: Path, at: BreakPoint
) -> None:
    workshop = Workshop(dovecot, tmp_path)
    proposal = workshop.approved(workshop.deliver())
    workshop.apply.move(proposal)
    workshop.happen(proposal, Event.UNDO)
    workshop.close()
    with BreakingProxy(dovecot.port, b"UID MOVE", at) as proxy:
        again = Workshop(dovecot, tmp_path, port=proxy.port)
        again.apply.undo(proposal)
        assert ("undo_doubtful", "moved", None) == again.told(proposal)
        _conclude(again, proposal)
        came_back = at not in (BreakPoint.BEFORE_COMMAND, BreakPoint.INSIDE_COMMAND)
        ended = ("undone", "moved_back", None) if came_back else ("applied", "undo_did_not_happen", None)
        assert ended == again.told(proposal)
        assert {"Incoming" if came_back else "Processed": 1} == again.copies()
        again.close()


def test_found_only_where_it_lay_waits_for_the_quiet_time(dovecot: Dovecot, tmp_path: Path) -> None:
    with BreakingProxy(dovecot.port, b"UID MOVE", BreakPoint.BEFORE_COMMAND) as proxy:
        workshop = Workshop(dovecot, tmp_path, port=proxy.port)
        proposal = workshop.approved(workshop.deliver())
        workshop.apply.move(proposal)
        workshop.clock.advance(seconds=QUIET_SECONDS - 1)
        workshop.reconcile.reconcile(proposal)
        assert ("doubtful", None, "quiet_time") == workshop.told(proposal)
        workshop.clock.advance(seconds=1)
        workshop.reconcile.reconcile(proposal)
        assert ("approved", None, None) == workshop.told(proposal)
        workshop.close()


def test_a_server_that_never_answers_leaves_a_doubt(dovecot: Dovecot, tmp_path: Path) -> None:
    with BreakingProxy(dovecot.port, b"UID MOVE", BreakPoint.BLACKHOLE) as proxy:
        workshop = Workshop(dovecot, tmp_path, port=proxy.port)
        # The break comes from our side: the session's whole time is over.
        workshop.apply._mover = Mover(impatient := Impatient())
        workshop.apply._checkpoint = lambda name: impatient.await_no_answer() if name == "move:before" else None
        proposal = workshop.approved(workshop.deliver())
        workshop.apply.move(proposal)
        assert ("doubtful", None, None) == workshop.told(proposal)
        workshop.reconcile.reconcile(proposal)
        assert ("doubtful", None, "quiet_time") == workshop.told(proposal)
        workshop.close()


def test_an_orphaned_command_that_runs_late_is_not_repeated(dovecot: Dovecot, tmp_path: Path) -> None:
    impatient = Impatient()

    def freeze(name: str) -> None:
        if name == "move:before":
            dovecot.freeze("executor")
            impatient.await_no_answer()

    workshop = Workshop(dovecot, tmp_path, checkpoint=freeze)
    workshop.apply._mover = Mover(impatient)
    proposal = workshop.approved(workshop.deliver())
    workshop.apply.move(proposal)
    assert ("doubtful", None, None) == workshop.told(proposal)
    workshop.reconcile.reconcile(proposal)
    assert ("doubtful", None, "quiet_time") == workshop.told(proposal)
    dovecot.thaw("executor")
    dovecot.await_no_session("executor")
    workshop.reconcile.reconcile(proposal)
    assert ("applied", "moved", None) == workshop.told(proposal)
    assert {"Processed": 1} == workshop.copies()
    workshop.close()


def test_g6_two_queues_of_one_mailbox_do_not_move_a_message_at_the_same_moment(
    dovecot: Dovecot, tmp_path: Path
) -> None:
    # MOVE is no claim: both succeed, and the message lies in two mailboxes of which neither queue knows the other's.
    frozen: list[int] = []
    impatient = Impatient()

    def at(name: str) -> None:
        if not frozen and name == "move:before":
            frozen.extend(dovecot.freeze("executor"))
            impatient.await_no_answer()

    workshop = Workshop(dovecot, tmp_path)
    (queue,) = workshop.settings.queues
    first, second = (queue.model_copy(update={"to": {role: queue.to[role]}}) for role in ("processed", "escalate"))
    settings = workshop.settings.model_copy(update={"queues": (first, second.model_copy(update={"id": "sales"}))})
    workshop.settings = workshop.reconcile._settings = settings
    slow = Apply(workshop.journal, settings, Mover(impatient), at)
    uid = workshop.deliver()
    processed, escalated = workshop.approved(uid), workshop.approved(uid, to="escalate", of_queue=1)
    slow.move(processed)
    assert ("doubtful", None, None) == workshop.told(processed)
    apply = Apply(workshop.journal, settings, workshop.mover)
    apply.move(escalated)
    assert ("approved", None, "being_moved") == workshop.told(escalated)
    dovecot.thaw("executor")
    dovecot.await_no_session("executor")
    workshop.reconcile.reconcile(processed)
    assert ("applied", "moved", None) == workshop.told(processed)
    apply.move(escalated)
    assert ("stale", "message_gone", None) == workshop.told(escalated)
    assert {"Processed": 1} == workshop.copies()
    workshop.close()


@pytest.mark.parametrize("wakes", ["between", "target:asked", "message:read"])
@pytest.mark.parametrize("undo", [False, True], ids=["move", "undo"])
def test_g6_an_orphan_that_runs_after_the_quiet_time_is_found_where_it_put_the_message(
    dovecot: Dovecot, tmp_path: Path, wakes: str, *, undo: bool
) -> None:
    frozen: list[int] = []
    impatient = Impatient()

    def thaw() -> None:
        for pid in frozen:
            send(pid, signal.SIGCONT)
        await_end(frozen)

    def at(name: str) -> None:
        if not frozen and name == "move:before":
            frozen.extend(dovecot.freeze("executor"))
            impatient.await_no_answer()
        elif name == wakes:
            thaw()

    workshop = Workshop(dovecot, tmp_path)
    proposal = workshop.approved(workshop.deliver())
    if undo:
        workshop.apply.move(proposal)
        workshop.happen(proposal, Event.UNDO)
    act = workshop.apply.undo if undo else workshop.apply.move
    workshop.apply._checkpoint = at
    workshop.apply._mover = Mover(impatient)
    act(proposal)
    workshop.apply._mover = workshop.mover
    workshop.reconcile.reconcile(proposal)
    workshop.clock.advance(seconds=QUIET_SECONDS)
    workshop.reconcile.reconcile(proposal)
    if undo:
        assert ("applied", "undo_did_not_happen", None) == workshop.told(proposal)
        workshop.happen(proposal, Event.UNDO)
    else:
        assert ("approved", None, None) == workshop.told(proposal)
    if wakes == "between":
        thaw()
    act(proposal)
    workshop.reconcile.reconcile(proposal)
    ended = ("undone", "moved_back", None) if undo else ("applied", "moved", None)
    assert ended == workshop.told(proposal)
    assert {"Incoming" if undo else "Processed": 1} == workshop.copies()
    if not undo:
        workshop.happen(proposal, Event.UNDO)
        workshop.apply.undo(proposal)
        assert ("undone", "moved_back", None) == workshop.told(proposal)
    workshop.close()


def test_looking_that_fails_is_never_taken_for_gone(dovecot: Dovecot, tmp_path: Path) -> None:
    with BreakingProxy(dovecot.port, b"UID MOVE", BreakPoint.RESPONSE_DROPPED) as proxy:
        workshop = Workshop(dovecot, tmp_path, port=proxy.port)
        proposal = workshop.approved(workshop.deliver())
        workshop.apply.move(proposal)
        dovecot.stop()
        workshop.clock.advance(days=1)
        workshop.reconcile.reconcile(proposal)
        assert ("doubtful", None, "mail_server_unreachable") == workshop.told(proposal)
        dovecot.start()
        workshop.reconcile.reconcile(proposal)
        assert ("applied", "moved", None) == workshop.told(proposal)
        workshop.close()


def test_a_copy_in_both_places_waits_for_a_person(dovecot: Dovecot, tmp_path: Path) -> None:
    with BreakingProxy(dovecot.port, b"UID MOVE", BreakPoint.BEFORE_COMMAND) as proxy:
        workshop = Workshop(dovecot, tmp_path, port=proxy.port)
        uid = workshop.deliver()
        proposal = workshop.approved(uid)
        workshop.apply.move(proposal)
        with dovecot.connect() as owner:
            owner.select("Incoming")
            owner.uid("COPY", str(uid), "Processed")
        workshop.clock.advance(days=1)
        workshop.reconcile.reconcile(proposal)
        assert ("doubtful", None, "settle") == workshop.told(proposal)
        workshop.happen(proposal, Event.SETTLE_FAILED)
        workshop.apply.recover()
        assert workshop.under_way(proposal) is None
        workshop.close()


def test_another_uidvalidity_stays_doubtful_with_its_reason(dovecot: Dovecot, tmp_path: Path) -> None:
    with BreakingProxy(dovecot.port, b"UID MOVE", BreakPoint.RESPONSE_DROPPED) as proxy:
        workshop = Workshop(dovecot, tmp_path, port=proxy.port)
        proposal = workshop.approved(workshop.deliver())
        workshop.apply.move(proposal)
        with dovecot.connect() as owner:
            owner.delete("Processed")
            owner.create("Processed")
        workshop.clock.advance(days=1)
        workshop.reconcile.reconcile(proposal)
        assert ("doubtful", None, "mailbox_changed") == workshop.told(proposal)
        workshop.close()


def test_a_break_before_the_move_leaves_the_approval_and_no_intent(dovecot: Dovecot, tmp_path: Path) -> None:
    with BreakingProxy(dovecot.port, b"STATUS", BreakPoint.AFTER_COMMAND_RST) as proxy:
        workshop = Workshop(dovecot, tmp_path, port=proxy.port)
        proposal = workshop.approved(workshop.deliver())
        workshop.apply.move(proposal)
        assert ("approved", None, "mail_server_unreachable") == workshop.told(proposal)
        assert workshop.under_way(proposal) is None
        workshop.apply.move(proposal)
        assert ("applied", "moved", None) == workshop.told(proposal)
        workshop.close()


def test_a_break_after_the_answer_is_concluded_by_looking(dovecot: Dovecot, tmp_path: Path) -> None:
    with BreakingProxy(dovecot.port, b'EXAMINE "PROCESSED"', BreakPoint.AFTER_COMMAND_RST) as proxy:
        workshop = Workshop(dovecot, tmp_path, port=proxy.port)
        proposal = workshop.approved(workshop.deliver())
        workshop.apply.move(proposal)
        assert ("doubtful", None, None) == workshop.told(proposal)
        workshop.reconcile.reconcile(proposal)
        assert ("applied", "moved", None) == workshop.told(proposal)
        workshop.close()


@pytest.mark.parametrize("signed_in", [False, True])
def test_what_an_earlier_process_left_in_the_middle_is_taken_up(
    dovecot: Dovecot, tmp_path: Path, *, signed_in: bool
) -> None:
    class Died(BaseException):
        pass

    def die(name: str) -> None:
        if name == ("move:answered" if signed_in else "claim:committed"):
            raise Died

    workshop = Workshop(dovecot, tmp_path, checkpoint=die)
    proposal = workshop.approved(workshop.deliver())
    with pytest.raises(Died):
        workshop.apply.move(proposal)
    assert ("applying", None, None) == workshop.told(proposal)
    workshop.close()
    again = Workshop(dovecot, tmp_path)
    again.apply.recover()
    assert ("doubtful" if signed_in else "approved", None, None) == again.told(proposal)
    again.apply.move(proposal)
    again.reconcile.reconcile(proposal)
    assert ("applied", "moved", None) == again.told(proposal)
    assert {"Processed": 1} == again.copies()
    again.close()

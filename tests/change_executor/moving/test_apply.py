"""Moves and undos on a real server: what was approved is moved whole, and everything else is left alone."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import insert

from change_executor.agents import revoke_agent
from change_executor.journal import schema
from change_executor.journal.moves import Intent, MoveKind, begin, conclude
from change_executor.lifecycle import Event
from change_executor.switch import press_stop, release_stop
from tests.change_executor.moving.workshop import MAIL, Workshop

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.dovecot import Dovecot

FLAGS = ("\\Seen", "\\Flagged", "\\Answered", "$label1")
WHEN = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def test_an_approved_message_moves_whole(workshop: Workshop) -> None:
    uid = workshop.deliver(MAIL, FLAGS, WHEN)
    before = workshop.dovecot.snapshot()["Incoming"].one()
    proposal = workshop.approved(uid, copies=1)
    workshop.apply.move(proposal)
    assert ("applied", "moved", None) == workshop.told(proposal)
    assert workshop.proposal(proposal).copies_left == 0
    after = workshop.dovecot.snapshot()["Processed"].one()
    assert (before.sha256, before.flags, before.keywords, before.internaldate) == (
        after.sha256,
        after.flags,
        after.keywords,
        after.internaldate,
    )
    assert {"Processed": 1} == workshop.copies()
    assert workshop.under_way(proposal) is None


def test_an_undo_brings_it_back_whole(workshop: Workshop) -> None:
    proposal = workshop.approved(workshop.deliver(MAIL, FLAGS, WHEN))
    before = workshop.dovecot.snapshot()["Incoming"].one()
    workshop.apply.move(proposal)
    workshop.happen(proposal, Event.UNDO)
    workshop.apply.undo(proposal)
    assert ("undone", "moved_back", None) == workshop.told(proposal)
    after = workshop.dovecot.snapshot()["Incoming"].one()
    assert (before.sha256, before.flags, before.keywords, before.internaldate) == (
        after.sha256,
        after.flags,
        after.keywords,
        after.internaldate,
    )
    assert {"Incoming": 1} == workshop.copies()


def test_with_narrow_rights_the_move_works_and_the_undo_is_refused(narrow_workshop: Workshop) -> None:
    proposal = narrow_workshop.approved(narrow_workshop.deliver(MAIL, FLAGS))
    narrow_workshop.apply.move(proposal)
    assert ("applied", "moved", None) == narrow_workshop.told(proposal)
    narrow_workshop.happen(proposal, Event.UNDO)
    narrow_workshop.apply.undo(proposal)
    assert ("applied", "undo_not_permitted", None) == narrow_workshop.told(proposal)
    assert {"Processed": 1} == narrow_workshop.copies()
    assert narrow_workshop.under_way(proposal) is None


def test_a_queue_without_undo_refuses_without_asking_the_server(dovecot: Dovecot, tmp_path: Path) -> None:
    workshop = Workshop(dovecot, tmp_path, queue={"undo": False})
    proposal = workshop.approved(workshop.deliver())
    workshop.apply.move(proposal)
    sent = len(dovecot.commands("executor"))
    workshop.happen(proposal, Event.UNDO)
    workshop.apply.undo(proposal)
    assert ("applied", "undo_not_permitted", None) == workshop.told(proposal)
    assert sent == len(dovecot.commands("executor"))
    workshop.close()


def test_of_two_identical_copies_only_the_pinned_one_moves(workshop: Workshop) -> None:
    pinned, twin = workshop.deliver(), workshop.deliver()
    proposal = workshop.approved(pinned, copies=2)
    workshop.apply.move(proposal)
    assert ("applied", "moved", None) == workshop.told(proposal)
    assert workshop.proposal(proposal).copies_left == 1
    assert twin == workshop.dovecot.snapshot()["Incoming"].one().uid


def test_when_the_pinned_copy_is_gone_its_twin_stays(workshop: Workshop) -> None:
    pinned, twin = workshop.deliver(), workshop.deliver()
    proposal = workshop.approved(pinned, copies=2)
    _owner_moves(workshop, pinned, "Archive")
    workshop.apply.move(proposal)
    assert ("stale", "message_gone", None) == workshop.told(proposal)
    assert twin == workshop.dovecot.snapshot()["Incoming"].one().uid


def test_a_uid_that_holds_other_octets_than_were_reviewed_stays(workshop: Workshop) -> None:
    uid = workshop.deliver(b"Subject: another\r\n\r\nnot what was reviewed\r\n")
    proposal = workshop.approved(uid, MAIL)
    workshop.apply.move(proposal)
    assert ("stale", "message_changed", None) == workshop.told(proposal)
    assert uid == workshop.dovecot.snapshot()["Incoming"].one().uid


def test_a_mailbox_made_anew_under_its_old_name_is_another_mailbox(workshop: Workshop) -> None:
    proposal = workshop.approved(workshop.deliver())
    with workshop.dovecot.connect() as owner:
        owner.delete("Incoming")
        owner.create("Incoming")
    workshop.deliver()
    workshop.apply.move(proposal)
    assert ("stale", "mailbox_changed", None) == workshop.told(proposal)
    assert {"Incoming": 1} == workshop.copies()


def test_a_destination_that_is_not_there_leaves_the_proposal_waiting(dovecot: Dovecot, tmp_path: Path) -> None:
    workshop = Workshop(dovecot, tmp_path, queue={"to": {"processed": {"mailbox": "Missing"}}})
    proposal = workshop.approved(workshop.deliver())
    workshop.apply.move(proposal)
    since = workshop.proposal(proposal).waiting_since
    workshop.clock.advance(minutes=5)
    workshop.apply.move(proposal)
    assert ("approved", None, "mailbox_refused") == workshop.told(proposal)
    assert since == workshop.proposal(proposal).waiting_since
    assert {"Incoming": 1} == workshop.copies()
    workshop.close()


def test_another_destination_that_is_not_there_holds_nothing_up(dovecot: Dovecot, tmp_path: Path) -> None:
    roles = {"processed": {"mailbox": "Processed"}, "escalate": {"mailbox": "Missing"}}
    workshop = Workshop(dovecot, tmp_path, queue={"to": roles})
    proposal = workshop.approved(workshop.deliver())
    workshop.apply.move(proposal)
    assert ("applied", "moved", None) == workshop.told(proposal)
    workshop.close()


def test_a_stop_holds_the_move_visibly_until_it_is_released(workshop: Workshop) -> None:
    proposal = workshop.approved(workshop.deliver())
    press_stop(workshop.journal, "operator")
    workshop.apply.move(proposal)
    workshop.apply.move(proposal)
    assert ("approved", None, "stopped") == workshop.told(proposal)
    assert [] == workshop.dovecot.commands("executor")
    release_stop(workshop.journal, "operator")
    workshop.apply.move(proposal)
    assert ("applied", "moved", None) == workshop.told(proposal)
    # An undo likewise: the mail server hears nothing of it.
    workshop.happen(proposal, Event.UNDO)
    press_stop(workshop.journal, "operator")
    sent = len(workshop.dovecot.commands("executor"))
    workshop.apply.undo(proposal)
    assert ("undoing", "moved", "stopped") == workshop.told(proposal)
    assert sent == len(workshop.dovecot.commands("executor"))


def test_a_stop_between_claim_and_intent_still_holds(dovecot: Dovecot, tmp_path: Path) -> None:
    def stop_when_the_message_is_read(name: str) -> None:
        if name == "message:read":
            press_stop(workshop.journal, "operator")

    workshop = Workshop(dovecot, tmp_path, checkpoint=stop_when_the_message_is_read)
    proposal = workshop.approved(workshop.deliver())
    workshop.apply.move(proposal)
    assert ("approved", None, "stopped") == workshop.told(proposal)
    assert {"Incoming": 1} == workshop.copies()
    workshop.close()


@pytest.mark.parametrize(("what", "ended"), [("expiry", "expired"), ("revocation", "withdrawn")])
def test_an_approval_that_ends_while_its_message_is_read_moves_nothing(
    dovecot: Dovecot, tmp_path: Path, what: str, ended: str
) -> None:
    def end(name: str) -> None:
        if name == "message:read" and what == "expiry":
            workshop.clock.advance(days=400)
        elif name == "message:read":
            assert revoke_agent(workshop.journal, "mailbot", "operator").in_flight

    workshop = Workshop(dovecot, tmp_path, checkpoint=end)
    proposal = workshop.approved(workshop.deliver())
    workshop.apply.move(proposal)
    assert ("approved", None, None) == workshop.told(proposal)
    workshop.apply.move(proposal)
    assert ended == workshop.proposal(proposal).state.value
    assert {"Incoming": 1} == workshop.copies()
    assert not [line for line in dovecot.commands("executor") if b"UID MOVE" in line]
    workshop.close()


def test_an_agent_revoked_while_the_worker_signs_in_moves_nothing(workshop: Workshop) -> None:
    uid = workshop.deliver()
    proposal = workshop.approved(uid)
    with workshop.journal.writing() as writing:
        revoked = {"name": "mailbot", "since": writing.now, "by": "person:ann"}
        writing.connection.execute(insert(schema.revoked_agents).values(**revoked))
        writing.append("agent:revoke", "mailbot", "person:ann")
    workshop.apply.move(proposal)
    assert ("withdrawn", "agent_revoked", None) == workshop.told(proposal)
    assert {"Incoming": 1} == workshop.copies()


def test_an_approval_that_expired_moves_nothing(workshop: Workshop) -> None:
    proposal = workshop.approved(workshop.deliver())
    workshop.clock.advance(days=400)
    workshop.apply.move(proposal)
    assert ("expired", "not_decided_in_time", None) == workshop.told(proposal)
    assert {"Incoming": 1} == workshop.copies()


def test_moves_an_hour_are_capped_and_the_rest_waits(dovecot: Dovecot, tmp_path: Path) -> None:
    workshop = Workshop(dovecot, tmp_path, queue={"max_moves_per_hour": 1})
    second = b"Subject: a second\r\n\r\nhello\r\n"
    first_proposal = workshop.approved(workshop.deliver())
    second_proposal = workshop.approved(workshop.deliver(second), second)
    workshop.apply.move(first_proposal)
    workshop.apply.move(second_proposal)
    assert ("approved", None, "moves_per_hour") == workshop.told(second_proposal)
    # To the microsecond: what was moved an hour ago counts still.
    workshop.clock.advance(hours=1)
    workshop.apply.move(second_proposal)
    assert ("approved", None, "moves_per_hour") == workshop.told(second_proposal)
    workshop.clock.advance(seconds=1)
    workshop.apply.move(second_proposal)
    assert ("applied", "moved", None) == workshop.told(second_proposal)
    workshop.close()


def test_other_rules_than_those_approved_ask_the_person_again(dovecot: Dovecot, tmp_path: Path) -> None:
    workshop = Workshop(dovecot, tmp_path)
    proposal = workshop.approved(workshop.deliver())
    workshop.close()
    later = Workshop(dovecot, tmp_path, queue={"to": {"processed": {"mailbox": "Escalate"}}})
    later.apply.move(proposal)
    assert ("pending", "policy_changed", None) == later.told(proposal)
    asked_again = later.proposal(proposal)
    assert (None, None, None) == (asked_again.decided_by, asked_again.shown, asked_again.evidence)
    assert {"Incoming": 1} == later.copies()
    later.close()


def test_a_mail_server_that_is_down_costs_no_step_of_the_proposal(workshop: Workshop) -> None:
    proposal = workshop.approved(workshop.deliver())
    workshop.dovecot.stop()
    workshop.apply.move(proposal)
    since = workshop.proposal(proposal).waiting_since
    workshop.clock.advance(minutes=5)
    workshop.apply.move(proposal)
    assert ("approved", None, "mail_server_unreachable") == workshop.told(proposal)
    assert since == workshop.proposal(proposal).waiting_since
    workshop.dovecot.start()
    workshop.apply.move(proposal)
    assert ("applied", "moved", None) == workshop.told(proposal)


def test_a_wrong_password_waits_with_its_reason(workshop: Workshop, tmp_path: Path) -> None:
    proposal = workshop.approved(workshop.deliver())
    (tmp_path / "secret").write_text("wrong")
    workshop.apply.move(proposal)
    assert ("approved", None, "login_refused") == workshop.told(proposal)


def test_somebody_who_moves_it_at_the_same_moment_is_seen(dovecot: Dovecot, tmp_path: Path) -> None:
    def the_owner_copies(name: str) -> None:
        if name == "move:before":
            with dovecot.connect() as owner:
                owner.select("Incoming")
                assert owner.uid("COPY", "1", "Escalate")[0] == "OK"

    workshop = Workshop(dovecot, tmp_path, checkpoint=the_owner_copies)
    proposal = workshop.approved(workshop.deliver())
    workshop.apply.move(proposal)
    assert ("doubtful", None, "moved_twice") == workshop.told(proposal)
    workshop.clock.advance(days=1)
    workshop.reconcile.reconcile(proposal)
    assert ("doubtful", None, "moved_twice") == workshop.told(proposal)
    workshop.happen(proposal, Event.SETTLE_APPLIED)
    workshop.apply.recover()
    assert workshop.under_way(proposal) is None
    workshop.happen(proposal, Event.UNDO)
    workshop.apply.undo(proposal)
    assert ("applied", "undo_place_unknown", None) == workshop.told(proposal)
    workshop.close()


def test_a_command_for_another_copy_that_was_taken_for_lost_is_no_doubt_about_this_one(workshop: Workshop) -> None:
    pinned, twin = workshop.deliver(), workshop.deliver()
    proposal = workshop.approved(pinned, copies=2)
    digest = hashlib.sha256(MAIL).hexdigest()
    with workshop.journal.writing() as writing:
        # Of before the proposal was decided again, about the copy that was pinned then.
        intent = Intent(
            proposal, MoveKind.MOVE, "move", "Incoming", 7, twin, "Processed", 8, 1, digest, 9, "2026-11-29T12:00:00Z"
        )
        conclude(writing, begin(writing, intent), "found_in_source")
    _owner_moves(workshop, pinned, "Archive")
    workshop.apply.move(proposal)
    assert ("stale", "message_gone", None) == workshop.told(proposal)
    assert workshop.under_way(proposal) is None


def test_somebody_who_takes_it_away_just_before_the_move_leaves_a_stale_proposal(
    dovecot: Dovecot, tmp_path: Path
) -> None:
    def the_owner_moves(name: str) -> None:
        if name == "move:before":
            _owner_moves(workshop, 1, "Archive")

    workshop = Workshop(dovecot, tmp_path, checkpoint=the_owner_moves)
    proposal = workshop.approved(workshop.deliver())
    workshop.apply.move(proposal)
    assert ("doubtful", None, None) == workshop.told(proposal)
    workshop.reconcile.reconcile(proposal)
    assert ("stale", "message_gone", None) == workshop.told(proposal)
    assert {"Archive": 1} == workshop.copies()
    workshop.close()


def test_flags_that_the_server_drops_are_reported(dovecot: Dovecot, tmp_path: Path) -> None:
    def the_owner_takes_a_keyword_off(name: str) -> None:
        if name == "move:answered":
            with dovecot.connect() as owner:
                owner.select("Processed")
                owner.uid("STORE", "1", "-FLAGS", "($label1)")

    workshop = Workshop(dovecot, tmp_path, checkpoint=the_owner_takes_a_keyword_off)
    proposal = workshop.approved(workshop.deliver(MAIL, FLAGS))
    workshop.apply.move(proposal)
    assert ("applied", "moved_flags_lost", None) == workshop.told(proposal)
    workshop.close()


def test_an_undo_of_what_was_moved_on_by_somebody_stays_applied(workshop: Workshop) -> None:
    proposal = workshop.approved(workshop.deliver())
    workshop.apply.move(proposal)
    with workshop.dovecot.connect() as owner:
        owner.select("Processed")
        owner.uid("MOVE", "1", "Archive")
    workshop.happen(proposal, Event.UNDO)
    workshop.apply.undo(proposal)
    assert ("applied", "message_gone", None) == workshop.told(proposal)
    assert {"Archive": 1} == workshop.copies()


def test_only_what_the_table_lists_reaches_the_server(workshop: Workshop) -> None:
    proposal = workshop.approved(workshop.deliver(MAIL, FLAGS))
    workshop.apply.move(proposal)
    workshop.happen(proposal, Event.UNDO)
    workshop.apply.undo(proposal)
    words = [line.split(b" ")[1:3] for line in workshop.dovecot.commands("executor") if b" " in line]
    verbs = {b" ".join(each) if each[0] == b"UID" else each[0] for each in words}
    assert verbs <= {
        *(b"CAPABILITY", b"AUTHENTICATE", b"SELECT", b"EXAMINE", b"STATUS", b"UID FETCH", b"UID SEARCH", b"UID MOVE"),
    }
    assert [b"UID MOVE"] * 2 == [b" ".join(each) for each in words if each[-1] == b"MOVE"]


@pytest.mark.parametrize("state", ["pending", "applied", "rejected"])
def test_only_what_is_approved_moves(workshop: Workshop, state: str) -> None:
    proposal = workshop.approved(workshop.deliver())
    if state == "rejected":
        workshop.happen(proposal, Event.REJECT)
    elif state == "pending":
        workshop.happen(proposal, Event.POLICY_CHANGED)
    else:
        workshop.apply.move(proposal)
    sent = len(workshop.dovecot.commands("executor"))
    workshop.apply.move(proposal)
    workshop.apply.undo(proposal)
    assert state == workshop.proposal(proposal).state.value
    assert sent == len(workshop.dovecot.commands("executor"))


def _owner_moves(workshop: Workshop, uid: int, mailbox: str) -> None:
    with workshop.dovecot.connect() as owner:
        owner.select("Incoming")
        assert owner.uid("MOVE", str(uid), mailbox)[0] == "OK"


def test_a_stop_file_holds_the_move_before_the_button_is_pressed_for_it(dovecot: Dovecot, tmp_path: Path) -> None:
    file = tmp_path / "stop"

    def made_when_the_message_is_read(name: str) -> None:
        if name == "message:read":
            file.touch()

    workshop = Workshop(dovecot, tmp_path, checkpoint=made_when_the_message_is_read, stop_file=file)
    first = workshop.approved(workshop.deliver())
    workshop.apply.move(first)
    assert ("approved", None, "stopped") == workshop.told(first)
    file.unlink()
    file.touch()
    sent = len(dovecot.commands("executor"))
    workshop.apply.move(first)
    assert sent == len(dovecot.commands("executor"))
    assert {"Incoming": 1} == workshop.copies()
    workshop.close()

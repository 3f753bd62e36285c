"""Each decision is one transaction that looks again: anything changed in between, and nothing is written."""

from __future__ import annotations

import itertools
import json
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import func, select

from change_executor.audit import verify
from change_executor.errors import NoSuchProposal, VersionChanged
from change_executor.journal import evidence as evidence_rows
from change_executor.journal import schema
from change_executor.journal.chain import event_details
from change_executor.journal.journal import Journal, read_proposal
from change_executor.lifecycle import Event, TransitionRefused
from change_executor.policy import policy_version
from change_executor.review.case import Case, read_case
from change_executor.review.decisions import DecisionRefused, Desk, LookedAt, SessionEnded, Settled
from change_executor.review.sessions import How, begin_session, end_session, find_session
from change_executor.switch import press_stop, release_stop
from shared.proposal import State
from tests.servers.desk import PERSON, Clock, Rows, journal_for, reading, settings_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass
class Room:
    """A desk with its person, and the rows behind it."""

    journal: Journal
    rows: Rows
    desk: Desk
    clock: Clock

    def case(self, proposal_id: str) -> Case:
        with self.journal.reading() as connection:
            return read_case(connection, self.desk.settings, proposal_id)

    def look(self, proposal_id: str) -> LookedAt:
        case = self.case(proposal_id)
        return LookedAt(proposal_id, case.proposal.version, case.shown)

    def last_event(self) -> tuple[str, str, dict[str, object]]:
        with self.journal.reading() as connection:
            row = connection.execute(select(schema.events).order_by(schema.events.c.seq.desc()).limit(1)).one()
        return row.kind, row.actor, event_details(row.details)

    def events(self) -> int:
        with self.journal.reading() as connection:
            return connection.execute(select(func.count()).select_from(schema.events)).scalar_one()


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    clock = Clock()
    settings = settings_for(tmp_path)
    journal = journal_for(settings, clock)
    rows = Rows(journal, settings, clock)
    rows.person()
    with journal.writing() as writing:
        secret = begin_session(writing, PERSON, How.LINK, secrets.token_bytes)
    session = find_session(journal, secret)
    assert session is not None
    yield Room(journal, rows, Desk(journal, settings, session), clock)
    journal.close()


def test_an_approval_records_who_when_under_which_policy_and_what_was_shown(room: Room) -> None:
    proposal = room.rows.proposal(reading(), "It arrived", hints=json.dumps({"opened": "opened"}))
    seen = room.look(proposal.id)
    approved = room.desk.approve(seen)
    assert State.APPROVED is approved.state
    assert (PERSON, room.clock()) == (approved.decided_by, approved.decided_at)
    settings = room.desk.settings
    assert policy_version(settings, settings.queues[0]) == approved.policy_version
    assert seen.shown == approved.shown
    kind, actor, details = room.last_event()
    assert ("proposal:approve", f"person:{PERSON}") == (kind, actor)
    assert (proposal.evidence, seen.shown) == (details["evidence"], details["shown"])
    assert 64 == len(str(details["hints"]))


def test_a_decision_about_another_version_writes_nothing(room: Room) -> None:
    proposal = room.rows.proposal(reading())
    seen = room.look(proposal.id)
    room.rows.look(proposal.id, reading(text="Something else entirely"))
    before = room.events()
    for decide in (room.desk.approve, lambda looked: room.desk.reject(looked, "no")):
        with pytest.raises(VersionChanged):
            decide(seen)
    assert before == room.events()


def test_a_decision_about_something_else_that_was_shown_writes_nothing(room: Room) -> None:
    proposal = room.rows.proposal(reading())
    with pytest.raises(VersionChanged):
        room.desk.approve(replace(room.look(proposal.id), shown="0" * 64))


def test_an_approval_under_another_policy_is_refused(room: Room, tmp_path: Path) -> None:
    proposal = room.rows.proposal(reading())
    seen = room.look(proposal.id)
    for changed in ({"max_moves_per_hour": 7}, {"to": {"processed": {"mailbox": "Elsewhere"}}}):
        with pytest.raises(VersionChanged):
            replace(room.desk, settings=settings_for(tmp_path, **changed)).approve(seen)


def test_nothing_is_approved_without_evidence(room: Room) -> None:
    proposal = room.rows.proposal()
    with pytest.raises(DecisionRefused) as refused:
        room.desk.approve(room.look(proposal.id))
    assert "no_evidence" == refused.value.code
    assert State.REJECTED is room.desk.reject(room.look(proposal.id), "").state


def test_nothing_is_approved_on_a_reading_that_is_not_the_recorded_one(room: Room) -> None:
    proposal = room.rows.proposal(reading())
    with room.journal.writing() as writing:
        evidence_rows.keep_text(writing, proposal.id, "reading", reading(text="Forged").canonical().decode())
    assert room.case(proposal.id).reading is None
    with pytest.raises(DecisionRefused) as refused:
        room.desk.approve(room.look(proposal.id))
    assert "reading_damaged" == refused.value.code


def test_nothing_is_approved_after_its_time_or_without_its_queue(room: Room, tmp_path: Path) -> None:
    proposal = room.rows.proposal(reading(), days=0.1)
    other = room.rows.proposal(reading(), to_role="escalate")
    elsewhere = replace(room.desk, settings=settings_for(tmp_path, to={"processed": {"mailbox": "Support/Processed"}}))
    with room.journal.reading() as connection:
        case = read_case(connection, elsewhere.settings, other.id)
    with pytest.raises(DecisionRefused) as gone:
        elsewhere.approve(LookedAt(other.id, case.proposal.version, case.shown))
    room.clock.pass_by(hours=3)
    with pytest.raises(DecisionRefused) as late:
        room.desk.approve(room.look(proposal.id))
    assert ("queue_changed", "expired") == (gone.value.code, late.value.code)


def test_while_everything_is_stopped_nothing_is_approved_and_what_must_not_go_on_can_be_rejected(room: Room) -> None:
    proposals = [room.rows.proposal(reading(), to_role=role) for role in ("processed", "escalate", "processed")]
    room.desk.approve(room.look(proposals[0].id))
    press_stop(room.journal, "operator")
    before = room.events()
    with pytest.raises(DecisionRefused) as refused:
        room.desk.approve(room.look(proposals[1].id))
    assert ("stopped", before) == (refused.value.code, room.events())
    for proposal in proposals[:2]:
        assert State.REJECTED is room.desk.reject(room.look(proposal.id), "").state
    release_stop(room.journal, f"person:{PERSON}")
    assert State.APPROVED is room.desk.approve(room.look(proposals[2].id)).state


def test_the_stop_file_refuses_approvals_before_anybody_has_seen_it(room: Room, tmp_path: Path) -> None:
    proposal = room.rows.proposal(reading())
    stop_file = tmp_path / "stop"
    desk = replace(room.desk, settings=room.desk.settings.model_copy(update={"stop_file": stop_file}))
    stop_file.touch()
    with pytest.raises(DecisionRefused) as refused:
        desk.approve(room.look(proposal.id))
    assert "stopped" == refused.value.code
    stop_file.unlink()
    assert State.APPROVED is desk.approve(room.look(proposal.id)).state


def test_a_message_that_cannot_be_shown_can_still_be_decided(room: Room) -> None:
    proposal = room.rows.proposal(reading(readable="cannot_be_shown", text="", cause="the child died"))
    assert State.APPROVED is room.desk.approve(room.look(proposal.id)).state


def test_a_session_that_ended_meanwhile_decides_nothing(room: Room) -> None:
    proposal = room.rows.proposal(reading())
    seen = room.look(proposal.id)
    end_session(room.journal, room.desk.session)
    with pytest.raises(SessionEnded):
        room.desk.approve(seen)
    assert State.PENDING is room.case(proposal.id).proposal.state


def test_a_rejection_keeps_its_reason_out_of_the_chain(room: Room) -> None:
    proposal = room.rows.proposal(reading())
    room.desk.reject(room.look(proposal.id), "She still waits for an answer")
    case = room.case(proposal.id)
    assert ("She still waits for an answer", PERSON) == (case.decision_reason, case.proposal.decided_by)
    assert "waits" not in json.dumps(room.last_event()[2])


def test_an_approval_can_be_taken_back_until_the_move_begins(room: Room) -> None:
    first, second = room.rows.proposal(reading()), room.rows.proposal(reading())
    for proposal in (first, second):
        room.desk.approve(room.look(proposal.id))
    assert State.REJECTED is room.desk.reject(room.look(first.id), "").state
    room.rows.happen(second.id, Event.CLAIM)
    with pytest.raises(TransitionRefused):
        room.desk.reject(room.look(second.id), "")


def test_undo_needs_the_queue_the_rights_and_a_known_place(room: Room, tmp_path: Path) -> None:
    proposal = room.rows.moved(room.rows.proposal(reading()).id)
    for permitted in (None, False):
        if permitted is not None:
            room.rows.examined(undo_permitted=permitted)
        with pytest.raises(DecisionRefused) as refused:
            room.desk.undo(room.look(proposal.id))
        assert "undo_not_permitted" == refused.value.code
    with room.journal.writing() as writing:
        writing.connection.execute(schema.examinations.update().values(undo_permitted=1))
    assert room.case(proposal.id).undo_offered
    with room.journal.reading() as connection:
        assert not read_case(connection, settings_for(tmp_path, undo=False), proposal.id).undo_offered
    undoing = room.desk.undo(room.look(proposal.id))
    assert (State.UNDOING, None) == (undoing.state, undoing.ended_at)


def test_undo_waits_for_another_open_proposal_about_the_message(room: Room) -> None:
    room.rows.examined()
    moved = room.rows.moved(room.rows.proposal(reading()).id)
    room.rows.proposal(reading(), email_id=moved.email_id)
    with pytest.raises(DecisionRefused) as refused:
        room.desk.undo(room.look(moved.id))
    assert "another_is_open" == refused.value.code


DOUBTS = {
    State.DOUBTFUL: (Event.CLAIM, Event.DOUBT),
    State.UNDO_DOUBTFUL: (Event.CLAIM, Event.MOVED, Event.UNDO, Event.DOUBT),
}
SETTLED = {
    (State.DOUBTFUL, Settled.APPLIED): State.APPLIED,
    (State.DOUBTFUL, Settled.FAILED): State.FAILED,
    (State.UNDO_DOUBTFUL, Settled.UNDONE): State.UNDONE,
    (State.UNDO_DOUBTFUL, Settled.APPLIED): State.APPLIED,
}


@pytest.mark.parametrize(
    ("state", "outcome"), list(itertools.product([*DOUBTS, State.PENDING, State.APPLIED], Settled))
)
def test_only_a_doubt_is_settled_and_only_by_what_can_have_happened(room: Room, state: State, outcome: Settled) -> None:
    proposal = room.rows.proposal(reading())
    if state is State.APPLIED:
        room.rows.moved(proposal.id)
    elif state in DOUBTS:
        room.rows.approve(proposal.id)
        room.rows.happen(proposal.id, *DOUBTS[state])
    seen = room.look(proposal.id)
    following = SETTLED.get((state, outcome))
    if following is None:
        with pytest.raises(TransitionRefused):
            room.desk.settle(seen, outcome)
    else:
        settled = room.desk.settle(seen, outcome)
        assert (following, "settled_by_person") == (settled.state, settled.outcome_code)
        _, actor, details = room.last_event()
        relied_on = (f"person:{PERSON}", seen.shown, room.case(proposal.id).policy_version, proposal.evidence)
        assert relied_on == (actor, details["shown"], details["policyVersion"], details["evidence"])


def test_an_unknown_proposal_is_none(room: Room) -> None:
    with pytest.raises(NoSuchProposal):
        room.desk.approve(LookedAt("P" + "v" * 20, 1, "0" * 64))


def test_of_two_people_who_decide_at_once_one_does(room: Room) -> None:
    proposal = room.rows.proposal(reading())
    seen = room.look(proposal.id)
    room.desk.reject(seen, "first")
    with pytest.raises(VersionChanged):
        room.desk.approve(seen)
    with room.journal.reading() as connection:
        assert State.REJECTED is read_proposal(connection, proposal.id).state


def test_the_chain_is_whole_after_all_of_it(room: Room) -> None:
    room.rows.examined()
    moved = room.rows.proposal(reading())
    room.desk.approve(room.look(moved.id))
    rejected = room.rows.proposal(reading())
    room.desk.reject(room.look(rejected.id), "no")
    with room.journal.reading() as connection:
        assert () == verify(connection).findings

"""What is wrong is told with its number and its time, and nothing else is; a monitor gets the same as numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from change_executor.alarms import (
    SENTENCES,
    AlarmCode,
    alarms,
    measures,
    oldest_for_person,
    waiting_for_person,
)
from change_executor.lifecycle import Event
from change_executor.switch import press_stop, release_stop
from tests.servers.desk import Clock, Rows, journal_for, reading, settings_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from change_executor.alarms import Alarm


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    clock, settings = Clock(), settings_for(tmp_path)
    journal = journal_for(settings, clock)
    yield Rows(journal, settings, clock)
    journal.close()


def wrong(rows: Rows) -> dict[AlarmCode, Alarm]:
    with rows.journal.reading() as connection:
        found = alarms(connection, rows.settings, rows.clock())
    return {alarm.code: alarm for alarm in found}


def test_an_approval_that_is_not_moved_in_time_is_an_alarm_with_its_reason(rows: Rows) -> None:
    proposal = rows.proposal(reading())
    approved_at = rows.clock()
    rows.approve(proposal.id)
    rows.wait(proposal.id, "mail_server_unreachable")
    rows.clock.pass_by(minutes=9, seconds=59)
    assert {} == wrong(rows)
    rows.clock.pass_by(seconds=1)
    alarm = wrong(rows)[AlarmCode.NOT_APPLIED]
    assert (1, approved_at, ("mail_server_unreachable",)) == (alarm.count, alarm.since, alarm.reasons)
    rows.happen(proposal.id, Event.CLAIM)
    assert 1 == wrong(rows)[AlarmCode.NOT_APPLIED].count
    rows.happen(proposal.id, Event.MOVED)
    assert {} == wrong(rows)


def test_no_alarm_waits_until_a_clock_that_was_set_back_has_come_round_again(rows: Rows) -> None:
    approved, moved = rows.proposal(reading()), rows.moved(rows.proposal(reading()).id)
    rows.proposal(reading())
    rows.approve(approved.id)
    rows.happen(moved.id, Event.UNDO)
    rows.clock.pass_by(minutes=-9)
    assert {} == wrong(rows)
    rows.clock.pass_by(days=-2)
    assert {AlarmCode.NOT_APPLIED, AlarmCode.NOT_UNDONE, AlarmCode.PENDING_OLD} == wrong(rows).keys()


def test_a_doubt_that_looking_cannot_settle_needs_a_person_and_a_quiet_time_does_not(rows: Rows) -> None:
    proposal = rows.proposal(reading())
    rows.approve(proposal.id)
    rows.happen(proposal.id, Event.CLAIM, Event.DOUBT)
    rows.wait(proposal.id, "quiet_time")
    assert {} == wrong(rows)
    rows.clock.pass_by(minutes=11)
    assert {AlarmCode.NOT_APPLIED} == wrong(rows).keys()
    rows.wait(proposal.id, "settle")
    assert {AlarmCode.SETTLE} == wrong(rows).keys()


@pytest.mark.parametrize(
    ("code", "settles"),
    [
        *(("settle", True), ("moved_twice", True), ("mailbox_changed", True), ("too_many_to_look_at", True)),
        *(("queue_not_configured", True), ("quiet_time", False), ("mail_server_unreachable", False)),
    ],
)
@pytest.mark.parametrize("undoing", [False, True])
def test_what_looking_again_does_not_end_needs_a_person_at_once_and_is_no_other_alarm_beside(
    rows: Rows, code: str, *, settles: bool, undoing: bool
) -> None:
    proposal = rows.proposal(reading())
    if undoing:
        rows.moved(proposal.id)
        rows.happen(proposal.id, Event.UNDO, Event.DOUBT)
    else:
        rows.approve(proposal.id)
        rows.happen(proposal.id, Event.CLAIM, Event.DOUBT)
    rows.wait(proposal.id, code)
    assert ({AlarmCode.SETTLE} if settles else set()) == wrong(rows).keys()
    rows.clock.pass_by(minutes=10)
    late = AlarmCode.NOT_UNDONE if undoing else AlarmCode.NOT_APPLIED
    assert {AlarmCode.SETTLE if settles else late} == wrong(rows).keys()


def test_an_undo_that_is_asked_for_again_counts_from_the_last_time(rows: Rows) -> None:
    proposal = rows.moved(rows.proposal(reading()).id)
    rows.happen(proposal.id, Event.UNDO, Event.REFUSED)
    rows.clock.pass_by(days=1)
    rows.happen(proposal.id, Event.UNDO)
    rows.clock.pass_by(minutes=9)
    assert {} == wrong(rows)


def test_a_person_decides_the_oldest_that_can_be_shown_first(rows: Rows) -> None:
    unseen = rows.proposal()
    rows.clock.pass_by(minutes=1)
    # Made in the other order than their ids tell.
    second, first = rows.proposal(reading()), rows.proposal(reading())
    with rows.journal.writing() as writing:
        writing.change(first.id, "test", "executor", created_at=unseen.created_at)
    with rows.journal.reading() as connection:
        assert [first.id, second.id] == waiting_for_person(connection)
        assert unseen.created_at == oldest_for_person(connection)
    rows.happen(first.id, Event.REJECT)
    with rows.journal.reading() as connection:
        assert second.created_at == oldest_for_person(connection)


def test_no_age_is_below_nothing_and_a_stop_counts_as_one(rows: Rows) -> None:
    rows.proposal(reading())
    press_stop(rows.journal, "operator")
    rows.clock.pass_by(hours=-1)
    with rows.journal.reading() as connection:
        found = {(each.name, *each.labels): each.value for each in measures(connection, rows.settings, rows.clock())}
    pending = (("queue", "support"), ("state", "pending"))
    assert 0.0 == found["mailwarrant_oldest_open_proposal_seconds", *pending]
    assert 1.0 == found["mailwarrant_alarm", ("code", "stopped")]


def test_an_undo_that_is_not_done_counts_from_when_it_was_asked_for(rows: Rows) -> None:
    proposal = rows.moved(rows.proposal(reading()).id)
    rows.clock.pass_by(days=1)
    asked_at = rows.clock()
    rows.happen(proposal.id, Event.UNDO)
    rows.clock.pass_by(minutes=9)
    assert {} == wrong(rows)
    rows.clock.pass_by(minutes=1)
    assert asked_at == wrong(rows)[AlarmCode.NOT_UNDONE].since
    rows.happen(proposal.id, Event.MOVED)
    assert {} == wrong(rows)


def test_a_queue_that_is_old_or_long_is_an_alarm(rows: Rows) -> None:
    rows.settings = rows.settings.model_copy(
        update={"notify": rows.settings.notify.model_copy(update={"pending_count": 2})}
    )
    made = [rows.proposal(reading()) for _ in range(2)]
    assert {} == wrong(rows)
    # Without evidence too: whatever keeps it from being shown, it waits.
    rows.proposal()
    assert {AlarmCode.PENDING_MANY} == wrong(rows).keys()
    rows.clock.pass_by(hours=24)
    assert {AlarmCode.PENDING_MANY, AlarmCode.PENDING_OLD} == wrong(rows).keys()
    for each in made:
        rows.happen(each.id, Event.REJECT)
    assert {AlarmCode.PENDING_OLD} == wrong(rows).keys()


def test_a_forgotten_stop_is_an_alarm_until_it_is_released(rows: Rows) -> None:
    press_stop(rows.journal, "operator")
    assert {AlarmCode.STOPPED} == wrong(rows).keys()
    release_stop(rows.journal, "operator")
    assert {} == wrong(rows)


def test_a_monitor_gets_every_alarm_and_the_size_and_age_of_each_queue(rows: Rows) -> None:
    rows.proposal(reading())
    rows.clock.pass_by(minutes=30)
    rows.approve(rows.proposal(reading()).id)
    rows.moved(rows.proposal(reading()).id)
    rows.clock.pass_by(minutes=30)
    with rows.journal.reading() as connection:
        found = {(each.name, each.labels): each.value for each in measures(connection, rows.settings, rows.clock())}
    alarm = {labels[0][1]: value for (name, labels), value in found.items() if name == "mailwarrant_alarm"}
    assert {code.value: float(code is AlarmCode.NOT_APPLIED) for code in AlarmCode} == alarm
    pending = (("queue", "support"), ("state", "pending"))
    approved = (("queue", "support"), ("state", "approved"))
    assert (1.0, 1.0) == tuple(found["mailwarrant_open_proposals", labels] for labels in (pending, approved))
    assert 3600.0 == found["mailwarrant_oldest_open_proposal_seconds", pending]
    assert 1800.0 == found["mailwarrant_oldest_open_proposal_seconds", approved]
    assert len(AlarmCode) + 4 == len(found)


def test_every_alarm_has_its_sentence() -> None:
    assert set(AlarmCode) == SENTENCES.keys()

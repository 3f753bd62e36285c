"""The order in which missing messages come in: the newest week of every mailbox before older mail of any."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from agent_reader.imap.values import Stated
from agent_reader.sync.order import Age, Backlog, age_of, choose
from agent_reader.sync.plan import Large, Whole

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def days_old(days: float, size: int | None = 1_000) -> Stated:
    return Stated(size, NOW - timedelta(days=days), None)


def surveyed(days: dict[int, float]) -> Backlog:
    backlog = Backlog(sorted(days))
    uids = backlog.to_survey()
    backlog.surveyed(uids, {uid: days_old(days[uid]) for uid in uids}, NOW)
    return backlog


def test_ages_are_a_week_a_month_a_quarter_a_year_and_more() -> None:
    ages = [age_of(NOW - timedelta(days=days), NOW) for days in (-3, 0, 7, 8, 30, 31, 90, 91, 365, 366, 9_999)]
    week, month, quarter, year, older = Age
    assert [week, week, week, month, month, quarter, quarter, year, year, older, older] == ages


def test_the_newest_uids_are_asked_about_first_and_ever_more_at_a_time() -> None:
    backlog = Backlog(list(range(1, 5_001)))
    asked = [backlog.to_survey() for _ in range(6)]
    assert [200, 400, 800, 1_600, 2_000, 0] == [len(uids) for uids in asked]
    assert list(range(5_000, 0, -1)) == [uid for uids in asked for uid in uids]


def test_what_is_not_seen_yet_is_taken_to_be_as_new_as_the_last_that_was() -> None:
    backlog = Backlog(list(range(1, 1_001)))
    assert (Age.WEEK, True) == (backlog.age, backlog.is_to_be_surveyed)
    uids = backlog.to_survey()
    backlog.surveyed(uids, dict.fromkeys(uids, days_old(1)), NOW)
    # Nothing that is not seen is newer than these: they come in first, and only what is needed is asked about.
    assert (Age.WEEK, False) == (backlog.age, backlog.is_to_be_surveyed)
    backlog.drop(uids)
    assert (Age.WEEK, True) == (backlog.age, backlog.is_to_be_surveyed)
    uids = backlog.to_survey()
    backlog.surveyed(uids, {uid: days_old(1 if uid > 500 else 40) for uid in uids}, NOW)
    assert (Age.WEEK, False) == (backlog.age, backlog.is_to_be_surveyed)


def test_a_batch_is_of_one_age_the_newest_first() -> None:
    backlog = surveyed({1: 400, 2: 50, 3: 1, 4: 60, 5: 2})
    batches = []
    while len(backlog):
        batches.append(backlog.next_batch({}, 200)[0])
    assert [Whole((5, 3)), Whole((4, 2)), Whole((1,))] == batches


def test_what_failed_before_comes_alone_and_last_of_its_age() -> None:
    backlog = surveyed({1: 1, 2: 1, 3: 1, 4: 100})
    batches = []
    while len(backlog):
        batches.append(backlog.next_batch({3: 1, 2: 2}, 200)[0])
    assert [Whole((1,)), Whole((3,)), Whole((2,)), Whole((4,))] == batches


def test_a_large_message_is_taken_alone_and_the_rest_stays() -> None:
    backlog = Backlog([1, 2])
    uids = backlog.to_survey()
    backlog.surveyed(uids, {1: days_old(1), 2: days_old(1, 5_000_000)}, NOW)
    assert Large(2) == backlog.next_batch({}, 200)[0]
    assert Whole((1,)) == backlog.next_batch({}, 200)[0]


def test_what_the_server_states_nothing_of_comes_last() -> None:
    backlog = Backlog([1, 2])
    backlog.surveyed(backlog.to_survey(), {1: days_old(1)}, NOW)
    assert Whole((1,)) == backlog.next_batch({}, 200)[0]
    assert Age.OLDER == backlog.age


def test_the_newest_mailbox_is_chosen_and_the_open_one_among_equals() -> None:
    backlogs = {"a": surveyed({1: 10}), "b": surveyed({1: 1}), "c": surveyed({1: 2}), "d": Backlog()}
    assert "b" == choose(backlogs, None)
    assert "c" == choose(backlogs, "c")
    assert "b" == choose(backlogs, "a")
    assert choose({"d": Backlog()}, "d") is None


@given(st.dictionaries(st.sampled_from("abcd"), st.dictionaries(st.integers(1, 60), st.integers(0, 800), min_size=1)))
def test_no_message_of_the_last_week_waits_for_an_older_one_of_any_mailbox(days: dict[str, dict[int, int]]) -> None:
    backlogs = {name: Backlog(sorted(uids)) for name, uids in days.items()}
    order: list[tuple[str, int]] = []
    current = None
    while (current := choose(backlogs, current)) is not None:
        backlog = backlogs[current]
        if backlog.is_to_be_surveyed:
            uids = backlog.to_survey()
            backlog.surveyed(uids, {uid: days_old(days[current][uid]) for uid in uids}, NOW)
        else:
            order += [(current, uid) for uid in backlog.next_batch({}, 7)[0].uids]
    ages = [age_of(NOW - timedelta(days=days[name][uid]), NOW) for name, uid in order]
    assert sorted(ages) == ages
    assert sorted((name, uid) for name, uids in days.items() for uid in uids) == sorted(order)

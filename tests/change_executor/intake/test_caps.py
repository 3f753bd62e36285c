"""How much one agent may propose: what is counted against each cap, and what asking costs."""

from __future__ import annotations

import contextlib
import itertools
import re
import sqlite3
from typing import TYPE_CHECKING

from change_executor.journal.evidence import Evidence, record
from change_executor.journal.open import open_journal
from change_executor.lifecycle import Event
from tests.change_executor.intake.desk import Desk, code_of, email
from tests.change_executor.settings import settings_in

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

    from change_executor.journal.journal import Journal
    from tests.change_executor.journal.clock import MovableClock


def test_what_was_withdrawn_still_counts_for_the_hour(tmp_path: Path, clock: MovableClock) -> None:
    settings = settings_in(tmp_path, max_proposals_per_hour=5)
    with contextlib.closing(open_journal(settings.journal.url, clock)) as journal:
        desk = Desk(journal, settings)
        for number in range(5):
            made = desk.propose(emailId=email(number))
            assert 201 == made.status_code, made.text
            desk.ask("POST", f"/v1/proposals/{made.json()['id']}/withdraw")
        full = desk.propose(emailId=email(200))
        assert (429, "too_many_proposals", True) == (full.status_code, code_of(full), full.json()["retryable"])
        assert desk.propose(desk.token_of("other"), emailId=email(200)).status_code == 201
        clock.advance(seconds=3601)
        assert desk.propose(emailId=email(201)).status_code == 201


def test_an_agent_that_makes_ids_up_is_stopped_by_the_hour_and_by_the_day(
    desk: Desk, journal: Journal, clock: MovableClock
) -> None:
    numbers = itertools.count()

    def made_up() -> httpx.Response:
        answer = desk.propose(emailId=email(next(numbers)))
        if answer.status_code == 201:
            with journal.writing() as writing:
                writing.advance(answer.json()["id"], Event.ABSENT, "executor")
        return answer

    for _ in range(3):
        assert [201] * 20 == [made_up().status_code for _ in range(20)]
        full = made_up()
        assert (429, "too_many_unfound", True) == (full.status_code, code_of(full), full.json()["retryable"])
        assert full.headers["retry-after"]
        clock.advance(seconds=3601)
    # Sixty in a day: the hour is over, the day is not. Others have room of their own.
    today = made_up()
    assert (429, "too_many_unfound") == (today.status_code, code_of(today))
    assert 201 == desk.propose(desk.token_of("other"), emailId=email(500)).status_code
    clock.advance(days=1)
    assert 201 == made_up().status_code


def test_what_was_there_and_went_away_is_not_made_up(desk: Desk, journal: Journal) -> None:
    for number in range(21):
        made = desk.propose(emailId=email(number))
        assert 201 == made.status_code, made.text
        with journal.writing() as writing:
            seen = Evidence(
                made.json()["id"], 1, number + 1, "0" * 64, 1, "2026-11-29T12:00:00+00:00", 1, "1", "0" * 64
            )
            record(writing, seen)
            writing.advance(made.json()["id"], Event.ABSENT, "executor")


def test_the_cap_of_a_day_counts_what_was_withdrawn_too(tmp_path: Path, clock: MovableClock) -> None:
    settings = settings_in(tmp_path, max_proposals_per_day=2)
    with contextlib.closing(open_journal(settings.journal.url, clock)) as journal:
        desk = Desk(journal, settings)
        for number in range(2):
            made = desk.propose(emailId=email(number)).json()["id"]
            desk.ask("POST", f"/v1/proposals/{made}/withdraw")
            clock.advance(hours=2)
        full = desk.propose(emailId=email(2))
        assert (429, "too_many_proposals_today", True) == (full.status_code, code_of(full), full.json()["retryable"])
        clock.advance(hours=20, seconds=1)
        assert 201 == desk.propose(emailId=email(2)).status_code


def test_the_cap_on_pending_proposals_counts_the_agent_in_the_queue(desk: Desk) -> None:
    elsewhere = desk.token_of("triage", "billing")
    for number in range(3):
        # What it has in another queue is counted there.
        assert desk.propose(elsewhere, emailId=email(number), to="paid").status_code == 201
        assert desk.propose(emailId=email(number)).status_code == 201
    full = desk.propose(emailId=email(3))
    assert (429, "too_many_pending", True) == (full.status_code, code_of(full), full.json()["retryable"])
    assert full.headers["retry-after"]
    # The same again is no new one; others have room of their own.
    assert desk.propose(emailId=email(2)).status_code == 200
    assert desk.propose(desk.token_of("other"), emailId=email(3)).status_code == 201
    mine = desk.propose(emailId=email(2)).json()["id"]
    desk.ask("POST", f"/v1/proposals/{mine}/withdraw")
    assert desk.propose(emailId=email(4)).status_code == 201


def test_a_proposal_asks_nothing_that_grows_with_all_that_its_agent_ever_proposed(desk: Desk, journal: Journal) -> None:
    desk.propose()
    driver = journal._group._held().connection.driver_connection
    said: list[str] = []
    assert isinstance(driver, sqlite3.Connection)
    driver.set_trace_callback(said.append)
    assert desk.propose(emailId=email(2)).status_code == 201
    driver.set_trace_callback(None)
    with journal.reading() as connection:
        plans = [
            row.detail
            for statement in said
            if statement.startswith("SELECT")
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}").all()
        ]
    # No row is read for what is counted.
    assert any("COVERING INDEX proposals_by_agent (agent=? AND created_at>?)" in plan for plan in plans)
    walks = re.compile(
        r"SCAN proposals|proposals_by_agent \(agent=\?(?: AND created_at<\?)?\)|\(state=\?\)|\(queue=\?\)"
    )
    assert [] == [plan for plan in plans if walks.search(plan)]


def test_what_has_waited_for_days_counts_still(desk: Desk, clock: MovableClock) -> None:
    other = desk.token_of("other")
    old = [desk.propose(emailId=email(number)).json()["id"] for number in range(3)]
    for number in (3, 4):
        assert desk.propose(other, emailId=email(number)).status_code == 201
    assert desk.propose(desk.token_of("other", "billing"), emailId=email(5), to="paid").status_code == 201
    # To the microsecond, and then past it.
    for _ in range(2):
        clock.advance(days=1)
        assert "too_many_pending" == code_of(desk.propose(emailId=email(6)))
    assert desk.propose(other, emailId=email(6)).status_code == 201
    assert "too_many_pending" == code_of(desk.propose(other, emailId=email(7)))
    desk.ask("POST", f"/v1/proposals/{old[0]}/withdraw")
    assert desk.propose(emailId=email(7)).status_code == 201

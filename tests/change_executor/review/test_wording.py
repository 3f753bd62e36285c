"""The page's words are true of what they stand beside."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from change_executor.journal.forget import forget_texts
from change_executor.lifecycle import Event
from change_executor.outcomes import Waiting
from change_executor.review import verifying, wording
from change_executor.switch import press_stop
from tests.servers.desk import ReviewPage, reading


@pytest.fixture
def page(review_page: ReviewPage) -> ReviewPage:
    return review_page


def test_what_ended_without_being_looked_at_is_not_called_forgotten(page: ReviewPage) -> None:
    never, forgotten = page.rows.proposal(), page.rows.proposal(reading("Seen once"))
    for proposal in (never, forgotten):
        page.rows.happen(proposal.id, Event.REJECT)
    page.clock.pass_by(days=31)
    forget_texts(page.journal, timedelta(days=30))
    client = page.signed_in()
    text = client.get("/").text
    for proposal, words in ((never, "Never looked at"), (forgotten, "Its text was forgotten")):
        (shown,) = re.findall(rf'href="/p/{proposal.id}"><span class="none">([^<]*)<', text)
        assert words == shown
    assert "It was never looked at." in client.get(f"/p/{never.id}").text


def test_the_history_of_an_undo_says_that_it_was_moved_back(page: ReviewPage) -> None:
    proposal = page.rows.proposal(reading())
    page.rows.approve(proposal.id)
    page.rows.happen(proposal.id, Event.CLAIM, Event.MOVED, Event.UNDO, Event.MOVED)
    text = page.signed_in().get(f"/p/{proposal.id}").text
    there, back = wording.EVENTS["proposal:moved"], "The mail server moved it back"
    assert (1, 1) == (text.count(there), text.count(back))
    assert text.index(there) < text.index(back)


def test_what_waited_for_the_stop_button_does_not_say_so_after_it_is_released(page: ReviewPage) -> None:
    proposal = page.rows.proposal(reading())
    page.rows.approve(proposal.id)
    page.rows.wait(proposal.id, Waiting.STOPPED.value)
    client = page.signed_in()
    for path in ("/", f"/p/{proposal.id}"):
        assert wording.WAITING[Waiting.STOPPED] not in client.get(path).text
    press_stop(page.journal, "operator")
    for path in ("/", f"/p/{proposal.id}"):
        assert wording.WAITING[Waiting.STOPPED] in client.get(path).text


@pytest.mark.parametrize(
    ("remaining", "words"),
    [
        (timedelta(days=5, seconds=-1), "5 d left"),
        (timedelta(days=4, hours=13), "5 d left"),
        (timedelta(days=4, hours=11), "4 d left"),
        (timedelta(hours=24, seconds=-1), "24 h left"),
        (timedelta(hours=2, minutes=20), "2 h left"),
        (timedelta(minutes=59, seconds=1), "1 h left"),
        (timedelta(minutes=2, seconds=-1), "2 min left"),
        (timedelta(seconds=1), "1 min left"),
        (timedelta(0), "time is over"),
    ],
)
def test_the_time_left_is_told_in_the_nearest_unit(remaining: timedelta, words: str) -> None:
    now = datetime(2026, 11, 29, tzinfo=UTC)
    assert words == wording.left(now + remaining, now)


@pytest.mark.parametrize(("seconds", "words"), [(0.4, "1 second."), (2, "2 seconds."), (120, "2 minutes.")])
def test_one_second_is_no_seconds(seconds: float, words: str) -> None:
    assert verifying._later(timedelta(seconds=seconds)).endswith(f"Try again in {words}")


def test_every_reason_to_wait_has_its_sentence() -> None:
    assert set(Waiting) == set(wording.WAITING)

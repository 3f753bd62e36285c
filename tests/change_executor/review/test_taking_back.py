"""Taking back, on the page, all that an agent brought about since a moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import select

from change_executor.journal import schema
from change_executor.journal.journal import read_proposal
from change_executor.review import taking_back
from change_executor.undoing import undo_since
from shared.proposal import State
from tests.servers.desk import PERSON, ReviewPage, fields_of, press, reading

if TYPE_CHECKING:
    from change_executor.undoing import UndoAsked

PATH = "/agents/mailbot/undo"


def test_all_that_was_moved_since_then_is_listed_and_goes_back_at_one_press(review_page: ReviewPage) -> None:
    page = review_page
    early = page.rows.moved(page.rows.proposal(reading("Early")).id)
    page.clock.pass_by(hours=2)
    since = page.clock().strftime("%Y-%m-%dT%H:%M")
    late = [page.rows.moved(page.rows.proposal(reading(f"Late {number}")).id) for number in range(3)]
    other = page.rows.moved(page.rows.proposal(reading("Of another"), agent="sorter").id)
    client = page.signed_in()
    assert PATH in client.get("/agents/mailbot").text
    listed = client.get(f"{PATH}?since={since}").text
    assert [1, 1, 1, 0, 0] == [
        listed.count(f">{word}<") for word in ("Late 0", "Late 1", "Late 2", "Early", "Of another")
    ]
    done = press(client, listed, PATH)
    assert (200, True) == (done.status_code, "3 messages are being moved back." in done.text)
    with page.journal.reading() as connection:
        states = [read_proposal(connection, each.id).state for each in (early, other, *late)]
        asked = connection.execute(select(schema.events.c.actor).where(schema.events.c.kind == "undo:ask")).scalars()
        assert [f"person:{PERSON}"] == list(asked)
    assert [State.APPLIED, State.APPLIED] + [State.UNDOING] * 3 == states


def test_what_was_not_listed_is_not_taken_back(review_page: ReviewPage) -> None:
    page = review_page
    first = page.rows.moved(page.rows.proposal(reading("First")).id)
    client = page.signed_in()
    listed = client.get(f"{PATH}?since=2026-01-01T00:00").text
    second = page.rows.moved(page.rows.proposal(reading("Second")).id)
    again = press(client, listed, PATH)
    assert (409, True) == (again.status_code, "Here is how it is now." in again.text)
    with page.journal.reading() as connection:
        assert [State.APPLIED] * 2 == [read_proposal(connection, each.id).state for each in (first, second)]
    assert 200 == press(client, again.text, PATH).status_code


def test_what_comes_in_at_the_last_moment_is_not_taken_back_with_what_was_listed(
    review_page: ReviewPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = review_page
    first = page.rows.moved(page.rows.proposal(reading("First")).id)
    client = page.signed_in()
    listed = client.get(f"{PATH}?since=2026-01-01T00:00").text
    at_last: list[str] = []

    def after_another_move(*asked: Any, **how: Any) -> UndoAsked:
        at_last.append(page.rows.moved(page.rows.proposal(reading("At last")).id).id)
        return undo_since(*asked, **how)

    monkeypatch.setattr(taking_back, "undo_since", after_another_move)
    assert 409 == press(client, listed, PATH).status_code
    with page.journal.reading() as connection:
        states = [read_proposal(connection, each).state for each in (first.id, *at_last)]
        asked = select(schema.events.c.seq).where(schema.events.c.kind == "undo:ask")
        assert [] == list(connection.execute(asked).scalars())
    assert [State.APPLIED] * 2 == states


def test_what_is_not_listed_for_its_number_is_counted_and_goes_back_too(
    review_page: ReviewPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("change_executor.review.taking_back.MAX_LISTED", 2)
    page = review_page
    for number in range(3):
        page.rows.moved(page.rows.proposal(reading(f"Number {number}")).id)
    client = page.signed_in()
    listed = client.get(f"{PATH}?since=2026-01-01T00:00").text
    assert (2, True, True) == (listed.count(">Number "), "And 1 more" in listed, "Take back all 3" in listed)
    assert "3 messages are being moved back." in press(client, listed, PATH).text


def test_a_moment_that_is_none_lists_and_moves_nothing(review_page: ReviewPage) -> None:
    client = review_page.signed_in()
    csrf = fields_of(client.get("/").text, "/sign-out")["csrf"]
    for since in ("", "yesterday", "2026-13-01T00:00", "2026-01-01"):
        assert "Take back all" not in client.get(PATH, params={"since": since}).text
        assert 400 == client.post(PATH, data={"csrf": csrf, "since": since}).status_code
    assert 404 == client.get("/agents/Not%20one/undo").status_code


def test_what_cannot_go_back_says_why(review_page: ReviewPage) -> None:
    page = review_page
    page.rows.moved(page.rows.proposal(reading("Stays")).id)
    with page.journal.writing() as writing:
        writing.connection.execute(schema.examinations.update().values(undo_permitted=0))
    client = page.signed_in()
    listed = client.get(f"{PATH}?since=2026-01-01T00:00").text
    assert "the queue or the mail login does not allow it" in listed
    assert "1 move was not" in press(client, listed, PATH).text

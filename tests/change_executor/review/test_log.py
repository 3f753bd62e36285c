"""The log: what is on record, how it is found, checked and taken away."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text as sql

from change_executor.journal.chain import FIRST_PREVIOUS, event_hash
from change_executor.lifecycle import Event
from change_executor.review import wording
from tests.fakes.reader import FakeReader, a_read
from tests.servers.desk import PERSON, ReviewPage, press, reading

if TYPE_CHECKING:
    pass


@pytest.fixture
def page(review_page: ReviewPage) -> ReviewPage:
    return review_page


@pytest.fixture
def reader(review_reader: FakeReader) -> FakeReader:
    return review_reader


def says(page: ReviewPage, path: str) -> list[str]:
    """What the lines of a page of the log say, newest first."""
    text = page.signed_in().get(path).text
    return re.findall(r'<span class="say"><span>(.*?)</span>', text)


def test_the_log_tells_who_proposed_who_decided_and_what_happened_newest_first(page: ReviewPage) -> None:
    proposal = page.rows.proposal(reading("Order 4711"))
    client = page.signed_in()
    press(client, client.get(f"/p/{proposal.id}").text, f"/p/{proposal.id}/approve")
    text = client.get("/log").text
    places = [
        text.index(wording.EVENTS[kind]) for kind in ("proposal:approve", "proposal:evidence", "proposal:propose")
    ]
    assert sorted(places) == places
    for part in (f"<bdi>{PERSON}</bdi>", "the agent <bdi>mailbot</bdi>", "<bdi>Order 4711</bdi>"):
        assert part in text


@pytest.mark.parametrize(
    ("query", "finds"),
    [
        ("agent=mailbot", True),
        ("agent=other", False),
        ("q=order", True),
        ("q=nothing", False),
        ("what=proposed", True),
        ("what=moved", False),
        ("since=2026-11-29&until=2026-11-29", True),
        ("since=2026-11-30", False),
        ("until=2026-11-28", False),
        ("since=2026-13-45", True),
        ("person=rosa", False),
        ("about=' OR 1=1 --", False),
    ],
)
def test_the_log_is_searched_by_who_what_when_and_words(page: ReviewPage, query: str, finds: bool) -> None:
    page.rows.proposal(reading("Order 4711"))
    assert finds is (wording.EVENTS["proposal:propose"] in says(page, f"/log?{query}"))


def test_a_decision_is_found_years_later_when_its_text_is_long_gone(page: ReviewPage) -> None:
    proposal = page.rows.proposal(reading("Order 4711"))
    page.rows.happen(proposal.id, Event.REJECT, decided_by=PERSON, decided_at=page.clock())
    with page.journal.writing() as writing:
        writing.connection.execute(sql("DELETE FROM texts"))
    page.clock.pass_by(days=3 * 365)
    for query in (
        f"about={proposal.email_id}",
        f"about={proposal.id}",
        "agent=mailbot",
        "until=2026-12-31&what=decided",
    ):
        assert wording.EVENTS["proposal:reject"] in says(page, f"/log?{query}")


def test_the_pages_of_the_log_lose_and_repeat_nothing(page: ReviewPage) -> None:
    for number in range(130):
        page.rows.wait(page.rows.proposal().id, f"code_{number}")
    client, seen = page.signed_in(), []
    path: str | None = "/log?what=everything"
    while path:
        text = client.get(path).text
        seen += [int(seq) for seq in re.findall(r'<span class="seq">([0-9]+)</span>', text)]
        match = re.search(r'href="(/log\?[^"]*before=[^"]+)"', text)
        path = match[1].replace("&amp;", "&") if match else None
    assert list(range(len(seen), 0, -1)) == seen
    assert len(seen) > 260


def test_one_message_shows_who_read_it_what_was_proposed_and_what_became_of_it(
    page: ReviewPage, reader: FakeReader
) -> None:
    proposal = page.rows.moved(page.rows.proposal(reading("Order 4711")).id)
    reader.answers["/reads"] = {
        "reads": [a_read(page.clock(), "M" + "1" * 32), a_read(page.clock(), proposal.email_id)],
        "cursor": None,
    }
    text = page.signed_in().get(f"/log?about={proposal.email_id}").text
    one = text.partition("One message")[2].partition("</section>")[0]
    assert 1 == one.count("agent mailbot <span")
    assert f'href="/p/{proposal.id}"' in one
    assert "moved" in one
    assert {"agent": "mailbot"}.items() <= dict(reader.asked)["/reads"].items()


def test_a_reader_that_is_silent_or_lies_leaves_the_pages_whole(page: ReviewPage) -> None:
    proposal = page.rows.proposal(reading())
    client = page.signed_in()
    paths = (f"/log?about={proposal.email_id}", "/agents", "/agents/mailbot", "/status")
    for path in paths:
        assert "reader does not answer" in client.get(path).text
    with FakeReader(page.settings.reader.socket) as reader:
        for answer in (b"", b"{", {"agents": ["<b>"]}, {"agents": 1}, b"x" * 300_000):
            reader.answers |= dict.fromkeys(("/agents", "/reads", "/status"), answer)
            for path in paths:
                assert 200 == client.get(path).status_code


def test_the_journal_is_checked_when_asked_and_a_change_past_the_program_is_found(page: ReviewPage) -> None:
    client = page.signed_in()
    proposal = page.rows.proposal()
    with page.journal.writing() as writing:
        writing.connection.execute(sql("UPDATE proposals SET to_role = 'escalate'"))
    answer = press(client, client.get("/log").text, "/log/verify")
    assert "The journal is not whole." in answer.text
    assert proposal.id in answer.text


def test_an_export_holds_every_event_and_each_can_be_hashed_again(page: ReviewPage) -> None:
    for number in range(20):
        page.rows.proposal(reading(f"A secret subject {number}"))
    client = page.signed_in()
    answer = client.get("/log/export")
    assert "attachment" in answer.headers["content-disposition"]
    assert "secret" not in answer.text
    previous, events = FIRST_PREVIOUS, [json.loads(line) for line in answer.text.splitlines()]
    for number, event in enumerate(events, 1):
        digest = event.pop("hash")
        assert (number, previous) == (event["seq"], event["previous"])
        assert event_hash(**event) == digest
        previous = digest
    assert previous in client.get("/log").text
    some = client.get("/log/export?what=proposed").text.splitlines()
    assert {"proposal:propose"} == {json.loads(line)["kind"] for line in some}


def test_an_export_is_read_in_pieces(page: ReviewPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("change_executor.records._EVENTS_AT_ONCE", 3)
    for _ in range(10):
        page.rows.proposal()
    lines = page.signed_in().get("/log/export").text.splitlines()
    assert list(range(1, len(lines) + 1)) == [json.loads(line)["seq"] for line in lines]

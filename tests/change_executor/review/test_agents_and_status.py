"""The agents, the settings and the status: who may do what, and what needs somebody."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from change_executor.intake.proposer_tokens import Proposer, opened_by
from change_executor.journal.forget import forget_texts
from change_executor.journal.journal import read_proposal
from change_executor.lifecycle import Event
from change_executor.outcomes import Waiting
from change_executor.review import wording
from change_executor.review.agents_view import RATE_WINDOW, read_counts
from change_executor.switch import press_stop
from shared.tokens import parse_token
from tests.fakes.reader import FakeReader, a_read
from tests.servers.desk import PERSON, ReviewPage, fields_of, press, reading

if TYPE_CHECKING:
    from change_executor.journal.journal import Proposal


@pytest.fixture
def page(review_page: ReviewPage) -> ReviewPage:
    return review_page


@pytest.fixture
def reader(review_reader: FakeReader) -> FakeReader:
    return review_reader


def test_a_proposer_token_is_made_shown_once_and_revoked_here(page: ReviewPage) -> None:
    client = page.signed_in()
    form = client.get("/agents").text
    assert "agent-reader token create --agent NAME" in form
    assert "agent-reader token revoke ID" in form
    made = press(client, form, "/agents/tokens", agent="triage", queue="support", days="30")
    (text,) = re.findall(r"mwp_[a-z2-7]{8}_[a-z2-7]{32}_[0-9a-f]{8}", made.text)
    token = parse_token(text)
    assert token is not None
    with page.journal.reading() as connection:
        assert Proposer("triage", "support") == opened_by(connection, token, page.clock())
    again = client.get("/agents").text
    assert text not in again
    assert token.id in again
    assert 303 == press(client, again, f"/agents/tokens/{token.id}/revoke").status_code
    with page.journal.reading() as connection:
        assert "token_revoked" == opened_by(connection, token, page.clock())
    assert re.search(r"revoked <time[^>]*>just now", client.get("/agents").text)
    assert 422 == press(client, again, f"/agents/tokens/{token.id}/revoke").status_code
    events = client.get("/log?what=access").text
    assert wording.EVENTS_OF_THE_HOUSE["token:create"] in events
    assert f"<bdi>{PERSON}</bdi>" in events


def test_an_agent_is_revoked_whole_and_what_nobody_moved_is_taken_back(page: ReviewPage) -> None:
    client = page.signed_in()
    made = press(client, client.get("/agents").text, "/agents/tokens", agent="mailbot", queue="support", days="30")
    token = parse_token(re.findall(r"mwp_[a-z0-9_]+", made.text)[0])
    proposal = page.rows.proposal(reading())
    assert 303 == press(client, client.get("/agents/mailbot").text, "/agents/mailbot/revoke").status_code
    assert token is not None
    with page.journal.reading() as connection:
        assert not isinstance(opened_by(connection, token, page.clock()), Proposer)
        assert "pending" != read_proposal(connection, proposal.id).state
    text = client.get("/agents/mailbot").text
    assert "This agent is revoked" in text
    assert "/agents/mailbot/revoke" not in text


@pytest.mark.parametrize(
    "wrong",
    [
        {"agent": "Bad Name"},
        {"agent": ""},
        {"queue": "nowhere"},
        {"days": "0"},
        {"days": "-1"},
        {"days": "9999"},
        {"days": "x"},
    ],
)
def test_a_token_that_cannot_be_made_says_why(page: ReviewPage, wrong: dict[str, str]) -> None:
    client = page.signed_in()
    asked = {"agent": "triage", "queue": "support", "days": "30"} | wrong
    answer = press(client, client.get("/agents").text, "/agents/tokens", **asked)
    assert 422 == answer.status_code
    assert 'role="alert"' in answer.text
    assert "mwp_" not in answer.text


def test_an_agent_is_told_by_how_often_it_is_right_and_how_much_it_reads(page: ReviewPage, reader: FakeReader) -> None:
    for number in range(4):
        proposal = page.rows.proposal(reading(f"Number {number}"))
        event = Event.REJECT if number == 0 else Event.APPROVE
        page.rows.happen(proposal.id, event, decided_by=PERSON, decided_at=page.clock())
    reader.answers["/reads"] = {"reads": [a_read(page.clock(), "M" + "1" * 32)] * 21, "cursor": None}
    text = page.signed_in().get("/agents").text
    assert "75 %" in text
    assert "<dt>reads a day</dt><dd>3</dd>" in text
    assert "May read, says the reader." in text
    one = page.signed_in().get("/agents/mailbot").text
    assert 21 == one.count('<bdi class="file">Email/get</bdi>')
    assert "Number 3" in one
    assert 404 == page.signed_in().get("/agents/Not%20a%20name").status_code


def test_sessions_are_listed_and_ended_one_by_one_or_all_others(page: ReviewPage) -> None:
    mine, second, third = page.signed_in(), page.signed_in(), page.signed_in()
    form = mine.get("/settings").text
    assert (1, 2) == (form.count("This browser</em>"), form.count("Another browser"))
    names = re.findall(r'name="session" value="([0-9a-f]{16})"', form)
    csrf = fields_of(form, "/sign-out")["csrf"]
    assert 303 == mine.post("/settings/sessions/end", data={"csrf": csrf, "session": names[0]}).status_code
    assert [200, 303] == sorted(client.get("/").status_code for client in (second, third))
    assert 400 == mine.post("/settings/sessions/end", data={"csrf": csrf, "session": "x"}).status_code
    assert 303 == press(mine, form, "/settings/sessions/end-others").status_code
    assert [200, 303, 303] == [client.get("/").status_code for client in (mine, second, third)]


def test_a_person_ends_no_session_of_another_person(page: ReviewPage) -> None:
    page.rows.person("ines")
    mine, theirs = page.signed_in(), page.signed_in("ines")
    theirs.get("/settings")
    (began,) = (
        event
        for event in map(json.loads, page.signed_in().get("/log/export?person=ines").text.splitlines())
        if event["kind"] == "session:began"
    )
    digest = began["details"]["session"]
    csrf = fields_of(mine.get("/settings").text, "/sign-out")["csrf"]
    mine.post("/settings/sessions/end", data={"csrf": csrf, "session": digest})
    assert 200 == theirs.get("/").status_code


@pytest.mark.parametrize(
    ("what", "attribute", "first"), [("keys", "data-keys", "on"), ("notify", "data-notify", "off")]
)
def test_keys_and_notifications_are_switched_for_this_browser(
    page: ReviewPage, what: str, attribute: str, first: str
) -> None:
    client, other = page.signed_in(), page.signed_in()
    second = {"on": "off", "off": "on"}[first]
    assert f'{attribute}="{first}"' in client.get("/").text
    answer = press(client, client.get("/settings").text, f"/settings/{what}", switch=second)
    assert (303, True) == (answer.status_code, "httponly" in answer.headers["set-cookie"].lower())
    assert f'{attribute}="{second}"' in client.get("/").text
    assert f'{attribute}="{first}"' in other.get("/").text
    assert 400 == press(client, client.get("/settings").text, f"/settings/{what}", switch="nonsense").status_code


def test_stopping_and_resuming_from_the_settings_comes_back_there(page: ReviewPage) -> None:
    client = page.signed_in()
    for action in ("stop", "resume"):
        text = client.get("/settings").text
        answer = client.post(f"/{action}", data=fields_of(text, f"/{action}"))
        assert "/settings" == answer.headers["location"]


def test_the_status_is_calm_when_nothing_is_wrong(page: ReviewPage, reader: FakeReader) -> None:
    reader.answers["/status"] = {
        "accounts": [{"account": "shop", "fresh": True, "messages": 4711, "lastSyncAt": None, "error": None}]
    }
    text = page.signed_in().get("/status").text
    for part in ("Nothing needs you here", "executor at 127.0.0.1:993", "fresh, 4711 messages", "Support/Processed"):
        assert part in text


def test_the_status_tells_what_waits_where_nothing_is_wrong(page: ReviewPage, reader: FakeReader) -> None:
    reader.answers["/status"] = {"accounts": []}
    page.rows.proposal(reading())
    text = page.signed_in().get("/status").text
    assert "Nothing needs you here" not in text
    assert '<a href="/">1 proposal waits for a decision.</a>' in text


def test_a_move_that_was_taken_back_was_not_right(page: ReviewPage) -> None:
    moved = [page.rows.moved(page.rows.proposal(reading(f"Number {number}")).id) for number in range(3)]
    client = page.signed_in()
    assert "100 %" in client.get("/agents").text
    page.rows.happen(moved[0].id, Event.UNDO)
    assert "66 %" in client.get("/agents").text
    page.rows.happen(moved[0].id, Event.MOVED)
    for path in ("/agents", "/agents/mailbot"):
        assert "66 %" in client.get(path).text


def test_of_an_agent_that_proposed_very_much_the_newest_are_counted(page: ReviewPage) -> None:
    for number in range(3):
        page.rows.happen(page.rows.proposal(reading(f"Number {number}")).id, Event.REJECT)
        page.clock.pass_by(minutes=1)
    page.rows.proposal(reading("The newest"))
    with page.journal.reading() as connection:
        few = read_counts(connection, page.clock(), most=2)["mailbot"]
        every = read_counts(connection, page.clock())["mailbot"]
        late = read_counts(connection, page.clock() + RATE_WINDOW)
    assert (2, 1, True) == (few.proposed, few.waiting, few.more)
    assert (4, 1, False) == (every.proposed, every.waiting, every.more)
    assert {} == late


def test_a_queue_that_never_moved_anything_says_so_beside_one_that_did(page: ReviewPage, reader: FakeReader) -> None:
    reader.answers["/status"] = {"accounts": []}
    assert "none yet" in page.signed_in().get("/status").text
    page.rows.moved(page.rows.proposal(reading()).id)
    page.clock.pass_by(minutes=7)
    text = page.signed_in().get("/status").text
    assert "none yet" not in text
    assert re.search(r"Last move</dt><dd><time[^>]*>7 min", text)


def test_the_status_names_what_needs_somebody(page: ReviewPage, reader: FakeReader) -> None:
    waiting, doubtful, approved, _ = (page.rows.proposal(reading(), days=0.5 + number) for number in range(4))
    page.rows.wait(waiting.id, Waiting.LOGIN_REFUSED.value)
    for each in (doubtful, approved):
        page.rows.approve(each.id)
    page.rows.happen(doubtful.id, Event.CLAIM, Event.DOUBT)
    page.clock.pass_by(minutes=11)
    press_stop(page.journal, f"person:{PERSON}")
    reader.answers["/status"] = {
        "accounts": [{"account": "shop", "fresh": False, "messages": 1, "lastSyncAt": None, "error": "<b>oops</b>"}]
    }
    text = page.signed_in().get("/status").text
    for part in (
        "What needs somebody",
        "2 approvals were not carried out in time.",
        "1 proposal expires within a day.",
        wording.WAITING[Waiting.LOGIN_REFUSED].replace("'", "&#39;"),
        "Everything is stopped.",
        "&lt;b&gt;oops&lt;/b&gt;",
    ):
        assert part in text


NEW_SENDER = "A new sender: when this was proposed, no earlier message of this sender had been moved here."


def test_a_sender_is_new_until_a_message_of_theirs_was_moved_before_the_proposal_was_made(page: ReviewPage) -> None:
    rows, client = page.rows, page.signed_in()

    def is_new(proposal: Proposal) -> bool:
        return NEW_SENDER in client.get(f"/p/{proposal.id}").text

    bo, ada = (reading(sender=[f"{name} <{name}@example.org>"]) for name in ("bo", "ada"))
    first = rows.proposal(bo)
    assert not is_new(first), "nothing was moved yet, so that says nothing"
    rows.moved(first.id)
    page.clock.pass_by(minutes=1)
    rejected, batch = rows.proposal(ada), [rows.proposal(ada) for _ in range(3)]
    known = rows.proposal(bo)
    before = [is_new(each) for each in (*batch, known)]
    assert [True, True, True, False] == before
    rows.happen(rejected.id, Event.REJECT, decided_by=PERSON, decided_at=page.clock())
    moved = rows.moved(batch[0].id)
    assert before == [is_new(each) for each in (*batch, known)], "what is decided in a batch changes none of the rest"
    page.clock.pass_by(minutes=1)
    later = rows.proposal(ada)
    assert not is_new(later)
    brought_back = rows.proposal(ada, email_id=moved.email_id)
    assert is_new(brought_back), "the message that was moved tells nothing of itself"
    rows.happen(brought_back.id, Event.REJECT, decided_by=PERSON, decided_at=page.clock())
    rows.happen(moved.id, Event.UNDO, Event.MOVED, outcome_code="moved_back", outcome_at=page.clock())
    assert is_new(later), "taken back is not moved, and rejected never was"
    page.clock.pass_by(days=31)
    forget_texts(page.journal, timedelta(days=30))
    assert not is_new(rows.proposal(bo)), "whose mail was moved stays known when its text is forgotten"


def test_earlier_decisions_are_told_beside_the_evidence(page: ReviewPage) -> None:
    first = page.rows.proposal(reading("First of Ada", thread=["a" * 16, "b" * 16]))
    client = page.signed_in()
    page.rows.happen(first.id, Event.REJECT, decided_by=PERSON, decided_at=page.clock())
    page.clock.pass_by(hours=1)
    same = page.rows.proposal(reading("Second of Ada"))
    answer = page.rows.proposal(reading("Answer of Bo", sender=["Bo <bo@example.org>"], thread=["c" * 16, "b" * 16]))
    of_ada, of_bo = (client.get(f"/p/{each.id}").text for each in (same, answer))
    assert "About this sender" in of_ada
    assert "About this message or its thread" not in of_ada
    assert "About this message or its thread" in of_bo
    for text in (of_ada, of_bo):
        assert f'href="/p/{first.id}"' in text
    other = page.rows.proposal(reading("Another answer", sender=["Bo <bo@example.org>"], thread=["d" * 16, "b" * 16]))
    text = client.get(f"/p/{other.id}").text
    assert "1 other message of its thread waits for a decision too." in text

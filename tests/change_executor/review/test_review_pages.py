"""What the pages say, over HTTP: the queue, the item, refusals with a way out, and the headers of every answer."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from change_executor.evidence import doubtful_hosts, reading_message
from change_executor.evidence.reading import Reading, Verdict
from change_executor.lifecycle import TRANSITIONS, Event
from change_executor.outcomes import Outcome, Waiting
from change_executor.review import cautions, wording
from change_executor.review.error_page import Refusal
from change_executor.review.headers import CONTENT_SECURITY_POLICY
from change_executor.switch import press_stop, release_stop
from shared.message import Fact, LinkConcern
from shared.proposal import State
from tests.servers.desk import PASSWORD, PERSON, ReviewPage, fields_of, press, reading

MARKUP = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&"


@pytest.fixture
def page(review_page: ReviewPage) -> ReviewPage:
    return review_page


def test_the_empty_queue_says_what_to_do_next(page: ReviewPage) -> None:
    text = page.signed_in().get("/").text
    assert "Nothing waits for you." in text
    assert "change-executor token create --agent NAME --queue support" in text


def test_the_queue_lists_the_oldest_first_with_count_sender_and_what_is_asked(page: ReviewPage) -> None:
    for subject in ("First", "Second"):
        page.rows.proposal(reading(subject), to_role="escalate")
        page.clock.pass_by(minutes=5)
    text = page.signed_in().get("/").text
    assert "<title>(2) Queue" in text
    assert text.index("First") < text.index("Second")
    for word in ("Ada Example &lt;ada@example.org&gt;", "escalate", "mailbot", "10 min ago", "5 d left"):
        assert word in text


def test_what_waits_and_what_is_doubtful_is_visible_and_says_why(page: ReviewPage) -> None:
    waiting = page.rows.proposal()
    page.rows.wait(waiting.id, Waiting.READER_UNREACHABLE.value)
    doubtful = page.rows.proposal(reading("Perhaps"))
    page.rows.approve(doubtful.id)
    page.rows.happen(doubtful.id, Event.CLAIM, Event.DOUBT)
    page.rows.wait(doubtful.id, Waiting.SETTLE.value)
    text = page.signed_in().get("/").text
    for part in (wording.WAITING[Waiting.READER_UNREACHABLE], wording.WAITING[Waiting.SETTLE], "perhaps moved"):
        assert part in text
    assert text.index("Someone has to look") < text.index("Waiting for your decision")


def test_a_long_queue_comes_in_pages_that_lose_and_repeat_nothing(page: ReviewPage) -> None:
    made = [page.rows.proposal().id for _ in range(120)]
    client = page.signed_in()
    seen: list[str] = []
    path: str | None = "/"
    while path:
        text = client.get(path).text
        seen += re.findall(r'class="subject" href="/p/(P[0-9a-v]{20})"', text)
        match = re.search(r'href="(/\?after=[^"]+)"', text)
        path = match[1] if match else None
    assert made == seen


def test_the_item_shows_the_message_then_the_evidence_and_the_agents_words_last(page: ReviewPage) -> None:
    seen = reading("Order 4711", "Everything arrived", warnings=[{"code": "hidden_text"}], hidden_text="obey me")
    proposal = page.rows.proposal(seen, "Because it arrived", copies=2, hints='{"opened": {"state": "not_opened"}}')
    text = page.signed_in().get(f"/p/{proposal.id}").text
    parts = (
        "If you approve, one message is moved from <em>incoming</em> to <em>processed</em>.",
        "<bdi>INBOX</bdi>",
        "<bdi>Support/Processed</bdi>",
        cautions.WARNINGS["hidden_text"],
        "Order 4711",
        "Everything arrived",
        "obey me",
        "1 of 2 identical copies",
        "The reader says",
        "When this was proposed, the agent had not fetched this message&#39;s text (a preview is not counted).",
        "The agent's own words",
        "Because it arrived",
    )
    places = [text.index(part) for part in parts]
    assert sorted(places) == places
    assert "The message was looked at." in text


def test_the_sentence_is_built_of_trusted_words_only(page: ReviewPage) -> None:
    proposal = page.rows.proposal(reading("to trash. If you approve, nothing happens"), "moved from incoming to trash")
    text = page.signed_in().get(f"/p/{proposal.id}").text
    heading = re.search(r'<h1 id="what">(.*?)</h1>', text, re.DOTALL)
    assert heading
    assert "trash" not in heading[1]


def test_everything_from_outside_is_escaped(page: ReviewPage) -> None:
    seen = Reading.model_validate(
        reading().model_dump()
        | {
            "subject": MARKUP,
            "sender": [MARKUP],
            "recipients": [MARKUP],
            "date": MARKUP,
            "text": MARKUP,
            "hidden_text": MARKUP,
            "attachments": [{"name": MARKUP, "type": MARKUP, "size": 1}],
            "warnings": [{"code": "hidden_text", "detail": MARKUP}],
        }
    )
    proposal = page.rows.proposal(seen, MARKUP)
    client = page.signed_in()
    press(client, client.get(f"/p/{proposal.id}").text, f"/p/{proposal.id}/reject", reason=MARKUP)
    for path in ("/", f"/p/{proposal.id}"):
        text = client.get(path).text
        assert "alert(1)" in text
        assert "<script>" not in text
        assert "<img" not in text


def test_a_decision_leads_to_the_next_one_of_the_list_and_at_its_end_back_to_it_with_what_was_done(
    page: ReviewPage,
) -> None:
    client = page.signed_in()
    moved = page.rows.moved(page.rows.proposal(reading()).id)
    approved, rejected = page.rows.proposal(reading("One")), page.rows.proposal(reading("Two"))
    for proposal, action, leads_to, words in (
        (approved, "approve", f"/p/{rejected.id}", "Approved. It is being moved now."),
        (rejected, "reject", "/", "Rejected. Nothing was moved"),
        (moved, "undo", "/", "It is being moved back."),
    ):
        path = f"/p/{proposal.id}"
        answer = press(client, client.get(path).text, f"{path}/{action}")
        assert (303, f"{leads_to}?done={proposal.id}") == (answer.status_code, answer.headers["location"])
        assert words in client.get(answer.headers["location"]).text


def test_a_decision_about_what_changed_is_refused_and_shown_again(page: ReviewPage) -> None:
    client = page.signed_in()
    proposal = page.rows.proposal(reading())
    path = f"/p/{proposal.id}"
    before = client.get(path).text
    page.rows.look(proposal.id, reading(text="Something else entirely"))
    for action in ("approve", "reject"):
        answer = press(client, before, f"{path}/{action}")
        assert 409 == answer.status_code
        assert wording.REFUSED["changed"] in answer.text
        assert "Something else entirely" in answer.text
    assert fields_of(before, f"{path}/approve")["shown"] != fields_of(answer.text, f"{path}/approve")["shown"]
    assert 303 == press(client, answer.text, f"{path}/approve").status_code


@pytest.mark.parametrize("field", ["version", "shown"])
@pytest.mark.parametrize("value", ["", "0", "-1", "x", "9" * 30, "A" * 64])
def test_a_form_without_what_was_seen_is_refused(page: ReviewPage, field: str, value: str) -> None:
    client = page.signed_in()
    proposal = page.rows.proposal(reading())
    path = f"/p/{proposal.id}"
    answer = press(client, client.get(path).text, f"{path}/approve", **{field: value})
    assert 400 == answer.status_code
    assert 'href="/"' in answer.text


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"csrf=a&csrf=b", "application/x-www-form-urlencoded", 400),
        (b"csrf=%ff", "application/x-www-form-urlencoded", 400),
        (b"csrf=\xff", "application/x-www-form-urlencoded", 400),
        (b"&".join(b"a%d=1" % number for number in range(100)), "application/x-www-form-urlencoded", 400),
        (b'{"csrf": "a"}', "application/json", 400),
        (b"csrf=a", "text/plain", 400),
        (b"csrf=" + b"a" * 20_000, "application/x-www-form-urlencoded", 413),
    ],
)
def test_a_body_that_is_no_form_of_ours_is_refused(page: ReviewPage, body: bytes, kind: str, status: int) -> None:
    answer = page.signed_in().post("/stop", content=body, headers={"Content-Type": kind})
    assert status == answer.status_code
    assert "Mailwarrant" in answer.text


def test_a_reason_has_at_most_500_characters(page: ReviewPage) -> None:
    client = page.signed_in()
    proposal = page.rows.proposal(reading())
    path = f"/p/{proposal.id}"
    form = client.get(path).text
    assert 422 == press(client, form, f"{path}/reject", reason="x" * 501).status_code
    assert 303 == press(client, form, f"{path}/reject", reason="x\r\n" * 160 + "\x1b[31m").status_code
    assert "\x1b" not in client.get(path).text


def test_what_is_not_there_is_a_page_with_a_way_out(page: ReviewPage) -> None:
    client = page.signed_in()
    for path in (
        "/p/P" + "v" * 20,
        "/p/nonsense",
        "/nowhere",
        "/static/../app.py",
        "/static/app.py",
        "/docs",
        "/openapi.json",
    ):
        answer = client.get(path)
        assert 404 == answer.status_code, path
        assert 'href="/"' in answer.text
    assert 405 == client.put("/stop").status_code


def test_a_journal_that_cannot_be_used_is_a_503_and_nothing_is_done(page: ReviewPage, tmp_path: Path) -> None:
    client = page.signed_in()
    other = sqlite3.connect(tmp_path / "journal.db")
    other.execute("DROP TABLE sessions")
    other.close()
    answer = client.get("/")
    assert 503 == answer.status_code
    assert Refusal.JOURNAL_UNAVAILABLE.value.title in answer.text


def test_whoever_is_signed_out_is_led_back_to_where_they_were(page: ReviewPage) -> None:
    proposal = page.rows.proposal(reading())
    client = page.client()
    path = f"/p/{proposal.id}"
    assert f"/sign-in?next={path}" == client.get(path).headers["location"]
    assert f"/sign-in?next={path}" in client.post(f"{path}/approve").text
    form = client.get(f"/sign-in?next={path}").text
    answer = press(client, form, "/sign-in", name=PERSON, password=PASSWORD)
    assert path == answer.headers["location"]


@pytest.mark.parametrize(
    "target", ["https://evil.test/", "//evil.test/p/x", "/\\evil.test", "/p/../stop", "javascript:1"]
)
def test_signing_in_leads_nowhere_else(page: ReviewPage, target: str) -> None:
    answer = page.client().post("/sign-in", data={"name": PERSON, "password": PASSWORD, "next": target})
    assert "/" == answer.headers["location"]


def test_an_agents_words_are_cleaned_and_it_is_said_so(page: ReviewPage) -> None:
    proposal = page.rows.proposal(reading(), "fine\u202e\u200b \U000e0041")
    text = page.signed_in().get(f"/p/{proposal.id}").text
    assert "removed from it: 3" in text
    assert "\u202e" not in text


@pytest.mark.parametrize(
    "hints", ["[]", "1", "{", '{"opened": 1}', '{"opened": {"state": ["x"]}}', '{"copies": "<b>"}']
)
def test_hints_of_any_shape_leave_the_page_whole(page: ReviewPage, hints: str) -> None:
    proposal = page.rows.proposal(reading(), hints=hints)
    answer = page.signed_in().get(f"/p/{proposal.id}")
    assert (200, False) == (answer.status_code, "The reader says" in answer.text)


def test_the_stop_button_is_on_every_page_until_somebody_resumes(page: ReviewPage) -> None:
    client = page.signed_in()
    proposal = page.rows.proposal(reading())
    assert 303 == press(client, client.get("/").text, "/stop").status_code
    for path in ("/", f"/p/{proposal.id}", "/password"):
        assert "Everything is stopped." in client.get(path).text
    assert f"/p/{proposal.id}/approve" not in client.get(f"/p/{proposal.id}").text
    for path in (f"/p/{proposal.id}", f"/together?p={proposal.id}"):
        assert wording.REFUSED["stopped"] in client.get(path).text
    assert 303 == press(client, client.get("/").text, "/resume").status_code
    assert "Everything is stopped." not in client.get("/").text


def test_g9_a_stop_that_a_page_did_not_show_is_not_released_by_it(page: ReviewPage) -> None:
    client = page.signed_in()
    press_stop(page.journal, "operator")
    shown = client.get("/").text
    release_stop(page.journal, "person:bob")
    press_stop(page.journal, "person:bob")
    refused = press(client, shown, "/resume")
    assert (409, True) == (refused.status_code, "It was stopped again" in refused.text)
    assert 400 == press(client, shown, "/resume", seen="x").status_code
    assert "Everything is stopped." in client.get("/").text
    assert 303 == press(client, client.get("/settings").text, "/resume").status_code
    assert "Everything is stopped." not in client.get("/").text
    # Once more changes nothing.
    assert 303 == press(client, shown, "/resume").status_code


def test_an_agent_that_is_not_separated_is_said_to_be_so(tmp_path: Path) -> None:
    page = ReviewPage(tmp_path, separated=False)
    try:
        page.rows.person()
        assert "Agent not separated." in page.signed_in().get("/").text
    finally:
        page.close()


def test_every_answer_carries_the_headers(page: ReviewPage) -> None:
    client = page.signed_in()
    answers = [
        client.get("/"),
        client.get("/nowhere"),
        client.get("/static/page.js"),
        client.post("/stop"),
        page.client(Host="evil.test").get("/"),
        page.client().get("/"),
    ]
    for answer in answers:
        assert CONTENT_SECURITY_POLICY == answer.headers["content-security-policy"]
        assert "nosniff" == answer.headers["x-content-type-options"]
        assert "no-referrer" == answer.headers["referrer-policy"]
        assert "no-store" == answer.headers["cache-control"]
        assert "DENY" == answer.headers["x-frame-options"]


def test_no_page_has_inline_code_or_anything_from_elsewhere(page: ReviewPage) -> None:
    client = page.signed_in()
    proposal = page.rows.proposal(reading())
    for path in ("/", f"/p/{proposal.id}", "/password", "/sign-in", "/link", "/nowhere"):
        text = client.get(path).text
        assert not re.search(
            r"<style|\sstyle=|\son[a-z]+=|https?://|<script(?! type=\"module\" src=\"/static/page.js\">)", text
        )


@pytest.mark.parametrize("verdict", list(Verdict))
def test_what_the_mail_server_verified_is_shown_with_its_source(page: ReviewPage, verdict: Verdict) -> None:
    said = {"verdict": verdict, "source": "mx.example.org", "results": "dmarc=none"}
    proposal = page.rows.proposal(reading(authentication=said))
    text = page.signed_in().get(f"/p/{proposal.id}").text
    assert cautions.VERDICTS[verdict].replace("'", "&#39;") in text
    assert "mx.example.org: dmarc=none" in text


def test_without_a_configured_mail_server_nothing_is_called_verified(page: ReviewPage) -> None:
    proposal = page.rows.proposal(reading())
    assert "Verified" not in page.signed_in().get(f"/p/{proposal.id}").text


def test_each_code_has_its_sentence() -> None:
    assert set(Waiting) == set(wording.WAITING)
    assert set(Outcome) == set(wording.OUTCOMES)
    assert set(State) == set(wording.STATES)
    assert {f"proposal:{event.value}" for _, event in TRANSITIONS} <= set(wording.EVENTS)
    child = Path(reading_message.__file__).read_text(encoding="utf-8")
    written = set(re.findall(r'Caution\(code="([a-z_]+)"', child))
    of_tables = {*reading_message.FACT_CODES.values(), *doubtful_hosts.CONCERN_CODES.values()}
    assert written | of_tables | {"html_only", "hidden_text", "hidden_in_html"} == set(cautions.WARNINGS)
    assert set(Fact) == set(reading_message.FACT_CODES)
    assert set(LinkConcern) == set(doubtful_hosts.CONCERN_CODES)
    assert set(Verdict) == set(cautions.VERDICTS)
    assert "text_from_html" in child
    assert "Code: brand_new." == wording.sentence(wording.WAITING, "brand_new")


def test_every_state_has_its_page(page: ReviewPage) -> None:
    paths: dict[State, list[Event]] = {State.PENDING: []}
    while True:
        found = {
            following: [*paths[state], event] for (state, event), following in TRANSITIONS.items() if state in paths
        }
        fresh = {state: events for state, events in found.items() if state not in paths}
        if not fresh:
            break
        paths |= fresh
    assert set(State) == set(paths)
    client = page.signed_in()
    for state, events in paths.items():
        proposal = page.rows.proposal(reading())
        for event in events:
            values = {"decided_by": PERSON, "decided_at": page.clock()} if event is Event.APPROVE else {}
            page.rows.happen(proposal.id, event, **values)
        answer = client.get(f"/p/{proposal.id}")
        assert 200 == answer.status_code
        assert wording.STATES[state] in answer.text.lower()
    assert 200 == client.get("/").status_code

"""Finding what waits: searching, filtering and grouping lose nothing, repeat nothing, and take text as text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from change_executor.lifecycle import Event
from change_executor.outcomes import Waiting
from change_executor.review.searching import Filters, filters_from
from shared.proposal import State
from tests.servers.desk import PERSON, ReviewPage, reading

if TYPE_CHECKING:
    import httpx


@pytest.fixture
def page(review_page: ReviewPage) -> ReviewPage:
    return review_page


def found(client: httpx.Client, path: str) -> list[str]:
    """The ids of the lines of a page, in their order."""
    answer = client.get(path)
    assert 200 == answer.status_code
    return re.findall(r'class="subject" href="/p/(P[0-9a-v]{20})[?"]', answer.text)


def walked(client: httpx.Client, path: str | None) -> list[str]:
    """The ids of all pages from this one on."""
    ids: list[str] = []
    while path:
        text = client.get(path).text
        ids += re.findall(r'class="subject" href="/p/(P[0-9a-v]{20})[?"]', text)
        match = re.search(r'href="(/\?[^"]*after=[^"]+)"', text)
        path = match[1].replace("&amp;", "&") if match else None
    return ids


@pytest.mark.parametrize(
    ("query", "finds"),
    [
        ("q=TEAPOT", True),
        ("q=tea+arrived", True),
        ("q=teapot+missing", False),
        ("q=für+CHEFIN", True),
        ("q=ÜBER", True),
        ("q=急須", True),
        ("q=STRASSE", True),
        ('q=said+"yes"', True),
        ("q=back\\slash", True),
        ("q=because+of+it", True),
        ("q=ada@example.org", True),
        # the names of a reading's fields are no words of the message
        ("q=readable", False),
        ("q=attachments_left_out", False),
        ("q=%25", False),
        ("q=_", False),
        ("q=' OR 1=1 --", False),
        ("sender=ADA", True),
        ("sender=teapot", False),
        ("agent=mailbot", True),
        ("agent=mail", False),
        ("queue=support", True),
        ("queue=billing", False),
        ("to=processed", True),
        ("to=escalate", False),
        ("state=pending", True),
        ("state=nonsense", True),
        ("group=nonsense&q=", True),
        ("q=   ", True),
    ],
)
def test_what_is_asked_for_is_found_and_nothing_else(page: ReviewPage, query: str, finds: bool) -> None:
    text = 'The teapot arrived über Nacht, in der Straße, für die Chefin: 急須. She said "yes" and back\\slash.'
    proposal = page.rows.proposal(reading("About tea", text), "because of it")
    assert ([proposal.id] if finds else []) == found(page.signed_in(), f"/?{query}")


def test_an_id_finds_its_proposal_and_its_message(page: ReviewPage) -> None:
    proposal = page.rows.proposal(reading())
    page.rows.proposal(reading())
    client = page.signed_in()
    assert [proposal.id] == found(client, f"/?q={proposal.id}") == found(client, f"/?q={proposal.email_id}")


def test_a_search_finds_what_was_decided_too_and_a_state_shows_that_alone(page: ReviewPage) -> None:
    waiting, rejected = page.rows.proposal(reading("Tea one")), page.rows.proposal(reading("Tea two"))
    other = page.rows.proposal(reading("Coffee"))
    for each in (rejected, other):
        page.rows.happen(each.id, Event.REJECT, decided_by=PERSON, decided_at=page.clock())
    client = page.signed_in()
    assert [waiting.id, rejected.id] == found(client, "/?q=tea")
    assert [other.id, rejected.id] == sorted(found(client, "/?state=rejected"), reverse=True)
    assert [rejected.id] == found(client, "/?state=rejected&q=tea")
    assert "None is in this state." in client.get("/?state=stale").text


@pytest.mark.parametrize("group", ["destination", "sender"])
def test_groups_hold_the_oldest_first_and_pages_of_them_lose_and_repeat_nothing(page: ReviewPage, group: str) -> None:
    made = []
    for number in range(120):
        sender = f"Person {number % 3} <p{number % 3}@example.org>"
        seen = None if number % 7 == 0 else reading(f"Subject {number}", sender=[sender])
        made.append(page.rows.proposal(seen, to_role=("processed", "escalate")[number % 2]))
        page.clock.pass_by(seconds=1)
    client = page.signed_in()
    ids = walked(client, f"/?group={group}")
    assert sorted(proposal.id for proposal in made) == sorted(ids)
    assert len(ids) == len(set(ids))
    headings = re.findall(r'<h2 class="group">(.*?)</h2>', client.get(f"/?group={group}").text)
    assert headings == sorted(headings, key=lambda words: ("no sender" not in words, words))
    by_id = {proposal.id: proposal for proposal in made}
    for role in ("processed", "escalate"):
        of_role = [proposal_id for proposal_id in ids if by_id[proposal_id].to_role == role]
        if group == "destination":
            assert sorted(of_role) == of_role


def test_a_filtered_queue_comes_in_pages_that_keep_the_filter(page: ReviewPage) -> None:
    made = [
        page.rows.proposal(reading(f"Tea {number}"), to_role=("processed", "escalate")[number % 2])
        for number in range(130)
    ]
    wanted = [proposal.id for proposal in made if proposal.to_role == "escalate"]
    assert wanted == walked(page.signed_in(), "/?to=escalate&q=tea")


def test_what_waits_for_something_says_so_in_the_list_and_what_failed_is_marked(page: ReviewPage) -> None:
    waiting, failed = page.rows.proposal(), page.rows.proposal(reading("Failed"))
    page.rows.wait(waiting.id, Waiting.READER_UNREACHABLE.value)
    page.rows.approve(failed.id)
    page.rows.happen(failed.id, Event.CLAIM, Event.REFUSED, outcome_code="server_refused", outcome_at=page.clock())
    client = page.signed_in()
    assert "nobody knows where to look" in client.get("/").text
    assert 'class="state alarm">not moved: refused by the mail server' in client.get("/").text
    assert [failed.id] == found(client, "/?state=failed")


def test_an_empty_search_tells_how_many_wait_in_all(page: ReviewPage) -> None:
    page.rows.proposal(reading())
    text = page.signed_in().get("/?q=nothing-like-it").text
    assert "Nothing that waits is like this." in text
    assert "1 proposal waits in all." in text


def test_single_lines_are_told_as_values_and_only_to_a_session(page: ReviewPage) -> None:
    one, two = page.rows.proposal(reading("<b>Bold</b>"), to_role="escalate"), page.rows.proposal()
    page.rows.happen(two.id, Event.REJECT)
    client = page.signed_in()
    rows = client.get(f"/rows?ids={one.id},{two.id},nonsense,P{'v' * 20}").json()
    assert [(one.id, True, "<b>Bold</b>"), (two.id, False, "")] == [
        (row["id"], row["pending"], row["texts"]["subject"]) for row in rows
    ]
    assert [one.id] == [row["id"] for row in client.get(f"/rows?ids={one.id},{two.id}&to=escalate").json()]
    assert [] == client.get("/rows").json()
    assert 303 == page.client().get(f"/rows?ids={one.id}").status_code


@pytest.mark.parametrize(
    ("count", "label"), [("0", None), ("7", "7"), ("42", "42"), ("100", "99+"), ("nonsense", None), ("-1", None)]
)
def test_the_icon_carries_the_count(page: ReviewPage, count: str, label: str | None) -> None:
    answer = page.client().get(f"/icon/{count}")
    assert "image/svg+xml" == answer.headers["content-type"]
    assert ([] if label is None else [label]) == re.findall(r"<text[^>]*>([^<]*)</text>", answer.text)


def test_the_count_stands_in_the_title_of_the_queue_and_in_the_icon_of_every_page(
    page: ReviewPage,
) -> None:
    page.rows.proposal(reading())
    client = page.signed_in()
    assert "<title>(1) Queue" in client.get("/").text
    for path in ("/", "/log", "/agents", "/status", "/settings"):
        assert 'href="/icon/1"' in client.get(path).text


def test_a_moved_message_is_taken_back_from_the_list_with_what_was_shown(page: ReviewPage) -> None:
    moved = page.rows.moved(page.rows.proposal(reading("Moved")).id)
    client = page.signed_in()
    text = client.get("/").text
    form = re.search(rf'action="/p/{moved.id}/undo"[^>]*>(.*?)</form>', text, re.DOTALL)
    assert form
    fields = dict(re.findall(r'name="([a-z]+)" value="([^"]*)"', form[1]))
    assert 303 == client.post(f"/p/{moved.id}/undo", data=fields).status_code
    # The second press of the same form finds another version.
    assert 409 == client.post(f"/p/{moved.id}/undo", data=fields).status_code


def test_filters_are_bounded_and_their_query_asks_for_the_same() -> None:
    filters = filters_from({"q": "x" * 500, "state": "pending", "group": "sender", "agent": " a "})
    assert (100, State.PENDING, "a") == (len(filters.text), filters.state, filters.agent)
    assert "" == Filters().query()
    assert "?q=a%26b&to=c" == Filters(text="a&b", to_role="c").query()


def test_an_agent_that_makes_up_ids_does_not_fill_what_ended(page: ReviewPage) -> None:
    moved = page.rows.proposal(reading("Refund"))
    page.rows.moved(moved.id)
    seen = page.rows.proposal(reading("Gone since"))
    page.rows.happen(seen.id, Event.ABSENT, outcome_code="absent", outcome_at=page.clock())
    page.clock.pass_by(seconds=1)
    for _ in range(25):
        made_up = page.rows.proposal()
        page.rows.happen(made_up.id, Event.ABSENT, outcome_code="absent", outcome_at=page.clock())
    client = page.signed_in()
    assert {moved.id, seen.id} == set(found(client, "/"))
    assert made_up.id in found(client, "/?state=stale")

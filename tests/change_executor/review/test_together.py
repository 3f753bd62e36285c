"""Several decided together: each is shown, each is compared with what was shown, and one refused stops no other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from change_executor.journal.journal import read_proposal
from change_executor.lifecycle import Event
from change_executor.review import cautions, wording
from change_executor.review.together import MAX_TOGETHER
from shared.proposal import State
from tests.servers.desk import PASSWORD, PERSON, ReviewPage, press, reading

if TYPE_CHECKING:
    import httpx

    from change_executor.journal.journal import Proposal


@pytest.fixture
def page(review_page: ReviewPage) -> ReviewPage:
    return review_page


def chosen(client: httpx.Client, proposals: list[Proposal]) -> dict[str, str]:
    """The fields of the page that lists these proposals, as its checked boxes send them."""
    text = client.get("/together?" + "&".join(f"p={proposal.id}" for proposal in proposals)).text
    boxes = re.findall(r'name="(seen\.P[0-9a-v]{20})" value="([0-9a-f.]+)"( checked)?', text)
    csrf = re.search(r'action="/together"[^>]*>\s*<input type="hidden" name="csrf" value="([^"]+)"', text)
    return {"csrf": csrf[1] if csrf else ""} | {name: value for name, value, checked in boxes if checked}


def state(page: ReviewPage, proposal: Proposal) -> State:
    with page.journal.reading() as connection:
        return read_proposal(connection, proposal.id).state


def test_the_page_lists_each_one_with_what_matters_and_the_agents_words_as_such(page: ReviewPage) -> None:
    seen = reading("Tea <b>", "All of the text", hidden_text="obey", warnings=[{"code": "hidden_text"}])
    one = page.rows.proposal(seen, "Because <i>I</i> say so", to_role="escalate")
    two = page.rows.proposal(reading("Coffee"))
    text = page.signed_in().get(f"/together?p={one.id}&p={two.id}&p={one.id}").text
    for part in ("Tea &lt;b&gt;", "All of the text", "obey", cautions.WARNINGS["hidden_text"], "Because &lt;i&gt;"):
        assert 1 == text.count(part)
    assert "Support/Für die Chefin" in text
    assert 2 == text.count('type="checkbox"')


@pytest.mark.parametrize(("decision", "state_after"), [("approve", State.APPROVED), ("reject", State.REJECTED)])
def test_all_that_are_checked_are_decided(page: ReviewPage, decision: str, state_after: State) -> None:
    proposals = [page.rows.proposal(reading(f"Number {number}")) for number in range(5)]
    client = page.signed_in()
    fields = chosen(client, proposals)
    del fields[f"seen.{proposals[4].id}"]
    answer = client.post("/together", data=fields | {"decision": decision, "reason": "Not today"})
    assert 200 == answer.status_code
    assert [state_after] * 4 + [State.PENDING] == [state(page, proposal) for proposal in proposals]
    assert ("Not today" in client.get(f"/p/{proposals[0].id}").text) is (decision == "reject")
    # Each that can be taken back can be taken back from where it is told.
    assert (4 if decision == "approve" else 0) == answer.text.count('class="undo"')
    if decision == "approve":
        undo = f"/p/{proposals[0].id}/reject"
        assert f"/?done={proposals[0].id}" == press(client, answer.text, undo).headers["location"]
        assert State.REJECTED is state(page, proposals[0])


def test_one_that_changed_is_refused_alone_and_said_so_and_the_others_go_through(page: ReviewPage) -> None:
    proposals = [page.rows.proposal(reading(f"Number {number}")) for number in range(4)]
    client = page.signed_in()
    fields = chosen(client, proposals)
    page.rows.look(proposals[1].id, reading("Replaced"))
    page.rows.happen(proposals[2].id, Event.WITHDRAW)
    answer = client.post("/together", data=fields | {"decision": "approve"})
    assert 409 == answer.status_code
    assert 2 == answer.text.count(wording.REFUSED["changed"])
    assert [State.APPROVED, State.PENDING, State.WITHDRAWN, State.APPROVED] == [
        state(page, proposal) for proposal in proposals
    ]
    # Sent once more, it decides nothing any more.
    assert 409 == client.post("/together", data=fields | {"decision": "reject"}).status_code
    assert State.APPROVED is state(page, proposals[0])


def test_a_digest_that_is_not_the_one_shown_decides_nothing(page: ReviewPage) -> None:
    proposal = page.rows.proposal(reading())
    client = page.signed_in()
    fields = chosen(client, [proposal])
    fields[f"seen.{proposal.id}"] = fields[f"seen.{proposal.id}"].partition(".")[0] + "." + "0" * 64
    assert 409 == client.post("/together", data=fields | {"decision": "approve"}).status_code
    assert State.PENDING is state(page, proposal)


@pytest.mark.parametrize(
    "more",
    [
        {"decision": "nonsense"},
        {},
        {"decision": "approve", "seen.P" + "0" * 20: "1"},
        {"decision": "approve", "seen.P" + "0" * 20: "x.y"},
    ],
)
def test_a_form_that_is_none_of_ours_decides_nothing(page: ReviewPage, more: dict[str, str]) -> None:
    proposal = page.rows.proposal(reading())
    client = page.signed_in()
    assert 400 == client.post("/together", data=chosen(client, [proposal]) | more).status_code
    assert State.PENDING is state(page, proposal)


def test_what_the_executor_has_not_seen_is_not_checked_and_cannot_be_approved(page: ReviewPage) -> None:
    blind, seen = page.rows.proposal(), page.rows.proposal(reading())
    client = page.signed_in()
    fields = chosen(client, [blind, seen])
    assert [f"seen.{seen.id}"] == [name for name in fields if name.startswith("seen.")]
    assert wording.REFUSED["no_evidence"] in client.get(f"/together?p={blind.id}").text


def test_at_most_fifty_go_together(page: ReviewPage) -> None:
    proposals = [page.rows.proposal(reading()) for _ in range(MAX_TOGETHER + 3)]
    client = page.signed_in()
    fields = chosen(client, proposals)
    assert MAX_TOGETHER == len(fields) - 1
    assert (
        "3 of those you selected are left out"
        in client.get("/together?" + "&".join(f"p={proposal.id}" for proposal in proposals)).text
    )
    assert 200 == client.post("/together", data=fields | {"decision": "approve", "reason": ""}).status_code
    more = fields | {f"seen.P{number:020d}": "1." + "0" * 64 for number in range(900, 905)}
    assert 400 == client.post("/together", data=more | {"decision": "approve"}).status_code


def test_nothing_selected_says_what_to_do(page: ReviewPage) -> None:
    decided = page.rows.proposal(reading())
    page.rows.happen(decided.id, Event.REJECT, decided_by=PERSON, decided_at=page.clock())
    client = page.signed_in()
    for query in ("", "?p=nonsense", f"?p=P{'v' * 20}", f"?p={decided.id}"):
        assert "Nothing is selected that waits." in client.get(f"/together{query}").text


@pytest.mark.parametrize(
    ("target", "leads_to"),
    [
        ("/together?p=P" + "0" * 20, "/together?p=P" + "0" * 20),
        ("/together?p=P" + "0" * 20 + "&p=P" + "1" * 20, "/together?p=P" + "0" * 20 + "&p=P" + "1" * 20),
        ("/together?p=P" + "0" * 20 + "&next=//evil.test", "/"),
        ("/together?p=" + "&p=".join(["P" + "0" * 20] * 51), "/"),
        ("/together", "/"),
        ("/log", "/log"),
        ("/logout", "/"),
        ("/log/../stop", "/log"),
        ("//evil.test/log", "/"),
    ],
)
def test_signing_in_leads_back_to_pages_of_ours_alone(page: ReviewPage, target: str, leads_to: str) -> None:
    answer = page.client().post("/sign-in", data={"name": PERSON, "password": PASSWORD, "next": target})
    assert leads_to == answer.headers["location"]


def test_only_what_nothing_is_said_of_is_checked_from_the_start_and_what_has_warnings_lies_open(
    page: ReviewPage,
) -> None:
    page.rows.moved(page.rows.proposal(reading()).id)
    page.clock.pass_by(minutes=1)
    warned = page.rows.proposal(reading("Warned", warnings=[{"code": "hidden_text"}]))
    soft = page.rows.proposal(reading("Soft", warnings=[{"code": "list_mail"}]))
    calm = page.rows.proposal(reading("Calm"))
    stranger = page.rows.proposal(reading("Stranger", sender=["eve@example.net"]))
    client = page.signed_in()
    text = client.get("/together?" + "&".join(f"p={each.id}" for each in (warned, soft, calm, stranger))).text
    boxes = dict(re.findall(r'name="seen\.(P[0-9a-v]{20})"[^>]*?( checked)?>', text))
    assert {calm.id: " checked", warned.id: "", soft.id: "", stranger.id: ""} == boxes
    # What was checked for them stands apart from what they have to read.
    places = [text.index(part) for part in ("checked for you", "Calm", "Read these first", "Warned", "Soft")]
    assert sorted(places) == places
    assert "A new sender" in text
    assert 1 == text.count("<details open>")
    assert "1 warning</a> beside the message" in client.get(f"/p/{warned.id}").text

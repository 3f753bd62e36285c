"""After a decision a person stands at the next one of the list that they came from, with the decision in reach."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from change_executor.journal.journal import read_proposal
from shared.proposal import State
from tests.servers.desk import ReviewPage, fields_of, press, reading

if TYPE_CHECKING:
    import httpx

    from change_executor.journal.journal import Proposal


def state(page: ReviewPage, proposal: Proposal) -> State:
    with page.journal.reading() as connection:
        return read_proposal(connection, proposal.id).state


def decided(client: httpx.Client, path: str, action: str = "reject", **fields: str) -> str:
    """Where a decision on this page leads."""
    proposal_path = path.partition("?")[0]
    answer = press(client, client.get(path).text, f"{proposal_path}/{action}", **fields)
    assert 303 == answer.status_code, answer.text
    return str(answer.headers["location"])


def links(client: httpx.Client, path: str) -> list[str]:
    return re.findall(r'class="subject" href="([^"]+)"', client.get(path).text.replace("&amp;", "&"))


@pytest.mark.parametrize(
    ("asked", "order"),
    [
        ("", "abcde"),
        ("?to=escalate", "bd"),
        ("?group=sender", "adbce"),
        ("?group=destination", "bdace"),
        ("?sender=bo", "bce"),
        ("?q=letter&state=pending", "abcde"),
    ],
)
def test_the_next_one_is_that_of_the_list_in_its_order_and_at_the_end_comes_the_list(
    review_page: ReviewPage, asked: str, order: str
) -> None:
    client, made = review_page.signed_in(), {}
    for name, sender, to_role in zip("abcde", ("ada", "bo", "bo", "ada", "bo"), ("p", "e", "p", "e", "p"), strict=True):
        seen = reading(f"Letter {name}", sender=[f"{sender}@example.org"])
        made[name] = review_page.rows.proposal(seen, to_role={"p": "processed", "e": "escalate"}[to_role])
        review_page.clock.pass_by(minutes=1)
    # One that was not looked at can only be rejected: it is in the list, and nobody is led to it.
    review_page.rows.proposal(to_role="escalate")
    review_page.clock.pass_by(minutes=1)
    names = {proposal.id: name for name, proposal in made.items()}
    path, walked = next(link for link in links(client, f"/{asked}") if link[3:24] in names), ""
    while (proposal_id := path[3:24]) in names and path.startswith("/p/"):
        walked += names[proposal_id]
        path = decided(client, path)
    assert order == walked
    assert path.startswith("/?")
    assert "Rejected. Nothing was moved" in client.get(path).text
    for part in asked.removeprefix("?").split("&"):
        assert part in path


def test_what_was_decided_is_told_above_the_next_one_and_taken_back_from_there(review_page: ReviewPage) -> None:
    client = review_page.signed_in()
    first, second = (review_page.rows.proposal(reading(subject)) for subject in ("One <b>", "Two"))
    landed = decided(client, f"/p/{first.id}?to=processed", "approve")
    assert f"/p/{second.id}?to=processed&done={first.id}" == landed
    text = client.get(landed).text
    assert "Approved. It is being moved now." in text
    assert "One &lt;b&gt;" in text
    assert "Below is the next one; 1 waits." in text
    # What has not begun is rejected after all; the person stays where they are.
    assert f"/p/{second.id}?to=processed&done={first.id}" == decided_above(client, text, f"/p/{first.id}/reject")
    assert (State.REJECTED, State.PENDING) == (state(review_page, first), state(review_page, second))
    # A rejection is final; the page says what can still be done.
    text = client.get(landed).text
    assert "Rejected. Nothing was moved; the agent may propose it again." in text
    assert re.search(r'action="/p/[^"]+/undo" class="undo" hidden', text)
    assert "the agent can propose it again, and you decide anew" in client.get(f"/p/{first.id}").text


def test_what_was_moved_meanwhile_is_undone_from_above_the_next_one(review_page: ReviewPage) -> None:
    client = review_page.signed_in()
    first, second = (review_page.rows.proposal(reading(each), source=b"Subject: x\r\n\r\n") for each in ("One", "Two"))
    landed = decided(client, f"/p/{first.id}", "approve")
    before = client.get(landed).text
    # However the message is looked at, what was decided stays told.
    assert f'href="/p/{second.id}?view=source&amp;done={first.id}"' in before
    review_page.rows.carry_out(first.id)
    # The button of a page that is older than the move takes nothing back, and shows how to.
    fields = fields_of(before, f"/p/{first.id}/reject")
    answer = client.post(f"/p/{first.id}/reject", data=fields)
    assert 409 == answer.status_code
    assert "Undo the move" in answer.text
    assert f"/p/{second.id}?done={first.id}" == decided_above(client, client.get(landed).text, f"/p/{first.id}/undo")
    assert (State.UNDOING, State.PENDING) == (state(review_page, first), state(review_page, second))


def decided_above(client: httpx.Client, text: str, action: str) -> str:
    answer = press(client, text, action)
    assert 303 == answer.status_code, answer.text
    return str(answer.headers["location"])


def test_a_form_leads_to_pages_of_ours_alone(review_page: ReviewPage) -> None:
    client = review_page.signed_in()
    for fields in (
        {"list": "//evil.test/?q=x"},
        {"list": "?q=" + "%0d%0aSet-Cookie:+x" * 9},
        {"list": "?state=nonsense&group=nonsense&done=//evil.test"},
        {"list": "x" * 5000, "beside": "//evil.test", "then": "//evil.test"},
        {"beside": "../../settings"},
    ):
        proposal = review_page.rows.proposal(reading())
        landed = decided(client, f"/p/{proposal.id}", **{"then": "", **fields})
        assert re.fullmatch(rf"/\?(q=[\w%+.-]+&)?done={proposal.id}", landed), landed
        assert 200 == client.get(landed).status_code


def test_a_decision_that_does_not_exist_is_told_by_no_page(review_page: ReviewPage) -> None:
    client = review_page.signed_in()
    proposal = review_page.rows.proposal(reading())
    for done in ("nonsense", "P" + "v" * 20, "<b>"):
        assert "data-done" not in client.get(f"/p/{proposal.id}", params={"done": done}).text

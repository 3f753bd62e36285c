"""A person's flows in Chromium: without scripts, on a phone, two at once, and a session that ends."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from change_executor.review import wording
from shared.proposal import State
from tests.change_executor.review.steps import line, state
from tests.change_executor.review.test_message_views import HTML
from tests.change_executor.review.test_review_browser import Attacker, attacker, sign_in_by_link
from tests.change_executor.review.tricks import tricks
from tests.servers.browser import NewPage, console_errors
from tests.servers.desk import PASSWORD, PERSON, ReviewPage, reading

__all__ = ["attacker"]

TABLE = (
    "Item                          Qty      Price      Total\nTea, green, first flush         2      12.50      25.00\n"
)


@pytest.fixture
def signed_in(review_page: ReviewPage, browser_page: Page) -> Page:
    sign_in_by_link(review_page, browser_page)
    return browser_page


def test_two_people_decide_the_same_item_and_the_second_is_told(
    review_page: ReviewPage, signed_in: Page, new_browser_page: NewPage
) -> None:
    review_page.rows.person("ines")
    proposal = review_page.rows.proposal(reading("Contested"))
    pages = {PERSON: signed_in, "ines": new_browser_page()}
    sign_in_by_link(review_page, pages["ines"], "ines")
    for page in pages.values():
        page.goto(f"{review_page.url}/p/{proposal.id}")
    pages["ines"].get_by_role("button", name="Reject").click()
    expect(pages["ines"].get_by_text("Rejected. Nothing was moved")).to_be_visible()
    page = pages[PERSON]
    expect(page.get_by_text("This proposal changed while you look at it.")).to_be_visible()
    page.get_by_role("button", name="Approve the move").click()
    expect(page.get_by_role("alert")).to_have_text(wording.REFUSED["changed"])
    expect(page.get_by_text("Decided by ines")).to_be_visible()
    assert State.REJECTED is state(review_page, proposal)


def test_a_session_that_ends_while_several_are_decided_loses_nothing(review_page: ReviewPage, signed_in: Page) -> None:
    page = signed_in
    proposals = [review_page.rows.proposal(reading(f"Number {number}")) for number in range(2)]
    page.goto(f"{review_page.url}/together?p={proposals[0].id}&p={proposals[1].id}")
    page.get_by_label("Reason").fill("She <b>still</b> waits")
    review_page.clock.pass_by(hours=9)
    page.get_by_role("button", name="Reject all that are checked").click()
    expect(page.get_by_text("Nothing was decided.")).to_be_visible()
    expect(page.get_by_label("What you wrote")).to_have_value("She <b>still</b> waits")
    page.get_by_role("link", name="Sign in").click()
    page.get_by_label("Name").fill(PERSON)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Decide 2 together")).to_be_visible()
    expect(page.get_by_role("checkbox", name="Number 1")).to_be_checked()
    assert {State.PENDING} == {state(review_page, proposal) for proposal in proposals}


def test_without_javascript_everything_is_found_selected_decided_and_taken_back(
    review_page: ReviewPage, new_browser_page: NewPage
) -> None:
    page = new_browser_page(java_script_enabled=False)
    proposals = [review_page.rows.proposal(reading(f"Tea {number}", has_html=True), source=HTML) for number in range(3)]
    review_page.rows.proposal(reading("Coffee"))
    moved = review_page.rows.moved(review_page.rows.proposal(reading("Moved")).id)
    page.goto(f"{review_page.url}/link")
    page.get_by_label("Code").fill(review_page.rows.link())
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("searchbox").fill("tea")
    page.get_by_role("button", name="Search").click()
    expect(page.locator(".row")).to_have_count(3)
    for number in (0, 1):
        line(page, f"Tea {number}").get_by_role("checkbox").check()
    page.get_by_role("button", name="Decide the selected").click()
    page.get_by_role("button", name="Approve all that are checked").click()
    expect(page.get_by_role("heading", name="Decided 2")).to_be_visible()
    page.goto(f"{review_page.url}/p/{proposals[2].id}?view=html")
    expect(page.frame_locator("iframe").get_by_role("heading", name="Hello")).to_be_visible()
    page.get_by_role("link", name="Source").click()
    expect(page.get_by_label("Source of the message")).to_be_visible()
    page.get_by_role("link", name="Queue", exact=True).click()
    line(page, "Moved").get_by_role("button", name="Undo").click()
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("button", name="Turn the keys off").click()
    expect(page.get_by_role("button", name="Turn the keys on")).to_be_visible()
    page.get_by_role("link", name="Log").click()
    page.get_by_role("button", name="Check the whole journal").click()
    expect(page.get_by_role("heading", name="Log")).to_be_visible()
    page.get_by_role("button", name="Stop all").click()
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert [State.APPROVED, State.APPROVED, State.PENDING, State.UNDOING] == [
        state(review_page, each) for each in (*proposals, moved)
    ]


def test_every_page_fits_a_phone_and_a_table_keeps_its_columns_there(
    review_page: ReviewPage, new_browser_page: NewPage
) -> None:
    page = new_browser_page(viewport={"width": 360, "height": 740})
    long = "Verylongwordwithoutanyspace" * 20
    sign_in_by_link(review_page, page)
    seen = reading(long, TABLE + "\n" + long * 5, sender=[long], hosts=[long], has_html=True)
    proposal = review_page.rows.proposal(seen, "y" * 500, source=HTML)
    review_page.rows.wait(proposal.id, "mail_server_unreachable")
    item = f"/p/{proposal.id}"
    others = (f"/together?p={proposal.id}", f"/log?about={proposal.email_id}", "/agents/mailbot", "/?group=sender")
    for path in (
        "/",
        item,
        f"{item}?view=html",
        f"{item}?view=source",
        "/log",
        "/agents",
        "/settings",
        "/status",
        *others,
    ):
        page.goto(review_page.url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
    page.goto(review_page.url + item)
    table = page.get_by_role("group", name="Table")
    assert table.evaluate("table => table.scrollWidth > table.clientWidth"), "it scrolls inside its own box"
    assert 2 == table.evaluate(
        "table => Math.round(table.clientHeight / parseFloat(getComputedStyle(table).lineHeight))"
    )


def test_a_right_to_left_subject_does_not_disturb_its_line(review_page: ReviewPage, signed_in: Page) -> None:
    page = signed_in
    review_page.rows.proposal(reading("طلب جديد 4711 (عاجل)", sender=["مريم <m@example.org>"]))
    review_page.rows.proposal(reading("Plain"))
    page.goto(review_page.url)
    places = [page.locator(".row .move").nth(number).bounding_box() for number in range(2)]
    assert places[0] is not None
    assert places[1] is not None
    assert places[0]["x"] == places[1]["x"]


def test_html_of_a_message_loads_nothing_runs_nothing_and_leads_nowhere(
    review_page: ReviewPage, signed_in: Page, attacker: Attacker
) -> None:
    page = signed_in
    head = b"From: e@evil.test\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
    # Each costs a process; all of them are cleaned one by one in the tests of the cleaning.
    for trick in tricks(attacker.url)[::40]:
        html = f"<p>The beginning</p><a href='{attacker.url}/click'>Approve the move</a>{trick}"
        proposal = review_page.rows.proposal(reading(has_html=True), source=head + html.encode())
        page.goto(f"{review_page.url}/p/{proposal.id}?view=html")
        frame = page.frame_locator("iframe")
        expect(frame.get_by_text("The beginning")).to_be_visible()
        for link in frame.get_by_text("Approve the move").all():
            link.click()
        expect(frame.get_by_text("The beginning")).to_be_visible()
        expect(page).to_have_title("Waiting for a decision · Mailwarrant")
        assert 1 == page.get_by_role("button", name="Approve the move").count()
    assert [] == attacker.requests
    assert [] == console_errors(page)

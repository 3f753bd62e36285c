"""Keys: by keyboard alone, by mouse with the keys taught, and with the keys turned off."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from change_executor.review import wording
from shared.proposal import State
from tests.change_executor.review.steps import line, press, state
from tests.change_executor.review.test_message_views import HTML
from tests.change_executor.review.test_review_browser import sign_in_by_link
from tests.servers.browser import NewPage, console_errors
from tests.servers.desk import ReviewPage, reading

# What the hint lies over, and where everything else stands.
COVERED = """() => {
  const box = it => it.getBoundingClientRect(), hint = document.getElementById("hint"), mine = box(hint);
  const head = box(document.querySelector(".top"));
  if (mine.top < head.top || mine.bottom > head.bottom) return ["outside the head of the page"];
  return [...document.querySelectorAll("a, button, input, .row, p, h1, h2")]
    .filter(it => !hint.contains(it) && box(it).width > 1 && box(it).left < mine.right && box(it).right > mine.left
      && box(it).top < mine.bottom && box(it).bottom > mine.top)
    .map(it => it.outerHTML);
}"""
PLACES = (
    """() => [...document.querySelectorAll("a, button, .row")].map(it => JSON.stringify(it.getBoundingClientRect()))"""
)


@pytest.fixture
def signed_in(review_page: ReviewPage, browser_page: Page) -> Page:
    sign_in_by_link(review_page, browser_page)
    return browser_page


def test_by_keyboard_alone_one_is_approved_one_rejected_and_one_taken_back(
    review_page: ReviewPage, signed_in: Page
) -> None:
    page = signed_in
    first, second = (review_page.rows.proposal(reading(subject)) for subject in ("First", "Second"))
    moved = review_page.rows.moved(review_page.rows.proposal(reading("Teapot")).id)
    page.goto(review_page.url)
    press(page, "j", "j", "k")
    expect(line(page, "First").get_by_role("link")).to_be_focused()
    press(page, "Enter")
    expect(page.get_by_role("heading", name="If you approve")).to_be_visible()
    press(page, "a")
    expect(page.get_by_role("button", name="Approve the move")).to_be_focused()
    assert State.PENDING is state(review_page, first), "a key alone decides nothing"
    press(page, "Enter")
    expect(page.get_by_text("Approved. It is being moved now.")).to_be_visible()

    # The next one of the list, and nothing there is pressed by a key that is still held.
    expect(page).to_have_url(f"{review_page.url}/p/{second.id}?done={first.id}")
    press(page, "Enter", "Enter")
    press(page, "r")
    page.keyboard.type("jaz? no")
    expect(page.get_by_label("Reason")).to_have_value("jaz? no")
    press(page, "Shift+Enter")
    page.keyboard.type("2")
    expect(page.get_by_label("Reason")).to_have_value("jaz? no\n2")
    assert State.PENDING is state(review_page, second)
    press(page, "Enter")
    expect(page.get_by_text("Rejected. Nothing was moved")).to_be_visible()
    assert (State.APPROVED, State.REJECTED) == (state(review_page, first), state(review_page, second))

    while not line(page, "Teapot").get_by_role("link").evaluate("link => link === document.activeElement"):
        press(page, "j")
    press(page, "z")
    expect(line(page, "Teapot").get_by_role("button", name="Undo")).to_be_focused()
    press(page, "Enter")
    expect(page.get_by_text("It is being moved back.")).to_be_visible()
    assert State.UNDOING is state(review_page, moved)
    assert [] == console_errors(page)


def test_keys_lead_to_every_page_and_view_and_are_listed(review_page: ReviewPage, signed_in: Page) -> None:
    page = signed_in
    proposal = review_page.rows.proposal(reading(has_html=True), source=HTML)
    for keys, heading in (("gl", "Log"), ("ga", "Agents"), ("gs", "Status"), ("gq", "Waiting for your decision")):
        press(page, *keys)
        expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
    press(page, "/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("gl")
    expect(page.get_by_role("searchbox")).to_have_value("gl")
    press(page, "Escape", "?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    press(page, "j", "Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()
    page.goto(f"{review_page.url}/p/{proposal.id}")
    press(page, "t")
    expect(page.frame_locator("iframe").get_by_role("heading", name="Hello")).to_be_visible()
    press(page, "t")
    expect(page.get_by_label("Text of the message")).to_be_visible()
    press(page, "v")
    expect(page.get_by_label("Source of the message")).to_contain_text("From: ada@example.org")
    press(page, "v")
    expect(page.get_by_label("Text of the message")).to_be_visible()


def test_several_are_selected_by_keyboard_and_decided_on_a_page_that_lists_each(
    review_page: ReviewPage, signed_in: Page
) -> None:
    page = signed_in
    proposals = [review_page.rows.proposal(reading(f"Number {number}")) for number in range(4)]
    page.goto(review_page.url)
    press(page, "j", "x", "j", "x", "j", "x")
    expect(page.get_by_role("button", name="Decide the 3 selected")).to_be_visible()
    press(page, "a")
    expect(page.get_by_role("heading", name="Decide 3 together")).to_be_visible()
    assert {State.PENDING} == {state(review_page, proposal) for proposal in proposals}, "no approval of all by one key"
    page.get_by_role("checkbox", name="Number 1").focus()
    press(page, "Space")
    review_page.rows.look(proposals[2].id, reading("Replaced"))
    # Enter on a box is none of the buttons below it.
    press(page, "Enter")
    press(page, "a")
    expect(page.get_by_role("button", name="Approve all that are checked")).to_be_focused()
    press(page, "Enter")
    expect(page.get_by_role("heading", name="Not decided 1")).to_be_visible()
    expect(page.get_by_text(wording.REFUSED["changed"])).to_be_visible()
    assert [State.APPROVED, State.PENDING, State.PENDING, State.PENDING] == [
        state(review_page, proposal) for proposal in proposals
    ]


@pytest.mark.parametrize("java_script_enabled", [True, False])
def test_enter_where_several_are_decided_never_approves(
    review_page: ReviewPage, new_browser_page: NewPage, java_script_enabled: bool
) -> None:
    page = new_browser_page(java_script_enabled=java_script_enabled)
    page.goto(f"{review_page.url}/link")
    page.get_by_label("Code").fill(review_page.rows.link())
    page.get_by_role("button", name="Sign in").click()
    proposals = [review_page.rows.proposal(reading(f"Number {number}")) for number in range(2)]
    page.goto(f"{review_page.url}/together?p={proposals[0].id}&p={proposals[1].id}")
    page.get_by_role("checkbox", name="Number 0").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Reason").fill("Not today")
    page.keyboard.press("Enter")
    heading = page.get_by_role("heading", name="Decided 2" if java_script_enabled else "Decide 2 together")
    expect(heading).to_be_visible()
    wanted = State.REJECTED if java_script_enabled else State.PENDING
    assert [wanted, wanted] == [state(review_page, proposal) for proposal in proposals]


def test_by_mouse_alone_and_each_key_is_shown_after_its_click(review_page: ReviewPage, signed_in: Page) -> None:
    page = signed_in
    one, two, three = (review_page.rows.proposal(reading(subject)) for subject in ("Tea", "Coffee", "Cake"))
    moved = review_page.rows.moved(review_page.rows.proposal(reading("Moved")).id)
    hint = page.locator("#hint")
    page.get_by_role("link", name="Log").click()
    expect(hint).to_have_text("The key for that: g l")
    assert page.evaluate(COVERED) == [], "it lies over nothing"
    page.get_by_role("link", name="Queue", exact=True).click()
    page.get_by_role("link", name="Tea").click()
    # Before any click they are named beside what they do; what a screen reader hears is the same without them.
    for name, key in (("Approve the move", "a"), ("Reject", "r")):
        expect(page.get_by_role("button", name=name, exact=True).locator("kbd:visible")).to_have_text(key)
    expect(page.get_by_label("Reason")).to_have_accessible_description("Enter rejects, Shift + Enter new line")
    page.get_by_role("button", name="Approve the move").click()
    expect(hint).to_have_text("The key for that: a")
    page.get_by_role("link", name="Back to the queue").click()
    line(page, "Moved").get_by_role("button", name="Undo").click()
    expect(hint).to_have_text("The key for that: z")
    for subject in ("Coffee", "Cake"):
        line(page, subject).locator(".pick").click()
    expect(hint).to_have_text("The key for that: x")
    places = page.evaluate(PLACES)
    page.evaluate("document.getElementById('hint').hidden = true")
    assert places == page.evaluate(PLACES), "nothing moves for it"
    page.get_by_role("button", name="Decide the 2 selected").click()
    page.get_by_role("button", name="Reject all that are checked").click()
    expect(page.get_by_role("heading", name="Decided 2")).to_be_visible()
    assert [State.APPROVED, State.REJECTED, State.REJECTED, State.UNDOING] == [
        state(review_page, proposal) for proposal in (one, two, three, moved)
    ]
    assert [] == console_errors(page)


def test_keys_that_are_turned_off_do_nothing_and_teach_nothing(review_page: ReviewPage, signed_in: Page) -> None:
    page = signed_in
    review_page.rows.proposal(reading("Tea"))
    page.goto(f"{review_page.url}/settings")
    page.get_by_role("button", name="Turn the keys off").click()
    expect(page.get_by_role("button", name="Turn the keys on")).to_be_visible()
    page.get_by_role("link", name="Queue", exact=True).click()
    expect(page.get_by_role("heading", name="Waiting for your decision")).to_be_visible()
    expect(page.locator("#hint")).to_be_hidden()
    before = page.evaluate("document.activeElement.tagName")
    press(page, "j", "?", "/", "g", "l")
    assert before == page.evaluate("document.activeElement.tagName")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page).to_have_url(f"{review_page.url}/")
    line(page, "Tea").get_by_role("link").click()
    expect(page.get_by_role("button", name="Approve the move")).to_be_visible()
    expect(page.locator("main kbd")).to_have_count(0)


def test_with_a_modifier_or_in_a_field_a_key_is_only_a_key(review_page: ReviewPage, signed_in: Page) -> None:
    page = signed_in
    review_page.rows.proposal(reading("Tea"))
    page.goto(review_page.url)
    press(page, "Alt+j", "Control+j")
    assert "BODY" == page.evaluate("document.activeElement.tagName")
    press(page, "j")
    expect(line(page, "Tea").get_by_role("link")).to_be_focused()

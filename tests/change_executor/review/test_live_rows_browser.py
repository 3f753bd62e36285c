"""What happens elsewhere while the queue is open: lines come, change in their place, and move nothing."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from change_executor.lifecycle import Event
from change_executor.review import wording
from shared.proposal import State
from tests.change_executor.review.steps import line, state
from tests.change_executor.review.test_review_browser import sign_in_by_link
from tests.servers.browser import NewPage, console_errors
from tests.servers.desk import ReviewPage, reading


@pytest.fixture
def signed_in(review_page: ReviewPage, browser_page: Page) -> Page:
    sign_in_by_link(review_page, browser_page)
    return browser_page


def test_what_is_under_way_tells_in_its_place_what_became_of_it(review_page: ReviewPage, signed_in: Page) -> None:
    page, rows = signed_in, review_page.rows
    slow = rows.proposal(reading("Slow"))
    rows.proposal(reading("Still waits"))
    page.goto(f"{review_page.url}/p/{slow.id}")
    page.get_by_role("button", name="Approve the move").click()
    notice = page.get_by_role("status").filter(has_text="Look at it")
    expect(notice).to_contain_text("Approved. It is being moved now.")
    page.goto(f"{review_page.url}/?done={slow.id}")
    expect(page.get_by_role("heading", name="Under way 1")).to_be_visible()
    expect(line(page, "Slow")).to_contain_text(wording.STATES[State.APPROVED])
    waits = line(page, "Still waits")
    waits.hover()
    before = waits.bounding_box()
    rows.carry_out(slow.id)
    expect(line(page, "Slow").locator(".state")).to_have_text("moved")
    expect(notice).to_contain_text("Approved and moved.")
    # It does not say that nothing is under way above what stands there.
    expect(page.locator("#under-way")).to_have_text("Just finished")
    expect(page).to_have_title("(1) Queue · Mailwarrant")
    expect(page.locator("#icon")).to_have_attribute("href", "/icon/1")
    assert before == waits.bounding_box(), "nothing moves under the cursor"
    # What can be taken back now can be taken back here, in the line and in the notice, without loading again.
    expect(notice.get_by_role("button", name="Undo")).to_be_visible()
    line(page, "Slow").get_by_role("button", name="Undo").click()
    expect(notice).to_contain_text("It is being moved back.")
    assert State.UNDOING is state(review_page, slow)
    rows.happen(slow.id, Event.MOVED, outcome_code="moved_back", outcome_at=review_page.clock())
    expect(notice).to_contain_text("It was moved back.")
    expect(line(page, "Slow").locator(".state")).to_have_text(wording.STATES[State.UNDONE])
    assert [] == console_errors(page)


def test_what_was_decided_together_tells_what_became_of_each_and_is_taken_back_there(
    review_page: ReviewPage, signed_in: Page
) -> None:
    page, rows = signed_in, review_page.rows
    quick, slow = rows.proposal(reading("Quick")), rows.proposal(reading("Slow"))
    page.goto(f"{review_page.url}/together?p={quick.id}&p={slow.id}")
    page.get_by_role("button", name="Approve all that are checked").click()
    expect(page.get_by_role("heading", name="Decided 2")).to_be_visible()
    rows.carry_out(quick.id)
    expect(line(page, "Quick").locator(".state")).to_have_text(wording.STATES[State.APPLIED])
    expect(line(page, "Slow").locator(".state")).to_have_text(wording.STATES[State.APPROVED])
    # The form of a moment ago would be refused: what it takes back has changed.
    line(page, "Quick").get_by_role("button", name="Undo").click()
    expect(page.get_by_text("It is being moved back.")).to_be_visible()
    assert State.UNDOING is state(review_page, quick)
    assert [] == console_errors(page)


def test_a_new_line_is_appended_and_a_decided_one_marked_and_nothing_moves(
    review_page: ReviewPage, signed_in: Page
) -> None:
    page = signed_in
    first = review_page.rows.proposal(reading("Old one"))
    blind = review_page.rows.proposal()
    page.goto(review_page.url)
    page.locator(f'[data-id="{blind.id}"] .pick input').check()
    link = line(page, "Old one").get_by_role("link")
    link.focus()
    before = link.bounding_box()
    review_page.rows.proposal(reading("Brand new <b>", sender=["Bo <bo@example.net>"]), to_role="escalate")
    expect(page.locator(".row").nth(2)).to_contain_text("Brand new <b>")
    expect(page.locator(".row").nth(2)).to_contain_text("Bo <bo@example.net>")
    expect(page).to_have_title("(3) Queue · Mailwarrant")
    expect(page.locator("#icon")).to_have_attribute("href", "/icon/3")
    review_page.rows.look(blind.id, reading("Seen by now"))
    expect(page.locator(f'[data-id="{blind.id}"]')).to_contain_text("Seen by now")
    expect(page.locator(f'[data-id="{blind.id}"] .pick input')).to_be_checked()
    assert before == link.bounding_box()
    expect(link).to_be_focused()
    review_page.rows.approve(first.id)
    expect(page.locator(f'[data-id="{first.id}"]')).to_contain_text(wording.STATES[State.APPROVED])
    expect(page.locator(f'[data-id="{first.id}"] .pick input')).to_be_hidden()
    expect(page.get_by_role("link", name="Old one")).to_be_focused()
    assert before == page.get_by_role("link", name="Old one").bounding_box()
    page.get_by_role("link", name="Brand new").click()
    expect(page.get_by_role("heading", name="If you approve")).to_be_visible()
    assert [] == console_errors(page)


def test_a_new_line_is_told_and_not_shown_where_it_would_move_what_is_pointed_at(
    review_page: ReviewPage, signed_in: Page
) -> None:
    page = signed_in
    review_page.rows.proposal(reading("Waiting"))
    review_page.rows.moved(review_page.rows.proposal(reading("Moved")).id)
    page.goto(review_page.url)
    moved = line(page, "Moved")
    moved.hover()
    before = moved.bounding_box()
    review_page.rows.proposal(reading("Brand new"))
    expect(page.get_by_text("Something changed.")).to_be_visible()
    assert before == moved.bounding_box()
    page.get_by_role("link", name="Show it").click()
    expect(line(page, "Brand new")).to_be_visible()


def test_the_first_line_takes_the_place_of_the_empty_queue(review_page: ReviewPage, signed_in: Page) -> None:
    page = signed_in
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    review_page.rows.proposal(reading("The first"))
    expect(line(page, "The first")).to_be_visible()
    expect(page.get_by_text("Nothing waits for you.")).to_be_hidden()


def test_a_filtered_list_takes_only_what_it_asked_for(review_page: ReviewPage, signed_in: Page) -> None:
    page = signed_in
    review_page.rows.proposal(reading("Tea one"))
    page.goto(f"{review_page.url}/?q=tea")
    review_page.rows.proposal(reading("Coffee"))
    review_page.rows.proposal(reading("Tea two"))
    expect(line(page, "Tea two")).to_be_visible()
    expect(line(page, "Coffee")).to_have_count(0)


def test_notifications_are_turned_on_only_when_the_browser_allows_them(
    review_page: ReviewPage, new_browser_page: NewPage
) -> None:
    allowed, refused = new_browser_page(permissions=["notifications"]), new_browser_page()
    for page in (allowed, refused):
        sign_in_by_link(review_page, page)
        page.goto(f"{review_page.url}/settings")
        page.get_by_role("button", name="Turn notifications on").click()
    expect(allowed.get_by_role("button", name="Turn notifications off")).to_be_visible()
    expect(refused.get_by_text("Your browser does not allow this page to notify you")).to_be_visible()


def test_a_page_in_the_background_notifies_once_without_a_word_of_the_mail(
    review_page: ReviewPage, new_browser_page: NewPage
) -> None:
    page = new_browser_page(permissions=["notifications"])
    page.add_init_script(
        "window.told = []; const Real = Notification;"
        "window.Notification = class { constructor(title, more) { told.push([title, more.body]); }"
        " static get permission() { return Real.permission; } static requestPermission() { return 'granted'; } };"
        "Object.defineProperty(document, 'hidden', { get: () => true });"
    )
    sign_in_by_link(review_page, page)
    page.goto(f"{review_page.url}/settings")
    page.get_by_role("button", name="Turn notifications on").click()
    expect(page.get_by_role("button", name="Turn notifications off")).to_be_visible()
    page.goto(review_page.url)
    review_page.rows.proposal(reading("A secret subject"))
    expect(line(page, "A secret subject")).to_be_visible()
    assert ["Mailwarrant", "A new proposal waits for you."] in page.evaluate("told")
    assert "secret" not in str(page.evaluate("told"))

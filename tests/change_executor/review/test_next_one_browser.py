"""From one decision to the next in Chromium: nothing is signed by a click or a key meant for the one before."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from shared.proposal import State
from tests.change_executor.review.steps import line, press, state
from tests.change_executor.review.test_review_browser import sign_in_by_link
from tests.servers.browser import NewPage, console_errors
from tests.servers.desk import ReviewPage, reading

# Holds every page where it is a moment after it came: how fast this machine is must not matter.
AT_ONCE = "addEventListener('DOMContentLoaded', () => document.getAnimations().forEach(it => it.pause()))"


@pytest.fixture
def page_without_script(review_page: ReviewPage, new_browser_page: NewPage) -> Page:
    page = new_browser_page(java_script_enabled=False)
    page.goto(f"{review_page.url}/link")
    page.get_by_label("Code").fill(review_page.rows.link())
    page.get_by_role("button", name="Sign in").click()
    return page


def middle_of(page: Page, name: str) -> tuple[float, float]:
    box = page.get_by_role("button", name=name).bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def later(page: Page) -> None:
    # An address is there before the page is, and what is held back as it comes would be held after this.
    page.wait_for_load_state()
    page.evaluate("document.getAnimations().forEach(it => it.finish())")


def test_a_second_click_at_the_same_place_signs_nothing(review_page: ReviewPage, new_browser_page: NewPage) -> None:
    page = new_browser_page()
    sign_in_by_link(review_page, page)
    page.add_init_script(AT_ONCE)
    first, second, third = (review_page.rows.proposal(reading(name)) for name in ("First", "Second", "Third"))
    page.goto(f"{review_page.url}/p/{first.id}")
    page.mouse.dblclick(*middle_of(page, "Approve the move"))
    assert State.PENDING is state(review_page, first), "as little by a double click in the list that led here"
    later(page)
    page.mouse.dblclick(*middle_of(page, "Approve the move"))
    expect(page).to_have_url(f"{review_page.url}/p/{second.id}?done={first.id}")
    for name in ("Approve the move", "Reject"):
        page.mouse.dblclick(*middle_of(page, name))
    press(page, "Enter", "Space")
    assert page.evaluate("document.activeElement.matches('body, main')"), "nothing waits for a key there"
    later(page)
    # By its name: the space bar scrolls, and takes its time; a place looked up meanwhile is another by the click.
    page.get_by_role("button", name="Reject").click()
    expect(page).to_have_url(f"{review_page.url}/p/{third.id}?done={second.id}")
    assert [State.APPROVED, State.REJECTED, State.PENDING] == [
        state(review_page, each) for each in (first, second, third)
    ]
    review_page.rows.look(third.id, reading("Changed"))
    later(page)
    page.get_by_role("button", name="Approve the move").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.mouse.dblclick(*middle_of(page, "Approve the move"))
    assert State.PENDING is state(review_page, third), "nor what is shown again because it changed"


def test_without_a_script_some_are_decided_in_a_row_and_the_last_one_is_taken_back(
    review_page: ReviewPage, page_without_script: Page
) -> None:
    page = page_without_script
    proposals = [review_page.rows.proposal(reading(f"Tea {number}")) for number in range(4)]
    page.goto(f"{review_page.url}/?q=tea")
    line(page, "Tea 0").get_by_role("link").click()
    for number in range(3):
        expect(page.get_by_role("definition").filter(has_text=f"Tea {number}")).to_be_visible()
        page.get_by_role("button", name="Approve the move").click()
    notice = page.get_by_role("status").filter(has_text="Look at it")
    expect(notice).to_contain_text("Tea 2")
    notice.get_by_role("button", name="Undo").click()
    expect(notice).to_contain_text("Rejected. Nothing was moved")
    expect(page.get_by_role("definition").filter(has_text="Tea 3")).to_be_visible()
    page.get_by_label("Reason").fill("She still waits")
    page.get_by_role("button", name="Reject").click()
    expect(page.get_by_text("Nothing that waits is like this.")).to_be_visible()
    page.get_by_role("link", name="Look at it").click()
    expect(page.get_by_text("She still waits")).to_be_visible()
    assert [State.APPROVED, State.APPROVED, State.REJECTED, State.REJECTED] == [
        state(review_page, each) for each in proposals
    ]
    assert [] == console_errors(page)


def test_beside_the_next_one_the_decision_before_tells_what_becomes_of_it_and_z_takes_it_back(
    review_page: ReviewPage, new_browser_page: NewPage
) -> None:
    page = new_browser_page()
    sign_in_by_link(review_page, page)
    first, second, third = (review_page.rows.proposal(reading(name)) for name in ("First", "Second", "Third"))
    page.goto(f"{review_page.url}/p/{first.id}")
    press(page, "a", "Enter")
    notice = page.get_by_role("status").filter(has_text="Look at it")
    expect(notice).to_contain_text("Approved. It is being moved now.")
    review_page.rows.carry_out(first.id)
    expect(notice).to_contain_text("Approved and moved.")
    press(page, "z")
    expect(notice.get_by_role("button", name="Undo")).to_be_focused()
    press(page, "Enter")
    expect(notice).to_contain_text("It is being moved back.")
    expect(page.get_by_role("definition").filter(has_text="Second")).to_be_visible()
    press(page, "j")
    expect(page).to_have_url(f"{review_page.url}/p/{third.id}")
    assert [State.UNDOING, State.PENDING] == [state(review_page, each) for each in (first, second)]
    assert [] == console_errors(page)

"""What is wrong with a message and the decision about it stand on one screen, at a desk and on a phone."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, expect

from shared.proposal import State
from tests.bench.review_walk import Walk, judge, lay_out
from tests.bench.walk_letters import LETTERS
from tests.change_executor.review.test_review_browser import sign_in_by_link, state

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers.browser import NewPage

PLANTED = [letter for letter in LETTERS if not letter.is_right]

# Where each stands in the window, and what a finger or the mouse would hit there.
PLACES = """selectors => selectors.map(selector => {
  const it = document.querySelector(selector), box = it.getBoundingClientRect();
  const hit = document.elementFromPoint((box.left + box.right) / 2, box.bottom - 3);
  return {selector, top: box.top, bottom: box.bottom, reached: it.contains(hit) || it === hit};
})"""


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    walk = lay_out(tmp_path_factory.mktemp("walk"), random.Random(7), [*PLANTED, LETTERS[0]])
    yield walk
    walk.review.close()


def proposal_of(walk: Walk, subject: str) -> str:
    return next(each for each, letter in walk.letters.items() if letter.subject == subject)


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (360, 740)])
@pytest.mark.parametrize("subject", [letter.subject for letter in PLANTED])
def test_the_sentence_each_warning_and_both_decisions_are_on_the_first_screen(
    walk: Walk, new_browser_page: NewPage, subject: str, width: int, height: int
) -> None:
    page = new_browser_page(viewport={"width": width, "height": height})
    sign_in_by_link(walk.review, page)
    page.goto(f"{walk.review.url}/p/{proposal_of(walk, subject)}")
    reject = ".to-reject" if width < 960 else ".reject button"
    # From a moment after it came; before that a second click would meet nothing.
    page.evaluate("document.getAnimations().forEach(it => it.finish())")
    places = page.evaluate(PLACES, ["#what", ".warnings li:first-child", ".warnings li:last-child", ".go", reject])
    for place in places:
        assert 0 <= place["top"] < place["bottom"] <= height, place
        assert place["reached"], place
    assert 0 == page.evaluate("scrollY")
    # The decision comes after the evidence for whoever hears the page.
    assert page.evaluate(
        "!!(document.querySelector('.story').compareDocumentPosition(document.querySelector('.go')) & 4)"
    )
    if page.locator("#hidden").count():
        expect(page.get_by_role("listitem").filter(has_text="21 words: not displayed")).to_be_visible()
        page.get_by_role("link", name="Read it").click()
        expect(page.get_by_label("Hidden text of the message")).to_be_in_viewport()
    page.keyboard.press("a")
    expect(page.get_by_role("button", name="Approve despite")).to_be_focused()
    page.keyboard.press("r")
    expect(page.get_by_label("Reason")).to_be_focused()
    on_phone(page, width)


def on_phone(page: Page, width: int) -> None:
    """One tap leads to the reason, and the bar does not lie over what has the focus (WCAG 2.4.11)."""
    if width > 960:
        return
    page.evaluate("scrollTo(0, 0)")
    page.get_by_role("link", name="Reject", exact=True).click()
    box = page.evaluate(PLACES, ["#reason", ".at-hand"])
    assert box[0]["bottom"] <= box[1]["top"] or box[0]["top"] >= box[1]["bottom"], box
    expect(page.get_by_label("Reason")).to_be_in_viewport()
    covered: list[Any] = page.evaluate(
        """() => {
          const bar = document.querySelector('.at-hand');
          return [...document.querySelectorAll('.story a, .story pre')].filter(it => {
            it.focus();
            const box = it.getBoundingClientRect();
            return box.top >= bar.getBoundingClientRect().top && box.top < bar.getBoundingClientRect().bottom;
          }).map(it => it.outerHTML);
        }"""
    )
    assert [] == covered


def test_the_walk_counts_what_was_decided_tells_nobody_before_and_stays_for_the_last_page(
    walk: Walk, new_browser_page: NewPage, capsys: pytest.CaptureFixture[str]
) -> None:
    page, leave, said = new_browser_page(), threading.Event(), ""
    sign_in_by_link(walk.review, page)
    deadline = datetime.now(UTC) + timedelta(minutes=2)
    with ThreadPoolExecutor() as threads:
        verdict = threads.submit(judge, walk, deadline, leave)
        try:
            for proposal_id, letter in walk.letters.items():
                assert State.PENDING is state(walk.review, proposal_id)
                page.goto(f"{walk.review.url}/p/{proposal_id}")
                assert "planted" not in page.content()
                page.get_by_role("button", name="Approve" if letter.is_right else "Reject").first.click()
                expect(page.get_by_role("status").filter(has_text="Look at it")).to_be_visible()
            while "decided rightly" not in said and not verdict.done():
                said += capsys.readouterr().out
            assert "3 of 3 decided rightly" in said
            # The queue that was left open tells of the move by itself, in its line and in its notice.
            expect(page.locator(".rows .state").filter(has_text="moved").first).to_have_text("moved")
            assert page.evaluate("document.styleSheets[0].cssRules.length > 100")
            assert not verdict.done(), "nobody takes the page away while it is still loading"
        finally:
            leave.set()
        assert 0 == verdict.result()

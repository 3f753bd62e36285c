"""What is hidden in HTML, compared with a browser: computed styles, geometry and hit testing of each text run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page

from tests.bench.hidden_text import DOCUMENT, document
from tests.shared.message.hidden_runs import HtmlCase, Verdict, expected, hidden_cases, ours

CASES: Final = tuple(hidden_cases())

# For each text node that is not blank: its text, and whether a person sees it. The bounds are those of
# `shared.message.visibility`: 1.15 contrast, 2 pixels of letters, a twentieth of the ink.
ORACLE: Final = (Path(__file__).with_name("hidden_oracle.js")).read_text("utf-8")


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """A window as wide as our reader thinks one is, without scripts, as mail programs show mail, and without a net."""
    context = browser.new_context(java_script_enabled=False, offline=True, viewport={"width": 1024, "height": 1600})
    made = context.new_page()
    yield made
    context.close()


def browsers(page: Page, case: HtmlCase) -> Verdict:
    page.goto("about:blank")  # a document that is written anew keeps the last one's colours of links
    page.set_content(case.html)
    runs: list[dict[str, Any]] = page.evaluate(ORACLE)
    seen = " ".join(run["text"] for run in runs if run["seen"])
    return Verdict(seen.split().count("plain"), "secret" in seen.split())


def test_there_are_sixty_tricks_and_thirty_that_are_none() -> None:
    assert sum(case.has_secret for case in CASES) >= 60
    assert sum(not case.has_secret for case in CASES) >= 30
    assert len({case.html for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_browser_shows_what_css_says(case: HtmlCase, page: Page) -> None:
    assert (expected(case) == browsers(page, case)) == (not case.browser)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_our_reader_sees_what_the_browser_shows_or_the_difference_has_its_reason(case: HtmlCase) -> None:
    assert (expected(case) == ours(case)) == (not case.differs)


def test_the_document_is_made_of_these_cases() -> None:
    assert document(CASES) == DOCUMENT.read_text("utf-8"), "python -m tests.bench.hidden_text writes it anew"

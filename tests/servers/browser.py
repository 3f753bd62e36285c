"""Debian's Chromium, driven by Playwright: one browser for each module, a fresh profile for each test.

Playwright's synchronous interface keeps an event loop running in this thread while it is open, so a module that asks
for a browser has no asynchronous tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# What is waited for comes at once on an idle machine; tests run on busy ones, for which Playwright's five seconds of an
# expectation are few.
PATIENCE_MILLISECONDS: Final = 30_000

NewPage = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # For all tests to come: there is no expectation without a browser.
    expect.set_options(timeout=PATIENCE_MILLISECONDS)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture
def new_browser_page(browser: Browser) -> Iterator[NewPage]:
    """Makes pages in profiles of their own; `console_errors(page)` has what each complained about."""
    contexts: list[BrowserContext] = []

    def make(**options: Any) -> Page:
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | options))
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        page = context.new_page()
        _complaints[id(page)] = found = []
        page.on("console", lambda message: found.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: found.append(str(error)))
        return page

    yield make
    for context in contexts:
        for page in context.pages:
            _complaints.pop(id(page), None)
        context.close()


@pytest.fixture
def browser_page(new_browser_page: NewPage) -> Page:
    """A page of a fresh profile, with JavaScript."""
    return new_browser_page()


def console_errors(page: Page) -> list[str]:
    """What a page's console complained about so far."""
    return _complaints[id(page)]


_complaints: dict[int, list[str]] = {}

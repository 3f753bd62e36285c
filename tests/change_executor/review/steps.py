"""What a person does on the review page, step by step, in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from change_executor.journal.journal import read_proposal

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from change_executor.journal.journal import Proposal
    from shared.proposal import State
    from tests.servers.desk import ReviewPage


def state(review_page: ReviewPage, proposal: Proposal) -> State:
    """How a proposal stands in the journal."""
    with review_page.journal.reading() as connection:
        return read_proposal(connection, proposal.id).state


def line(page: Page, subject: str) -> Locator:
    """The line of the queue with this subject."""
    return page.locator(".row").filter(has=page.locator(".subject").filter(has_text=subject))


def press(page: Page, *keys: str) -> None:
    """Keys, one after the other."""
    # What a person sees may be there before the script is.
    page.wait_for_load_state()
    for key in keys:
        page.keyboard.press(key)

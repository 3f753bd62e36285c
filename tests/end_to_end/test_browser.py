"""The whole path in a real browser: a person signs in by a link, sets a password, approves one and rejects another."""

import re

from playwright.sync_api import Page, expect

from tests.end_to_end.houses import PASSWORD, PERSON, Houses
from tests.end_to_end.letters import letter
from tests.servers.browser import console_errors
from tests.servers.dovecot import Dovecot


def test_a_person_signs_in_approves_and_rejects_in_chromium(mail: Dovecot, street: Houses, browser_page: Page) -> None:
    page = browser_page
    for subject in ("Receipt for order 4711", "Where is my teapot?"):
        mail.deliver("Incoming", letter(subject, f"About: {subject}"))
    receipt, question = (street.propose(street.found(subject)) for subject in ("Receipt for order 4711", "Where is my"))
    for proposal_id in (receipt, question):
        street.looked_at(proposal_id)

    link = re.search(r"http\S+/link#\S+", street.executor.said("user", "link", PERSON))
    assert link
    page.goto(link[0])
    page.get_by_role("button", name="Sign in").click()
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_label("The same again").fill(PASSWORD)
    page.get_by_role("button", name="Set the password").click()

    expect(page).to_have_title(re.compile(r"\(2\)"))
    page.get_by_role("link", name="Receipt for order 4711").click()
    expect(page.get_by_label("Text of the message")).to_contain_text("About: Receipt for order 4711")
    page.get_by_role("button", name="Approve the move").click()
    assert "moved" == street.reaches(receipt, "applied")["outcome"]["code"]

    page.goto(street.review_url)
    page.get_by_role("link", name="Where is my teapot?").click()
    page.get_by_label("Reason").fill("She still waits for an answer")
    page.get_by_role("button", name="Reject", exact=True).click()
    assert "She still waits for an answer" == street.reaches(question, "rejected")["decision"]["reason"]

    # Signed out and in again by password, what was decided is there.
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Name").fill(PERSON)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Ended lately")).to_be_visible()
    expect(page.get_by_role("link", name="Receipt for order 4711")).to_be_visible()
    assert not console_errors(page)

    after = mail.snapshot()
    assert 1 == len(after["Processed"].messages)
    assert 1 == len(after["Incoming"].messages)

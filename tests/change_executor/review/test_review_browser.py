"""The page in Chromium: a person's flows, and hostile mail that executes nothing and reaches nobody."""

from __future__ import annotations

import http.server
import threading
from typing import TYPE_CHECKING, Self

import pytest
from playwright.sync_api import Page, expect

from change_executor.journal.journal import read_proposal
from change_executor.lifecycle import Event
from change_executor.review import wording
from change_executor.review.people import add_person
from change_executor.switch import press_stop, release_stop
from shared.proposal import State
from tests.servers.browser import NewPage, console_errors
from tests.servers.desk import PASSWORD, PERSON, ReviewPage, reading

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def browser_page_signed_in(review_page: ReviewPage, browser_page: Page) -> Page:
    sign_in_by_link(review_page, browser_page)
    return browser_page


def sign_in_by_link(review_page: ReviewPage, page: Page, name: str = PERSON) -> None:
    page.goto(f"{review_page.url}/link#{review_page.rows.link(name)}")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()


def state(review_page: ReviewPage, proposal_id: str) -> State:
    with review_page.journal.reading() as connection:
        return read_proposal(connection, proposal_id).state


def open_item(review_page: ReviewPage, page: Page, proposal_id: str) -> None:
    page.goto(f"{review_page.url}/p/{proposal_id}")


def test_a_first_person_comes_in_by_a_link_sets_a_password_and_signs_in_with_it(
    review_page: ReviewPage, browser_page: Page
) -> None:
    add_person(review_page.journal, "ines")
    page = browser_page
    secret = review_page.rows.link("ines")
    page.goto(f"{review_page.url}/link#{secret}")
    expect(page).to_have_url(f"{review_page.url}/link")
    expect(page.get_by_label("Code")).to_have_value(secret)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_label("The same again").fill(PASSWORD)
    page.get_by_role("button", name="Set the password").click()
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Name").fill("ines")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    assert [] == console_errors(page)


def test_a_person_settles_a_doubt(review_page: ReviewPage, browser_page_signed_in: Page) -> None:
    page = browser_page_signed_in
    proposal = review_page.rows.proposal(reading("Perhaps"))
    review_page.rows.approve(proposal.id)
    review_page.rows.happen(proposal.id, Event.CLAIM, Event.DOUBT)
    page.goto(review_page.url)
    page.get_by_role("link", name="Perhaps").click()
    page.get_by_role("button", name="It is in processed: it was moved").click()
    expect(page.get_by_role("status")).to_contain_text("moved")
    assert State.APPLIED is state(review_page, proposal.id)


def test_a_person_undoes_a_move(review_page: ReviewPage, browser_page_signed_in: Page) -> None:
    page = browser_page_signed_in
    moved = review_page.rows.moved(review_page.rows.proposal(reading("Moved")).id)
    open_item(review_page, page, moved.id)
    page.get_by_role("button", name="Undo the move").click()
    expect(page.get_by_text("It is being moved back.")).to_be_visible()
    assert State.UNDOING is state(review_page, moved.id)


def test_what_changes_while_it_is_looked_at_is_told_and_a_decision_about_the_old_view_is_refused(
    review_page: ReviewPage, browser_page_signed_in: Page
) -> None:
    page = browser_page_signed_in
    proposal = review_page.rows.proposal(reading("Original"))
    open_item(review_page, page, proposal.id)
    button = page.get_by_role("button", name="Approve the move")
    before = button.bounding_box()
    review_page.rows.look(proposal.id, reading("Replaced"))
    expect(page.get_by_text("This proposal changed while you look at it.")).to_be_visible()
    assert before == button.bounding_box(), "nothing moves under the cursor"
    button.click()
    expect(page.get_by_role("alert")).to_have_text(wording.REFUSED["changed"])
    expect(page.get_by_role("definition").filter(has_text="Replaced")).to_be_visible()
    assert State.PENDING is state(review_page, proposal.id)
    page.get_by_role("button", name="Approve the move").click()
    expect(page.get_by_text("Approved. It is being moved now.")).to_be_visible()


def test_after_a_session_ended_a_person_comes_back_to_where_they_were(
    review_page: ReviewPage, browser_page_signed_in: Page
) -> None:
    page = browser_page_signed_in
    proposal = review_page.rows.proposal(reading("Patience"))
    open_item(review_page, page, proposal.id)
    review_page.clock.pass_by(hours=9)
    page.get_by_role("button", name="Approve the move").click()
    expect(page.get_by_text("Nothing was decided.")).to_be_visible()
    page.get_by_role("link", name="Sign in").click()
    page.get_by_label("Name").fill(PERSON)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(f"{review_page.url}/p/{proposal.id}")
    assert State.PENDING is state(review_page, proposal.id)


def test_every_page_fits_360_pixels(review_page: ReviewPage, new_browser_page: NewPage) -> None:
    page = new_browser_page(viewport={"width": 360, "height": 740})
    long = "Verylongwordwithoutanyspace" * 30
    proposal = review_page.rows.proposal(reading(long, long * 5, sender=[long], recipients=[long]), "y" * 500)
    sign_in_by_link(review_page, page)
    for path in ("/", f"/p/{proposal.id}", "/password", "/nowhere"):
        page.goto(review_page.url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path


def test_marks_without_end_stay_in_their_box(review_page: ReviewPage, browser_page_signed_in: Page) -> None:
    page = browser_page_signed_in
    marks = "a" + "\u0489\u0332\u0338" * 200
    proposal = review_page.rows.proposal(reading(f"Marks {marks}", marks), f"Because {marks}")
    open_item(review_page, page, proposal.id)
    boxes = ".story > section, .desk > section, .mail, .agent-words blockquote"
    found = page.eval_on_selector_all(boxes, "all => all.map(one => getComputedStyle(one).overflow)")
    assert len(found) >= 5
    assert {"clip"} == set(found)
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    # What is focused is not cut off either.
    for button in page.locator(".desk button").all():
        button.focus()
        expect(button).to_be_in_viewport()


class Attacker:
    """A server that counts whoever comes, and has pages of its own by path."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.pages: dict[str, str] = {}
        requests, pages = self.requests, self.pages

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                requests.append(self.path)
                page = pages.get(self.path, "").encode()
                self.send_response(200 if page else 204)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(page)))
                self.end_headers()
                self.wfile.write(page)

            do_POST = do_GET  # noqa: N815 - the standard library's names

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def attacker() -> Iterator[Attacker]:
    with Attacker() as server:
        yield server


def test_the_counting_attacker_would_have_heard(browser_page: Page, attacker: Attacker) -> None:
    """The positive control: such a trick as a page of its own does reach the attacker."""
    with browser_page.expect_request(f"{attacker.url}/img"):
        browser_page.set_content(f"<img src='{attacker.url}/img'>")
    browser_page.wait_for_load_state("networkidle")
    assert attacker.requests


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_page_of_another_port_or_site_presses_nothing_though_the_person_is_signed_in(
    review_page: ReviewPage, browser_page_signed_in: Page, attacker: Attacker, host: str
) -> None:
    # Cookies ignore ports: a page at localhost:OTHER is the same site, and its forms do bring the cookie.
    page = browser_page_signed_in
    proposal = review_page.rows.proposal(reading())
    open_item(review_page, page, proposal.id)
    fields = page.locator(f"form[action='/p/{proposal.id}/approve'] input").evaluate_all(
        "all => all.map(field => field.outerHTML).join('')"
    )
    attacker.pages["/page"] = (
        f"<form method=post action='{review_page.url}/p/{proposal.id}/approve'>{fields}<button>go</button></form>"
    )
    page.goto(f"http://{host}:{attacker.port}/page")
    page.get_by_role("button", name="go").click()
    expect(page.get_by_role("heading", name="That did not come from this page")).to_be_visible()
    assert State.PENDING is state(review_page, proposal.id)


def test_no_other_page_can_show_this_one_in_a_frame(
    review_page: ReviewPage, browser_page_signed_in: Page, attacker: Attacker
) -> None:
    page = browser_page_signed_in
    attacker.pages["/page"] = f"<iframe src='{review_page.url}/'></iframe>"
    page.goto(f"http://localhost:{attacker.port}/page")
    expect(page.frame_locator("iframe").get_by_text("Waiting for your decision")).to_have_count(0)
    assert any("frame" in complaint.lower() for complaint in console_errors(page))


def test_of_an_item_only_the_decision_stays_in_sight_and_no_history_is_cut(
    review_page: ReviewPage, browser_page_signed_in: Page
) -> None:
    page = browser_page_signed_in
    page.set_viewport_size({"width": 1280, "height": 800})
    proposal = review_page.rows.proposal(reading("Long", "word\n" * 300))
    for number in range(40):
        review_page.rows.wait(proposal.id, f"code_{number}")
    open_item(review_page, page, proposal.id)
    history, button = page.get_by_role("region", name="History"), page.get_by_role("button", name="Approve the move")
    expect(page.get_by_role("link", name="Back to the queue")).to_be_in_viewport()
    desk = page.get_by_role("complementary", name="Decision")
    assert desk.evaluate("it => it.scrollHeight <= it.clientHeight"), "nothing of the decision is out of sight"
    history.get_by_text(proposal.id).scroll_into_view_if_needed()
    expect(history.get_by_text(proposal.id)).to_be_in_viewport()
    expect(button).to_be_in_viewport()
    page.keyboard.press("Home")
    expect(button).to_be_in_viewport()


def test_the_stop_button_pressed_elsewhere_is_told_on_the_item_and_in_the_queue(
    review_page: ReviewPage, browser_page_signed_in: Page
) -> None:
    page = browser_page_signed_in
    proposal = review_page.rows.proposal(reading())
    open_item(review_page, page, proposal.id)
    press_stop(review_page.journal, "operator")
    expect(page.get_by_text("Somebody stopped everything.")).to_be_visible()
    page.get_by_role("link", name="Reload").click()
    expect(page.get_by_text("Everything is stopped.", exact=True)).to_be_visible()
    page.goto(review_page.url)
    release_stop(review_page.journal, "operator")
    expect(page.get_by_text("Somebody resumed.")).to_be_visible()
    page.get_by_role("link", name="Reload").click()
    expect(page.get_by_text("Everything is stopped.", exact=True)).to_be_hidden()

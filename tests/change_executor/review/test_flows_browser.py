"""A person's flows in Chromium: by keyboard alone, by mouse alone, without scripts, on a phone, and two at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Locator, Page, expect

from change_executor.journal.journal import read_proposal
from change_executor.review import wording
from shared.proposal import State
from tests.change_executor.review.test_message_views import HTML
from tests.change_executor.review.test_review_browser import Attacker, attacker, sign_in_by_link
from tests.change_executor.review.tricks import tricks
from tests.servers.browser import NewPage, console_errors
from tests.servers.desk import PASSWORD, PERSON, ReviewPage, reading

if TYPE_CHECKING:
    from change_executor.journal.journal import Proposal

__all__ = ["attacker"]

TABLE = (
    "Item                          Qty      Price      Total\nTea, green, first flush         2      12.50      25.00\n"
)


@pytest.fixture
def signed_in(review_page: ReviewPage, browser_page: Page) -> Page:
    sign_in_by_link(review_page, browser_page)
    return browser_page


def state(review_page: ReviewPage, proposal: Proposal) -> State:
    with review_page.journal.reading() as connection:
        return read_proposal(connection, proposal.id).state


def line(page: Page, subject: str) -> Locator:
    return page.locator(".row").filter(has_text=subject)


def press(page: Page, *keys: str) -> None:
    # What a person sees may be there before the script is.
    page.wait_for_load_state()
    for key in keys:
        page.keyboard.press(key)


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
    expect(page.get_by_text("Approved. The executor moves it now.")).to_be_visible()

    press(page, "j", "r")
    expect(page.get_by_role("button", name="Reject")).to_be_visible()
    press(page, "r")
    page.keyboard.type("jaz? no")
    expect(page.get_by_label("Reason")).to_have_value("jaz? no")
    press(page, "Control+Enter")
    expect(page.get_by_text("Rejected. Look at it")).to_be_visible()
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
    press(page, "a")
    expect(page.get_by_role("button", name="Approve all that are checked")).to_be_focused()
    press(page, "Enter")
    expect(page.get_by_role("heading", name="Not decided 1")).to_be_visible()
    expect(page.get_by_text(wording.REFUSED["changed"])).to_be_visible()
    assert [State.APPROVED, State.PENDING, State.PENDING, State.PENDING] == [
        state(review_page, proposal) for proposal in proposals
    ]


def test_by_mouse_alone_and_each_key_is_shown_after_its_click(review_page: ReviewPage, signed_in: Page) -> None:
    page = signed_in
    one, two, three = (review_page.rows.proposal(reading(subject)) for subject in ("Tea", "Coffee", "Cake"))
    moved = review_page.rows.moved(review_page.rows.proposal(reading("Moved")).id)
    hint = page.locator("#hint")
    page.get_by_role("link", name="Log").click()
    expect(hint).to_have_text("The key for that: g l")
    page.get_by_role("link", name="Queue", exact=True).click()
    page.get_by_role("link", name="Tea").click()
    page.get_by_role("button", name="Approve the move").click()
    expect(hint).to_have_text("The key for that: a")
    line(page, "Moved").get_by_role("button", name="Undo").click()
    expect(hint).to_have_text("The key for that: z")
    for subject in ("Coffee", "Cake"):
        line(page, subject).locator(".pick").click()
    expect(hint).to_have_text("The key for that: x")
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


def test_with_a_modifier_or_in_a_field_a_key_is_only_a_key(review_page: ReviewPage, signed_in: Page) -> None:
    page = signed_in
    review_page.rows.proposal(reading("Tea"))
    page.goto(review_page.url)
    press(page, "Alt+j", "Control+j")
    assert "BODY" == page.evaluate("document.activeElement.tagName")
    press(page, "j")
    expect(line(page, "Tea").get_by_role("link")).to_be_focused()


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
    expect(pages["ines"].get_by_text("Rejected. Look at it")).to_be_visible()
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

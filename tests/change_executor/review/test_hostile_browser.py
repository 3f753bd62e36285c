"""Hostile mail and hostile agents in Chromium: nothing is loaded or run, nothing is pressed, nothing is faked."""

from __future__ import annotations

import itertools
import re
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

from playwright.sync_api import Page, Route, expect

from change_executor.evidence.reading import MAX_LINE_CHARACTERS
from change_executor.evidence.reading_message import read_message
from shared.proposal import MAX_REASON_CHARACTERS, State
from tests.change_executor.review.test_review_browser import Attacker, attacker, sign_in_by_link, state
from tests.change_executor.review.tricks import CHARACTERS, FORMS, MARKUP, QUOTES, tricks
from tests.servers.browser import console_errors
from tests.servers.desk import ReviewPage, reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from change_executor.journal.journal import Proposal

__all__ = ["attacker"]

# Stands in every word from outside, so that each can be found again wherever it went.
MARK = "\u2042"
# Of an item's page: that many of each kind at once.
AT_ONCE = 16

# Where words from outside may stand, and where never: what is not right about the page, each as a line.
FAULTS = """mark => {
  const faults = [], within = 'bdi, pre.mail, blockquote';
  const clipped = it => it !== document.body
    && (getComputedStyle(it).overflowX !== 'visible' || clipped(it.parentElement));
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode, it = text.parentElement;
    if (!text.data.includes(mark)) continue;
    const frame = it.closest(within);
    if (!frame) faults.push(`outside a frame: ${it.outerHTML.slice(0, 200)}`);
    if (it.closest('h1, button, nav, header, [role=alert], [role=status], option, summary, .agent-words h2'))
      faults.push(`in the page's own words: ${it.outerHTML.slice(0, 200)}`);
    const box = frame?.closest('.row, .each, section, li')?.getBoundingClientRect();
    for (const part of frame?.getClientRects() ?? []) {
      if (clipped(frame)) break;
      if (part.left < box.left - 1 || part.right > box.right + 1) {
        faults.push(`beyond its box: ${frame.outerHTML.slice(0, 200)}`);
        break;
      }
    }
  }
  for (const it of document.querySelectorAll('*'))
    for (const attribute of it.attributes)
      if (attribute.value.includes(mark)) faults.push(`in an attribute: ${attribute.name} of ${it.tagName}`);
  const foreign = 'img, svg, object, embed, video, audio, math, style, base, applet, frame, portal, marquee, plaintext';
  for (const it of document.body.querySelectorAll(`${foreign}, script, meta, link`)) faults.push(it.outerHTML);
  const attributes = 'main [onclick], [autofocus], [style], [popovertarget]';
  for (const it of document.querySelectorAll(attributes)) faults.push(it.outerHTML);
  for (const form of document.forms)
    if (new URL(form.action).origin !== location.origin) faults.push(`a form for ${form.action}`);
  if (document.documentElement.scrollWidth > innerWidth) faults.push('wider than the window');
  return faults;
}"""


def chunks(those: list[str], size: int) -> Iterator[list[str]]:
    return iter([those[at : at + size] for at in range(0, len(those), size)])


def line(trick: str) -> str:
    return (MARK + trick)[:MAX_LINE_CHARACTERS]


def propose(review_page: ReviewPage, those: list[str]) -> Proposal:
    """A proposal about a message that says them wherever a message or an agent can say anything."""
    lines, text = [line(each) for each in those], "\n".join(MARK + each for each in those)
    seen = reading(
        lines[0],
        text,
        sender=lines,
        recipients=lines,
        date=lines[-1],
        hidden_text=text,
        cause=lines[0],
        hosts=lines,
        attachments=[{"name": each, "type": each, "size": 1} for each in lines],
        warnings=[{"code": "hidden_text", "detail": each} for each in lines],
    )
    return review_page.rows.proposal(seen, (MARK + those[0])[:MAX_REASON_CHARACTERS])


def test_no_word_from_outside_loads_runs_or_is_taken_for_the_pages_own(
    review_page: ReviewPage, browser_page: Page, attacker: Attacker
) -> None:
    page, every = browser_page, tricks(attacker.url)
    assert len(every) >= 42 + 60
    single = [propose(review_page, [each]) for each in every]
    many = [propose(review_page, those) for those in chunks(every, AT_ONCE)]
    page.set_viewport_size({"width": 1280, "height": 900})
    sign_in_by_link(review_page, page)
    paths = ["/", "/?group=sender", "/log", "/agents/mailbot"]
    ids = chunks([each.id for each in single], 50)
    paths += ["/together?" + "&".join(f"p={each}" for each in those) for those in ids]
    paths += [f"/p/{each.id}" for each in many]
    count = len(single) + len(many)
    for path in paths:
        page.goto(review_page.url + path)
        assert [] == page.evaluate(FAULTS, MARK), path
        expect(page).to_have_title(re.compile(rf"^(\({count}\) Queue|[A-Z][a-z0-9 ]+) · Mailwarrant$"))
        for details in page.locator("details:not([open]) > summary").all()[:3]:
            details.click()
    for proposal in many[:2]:
        page.goto(f"{review_page.url}/p/{proposal.id}")
        assert [
            f"{review_page.url}/p/{proposal.id}/approve",
            f"{review_page.url}/p/{proposal.id}/reject",
        ] == page.locator("main form").evaluate_all("all => all.map(form => form.action)")
        assert 1 == page.get_by_role("button", name=re.compile("^Approve")).count()
    assert [] == attacker.requests
    assert [] == console_errors(page)
    assert {State.PENDING} == {state(review_page, each.id) for each in (*single, *many)}


def message(those: list[str]) -> bytes:
    """A message of several HTML parts, so that none swallows the others, and with the same words in its header."""
    header = re.sub(r"[\r\n\x00]", " ", those[0])
    parts = "".join(f"--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>{MARK}{each}</p>\r\n" for each in those)
    return (
        f"From: {header} <a@example.org>\r\nSubject: {MARK}{header}\r\nTo: b@example.org\r\nMIME-Version: 1.0\r\n"
        f"Content-Type: multipart/mixed; boundary=b\r\n\r\n{parts}--b--\r\n"
    ).encode("utf-8", "replace")


def test_html_and_source_of_hostile_messages_load_and_run_nothing(
    review_page: ReviewPage, browser_page: Page, attacker: Attacker
) -> None:
    page = browser_page
    octets = [message(those) for those in chunks(tricks(attacker.url)[: len(MARKUP) + len(FORMS) + len(QUOTES)], 24)]
    # A subject of ten thousand characters, as it arrives.
    octets += [message(["x" * 10_000]), message([CHARACTERS[0] * 200])]
    made = []
    for each in octets:
        seen = read_message(each, cut=False, names=["incoming", "processed"])
        made.append(review_page.rows.proposal(seen.model_copy(update={"has_html": True}), source=each))
    sign_in_by_link(review_page, page)
    page.goto(review_page.url)
    assert [] == page.evaluate(FAULTS, MARK)
    for proposal in made:
        page.goto(f"{review_page.url}/p/{proposal.id}?view=html")
        body = page.frame_locator("iframe").locator("body")
        expect(body).not_to_be_empty()
        kept = body.locator("*").evaluate_all(
            "all => all.flatMap(it => [it.tagName, ...[...it.attributes].map(each => each.name)])"
        )
        assert not {"IMG", "A", "FORM", "BUTTON", "INPUT", "STYLE", "SCRIPT", "SVG", "MATH", "IFRAME"} & set(kept)
        assert {each for each in kept if each.islower()} <= {"face", "start", "colspan", "rowspan"}
        page.goto(f"{review_page.url}/p/{proposal.id}?view=source")
        assert [] == page.evaluate(FAULTS, MARK)
    expect(page).to_have_title("Waiting for a decision · Mailwarrant")
    assert [] == attacker.requests
    assert [] == console_errors(page)


def test_a_form_or_an_attribute_that_got_into_the_page_presses_nothing(
    review_page: ReviewPage, browser_page: Page, attacker: Attacker
) -> None:
    """As if the escaping had failed: the page's own script and policy still press nothing for it."""
    page = browser_page
    proposals = [review_page.rows.proposal(reading(f"Number {number}")) for number in range(3)]
    sign_in_by_link(review_page, page)
    item = f"{review_page.url}/p/{proposals[0].id}"
    pages = [f"{review_page.url}{path}" for path in ("/", f"/together?p={proposals[1].id}", "/settings")]
    sent: list[str] = []
    page.context.on("request", lambda request: sent.append(request.url) if request.method != "GET" else None)
    for injected in _gadgets(attacker.url):
        for address in (item, *pages):
            # A tab for each: some keys lead away, and that may still be under way.
            tab = page.context.new_page()
            tab.route(address, partial(_inject, injected))
            tab.goto(address)
            # Some of them take the focus, and would have the keys for themselves.
            tab.evaluate("document.activeElement.blur()")
            for key in "jxarztv/?":
                tab.keyboard.press(key)
            tab.keyboard.press("Escape")
            review_page.rows.look(proposals[2].id, reading("Changed"))
            tab.unroute_all(behavior="wait")
            tab.close()
        assert [] == sent, injected
    # A person who is fooled into a click presses nothing of the page either.
    clicked = _clicked_one_by_one(review_page, page, item, _gadgets(attacker.url))
    assert clicked == sum(each.count("<button") + each.count("<a ") for each in _gadgets(attacker.url))
    # What is sent to the page itself arrives, and is refused: it does not know what the session's own forms know.
    page.route(item, partial(_inject, _wrapped([each for each in FORMS if "action='/stop'" in each])))
    page.goto(item)
    with page.expect_response(f"{review_page.url}/stop") as answer:
        page.locator(".injected button").dispatch_event("click")
    assert answer.value.status == HTTPStatus.FORBIDDEN
    assert {State.PENDING} == {state(review_page, each.id) for each in proposals}
    assert [] == [each for each in attacker.requests if each not in {"/ping", "/reload"}]
    with review_page.journal.reading() as connection:
        assert not connection.exec_driver_sql("SELECT 1 FROM switches").first()


def _clicked_one_by_one(review_page: ReviewPage, page: Page, item: str, gadgets: list[str]) -> int:
    """Click each button and link that got into the item's page; how many there were."""
    clicked = 0
    # Each open page listens on a connection, and Chromium has six for one server.
    page.context.route(f"{review_page.url}/events**", lambda route: route.abort())
    for injected in gadgets:
        for number in itertools.count():
            # Each stays open to the end, so that what it sends is not cut off.
            tab = page.context.new_page()
            tab.route(item, partial(_inject, injected))
            tab.goto(item)
            buttons = tab.locator(".injected button, .injected a[href]")
            if number >= buttons.count():
                break
            buttons.nth(number).dispatch_event("click")
            tab.wait_for_load_state()
            clicked += 1
    return clicked


def _inject(injected: str, route: Route) -> None:
    start = '<main id="main" tabindex="-1">'
    answer = route.fetch()
    body = answer.text().replace(start, start + injected)
    assert injected in body
    route.fulfill(response=answer, body=body)


def _wrapped(those: list[str]) -> str:
    # A cell that is left open would hold the rest of the page; an end without a table is passed over.
    return "".join(f"<div class=injected>{each}</table></div>" for each in those)


def _gadgets(url: str) -> list[str]:
    """The markup, the forms, and alone what takes the names that the page's script calls, each in one piece.

    Left out is what makes text or nothing of all that follows, the other tricks and the page's own controls with it.
    """
    swallows = ("<plaintext", "<!--", "<title", "<noscript", "<xmp", "<textarea", "<select", "<math><mtext>")
    leads_away = "<meta http-equiv=refresh"
    every = [each for each in tricks(url)[: len(MARKUP) + len(FORMS)] if not each.startswith((*swallows, leads_away))]
    markup, forms = every[: -len(FORMS)], every[-len(FORMS) :]
    return [_wrapped(markup), _wrapped(forms[:-1]), _wrapped(forms[-1:])]

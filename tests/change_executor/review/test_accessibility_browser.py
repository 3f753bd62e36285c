"""Every page for everybody: axe-core without a violation in both themes, and by hand what axe cannot see.

axe-core is vendored (tests/vendored, MPL 2.0, docs/decisions/0010), so that the tests need nothing but the checkout.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from change_executor.review import app
from shared.proposal import State
from tests.change_executor.review.scenery import Scenery, furnished_page, set_the_scene
from tests.change_executor.review.test_review_browser import sign_in_by_link, state
from tests.servers.desk import ReviewPage, reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

AXE = Path(__file__).parents[2] / "vendored/axe-core-4.14.0/axe.min.js"
AXE_SHA256 = "20c09fe157a8a34a30e241aaa1fcdade657734f08ab379ecfbeb7d45cc46e878"
OPTIONS = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]},
    "resultTypes": ["violations"],
    # What is not asked for is not made: styles are read from the page as it stands, and each finding is named once.
    "preload": False,
    "elementRef": False,
}
# A page is looked at twice by a processor that also renders it; more at once than this only wait for each other.
AT_ONCE = 3
DESK: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 360, "height": 740}
ON_A_PHONE = ("queue", "item-planted", "item-names", "together", "settings", "log")

# Of each element that takes the focus: its accessible name, and whether something is drawn around it.
FOCUSED = """() => {
  const it = document.activeElement, style = getComputedStyle(it), row = it.closest('.row');
  const drawn = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1
    || row && getComputedStyle(row).outlineStyle !== 'none';
  const box = it.getBoundingClientRect();
  return {
    tag: it.tagName, drawn: Boolean(drawn), top: box.top + scrollY, left: box.left, height: box.height,
    seen: box.bottom > 0 && box.top < innerHeight,
    inside: ['header', 'main', 'footer', 'dialog'].find(name => it.closest(name)) ?? it.className,
  };
}"""


@pytest.fixture
def review_page(tmp_path: Path) -> Iterator[ReviewPage]:
    page = furnished_page(tmp_path)
    yield page
    page.close()


@pytest.fixture
def scenery(review_page: ReviewPage) -> Scenery:
    return set_the_scene(review_page)


@pytest.fixture
def page(browser: Browser, review_page: ReviewPage) -> Any:
    octets = AXE.read_bytes()
    assert AXE_SHA256 == hashlib.sha256(octets).hexdigest()
    context = browser.new_context(viewport=DESK, reduced_motion="reduce")
    context.set_default_timeout(15_000)
    context.add_init_script(octets.decode())
    yield context.new_page()
    context.close()


def begin(page: Page) -> None:
    page.evaluate("options => { window.found = axe.run(document, options); }", OPTIONS)


def violations(page: Page) -> list[str]:
    begin(page)
    return found(page)


def found(page: Page) -> list[str]:
    found = page.evaluate("window.found")
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in found["violations"]
        for node in each["nodes"]
    ]


def batched(paths: list[tuple[str, str]], size: int) -> list[list[tuple[str, str]]]:
    return [paths[start : start + size] for start in range(0, len(paths), size)]


def look(pages: list[Page], url: str, paths: dict[str, str], size: ViewportSize = DESK) -> None:
    """Axe on each of these pages in both themes, several beside each other."""
    for batch in batched(list(paths.items()), len(pages)):
        open_ones = list(zip(pages, batch, strict=False))
        for page, (_, path) in open_ones:
            page.set_viewport_size(size)
            page.goto(url + path)
        for theme in ("light", "dark"):
            for page, _ in open_ones:
                page.emulate_media(color_scheme=theme)
                begin(page)
            for page, (name, _) in open_ones:
                assert [] == found(page), (name, theme)


def test_axe_finds_nothing_wrong_with_any_page_in_either_theme(
    review_page: ReviewPage, page: Page, scenery: Scenery
) -> None:
    pages = [page, *(page.context.new_page() for _ in range(AT_ONCE - 1))]
    look(pages, review_page.url, scenery.doors | scenery.refusals)
    sign_in_by_link(review_page, page)
    look(pages, review_page.url, scenery.signed_in)
    look(pages, review_page.url, {name: scenery.signed_in[name] for name in ON_A_PHONE}, PHONE)
    page.goto(review_page.url)
    page.get_by_role("button", name="Stop all").click()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("heading", name="Confirm that it is you")).to_be_visible()
    page.wait_for_load_state()
    assert [] == violations(page)
    page.emulate_media(color_scheme="light")
    assert [] == violations(page)


def test_axe_would_have_found_something(page: Page, review_page: ReviewPage) -> None:
    """The positive control."""
    page.goto(f"{review_page.url}/sign-in")
    page.evaluate("document.querySelector('label[for=password]').remove()")
    assert any(each.startswith("label:") for each in violations(page))
    page.evaluate("document.querySelector('button').setAttribute('class', 'quiet foot')")
    page.evaluate("document.body.style.setProperty('--soft', 'var(--line)')")
    assert any(each.startswith("color-contrast:") for each in violations(page))


def test_the_dark_theme_sets_colours_and_nothing_else() -> None:
    style = (Path(app.__file__).parent / "static" / "page.css").read_text()
    before, dark, after = re.split(
        r"@media \(prefers-color-scheme: dark\) \{\n  :root \{\n(.*?)\n  \}\n\}\n", style, flags=re.DOTALL
    )
    assert all(re.fullmatch(r" +--[a-z-]+: #[0-9a-f]{6};", each) for each in dark.splitlines())
    assert "prefers-color-scheme" not in before + after


def test_single_letters_act_only_where_they_can_be_turned_off_and_never_decide(
    review_page: ReviewPage, page: Page
) -> None:
    """WCAG 2.1.4 Character Key Shortcuts: a way to turn them off; and even on, none of them signs anything."""
    proposals = [review_page.rows.proposal(reading(f"Number {number}")) for number in range(2)]
    moved = review_page.rows.moved(review_page.rows.proposal(reading("Moved")).id)
    sign_in_by_link(review_page, page)
    printable = [chr(code) for code in range(33, 127)]
    posted: list[str] = []
    page.context.on("request", lambda request: posted.append(request.url) if request.method != "GET" else None)
    for path in ("/", f"/p/{proposals[0].id}", f"/p/{moved.id}", f"/together?p={proposals[0].id}&p={proposals[1].id}"):
        # A tab for each: some keys lead away, and that may still be under way.
        tab = page.context.new_page()
        tab.goto(review_page.url + path)
        for key in printable:
            tab.keyboard.press(key)
            if key in "/?r":
                tab.keyboard.press("Escape")
    assert [] == posted
    assert {State.PENDING} == {state(review_page, each.id) for each in proposals}
    page.goto(f"{review_page.url}/settings")
    page.get_by_role("button", name="Turn the keys off").click()
    page.goto(review_page.url)
    for key in printable:
        page.keyboard.press(key)
    assert f"{review_page.url}/" == page.url
    assert "BODY" == page.evaluate("document.activeElement.tagName")


def test_the_focus_goes_through_each_page_in_the_order_that_it_is_read_and_is_always_seen(
    review_page: ReviewPage, page: Page, scenery: Scenery
) -> None:
    sign_in_by_link(review_page, page)
    for name in ("queue", "item-planted", "together", "agents", "settings", "log"):
        page.goto(review_page.url + scenery.signed_in[name])
        stops: list[dict[str, Any]] = []
        while len(stops) < 300:
            page.keyboard.press("Tab")
            stop = page.evaluate(FOCUSED)
            if stop["tag"] in {"BODY", "HTML"} or (stops and stop["inside"] == "skip"):
                break
            stops.append(stop)
        assert "skip" == stops[0]["inside"], name
        places = [stop["inside"] for stop in stops[1:]]
        assert sorted(places, key=["header", "main", "footer"].index) == places, name
        for stop in stops:
            assert stop["drawn"], (name, stop)
            assert stop["seen"], (name, stop)
        story = [stop["top"] for stop in stops if stop["inside"] == "main" and stop["left"] < 800]
        assert all(after > before - 120 for before, after in itertools.pairwise(story)), (name, story)


def test_a_screen_reader_hears_what_each_control_is_for(review_page: ReviewPage, page: Page, scenery: Scenery) -> None:
    sign_in_by_link(review_page, page)
    page.goto(review_page.url + scenery.signed_in["item-planted"])
    for role, name in (
        ("heading", "If you approve, one message is moved from incoming to processed."),
        ("button", "Approve despite 3 warnings"),
        ("button", "Reject"),
        ("textbox", "Reason if you like; the agent can read it"),
        ("complementary", "Decision"),
        ("list", "Warnings"),
        ("region", "The agent's own words a claim, not a fact"),
        ("navigation", "Pages"),
    ):
        expect(page.get_by_role(role, name=name, exact=True)).to_have_count(1)  # type: ignore[arg-type]  # a role
    page.goto(review_page.url)
    expect(page.get_by_role("searchbox", name="Search in subject, sender, text and reason")).to_be_visible()
    expect(page.get_by_role("checkbox", name="Select this proposal").first).to_be_attached()
    page.goto(f"{review_page.url}/settings")
    nameless = page.locator("button, a[href], input:not([type=hidden]), select, textarea").evaluate_all(
        "all => all.filter(it => !(it.textContent.trim() || it.labels?.length || it.ariaLabel)).map(it => it.outerHTML)"
    )
    assert [] == [each for each in nameless if "readonly" not in each]

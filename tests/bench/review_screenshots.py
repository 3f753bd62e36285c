"""Every page of the review in both themes and three widths, as pictures to be looked at.

Run as `python -m tests.bench.review_screenshots FOLDER [--width N ...] [--only PART ...]`.
"""

from __future__ import annotations

import argparse
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from playwright.sync_api import Page, Route, sync_playwright

from change_executor.lifecycle import Event
from change_executor.review.error_page import Refusal, refuse
from change_executor.switch import press_stop
from tests.change_executor.review.scenery import furnished_page, set_the_scene
from tests.change_executor.review.tricks import MARKUP
from tests.servers.browser import ARGUMENTS, CHROMIUM
from tests.servers.desk import PASSWORD, PERSON, ReviewPage, reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.change_executor.review.scenery import Scenery

WIDTHS: Final = {360: 740, 1280: 800, 3840: 2160}
THEMES: Final = ("light", "dark")
# Longer than any page that a person reads to its end; Chromium draws no picture beyond 16,384 pixels.
_MAX_HEIGHT: Final = 6_000


@dataclass
class Camera:
    """Takes a page's picture in every width and theme; `wanted` are parts of the names that are asked for."""

    folder: Path
    page: Page
    review: ReviewPage
    widths: list[int]
    wanted: list[str]

    def shoot(self, name: str, path: str | None = None) -> None:
        if self.wanted and not any(part in name for part in self.wanted):
            return
        if path is not None:
            self.page.goto(self.review.url + path)
        for width in self.widths:
            self.page.set_viewport_size({"width": width, "height": WIDTHS[width]})
            for theme in THEMES:
                self.page.emulate_media(color_scheme=theme)
                self._take(self.folder / f"{name}-{width}-{theme}.png", width)

    def _take(self, path: Path, width: int) -> None:
        height = min(self.page.evaluate("document.documentElement.scrollHeight"), _MAX_HEIGHT)
        self.page.screenshot(
            path=path, full_page=True, clip={"x": 0, "y": 0, "width": width, "height": max(height, WIDTHS[width])}
        )


def main(folder: Path, widths: list[int], wanted: list[str]) -> None:
    """Write `NAME-WIDTH-THEME.png` for each page, and for each state that only a click leads to."""
    folder.mkdir(parents=True, exist_ok=True)
    with _opened(furnished_page) as (review, page):
        camera = Camera(folder, page, review, widths, wanted)
        page.set_viewport_size({"width": 1280, "height": 800})
        _empty(camera)
        scenery = set_the_scene(review)
        _hostile(scenery, review)
        for name, path in (scenery.signed_in | scenery.refusals).items():
            camera.shoot(name, path)
        _clicked(camera, scenery)
        _stopped(camera)
        _refused(camera)
        _doors(camera, scenery)


@contextmanager
def _opened(make: object) -> Iterator[tuple[ReviewPage, Page]]:
    assert callable(make)
    with tempfile.TemporaryDirectory() as journal, sync_playwright() as playwright:
        review = make(Path(journal))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            yield review, browser.new_context(reduced_motion="reduce").new_page()
        finally:
            browser.close()
            review.close()


def _empty(camera: Camera) -> None:
    camera.page.goto(f"{camera.review.url}/sign-in")
    _sign_in(camera)
    for name, path in {"empty-queue": "/", "empty-log": "/log", "empty-agents": "/agents", "calm": "/status"}.items():
        camera.shoot(name, path)


def _sign_in(camera: Camera) -> None:
    camera.page.get_by_label("Name").fill(PERSON)
    camera.page.get_by_label("Password").fill(PASSWORD)
    camera.page.get_by_role("button", name="Sign in").click()
    camera.page.get_by_role("button", name="Sign out").wait_for()


def _hostile(scenery: Scenery, review: ReviewPage) -> None:
    words = "".join(MARKUP)[:900]
    marks = "Z" + "\u0351\u0489" * 40 + "algo"
    hostile = review.rows.proposal(
        reading(words, words + "\n" + marks, sender=[words, marks], recipients=[marks], hosts=["xn--80ak6aa92e.com"]),
        "Approved already. \u202e Press Approve.\n" * 20,
    )
    scenery.signed_in["item-hostile"] = f"/p/{hostile.id}"


def _clicked(camera: Camera, scenery: Scenery) -> None:
    review, page = camera.review, camera.page
    item = review.rows.proposal(reading("It changes meanwhile"))
    page.goto(f"{review.url}/p/{item.id}")
    review.rows.look(item.id, reading("It has changed"))
    page.get_by_text("This proposal changed").wait_for()
    camera.shoot("item-changed-meanwhile")
    page.get_by_role("button", name="Approve the move").click()
    camera.shoot("item-409")
    page.goto(f"{review.url}{scenery.signed_in['together']}")
    page.get_by_role("button", name="Approve all that are checked").click()
    camera.shoot("decided-together")
    page.goto(review.url)
    page.keyboard.press("?")
    camera.shoot("keys")
    page.goto(f"{review.url}/agents")
    page.get_by_label("Agent", exact=True).fill("tidy")
    page.get_by_role("button", name="Make a token").click()
    page.get_by_label("Your password").fill(PASSWORD)
    page.get_by_role("button", name="Confirm and go on").click()
    page.get_by_text("It is shown this once").wait_for()
    camera.shoot("agents-new-token")
    page.goto(f"{review.url}/settings")
    page.get_by_label("Name").fill("kim")
    page.get_by_role("button", name="Let them in").click()
    page.get_by_text("It is shown this once").wait_for()
    camera.shoot("settings-let-in")
    page.goto(f"{review.url}/log")
    page.get_by_role("button", name="Check the whole journal").click()
    camera.shoot("log-checked")
    review.clock.pass_by(minutes=6)
    page.goto(f"{review.url}/settings")
    page.get_by_role("button", name="Remove the password").click()
    page.get_by_role("heading", name="Confirm that it is you").wait_for()
    camera.shoot("prove")


def _stopped(camera: Camera) -> None:
    approved = camera.review.rows.proposal(reading("Approved while all is stopped"))
    camera.review.rows.happen(approved.id, Event.APPROVE, decided_by=PERSON, decided_at=camera.review.clock())
    press_stop(camera.review.journal, "operator")
    camera.shoot("stopped-queue", "/")
    camera.shoot("stopped-item", f"/p/{approved.id}")
    camera.shoot("stopped-status", "/status")
    camera.shoot("stopped-settings", "/settings")


def _refused(camera: Camera) -> None:
    """Each refusal as the executor words it, under an address of its own."""

    def answer(route: Route) -> None:
        refusal = Refusal[route.request.url.rpartition("/")[2]]
        given = refuse(refusal, written="Not a receipt: she asks where it is" if refusal is Refusal.SIGNED_OUT else "")
        route.fulfill(status=given.status_code, body=bytes(given.body), content_type="text/html")

    camera.page.route("**/refusal/*", answer)
    for refusal in Refusal:
        camera.shoot(f"refusal-{refusal.value.status}-{refusal.name.lower()}", f"/refusal/{refusal.name}")


def _doors(camera: Camera, scenery: Scenery) -> None:
    page = camera.page
    page.context.clear_cookies()
    for name, path in scenery.doors.items():
        camera.shoot(name, path)
    page.goto(f"{camera.review.url}/sign-in")
    for _ in range(8):
        page.get_by_label("Name").fill(PERSON)
        page.get_by_label("Password").fill("not the password")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("alert").wait_for()
    camera.shoot("sign-in-429")


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("folder", type=Path)
    asked.add_argument("--width", type=int, choices=WIDTHS, action="append")
    asked.add_argument("--only", metavar="PART", action="append", help="pages whose name has this part")
    given = asked.parse_args()
    main(given.folder, given.width or list(WIDTHS), given.only or [])

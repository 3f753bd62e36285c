"""Every page of the review in both themes and three widths, as pictures to be looked at.

Run as `python -m tests.bench.review_screenshots FOLDER [WIDTH ...]`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright

from change_executor.switch import press_stop
from tests.change_executor.review.scenery import set_the_scene
from tests.servers.browser import ARGUMENTS, CHROMIUM
from tests.servers.desk import PASSWORD, PERSON, ReviewPage

WIDTHS: Final = {360: 740, 1280: 900, 3840: 2160}


def main(folder: Path, widths: list[int]) -> None:
    """Write `NAME-WIDTH-THEME.png` for each."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as journal, sync_playwright() as playwright:
        review = ReviewPage(Path(journal))
        review.rows.person()
        review.rows.examined()
        scenery = set_the_scene(review)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_context(reduced_motion="reduce").new_page()

        def shoot(names: dict[str, str]) -> None:
            for name, path in names.items():
                page.goto(review.url + path)
                for width in widths:
                    page.set_viewport_size({"width": width, "height": WIDTHS[width]})
                    for theme in ("light", "dark"):
                        page.emulate_media(color_scheme=theme)
                        page.screenshot(path=folder / f"{name}-{width}-{theme}.png", full_page=True)

        shoot(scenery.doors | scenery.refusals)
        page.goto(f"{review.url}/sign-in")
        page.get_by_label("Name").fill(PERSON)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{review.url}/")
        shoot(scenery.signed_in)
        review.clock.pass_by(minutes=6)
        press_stop(review.journal, "operator")
        page.goto(review.url)
        page.get_by_role("button", name="Resume").click()
        page.get_by_role("heading", name="Confirm that it is you").wait_for()
        for width in widths:
            page.set_viewport_size({"width": width, "height": WIDTHS[width]})
            for theme in ("light", "dark"):
                page.emulate_media(color_scheme=theme)
                page.screenshot(path=folder / f"prove-{width}-{theme}.png", full_page=True)
        browser.close()
        review.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(each) for each in sys.argv[2:]] or list(WIDTHS))

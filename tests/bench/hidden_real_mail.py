"""Real HTML messages: which runs of text Chromium shows, and which our reader does.

Run from the top: `python -m tests.bench.hidden_real_mail FOLDER [COUNT]`. FOLDER holds one message a file (`*.txt` or
`*.eml`, at any depth). Without scripts and without a net, as in `tests/shared/message/test_hidden_oracle.py`.
"""

import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Error, Page, sync_playwright

from shared.message import body_lists, body_value, parse
from shared.message.html import html_to_text
from tests.servers.browser import ARGUMENTS, CHROMIUM

ORACLE: Final = (Path(__file__).parents[1] / "shared" / "message" / "hidden_oracle.js").read_text("utf-8")

# Runs shorter than this stand elsewhere in the text too, so that finding them says nothing.
SHORTEST: Final = 4

# Longer ones are drawn for minutes; a taller window than this is not hit to its end.
LONGEST: Final = 60_000
WINDOW: Final = {"width": 1024, "height": 12_000}


def html_bodies(folder: Path, count: int) -> Iterator[str]:
    """Yield the first HTML body of messages taken at random, always the same."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix in {".txt", ".eml"})
    random.Random(5).shuffle(paths)
    for path in paths:
        parts = [part for part in body_lists(parse(path.read_bytes())).html_body if part.type == "text/html"]
        html = body_value(parts[0]).value if parts else ""
        if html and len(html) < LONGEST:
            yield html
            count -= 1
        if count == 0:
            return


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).lower()


def compared(page: Page, html: str) -> Counter[str]:
    """Count a message's runs by what Chromium and our reader say of them."""
    page.goto("about:blank")
    page.set_content(html, wait_until="commit")
    runs: list[dict[str, Any]] = page.evaluate(ORACLE)
    reading = html_to_text(html)
    text, hidden = _letters(reading.text), _letters(" ".join(found.text for found in reading.hidden))
    counted: Counter[str] = Counter()
    for run in runs:
        letters = _letters(run["text"])
        if len(letters) >= SHORTEST:
            said = "shown" if letters in text else "hidden" if letters in hidden else "left out"
            counted[f"{'seen' if run['seen'] else 'not seen'}, {said}"] += 1
    return counted


def main(folder: Path, count: int) -> None:
    """Write the counts."""
    counted: Counter[str] = Counter()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_context(java_script_enabled=False, offline=True, viewport=WINDOW).new_page()  # type: ignore[arg-type]  # a dict of two ints is a ViewportSize
        page.route("**/*", lambda route: route.abort())
        for html in html_bodies(folder, count):
            counted["messages"] += 1
            try:
                counted += compared(page, html)
            except Error:
                counted["messages that the browser did not draw in time"] += 1
        browser.close()
    for what, number in sorted(counted.items()):
        sys.stdout.write(f"{what}: {number}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 500)

"""The text runs of `tests/golden/hidden/*.toml`: what a person sees of them by CSS, and what our reader says."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from shared.message.html import html_to_text

HIDDEN: Final = Path(__file__).parents[2] / "golden" / "hidden"

_SECRET: Final = re.compile(r"\bsecret\b")


@dataclass(frozen=True)
class HtmlCase:
    """One piece of HTML.

    `differs`: the reason why our reader does not see it as CSS has it, "" if it does; `browser`: why Chromium does not.
    """

    group: str
    name: str
    html: str
    differs: str
    browser: str

    def __str__(self) -> str:
        return f"{self.group}: {self.name}"

    @property
    def has_secret(self) -> bool:
        """Whether something in it is hidden from a person."""
        return _SECRET.search(self.html) is not None


@dataclass(frozen=True)
class Verdict:
    """What is seen of a case: how many `plain` runs, and whether any `secret` run."""

    plain: int
    shows_secret: bool


def expected(case: HtmlCase) -> Verdict:
    """Return what CSS says: every plain run is seen, no secret one."""
    return Verdict(len(re.findall(r"\bplain\b", case.html)), shows_secret=False)


def ours(case: HtmlCase) -> Verdict:
    """Return what `html_to_text` says."""
    text = html_to_text(case.html).text
    return Verdict(len(re.findall(r"\bplain\b", text)), _SECRET.search(text) is not None)


def ours_by(case: HtmlCase) -> str:
    """Return by which tricks `html_to_text` says that the secret is hidden; "left out" where it never was text."""
    tricks = {found.trick.value for found in html_to_text(case.html).hidden if _SECRET.search(found.text)}
    return ", ".join(sorted(tricks)) or "left out"


def hidden_cases() -> Iterator[HtmlCase]:
    """Yield every case of the data files."""
    for path in sorted(HIDDEN.glob("*.toml")):
        for entry in tomllib.loads(path.read_text("utf-8"))["case"]:
            yield HtmlCase(path.stem, entry["name"], entry["html"], entry.get("differs", ""), entry.get("browser", ""))

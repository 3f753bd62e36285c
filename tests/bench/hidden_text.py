"""Writes `docs/hidden-text.md`: what our reader takes for hidden, compared with Chromium.

Run from the top: `python -m tests.bench.hidden_text`. That Chromium shows what the data files say is what
`tests/shared/message/test_hidden_oracle.py` checks, so no browser runs here.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.shared.message.hidden_runs import HtmlCase, expected, hidden_cases, ours, ours_by

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "hidden-text.md"

GROUPS: Final = {
    "display": "Display, visibility, opacity",
    "size": "Size",
    "place": "Place, clipping, covering",
    "colour": "Colour",
    "sheets": "Style sheets",
    "elements": "Elements",
    "seen": "Nothing hidden",
}

_MARKED: Final = re.compile(r"\b(?:plain|secret)\b")

HEAD: Final = """\
# Hidden text: what is found, and what is not

HTML mail can hold text that a person never sees. Our reader takes it out of the text that a model gets and hands it
over apart, with the trick that hides it. It lays nothing out: it reads styles, so it can be wrong in both directions.
This page says how often, on the cases of `tests/golden/hidden`, each of which Chromium was asked about too: computed
styles, geometry, clipping and what lies on top, for each run of text, scripts off, in a window 1,024 pixels wide.
`tests/shared/message/test_hidden_oracle.py` asks it again at every run and keeps this page in step with the cases.

Hidden means here: a person with that window sees nothing of it or cannot read it (letters below two pixels, contrast
below 1.15, a twentieth of the ink or less). What cannot be judged counts as visible, so that no text is lost.

On real mail: of 500 HTML messages of the SpamAssassin corpus, taken at random, Chromium shows 17,874 runs of text, and
our reader shows each of them. Of 49 that it does not show (options of lists apart) our reader shows 8
(`python -m tests.bench.hidden_real_mail`, November 2026). These messages are of 2002 and 2003: few style sheets, much
old markup.

The cases below are the hard ones.
"""


def document(cases: Sequence[HtmlCase]) -> str:
    """Return the page."""
    return "\n".join([HEAD, *_table(cases), "", *_differences(cases), *_all(cases)])


def _agrees(case: HtmlCase) -> bool:
    """Whether our reader and Chromium say the same: where Chromium is not as CSS has it, we side with CSS."""
    return expected(case) == ours(case) and not case.browser


def _table(cases: Sequence[HtmlCase]) -> Iterator[str]:
    yield "| cases | number | agree with Chromium |"
    yield "|---|---|---|"
    for group, title in GROUPS.items():
        of_group = [case for case in cases if case.group == group]
        yield f"| {title} | {len(of_group)} | {sum(map(_agrees, of_group))} |"
    tricks = [case for case in cases if case.has_secret]
    controls = [case for case in cases if not case.has_secret]
    yield f"| All that hide something | {len(tricks)} | {sum(map(_agrees, tricks))} |"
    yield f"| All that hide nothing | {len(controls)} | {sum(map(_agrees, controls))} |"
    yield f"| **All** | **{len(cases)}** | **{sum(map(_agrees, cases))}** |"
    runs = sum(len(_MARKED.findall(case.html)) for case in cases)
    yield ""
    yield f"Together they have {runs} runs of text; a case agrees only if each of its runs does."


def _differences(cases: Sequence[HtmlCase]) -> Iterator[str]:
    yield "## What it does not see as a browser does"
    yield ""
    for case in cases:
        if not _agrees(case):
            yield f"- *{case.name}*: {case.differs or case.browser}."
    yield ""


def _all(cases: Sequence[HtmlCase]) -> Iterator[str]:
    yield "## Every case"
    yield ""
    yield "The trick is the one that the reader names; *left out*: it never was text of the message."
    for group, title in GROUPS.items():
        yield from ("", f"### {title}", "", "| case | a person | our reader |", "|---|---|---|")
        for case in cases:
            if case.group == group:
                yield f"| {case.name} | {'does not see it' if case.has_secret else 'sees it'} | {_said(case)} |"
    yield ""


def _said(case: HtmlCase) -> str:
    if not _agrees(case):
        return "**differs**"
    return f"hidden: {ours_by(case)}" if case.has_secret else "seen"


if __name__ == "__main__":
    DOCUMENT.write_text(document(tuple(hidden_cases())), "utf-8")

"""Steps are counted, not seconds: Python lines run in the package, and characters handed to regular expressions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

import pytest

from shared.message.segments import SegmentKind, html_segments, segments

# Twice the input may cost twice the steps, and a little for what lies at its ends.
MOST: Final = 2.2

ATTRIBUTION: Final = "On Tue, Mar 12, 2024 at 9:41 AM Bob <bob@example.com> wrote:\n"
NEARLY: Final = "On Tue, Mar 12, 2024 at 9:41 AM Bob\n<bob@example.com> wrote\n:\n"

WORST: Final[dict[str, Callable[[int], str]]] = {
    "short lines": lambda n: "a\n" * n,
    "empty lines": lambda n: "\n" * n,
    "quotes and answers": lambda n: "> q\na\n" * n,
    "attributions": lambda n: ATTRIBUTION * n,
    "attributions that never end": lambda n: "On Tue, Mar 12, 2024 at 9:41 AM Bob\n" * n,
    "nearly attributions": lambda n: NEARLY * n,
    "attributions below signatures": lambda n: ("> q\n-- \n" + ATTRIBUTION + "x\n") * n,
    "attributions in a signature": lambda n: "-- \n" + (ATTRIBUTION + "\n" * 50) * (n // 10),
    "labels": lambda n: "From: a\n" * n,
    "nearly header blocks": lambda n: "From: a\nSent: b\nx\n" * n,
    "forward marks in quotes": lambda n: "> q\n> Begin forwarded message:\n\n\n" * n,
    "original messages": lambda n: "-----Original Message-----\n" * n,
    "rules": lambda n: "______________\n" * n,
    "signature marks": lambda n: "-- \n" * n,
    "mobile lines": lambda n: "Sent from my iPhone\n" * n,
    "closings": lambda n: "Regards,\nAnn\n+44 20 7946 0123\n" * n,
    "bars": lambda n: "| a\n" * n,
    "bars and text": lambda n: "| a\nwrote:\n" * n,
    "prompts": lambda n: ">>> a\n" * n,
    "broken quotes": lambda n: ("> " + "a" * 70 + "\nb\n") * n,
    "depths": lambda n: "\n".join(">" * (at % 200) + " a" for at in range(n)),
}


def steps(text: str, cut: Callable[[str], object] = segments) -> int:
    count = 0

    def local(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return local

    def entered(frame: FrameType, _event: str, _argument: Any) -> Any:
        return local if "/segments/" in frame.f_code.co_filename.replace("\\", "/") else None

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        cut(text)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("kind", WORST)
def test_twice_the_lines_cost_twice_the_steps(kind: str) -> None:
    small, large = WORST[kind](400), WORST[kind](800)
    assert steps(large) <= MOST * steps(small)


@pytest.mark.parametrize("kind", WORST)
def test_no_kind_of_line_costs_more_than_ten_times_a_typical_one(kind: str) -> None:
    typical = "A line of a letter as people write them.\n> and one quoted\n" * 300
    worst = WORST[kind](400)
    assert steps(worst) / worst.count("\n") <= 10 * steps(typical) / typical.count("\n")


INDENT: Final = '<blockquote style="border:none">'
WORST_HTML: Final[dict[str, Callable[[int], str]]] = {
    "nested indents": lambda n: INDENT * (n // 4) + "<p>a</p>" * n + "</blockquote>" * (n // 4),
    "nested quotes": lambda n: "<blockquote>" * (n // 4) + "<p>a</p>" * n + "</blockquote>" * (n // 4),
    "earlier messages": lambda n: '<div id="divRplyFwdMsg">' * (n // 4) + "<p>a</p>" * n + "</div>" * (n // 4),
    "short quotes": lambda n: "<blockquote>a</blockquote><p>b</p>" * n,
    "many x": lambda n: f'<div id="{"x_" * n}divRplyFwdMsg">a</div>',
    "many classes": lambda n: f'<div class="{"a " * n}">a</div>',
}


@pytest.mark.parametrize("kind", WORST_HTML)
def test_twice_the_html_costs_twice_the_steps(kind: str) -> None:
    small, large = WORST_HTML[kind](400), WORST_HTML[kind](800)
    assert steps(large, html_segments) <= MOST * steps(small, html_segments)


LONG_LINES: Final = {
    "one word": "x" * 10_000_000,
    "blanks": " " * 10_000_000,
    "quote marks": ">" * 10_000_000,
    "colons": ":" * 10_000_000,
    "dashes": "-" * 10_000_000,
    "underscores": "_" * 10_000_000,
    "an attribution that goes on": "On Tue, Mar 12, 2024 at 9:41 AM " * 320_000 + " wrote:",
    "addresses": "<a@b> " * 1_700_000,
    "digits": "1" * 10_000_000,
}


@pytest.mark.parametrize("kind", LONG_LINES)
def test_one_line_of_ten_megabytes_is_a_step_like_any_other(kind: str) -> None:
    text = f"Hello\n{LONG_LINES[kind]}\nbye"
    assert steps(text) <= 3 * steps("Hello\nmy friend\nbye") + 200
    assert text == "".join(text[part.start : part.end] for part in segments(text))


def test_a_paragraph_that_ends_like_an_attribution_is_not_looked_into() -> None:
    paragraph = "On Tue, Mar 12, 2024 at 9:41 AM " + "word " * 100 + "Bob <bob@example.com> wrote:"
    assert SegmentKind.NEW is segments(f"{paragraph}\n> old\n")[0].kind


def test_a_million_lines_are_read_to_the_last() -> None:
    text = "a\n> b\n" * 100_000 + "a\n" * 400_000 + "> b\n" * 400_000
    found = segments(text)
    assert 200_002 == len(found)
    assert {SegmentKind.NEW, SegmentKind.QUOTED} == {part.kind for part in found}
    assert len(text) == found[-1].end

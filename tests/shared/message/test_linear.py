"""Linear time, by steps and not by a clock: lines of this package that run for the worst of each kind.

`python -m tests.bench.linear_time` measures the same kinds at 10 MB on a clock; `docs/linear-time.md` has the figures.
"""

import sys
from collections.abc import Callable
from functools import cache, partial
from types import FrameType
from typing import Any, Final

import pytest

from shared.message.css import ElementKey, StyleSheet
from tests.bench.linear_time import KINDS, everything

# Octets. Small enough to be traced, large enough that what is done once does not count.
SMALL, LARGE = 4_000, 16_000

# Four times the octets may cost four times the steps, and a tenth for what lies at the ends.
MOST: Final = LARGE / SMALL * 1.1


def steps(work: Callable[[], object]) -> int:
    """Return how many lines of `shared` run for a piece of work."""
    count = 0

    def local(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return local

    def entered(frame: FrameType, _event: str, _argument: Any) -> Any:
        return local if "/shared/" in frame.f_code.co_filename.replace("\\", "/") else None

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@cache
def steps_for(kind: str, size: int) -> int:
    return steps(partial(everything, KINDS[kind](size)))


# Rules times elements: not linear, but bounded, as the last test here says.
BOUNDED: Final = "style rules and elements"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != BOUNDED])
def test_four_times_the_octets_take_four_times_the_steps(kind: str) -> None:
    assert 0 < steps_for(kind, SMALL)
    assert steps_for(kind, LARGE) <= MOST * steps_for(kind, SMALL) + 2_000


def test_a_million_looks_at_rules_end_the_matching() -> None:
    sheet = StyleSheet([".a{color:red}" * 2_000])
    element = ElementKey("p", "", frozenset({"a"}))
    looks = 0
    while not sheet.is_exhausted and looks < 1_000:
        sheet.matching(element, ())
        looks += 1
    assert looks <= 500
    assert sheet.matching(element, ()) == []

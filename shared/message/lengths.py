"""CSS lengths in pixels (CSS Values 4 §6 and §10)."""

import re
from typing import Final

# A browser's usual text size in CSS pixels.
NORMAL_SIZE: Final = 16.0

# Mail windows are about this wide.
WINDOW_WIDTH: Final = 1_024

_LENGTH: Final = re.compile(r"([+-]?[0-9]{0,9}\.?[0-9]{1,9})(px|pt|em|rem|ex|ch|%|vw|vh|in|cm|mm|pc)?")
_PIXELS: Final = {"px": 1.0, "pt": 4 / 3, "in": 96.0, "cm": 37.8, "mm": 3.78, "pc": 16.0, "vw": 10.24, "vh": 7.68}
_FUNCTION: Final = re.compile(r"(calc|min|max)\(([^()]{1,99})\)")


def pixels_of(length: str, font_size: float) -> float | None:
    """Return a length in CSS pixels, or None for what cannot be known without a layout.

    Percentages count from 100 on, as window widths; of functions `calc` with sums, `min` and `max` are understood.
    """
    found = _LENGTH.fullmatch(length)
    if found is None:
        function = _FUNCTION.fullmatch(length)
        return _calculated(function[1], function[2], font_size) if function else None
    number, unit = float(found[1]), found[2]
    match unit:
        case "em":
            return number * font_size
        case "rem":
            return number * NORMAL_SIZE
        case "ex" | "ch":
            return number * font_size / 2
        case "%":
            return number * WINDOW_WIDTH / 100 if abs(number) >= 100 else None  # noqa: PLR2004 - a whole window or unknown
        case _:
            return number * _PIXELS[unit] if unit else number


def _calculated(function: str, inside: str, font_size: float) -> float | None:
    if function == "calc":
        terms = inside.replace(" - ", " + -").replace("+ --", "+ ").split(" + ")
    else:
        terms = inside.split(",")
    values = [pixels_of(term.strip(), font_size) for term in terms if "(" not in term]
    known = [value for value in values if value is not None]
    if len(known) != len(terms):
        return None
    match function:
        case "min":
            return min(known)
        case "max":
            return max(known)
        case _:
            return sum(known)

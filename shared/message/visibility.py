"""Whether a person sees an element's text, from its declarations and those of the elements around it.

Standard library only. Judged like a browser with a white window would draw it; what cannot be judged (images behind
text, unknown units) counts as visible. CSS Display 3, CSS Fonts 4, CSS 2.2 §10 and §11, CSS Masking 1, CSS Color 4.
"""

import colorsys
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from shared.message.css import Declaration
from shared.message.reading import HidingTrick

# A browser's usual text size in CSS pixels.
_NORMAL_SIZE: Final = 16.0

# Letters below two pixels are dots.
_SMALLEST_SIZE: Final = 2.0

# Nobody reads text at a twentieth of its ink.
_LEAST_OPACITY: Final = 0.05

# WCAG 2.2's contrast runs from 1 to 21 and asks 4.5 of text. Below 1.15 the eye finds no letters.
_LEAST_CONTRAST: Final = 1.15

# Further out than any layout moves a thing to align it.
_OFF_SCREEN: Final = -400.0

# What of an element is as good as nothing.
_NO_EXTENT: Final = 1.0

Colour = tuple[float, float, float, float]  # red, green, blue from 0 to 255, and alpha from 0 to 1

WHITE: Final[Colour] = (255.0, 255.0, 255.0, 1.0)
BLACK: Final[Colour] = (0.0, 0.0, 0.0, 1.0)

_NAMED: Final = {
    "black": "000000", "silver": "c0c0c0", "gray": "808080", "grey": "808080", "white": "ffffff", "maroon": "800000",
    "red": "ff0000", "purple": "800080", "fuchsia": "ff00ff", "magenta": "ff00ff", "green": "008000",
    "lime": "00ff00", "olive": "808000", "yellow": "ffff00", "navy": "000080", "blue": "0000ff", "teal": "008080",
    "aqua": "00ffff", "cyan": "00ffff", "orange": "ffa500", "snow": "fffafa", "ivory": "fffff0", "azure": "f0ffff",
    "mintcream": "f5fffa", "ghostwhite": "f8f8ff", "floralwhite": "fffaf0", "whitesmoke": "f5f5f5",
    "aliceblue": "f0f8ff", "honeydew": "f0fff0", "seashell": "fff5ee", "lavenderblush": "fff0f5", "linen": "faf0e6",
    "oldlace": "fdf5e6", "beige": "f5f5dc", "lightyellow": "ffffe0", "lightcyan": "e0ffff", "cornsilk": "fff8dc",
    "gainsboro": "dcdcdc", "lightgray": "d3d3d3", "lightgrey": "d3d3d3", "darkgray": "a9a9a9", "darkgrey": "a9a9a9",
    "dimgray": "696969", "dimgrey": "696969",
}  # fmt: skip

_LENGTH: Final = re.compile(r"([+-]?[0-9]{0,9}\.?[0-9]{1,9})(px|pt|em|rem|ex|ch|%|vw|vh|in|cm|mm|pc)?")
_PIXELS: Final = {"px": 1.0, "pt": 4 / 3, "in": 96.0, "cm": 37.8, "mm": 3.78, "pc": 16.0, "vw": 10.24, "vh": 7.68}
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]{1,9}\.?[0-9]{0,9}|\.[0-9]{1,9})")
_ZERO_SCALE: Final = re.compile(r"scale(?:3d|x|y)?\(\s*0*\.?0*\s*[,)]")
_TRANSLATE: Final = re.compile(r"translate(?:3d|x|y)?\(([^()]*+)\)")
_OPACITY_FILTER: Final = re.compile(r"opacity\(\s*([0-9.]{1,9})(%?)\s*\)")
_FONT_KEYWORDS: Final = {
    "xx-small": 9.0, "x-small": 10.0, "small": 13.0, "medium": 16.0, "large": 18.0, "x-large": 24.0, "xx-large": 32.0,
}  # fmt: skip

Declared = Mapping[str, Declaration]


@dataclass(frozen=True, slots=True)
class Look:
    """What an element hands down to its text and children."""

    hidden_by: HidingTrick | None = None
    is_visible: bool = True
    opacity: float = 1.0
    font_size: float = _NORMAL_SIZE
    colour: Colour | None = BLACK
    background: Colour | None = WHITE  # None: an image, or a colour that is not understood
    is_indented_away: bool = False

    def trick(self) -> HidingTrick | None:
        """Return how text that stands directly in the element is hidden, or None if a person sees it."""
        if self.hidden_by is not None:
            return self.hidden_by
        if not self.is_visible:
            return HidingTrick.VISIBILITY
        if self.font_size < _SMALLEST_SIZE:
            return HidingTrick.SIZE
        if self.is_indented_away:
            return HidingTrick.OFF_SCREEN
        if self.colour is not None and self.colour[3] <= _LEAST_OPACITY:
            return HidingTrick.COLOUR
        if (
            self.colour is not None
            and self.background is not None
            and _contrast(self.colour, self.background) < _LEAST_CONTRAST
        ):
            return HidingTrick.COLOUR
        return None


def look_of(declared: Declared, parent: Look, *, is_hidden_attribute: bool = False) -> Look:
    """Return an element's look from its declarations (winners only) and its parent's look."""
    if not declared and not is_hidden_attribute:
        return parent
    value = {name: declaration.value for name, declaration in declared.items()}
    font_size = _font_size(value, parent.font_size)
    opacity = parent.opacity * _opacity(value)
    hidden_by = parent.hidden_by or _hidden_as_a_whole(value, font_size)
    if hidden_by is None and opacity <= _LEAST_OPACITY:
        hidden_by = HidingTrick.OPACITY
    if hidden_by is None and is_hidden_attribute and "display" not in value:
        hidden_by = HidingTrick.ATTRIBUTE
    visibility = value.get("visibility")
    return replace(
        parent,
        hidden_by=hidden_by,
        is_visible=parent.is_visible if visibility in {None, "inherit"} else visibility not in {"hidden", "collapse"},
        opacity=opacity,
        font_size=font_size,
        colour=_text_colour(value.get("color"), parent.colour),
        background=_background(value, parent.background),
        is_indented_away=_is_away(value["text-indent"], font_size)
        if "text-indent" in value
        else parent.is_indented_away,
    )


def _hidden_as_a_whole(value: Mapping[str, str], font_size: float) -> HidingTrick | None:
    """What hides an element with all below it, whatever they say."""
    if value.get("display") == "none":
        return HidingTrick.DISPLAY
    clips = any(
        value.get(name, "visible").split()[0] in {"hidden", "clip", "scroll", "auto"}
        for name in ("overflow", "overflow-x", "overflow-y")
    )
    if clips and any(
        _is_nothing(value.get(name), font_size) for name in ("height", "max-height", "width", "max-width")
    ):
        return HidingTrick.SIZE
    if any(_is_away(value.get(name), font_size) for name in ("margin-left", "margin-top")):
        return HidingTrick.OFF_SCREEN
    if value.get("position") in {"absolute", "fixed", "relative"} and any(
        _is_away(value.get(name), font_size) for name in ("left", "top", "right", "bottom")
    ):
        return HidingTrick.OFF_SCREEN
    transform = value.get("transform", "")
    if _ZERO_SCALE.search(transform):
        return HidingTrick.SIZE
    moved = _TRANSLATE.search(transform)
    if moved and any(_is_away(length.strip(), font_size) for length in moved[1].split(",")):
        return HidingTrick.OFF_SCREEN
    if value.get("position") in {"absolute", "fixed"} and _clips_all(value.get("clip", "")):
        return HidingTrick.CLIP
    return HidingTrick.CLIP if _clip_path_leaves_nothing(value.get("clip-path", "")) else None


def _pixels(length: str, font_size: float) -> float | None:
    found = _LENGTH.fullmatch(length)
    if found is None:
        return None
    number, unit = float(found[1]), found[2]
    if unit in {"em", "rem"}:
        return number * font_size
    if unit in {"ex", "ch"}:
        return number * font_size / 2
    if unit == "%":
        return number * 10 if abs(number) >= 100 else None  # noqa: PLR2004 - a window's width away, or unknown
    return number * _PIXELS[unit] if unit else number


def _is_away(length: str | None, font_size: float) -> bool:
    pixels = _pixels(length, font_size) if length else None
    return pixels is not None and pixels <= _OFF_SCREEN


def _is_nothing(length: str | None, font_size: float) -> bool:
    if not length:
        return False
    pixels = 0.0 if length in {"0%", "0.0%"} else _pixels(length, font_size)
    return pixels is not None and pixels <= _NO_EXTENT


def _clips_all(clip: str) -> bool:
    """`rect(top, right, bottom, left)` of no more than a pixel."""
    if not clip.startswith("rect("):
        return False
    edges = [_pixels(edge, _NORMAL_SIZE) for edge in clip[5:].rstrip(")").replace(",", " ").split()]
    if len(edges) != 4 or None in edges:  # noqa: PLR2004 - four edges
        return False
    top, right, bottom, left = (edge or 0.0 for edge in edges)
    return bottom - top <= _NO_EXTENT or right - left <= _NO_EXTENT


def _clip_path_leaves_nothing(path: str) -> bool:
    name, _, inside = path.partition("(")
    if name == "inset":
        first = inside.rstrip(")").split()[:1]
        return bool(first) and first[0].endswith("%") and _number(first[0][:-1], 0.0) >= 50  # noqa: PLR2004 - half from each side
    if name in {"circle", "ellipse"}:
        return inside.split()[:1] in (["0"], ["0)"], ["0px"], ["0px)"], ["0%"], ["0%)"])
    return name == "polygon" and len(set(inside.rstrip(")").replace(",", " ").split())) <= 1


def _number(text: str, otherwise: float) -> float:
    return float(text) if _NUMBER.fullmatch(text) else otherwise


def _opacity(value: Mapping[str, str]) -> float:
    spelled = value.get("opacity", "1")
    opacity = _number(spelled[:-1], 100.0) / 100 if spelled.endswith("%") else _number(spelled, 1.0)
    filtered = _OPACITY_FILTER.search(value.get("filter", ""))
    if filtered:
        opacity *= _number(filtered[1], 1.0) / (100 if filtered[2] else 1)
    return max(0.0, min(opacity, 1.0))


def _font_size(value: Mapping[str, str], inherited: float) -> float:
    spelled = value.get("font-size")
    if spelled is None and "font" in value:
        sizes = (word.partition("/")[0] for word in value["font"].split())
        spelled = next((word for word in sizes if word[:1] in "0123456789." or word in _FONT_KEYWORDS), None)
        if spelled is not None and re.fullmatch("[1-9]00", spelled):  # a weight
            spelled = None
    if spelled is None:
        return inherited
    if spelled in _FONT_KEYWORDS:
        return _FONT_KEYWORDS[spelled]
    if spelled.endswith("%"):
        return inherited * _number(spelled[:-1], 100.0) / 100
    if spelled.endswith("rem"):
        return _NORMAL_SIZE * _number(spelled[:-3], 1.0)
    pixels = _pixels(spelled, inherited)
    return inherited if pixels is None or pixels < 0 else pixels


def _text_colour(spelled: str | None, inherited: Colour | None) -> Colour | None:
    if spelled is None or spelled in {"inherit", "currentcolor"}:
        return inherited
    return parse_colour(spelled)


def _background(value: Mapping[str, str], behind: Colour | None) -> Colour | None:
    shown = behind
    shorthand, image = value.get("background", ""), value.get("background-image", "none")
    if "url(" in shorthand or "gradient(" in shorthand or "url(" in image or "gradient(" in image:
        return None
    # The later of the two was written last and wins; both kept their order.
    for name in ("background", "background-color"):
        spelled = value.get(name)
        if spelled is None or spelled in {"none", "transparent", "inherit", "initial"}:
            continue
        colour = parse_colour(spelled) or next(filter(None, map(parse_colour, spelled.split())), None)
        shown = None if colour is None or (colour[3] < 1 and behind is None) else _over(colour, behind or WHITE)
    return shown


def _over(colour: Colour, behind: Colour) -> Colour:
    alpha = colour[3]
    red, green, blue = (
        above * alpha + below * (1 - alpha) for above, below in zip(colour[:3], behind[:3], strict=True)
    )
    return (red, green, blue, 1.0)


def parse_colour(spelled: str) -> Colour | None:
    """Return a CSS or HTML colour, or None for one that is not understood."""
    spelled = spelled.strip().lower()
    if spelled == "transparent":
        return (0.0, 0.0, 0.0, 0.0)
    digits = _NAMED.get(spelled, spelled.removeprefix("#"))
    if len(digits) in {3, 4, 6, 8} and all(digit in "0123456789abcdef" for digit in digits):
        return _hexadecimal(digits)
    name, _, inside = spelled.partition("(")
    reader = _FUNCTIONS.get(name)
    if reader is None:
        return None
    numbers = inside.rstrip(") ").replace(",", " ").replace("/", " ").split()
    alpha = _number(numbers[3].rstrip("%"), 1.0) / (100 if numbers[3].endswith("%") else 1) if len(numbers) > 3 else 1.0  # noqa: PLR2004 - the fourth
    return reader(numbers[:3], alpha) if len(numbers) >= 3 else None  # noqa: PLR2004 - three channels


def _hexadecimal(digits: str) -> Colour:
    if len(digits) <= 4:  # noqa: PLR2004 - the short forms double each digit
        digits = "".join(digit * 2 for digit in digits)
    red, green, blue = (float(int(digits[at : at + 2], 16)) for at in (0, 2, 4))
    return (red, green, blue, int(digits[6:8], 16) / 255 if len(digits) == 8 else 1.0)  # noqa: PLR2004 - with alpha


def _rgb(numbers: list[str], alpha: float) -> Colour:
    red, green, blue = (
        _number(number[:-1], 0.0) * 2.55 if number.endswith("%") else _number(number, 0.0) for number in numbers
    )
    return (red, green, blue, alpha)


def _hsl(numbers: list[str], alpha: float) -> Colour:
    hue, saturation, lightness = (_number(number.removesuffix("deg").rstrip("%"), 0.0) for number in numbers)
    red, green, blue = colorsys.hls_to_rgb(hue % 360 / 360, lightness / 100, saturation / 100)
    return (red * 255, green * 255, blue * 255, alpha)


_FUNCTIONS: Final[Mapping[str, Callable[[list[str], float], Colour]]] = {
    "rgb": _rgb,
    "rgba": _rgb,
    "hsl": _hsl,
    "hsla": _hsl,
}


@lru_cache(maxsize=256)  # a message has a handful of pairs; hostile ones push each other out
def _contrast(colour: Colour, background: Colour) -> float:
    lighter, darker = sorted((_luminance(_over(colour, background)), _luminance(background)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: Colour) -> float:
    """WCAG 2.2 relative luminance."""
    red, green, blue = (
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4  # noqa: PLR2004 - sRGB's own numbers
        for channel in (min(max(value / 255, 0.0), 1.0) for value in colour[:3])
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue

"""Whether a person sees an element's text, from its declarations and those of the elements around it.

Standard library only. Judged like a browser with a white window would draw it; what cannot be judged (images behind
text, unknown units) counts as visible. CSS Display 3, CSS Fonts 4, CSS 2.2 §10 and §11, CSS Masking 1, CSS Color 4.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Final

from shared.message.colour import BLACK, WHITE, Colour, contrast, over, parse_colour
from shared.message.css import MAX_CUSTOM, MAX_CUSTOM_CHARACTERS, Declaration, four_sides, substituted
from shared.message.lengths import NORMAL_SIZE, WINDOW_WIDTH, pixels_of
from shared.message.reading import HidingTrick

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

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]{1,9}\.?[0-9]{0,9}|\.[0-9]{1,9})")
_TRANSFORM: Final = re.compile(r"(scale|translate)(?:3d|[xyz])?\(([^()]{1,99})\)")
_ROTATED_AWAY: Final = re.compile(r"rotate[xy]\(-?(?:90|270)deg\)")
_OPACITY_FILTER: Final = re.compile(r"opacity\(\s*([0-9.]{1,9})(%?)\s*\)")
_FONT_KEYWORDS: Final = {
    "xx-small": 9.0, "x-small": 10.0, "small": 13.0, "medium": 16.0, "large": 18.0, "x-large": 24.0, "xx-large": 32.0,
}  # fmt: skip

Declared = Mapping[str, Declaration]


class Box(Enum):
    """How an element is laid out, as far as it decides which properties apply to it (CSS 2.2 §10, CSS Transforms 1)."""

    BLOCK = auto()  # has a size of its own that can clip
    INLINE = auto()  # has no size and is not transformed
    TABLE = auto()  # cells and rows grow with what they hold


# Boxes of a size of their own.
_BLOCK_DISPLAYS: Final = frozenset({"block", "inline-block", "flow-root", "flex", "inline-flex", "grid", "list-item"})


# What gives an element room though its lines have no height.
_ROOM: Final = ("height", "min-height", "padding", "padding-top", "padding-bottom")


@dataclass(frozen=True, slots=True)
class Look:
    """What an element hands down to its text and children."""

    hidden_by: HidingTrick | None = None
    is_visible: bool = True
    opacity: float = 1.0
    font_size: float = NORMAL_SIZE
    scale: float = 1.0
    is_flat: bool = False  # lines without height, in a box that clips what hangs out of them
    colour: Colour | None = BLACK
    fill: Colour | None = None  # what letters are filled with instead of `colour`
    background: Colour | None = WHITE  # None: an image, or a colour that is not understood
    is_indented_away: bool = False
    custom: Mapping[str, str] = field(default_factory=dict)

    def trick(self) -> HidingTrick | None:
        """Return how text that stands directly in the element is hidden, or None if a person sees it."""
        if self.hidden_by is not None:
            return self.hidden_by
        if not self.is_visible:
            return HidingTrick.VISIBILITY
        if self.font_size * self.scale < _SMALLEST_SIZE or self.is_flat:
            return HidingTrick.SIZE
        if self.is_indented_away:
            return HidingTrick.OFF_SCREEN
        ink = self.fill or self.colour
        if ink is None:
            return None
        if ink[3] <= _LEAST_OPACITY:
            return HidingTrick.COLOUR
        if self.background is not None and contrast(ink, self.background) < _LEAST_CONTRAST:
            return HidingTrick.COLOUR
        return None


def look_of(declared: Declared, parent: Look, *, is_hidden_attribute: bool = False, box: Box = Box.BLOCK) -> Look:
    """Return an element's look from its declarations (winners only) and its parent's look.

    `box`: what the element is laid out as unless it says otherwise.
    """
    if not declared and not is_hidden_attribute:
        return parent
    value = {name: declaration.value for name, declaration in declared.items()}
    custom = _custom(value, parent.custom)
    if any("var(" in spelled for spelled in value.values()):
        value = {name: substituted(spelled, custom) for name, spelled in value.items()}
    font_size = _font_size(value, parent.font_size)
    opacity = parent.opacity * _opacity(value)
    box = _box(value, box)
    hidden_by = parent.hidden_by or _hidden_as_a_whole(value, font_size, box)
    if hidden_by is None and opacity <= _LEAST_OPACITY:
        hidden_by = HidingTrick.OPACITY
    if hidden_by is None and is_hidden_attribute and "display" not in value:
        hidden_by = HidingTrick.ATTRIBUTE
    visibility = value.get("visibility")
    colour = _text_colour(value.get("color"), parent.colour)
    return replace(
        parent,
        hidden_by=hidden_by,
        is_visible=parent.is_visible if visibility in {None, "inherit"} else visibility not in {"hidden", "collapse"},
        opacity=opacity,
        font_size=font_size,
        scale=parent.scale * _scale(value, box),
        is_flat=_is_flat(value, font_size, box, inherited=parent.is_flat),
        colour=colour,
        fill=_fill(value.get("-webkit-text-fill-color"), parent.fill),
        background=_background(value, parent.background, colour),
        is_indented_away=_is_away(value["text-indent"], font_size)
        if "text-indent" in value
        else parent.is_indented_away,
        custom=custom,
    )


def _custom(value: Mapping[str, str], inherited: Mapping[str, str]) -> Mapping[str, str]:
    declared = {
        name: substituted(spelled, inherited)[:MAX_CUSTOM_CHARACTERS]
        for name, spelled in value.items()
        if name.startswith("--")
    }
    if not declared or len(inherited) + len(declared) > MAX_CUSTOM:
        return inherited
    return {**inherited, **declared}


def _box(value: Mapping[str, str], otherwise: Box) -> Box:
    if value.get("position") in {"absolute", "fixed"} or value.get("float") in {"left", "right"}:
        return Box.BLOCK
    display = value.get("display", "")
    if display.startswith("table"):
        return Box.TABLE
    if display in {"inline", "contents"}:
        return Box.INLINE
    return Box.BLOCK if display in _BLOCK_DISPLAYS else otherwise


def _hidden_as_a_whole(value: Mapping[str, str], font_size: float, box: Box) -> HidingTrick | None:
    """What hides an element with all below it, whatever they say."""
    if value.get("display") == "none" or value.get("content-visibility") == "hidden":
        return HidingTrick.DISPLAY
    if box is Box.BLOCK and _is_clipped_to_nothing(value, font_size):
        return HidingTrick.SIZE
    if box is not Box.INLINE and _ROTATED_AWAY.search(value.get("transform", "")):
        return HidingTrick.SIZE
    if _is_moved_away(value, font_size, box):
        return HidingTrick.OFF_SCREEN
    if value.get("position") in {"absolute", "fixed"} and _clips_all(value.get("clip", "")):
        return HidingTrick.CLIP
    return HidingTrick.CLIP if _clip_path_leaves_nothing(value.get("clip-path", "")) else None


def _clips(value: Mapping[str, str]) -> bool:
    return any(
        value.get(name, "visible").split()[0] in {"hidden", "clip", "scroll", "auto"}
        for name in ("overflow", "overflow-x", "overflow-y")
    )


def _is_clipped_to_nothing(value: Mapping[str, str], font_size: float) -> bool:
    return _clips(value) and any(
        _is_nothing(value.get(name), font_size) for name in ("height", "max-height", "width", "max-width")
    )


def _is_flat(value: Mapping[str, str], font_size: float, box: Box, *, inherited: bool) -> bool:
    if "line-height" not in value:
        return inherited and not any(name in value for name in _ROOM)
    if not _is_nothing(value["line-height"], font_size) or any(name in value for name in _ROOM):
        return False
    return inherited or (box is Box.BLOCK and _clips(value))


def _is_moved_away(value: Mapping[str, str], font_size: float, box: Box) -> bool:
    moves = [] if box is Box.TABLE else [value.get("margin-left")]
    if box is not Box.INLINE:
        moves += [value.get("margin-top") if box is Box.BLOCK else None, *value.get("translate", "").split()]
        for function, inside in _TRANSFORM.findall(value.get("transform", "")):
            if function == "translate":
                moves += inside.split(",")
    position = value.get("position")
    if position in {"absolute", "fixed", "relative"}:
        moves += [value.get(name) for name in ("left", "top", "right", "bottom")]
    if any(_is_away(length.strip(), font_size) for length in moves if length):
        return True
    if position in {"absolute", "fixed"} and any(_is_far(value.get(name), font_size) for name in ("right", "bottom")):
        return True
    is_one_line = value.get("white-space") in {"nowrap", "pre"}
    return is_one_line and _clips(value) and _is_far(value.get("text-indent"), font_size)


def _is_far(length: str | None, font_size: float) -> bool:
    """Whether what is moved by so much leaves a box of the window's width."""
    pixels = pixels_of(length, font_size) if length else None
    return pixels is not None and pixels >= WINDOW_WIDTH


def _scale(value: Mapping[str, str], box: Box) -> float:
    """What an element's letters are shrunk to; growth is none of our business."""
    zoom = value.get("zoom", "1")
    factors = [_number(zoom.rstrip("%"), 1.0) / (100 if zoom.endswith("%") else 1)]
    if box is Box.INLINE:
        return min(1.0, abs(factors[0]))
    factors += [_number(factor, 1.0) for factor in value.get("scale", "").split()]
    for function, inside in _TRANSFORM.findall(value.get("transform", "")):
        if function == "scale":
            factors += [_number(factor.strip(), 1.0) for factor in inside.split(",")]
    return min(1.0, *(abs(factor) for factor in factors))


def _is_away(length: str | None, font_size: float) -> bool:
    pixels = pixels_of(length, font_size) if length else None
    return pixels is not None and pixels <= _OFF_SCREEN


def _is_nothing(length: str | None, font_size: float) -> bool:
    if not length:
        return False
    pixels = 0.0 if length in {"0%", "0.0%"} else pixels_of(length, font_size)
    return pixels is not None and pixels <= _NO_EXTENT


def _clips_all(clip: str) -> bool:
    """`rect(top, right, bottom, left)` of no more than a pixel."""
    if not clip.startswith("rect("):
        return False
    edges = [pixels_of(edge, NORMAL_SIZE) for edge in clip[5:].rstrip(")").replace(",", " ").split()]
    if len(edges) != 4 or None in edges:  # noqa: PLR2004 - four edges
        return False
    top, right, bottom, left = (edge or 0.0 for edge in edges)
    return bottom - top <= _NO_EXTENT or right - left <= _NO_EXTENT


def _clip_path_leaves_nothing(path: str) -> bool:
    name, _, inside = path.partition("(")
    if name == "inset":
        return _insets_leave_nothing(inside.partition(" round")[0].rstrip(")").split())
    if name in {"circle", "ellipse"}:
        return inside.split()[:1] in (["0"], ["0)"], ["0px"], ["0px)"], ["0%"], ["0%)"])
    return name == "polygon" and len(set(inside.rstrip(")").replace(",", " ").split())) <= 1


def _insets_leave_nothing(sides: list[str]) -> bool:
    """One to four shares of the box, from the top on clockwise."""
    if not 1 <= len(sides) <= 4:  # noqa: PLR2004 - four sides
        return False
    top, right, bottom, left = (_number(side[:-1], 0.0) if side.endswith("%") else 0.0 for side in four_sides(sides))
    return top + bottom >= 100 or left + right >= 100  # noqa: PLR2004 - the whole


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
    pixels = pixels_of(spelled, inherited)
    return inherited if pixels is None or pixels < 0 else pixels


def _text_colour(spelled: str | None, inherited: Colour | None) -> Colour | None:
    if spelled is None or spelled in {"inherit", "currentcolor"}:
        return inherited
    return parse_colour(spelled)


def _fill(spelled: str | None, inherited: Colour | None) -> Colour | None:
    if spelled is None or spelled == "inherit":
        return inherited
    return parse_colour(spelled)


def _background(value: Mapping[str, str], behind: Colour | None, text: Colour | None) -> Colour | None:
    shown = behind
    shorthand, image = value.get("background", ""), value.get("background-image", "none")
    if "url(" in shorthand or "gradient(" in shorthand or "url(" in image or "gradient(" in image:
        return None
    # The later of the two was written last and wins; both kept their order.
    for name in ("background", "background-color"):
        spelled = value.get(name)
        if spelled is None or spelled in {"none", "transparent", "inherit", "initial"}:
            continue
        if spelled == "currentcolor":
            return text
        colour = parse_colour(spelled) or next(filter(None, map(parse_colour, spelled.split())), None)
        shown = None if colour is None or (colour[3] < 1 and behind is None) else over(colour, behind or WHITE)
    return shown

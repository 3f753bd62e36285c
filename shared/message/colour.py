"""Colours as CSS and HTML write them, and whether an eye can tell two apart (CSS Color 4, WCAG 2.2)."""

import colorsys
import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

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
    "dimgray": "696969", "dimgrey": "696969", "canvas": "ffffff", "canvastext": "000000", "window": "ffffff",
    "windowtext": "000000", "field": "ffffff", "fieldtext": "000000",
}  # fmt: skip

# What of a colour's name no sender has a use for; a longer one is none.
_MAX_CHARACTERS: Final = 200

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]{1,9}\.?[0-9]{0,9}|\.[0-9]{1,9})")


def parse_colour(spelled: str) -> Colour | None:
    """Return a CSS or HTML colour, or None for one that is not understood."""
    spelled = spelled.strip().lower()
    if spelled == "transparent":
        return (0.0, 0.0, 0.0, 0.0)
    if len(spelled) > _MAX_CHARACTERS:
        return None
    digits = _NAMED.get(spelled, spelled.removeprefix("#"))
    if len(digits) in {3, 4, 6, 8} and all(digit in "0123456789abcdef" for digit in digits):
        return _hexadecimal(digits)
    name, _, inside = spelled.partition("(")
    numbers = inside.rstrip(") ").replace(",", " ").replace("/", " ").split()
    if name == "color" and numbers[:1] == ["srgb"]:
        name, numbers = "srgb", numbers[1:]
    reader = _FUNCTIONS.get(name)
    if reader is None or len(numbers) < 3:  # noqa: PLR2004 - three channels
        return None
    red, green, blue = reader(numbers[:3])
    return (red, green, blue, _share(numbers[3]) if len(numbers) > 3 else 1.0)  # noqa: PLR2004 - the fourth


def over(colour: Colour, behind: Colour) -> Colour:
    """Return what is seen of a colour that lies over an opaque one."""
    alpha = colour[3]
    red, green, blue = (
        above * alpha + below * (1 - alpha) for above, below in zip(colour[:3], behind[:3], strict=True)
    )
    return (red, green, blue, 1.0)


@lru_cache(maxsize=256)  # a message has a handful of pairs; hostile ones push each other out
def contrast(colour: Colour, background: Colour) -> float:
    """Return WCAG 2.2's contrast ratio, from 1 to 21."""
    lighter, darker = sorted((_luminance(over(colour, background)), _luminance(background)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: Colour) -> float:
    red, green, blue = (
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4  # noqa: PLR2004 - sRGB's own numbers
        for channel in (min(max(value / 255, 0.0), 1.0) for value in colour[:3])
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _number(text: str) -> float:
    return float(text) if _NUMBER.fullmatch(text) else 0.0


def _share(text: str, of: float = 1.0) -> float:
    """`50%` of something, or the number itself."""
    return _number(text[:-1]) / 100 * of if text.endswith("%") else _number(text)


def _hexadecimal(digits: str) -> Colour:
    if len(digits) <= 4:  # noqa: PLR2004 - the short forms double each digit
        digits = "".join(digit * 2 for digit in digits)
    red, green, blue = (float(int(digits[at : at + 2], 16)) for at in (0, 2, 4))
    return (red, green, blue, int(digits[6:8], 16) / 255 if len(digits) == 8 else 1.0)  # noqa: PLR2004 - with alpha


_Channels = tuple[float, float, float]


def _rgb(numbers: list[str]) -> _Channels:
    red, green, blue = (_share(number, 255.0) for number in numbers)
    return (red, green, blue)


def _srgb(numbers: list[str]) -> _Channels:
    red, green, blue = (_share(number) * 255 for number in numbers)
    return (red, green, blue)


def _degrees(text: str) -> float:
    return _number(text.removesuffix("deg")) % 360


def _hsl(numbers: list[str]) -> _Channels:
    saturation, lightness = (_number(number.rstrip("%")) / 100 for number in numbers[1:])
    red, green, blue = colorsys.hls_to_rgb(_degrees(numbers[0]) / 360, lightness, saturation)
    return (red * 255, green * 255, blue * 255)


def _hwb(numbers: list[str]) -> _Channels:
    white, black = (_number(number.rstrip("%")) / 100 for number in numbers[1:])
    if white + black >= 1:
        grey = 255 * white / (white + black)
        return (grey, grey, grey)
    red, green, blue = (
        255 * (channel * (1 - white - black) + white)
        for channel in colorsys.hls_to_rgb(_degrees(numbers[0]) / 360, 0.5, 1.0)
    )
    return (red, green, blue)


def _lab(numbers: list[str]) -> _Channels:
    return _from_lab(_share(numbers[0], 100.0), _share(numbers[1], 125.0), _share(numbers[2], 125.0))


def _lch(numbers: list[str]) -> _Channels:
    chroma, hue = _share(numbers[1], 150.0), math.radians(_degrees(numbers[2]))
    return _from_lab(_share(numbers[0], 100.0), chroma * math.cos(hue), chroma * math.sin(hue))


def _from_lab(lightness: float, a: float, b: float) -> _Channels:
    """CSS Color 4 §9.3: CIE Lab under D50 to XYZ; §10.11: Bradford's adaptation and the sRGB matrix in one."""
    y = (lightness + 16) / 116
    x, z = a / 500 + y, y - b / 200
    x, y, z = (
        white * (root**3 if root > 6 / 29 else (root - 4 / 29) * 108 / 841)
        for root, white in ((x, 0.9642957), (y, 1.0), (z, 0.8251046))
    )
    return _from_linear(
        3.1341359 * x - 1.6173864 * y - 0.4906619 * z,
        -0.9787955 * x + 1.9162544 * y + 0.0334427 * z,
        0.0719577 * x - 0.2289769 * y + 1.4053860 * z,
    )


def _oklab(numbers: list[str]) -> _Channels:
    return _from_oklab(_share(numbers[0]), _share(numbers[1], 0.4), _share(numbers[2], 0.4))


def _oklch(numbers: list[str]) -> _Channels:
    chroma, hue = _share(numbers[1], 0.4), math.radians(_degrees(numbers[2]))
    return _from_oklab(_share(numbers[0]), chroma * math.cos(hue), chroma * math.sin(hue))


def _from_oklab(lightness: float, a: float, b: float) -> _Channels:
    """CSS Color 4 §9.3 by its sample code: Oklab to linear sRGB."""
    long = (lightness + 0.3963378 * a + 0.2158038 * b) ** 3
    middle = (lightness - 0.1055613 * a - 0.0638542 * b) ** 3
    short = (lightness - 0.0894842 * a - 1.2914855 * b) ** 3
    return _from_linear(
        4.0767417 * long - 3.3077116 * middle + 0.2309699 * short,
        -1.2684380 * long + 2.6097574 * middle - 0.3413194 * short,
        -0.0041961 * long - 0.7034186 * middle + 1.7076147 * short,
    )


def _from_linear(red: float, green: float, blue: float) -> _Channels:
    red, green, blue = (
        255 * (12.92 * light if light <= 0.0031308 else 1.055 * light ** (1 / 2.4) - 0.055)  # noqa: PLR2004 - sRGB's own numbers
        for light in (min(max(channel, 0.0), 1.0) for channel in (red, green, blue))
    )
    return (red, green, blue)


_FUNCTIONS: Final[Mapping[str, Callable[[list[str]], _Channels]]] = {
    "rgb": _rgb,
    "rgba": _rgb,
    "srgb": _srgb,
    "hsl": _hsl,
    "hsla": _hsl,
    "hwb": _hwb,
    "lab": _lab,
    "lch": _lch,
    "oklab": _oklab,
    "oklch": _oklch,
}

"""What a message's text is once made fit to read: the text, what was taken out of it, and where it came from."""

from dataclasses import dataclass
from enum import StrEnum


class TextSource(StrEnum):
    """Which part the text is made of."""

    PLAIN = "plain"
    HTML = "html"
    NONE = "none"


class HidingTrick(StrEnum):
    """How HTML keeps a text from the eye."""

    DISPLAY = "display"
    VISIBILITY = "visibility"
    OPACITY = "opacity"
    SIZE = "size"
    OFF_SCREEN = "offScreen"
    CLIP = "clip"
    COLOUR = "colour"
    ATTRIBUTE = "attribute"


@dataclass(frozen=True, slots=True)
class HiddenText:
    """Text that a person would not see, and by which trick it is hidden. Preheaders are legitimate; judge with care."""

    text: str
    trick: HidingTrick


@dataclass(frozen=True, slots=True)
class ReadableText:
    """The one text that agent, index and reviewer see; LF line ends; not yet cleaned of invisible characters.

    `reason` says in a sentence of ours why this source was chosen and what was left out; `hidden` never stands in
    `text`.
    """

    text: str
    hidden: tuple[HiddenText, ...]
    source: TextSource
    reason: str

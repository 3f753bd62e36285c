"""What a message's text is once made fit to read: the text, what was taken out of it, and where it came from."""

from dataclasses import dataclass
from enum import StrEnum


class TextSource(StrEnum):
    """Which part the text is made of."""

    PLAIN = "plain"
    HTML = "html"
    NONE = "none"


class BodyChoice(StrEnum):
    """Why the text was taken from the plain or from the HTML alternative."""

    NO_TEXT = "noText"
    PLAIN_ONLY = "plainOnly"
    HTML_ONLY = "htmlOnly"
    ALL_IN_ORDER = "allInOrder"
    PLAIN_SAYS_IT = "plainSaysIt"
    PLAIN_IS_EMPTY = "plainIsEmpty"
    PLAIN_IS_LINKS = "plainIsLinks"
    PLAIN_OFFERS_BROWSER = "plainOffersBrowser"
    PLAIN_IS_SHORT = "plainIsShort"


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

    `choice` says why this source was taken, `reason` the same in a sentence of ours with what was left out; `hidden`
    never stands in `text`. `links` are those of the HTML that can be seen, in order; `titles` what it shows of an
    element to whoever points at it, which does not stand in `text` either.
    """

    text: str
    hidden: tuple[HiddenText, ...]
    source: TextSource
    reason: str
    choice: BodyChoice
    links: "tuple[Link, ...]" = ()
    titles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """A link of HTML: what a person reads, and where it leads as the text shows it. Both are the sender's words."""

    label: str
    target: str

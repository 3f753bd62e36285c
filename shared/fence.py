"""What leaves for a model or a person: cleaned of what the eye cannot see, and fenced so that nothing ends it early.

Mail is data. Cleaning takes out what hides or reorders text; the fence says on every line whose words they are, by a
mark that the sender could not know. The index and the raw views keep the original.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from shared.time_and_chance import RandomOctets

# 128 bits: no sender guesses it, and none is used twice.
_NONCE_OCTETS: Final = 16

# 16 bits, for answers that pay for each character of each line. A mark is drawn after the mail was written and drawn
# again where the mail holds it, so within its answer a short one is as unforgeable as a long one; what is lost is that
# no two answers ever have the same. Whoever draws so short a mark bounds what it fences: a text of 20,000 characters
# holds a third of the 65,536 marks at most, so one is found soon, whatever the text.
SHORT_NONCE_OCTETS: Final = 2

# Unicode's Default_Ignorable_Code_Point, as ranges of first and last (DerivedCoreProperties): soft hyphen, zero-width
# characters, variation selectors, fillers and the tag characters that spell invisible ASCII.
_DEFAULT_IGNORABLE: Final = (
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)

# Interlinear annotation marks hide text between them; no mail program shows them.
_ANNOTATION: Final = ((0xFFF9, 0xFFFB),)

# C0 without TAB and LF, DEL, C1: terminals and parsers act on them.
_CONTROLS: Final = ((0x00, 0x08), (0x0B, 0x1F), (0x7F, 0x9F))

_SURROGATES: Final = ((0xD800, 0xDFFF),)

_REMOVED_RANGES: Final = (*_DEFAULT_IGNORABLE, *_ANNOTATION, *_CONTROLS, *_SURROGATES)
_REMOVED: Final = {code: None for first, last in _REMOVED_RANGES for code in range(first, last + 1)}

# What a reader of lines may take for the end of one.
_LINE_BREAKS: Final = {0x09: " ", 0x0A: " ", 0x0B: " ", 0x0C: " ", 0x0D: " ", 0x85: " ", 0x2028: " ", 0x2029: " "}
_TO_LINE_FEED: Final = {0x2028: "\n", 0x2029: "\n"}

# Most texts hold nothing of it: to look is ten times faster than to translate.
_NOT_CLEAN: Final = re.compile(
    "".join(("[", *(f"{chr(first)}-{chr(last)}" for first, last in _REMOVED_RANGES), "\u2028\u2029]"))
)


@dataclass(frozen=True, slots=True)
class Cleaned:
    """Text without invisible characters, and how many were taken out."""

    text: str
    removed: int


def clean(text: str) -> Cleaned:
    """Return text without default-ignorable, bidi, control and tag characters; LF and TAB stay.

    CR LF and lone CR become LF first and do not count. Idempotent. What is not invisible stays, private use among it.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if _NOT_CLEAN.search(text) is None:
        return Cleaned(text, 0)
    kept = text.translate(_REMOVED)
    return Cleaned(kept.translate(_TO_LINE_FEED), len(text) - len(kept))


def clean_line(text: str) -> Cleaned:
    """Return a value that stands on one line (a subject, a name), cleaned, each line break and tab a space."""
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    line = text.translate(_LINE_BREAKS)
    kept = line.translate(_REMOVED)
    return Cleaned(kept, len(line) - len(kept))


class InvisibleKind(StrEnum):
    """What kind of character the eye does not see; what each is used for, for good or ill."""

    TAG = "tag"  # invisible ASCII: words for a model alone
    BIDI = "bidi"  # reorders what is shown
    CONTROL = "control"  # acts on terminals and parsers
    VARIATION = "variation"  # chooses an emoji's look; in numbers it carries data
    ZERO_WIDTH = "zeroWidth"  # joins emoji, splits words so that no filter finds them
    OTHER = "other"


def _one_of(*ranges: tuple[int, int]) -> str:
    return "[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges) + "]"


_KINDS: Final = {
    InvisibleKind.TAG: re.compile(_one_of((0xE0000, 0xE007F))),
    InvisibleKind.BIDI: re.compile(_one_of((0x061C, 0x061C), (0x200E, 0x200F), (0x202A, 0x202E), (0x2066, 0x2069))),
    InvisibleKind.CONTROL: re.compile(_one_of(*_CONTROLS)),
    InvisibleKind.VARIATION: re.compile(_one_of((0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))),
    InvisibleKind.ZERO_WIDTH: re.compile(
        _one_of((0x00AD, 0x00AD), (0x034F, 0x034F), (0x200B, 0x200D), (0x2060, 0x2064), (0xFEFF, 0xFEFF))
    ),
}

# Tag characters repeat ASCII 128 K higher: U+E0020 to U+E007E are its printable ones.
_TAG_OFFSET: Final = 0xE0000
_TAG_TEXT: Final = re.compile(_one_of((_TAG_OFFSET + 0x20, _TAG_OFFSET + 0x7E)) + "+")


def invisible_kinds(text: str) -> dict[InvisibleKind, int]:
    """Return how many of each kind `clean` takes out of a text, in the order of `InvisibleKind`; none is left out."""
    removed = clean(text).removed
    if not removed:
        return {}
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    counts = {kind: sum(1 for _ in pattern.finditer(text)) for kind, pattern in _KINDS.items()}
    counts[InvisibleKind.OTHER] = removed - sum(counts.values())
    return {kind: count for kind, count in counts.items() if count}


def spelled_by_tags(text: str) -> str:
    """Return the words that tag characters spell, each run on a line: what a model may read and no person sees."""
    return "\n".join("".join(chr(ord(character) - _TAG_OFFSET) for character in run) for run in _TAG_TEXT.findall(text))


class Fence:
    """The mark of one answer: fresh random bits, made anew where they should occur in what they fence.

    `random_octets`: the source, such as `secrets.token_bytes`. `payloads`: every text that the fence will hold.
    `nonce_octets`: how many random octets the mark is made of.
    """

    __slots__ = ("nonce",)

    nonce: str

    def __init__(self, random_octets: RandomOctets, *payloads: str, nonce_octets: int = _NONCE_OCTETS) -> None:
        nonce = random_octets(nonce_octets).hex()
        texts = [*payloads, *(clean(payload).text for payload in payloads)]
        while any(nonce in text for text in texts):
            nonce = random_octets(nonce_octets).hex()
        self.nonce = nonce

    def around(self, label: str, untrusted_text: str) -> str:
        """Return the text with the nonce before each of its lines, between a first and a last line of the fence.

        `label` is ours (what the text is), one line. Raises `ValueError` if the text holds the nonce: it was not among
        the payloads.
        """
        title = clean_line(label).text
        return f"{self.nonce}< untrusted {title}\n{self.marked(untrusted_text)}\n{self.nonce}> end of untrusted {title}"

    def marked(self, untrusted_text: str) -> str:
        """Return the text with the nonce before each of its lines, and no line besides. Raises as `around` does."""
        text = clean(untrusted_text).text
        if self.nonce in untrusted_text or self.nonce in text:
            raise ValueError("the fence was not made for this text")
        return "\n".join(f"{self.nonce}| {line}" for line in text.split("\n"))

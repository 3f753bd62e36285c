"""The lines that a mail program puts above a quote: "On DATE, NAME wrote:", in one line or wrapped."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from shared.message.segments.marks import (
    ATTRIBUTION_BEGINNINGS,
    ATTRIBUTION_VERBS,
    PRONOUNS,
    UNSPACED_VERBS,
    WEEKDAYS,
)

# Long names, two addresses and a time zone stay below. A longer line is a paragraph, and is not looked into.
MAX_ATTRIBUTION_CHARACTERS: Final = 400

# Gmail wraps at 78 columns: date, name, address and verb fill four lines at most.
_MAX_LINES: Final = 4

_ENDINGS: Final = (":", "：")
_TRIM: Final = " \t\r\xa0\u3000*_"
_DATE: Final = re.compile(
    r"(?<![0-9])(?:(?:19|20)[0-9]{2}(?![0-9])|[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{2,4}(?![0-9])|[0-9]{1,2}月[0-9]{1,2}日)"
)
_TIME: Final = re.compile(r"(?<![0-9])[0-9]{1,2}[:.hH：][0-9]{2}(?![0-9])")
_WORD: Final = re.compile(r"[\w'’.()-]+")
_BEGINS_WITH_NUMBER: Final = re.compile(r"[0-9]{1,4}(?:[./年-]|\s)")
_DAY_BEFORE_NUMBER: Final = re.compile(r"([^\W\d_]{2,6})[.,]{0,2} [0-9]{1,2}[ .]")
_BRACKETED: Final = re.compile(r"\* .{1,200}\[.{4,60}\]\s?[:：]")
_ONLY_ADDRESS: Final = re.compile(r"[<\[(]")


@dataclass(frozen=True, slots=True)
class Attribution:
    """Lines from `start` to the one that was asked about; `is_certain` if no quote mark need follow."""

    start: int
    is_certain: bool


def may_end_attribution(line: str) -> bool:
    """Return whether a line ends as attributions do: a colon, or the dashes of Zoho's."""
    if len(line) > MAX_ATTRIBUTION_CHARACTERS:
        return False
    bare = line.rstrip(_TRIM)
    return bare.endswith(_ENDINGS) or (bare.endswith("----") and bare.startswith("----"))


def attribution_ending_at(lines: Sequence[str], last: int, first: int) -> Attribution | None:
    """Return the attribution whose last line is `last` and that begins at `first` or after, or None.

    The caller has asked `may_end_attribution` about the last line. At most four lines are looked at.
    """
    text = ""
    start = last
    for start in range(last, max(first, last - _MAX_LINES + 1) - 1, -1):
        line = lines[start].strip(_TRIM)
        if not line or len(line) + len(text) > MAX_ATTRIBUTION_CHARACTERS:
            start += 1  # noqa: PLW2901 - the paragraph began one line below
            break
        text = f"{line} {text}" if text else line
        certainty = _certainty(_Clues(text))
        if certainty is not None:
            return Attribution(start, certainty)
    return _loose(lines, start, last)


def _loose(lines: Sequence[str], paragraph_start: int, last: int) -> Attribution | None:
    """Names without a date, and what only a quote below can confirm."""
    clues = _Clues(lines[last].strip(_TRIM))
    is_attribution = clues.has_verb or (clues.has_date and (clues.has_address or clues.has_time))
    if not is_attribution and not clues.text.endswith((">:", ">：")) and _BRACKETED.fullmatch(clues.text) is None:
        return None
    is_wrapped = _ONLY_ADDRESS.match(clues.text) is not None or len(clues.words) <= 1
    return Attribution(paragraph_start if is_wrapped else last, is_certain=False)


class _Clues:
    """What the text of a possible attribution holds."""

    def __init__(self, text: str) -> None:
        self.text = " ".join(text.strip("-–— ").casefold().replace("\xa0", " ").split())
        self.words = _WORD.findall(self.text)
        self.has_verb = not ATTRIBUTION_VERBS.isdisjoint(self.words) or any(v in self.text for v in UNSPACED_VERBS)
        self.has_date = _DATE.search(self.text) is not None
        self.has_time = _TIME.search(self.text) is not None
        self.has_address = "@" in self.text

    def begins_with_date(self) -> bool:
        if _BEGINS_WITH_NUMBER.match(self.text):
            return True
        day = _DAY_BEFORE_NUMBER.match(self.text)
        return day is not None and day[1] in WEEKDAYS

    def tells_a_story(self) -> bool:
        if "@" in self.text:
            return False
        return any(
            word in ATTRIBUTION_VERBS and not PRONOUNS.isdisjoint(self.words[max(0, at - 1) : at + 2])
            for at, word in enumerate(self.words)
        )


def _certainty(clues: _Clues) -> bool | None:
    """True: an attribution whatever follows; False: one if a quote follows; None: not (yet) an attribution."""
    begins = clues.text.startswith(ATTRIBUTION_BEGINNINGS)
    begins_with_date = clues.begins_with_date()
    is_dated = clues.has_date and (clues.has_time or clues.has_address)
    if clues.has_verb and (begins or begins_with_date):
        return is_dated and not clues.tells_a_story()
    if begins_with_date and is_dated and clues.text.endswith((">:", ">：")):
        return True
    if clues.has_verb and clues.has_date and clues.has_address and clues.has_time:
        return True  # the name comes first
    return None

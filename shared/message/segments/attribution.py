"""The lines that a mail program puts above a quote: "On DATE, NAME wrote:", in one line or wrapped."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from shared.message.segments.marks import (
    ATTRIBUTION_BEGINNINGS,
    ATTRIBUTION_VERBS,
    AUXILIARIES,
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
_NAME_ADDRESS_VERB: Final = re.compile(r"[^<>:]{1,60}<[^<>@\s]{1,80}@[^<>@\s]{1,80}> ?\w{4,12}[:：]")
_DATE_WITHIN: Final = re.compile(
    r"\s(?:on|op|am|le|el|il|em|den|w dniu)\s(?:[^\W\d_]{2,12}[.,]{0,2}\s){0,2}[0-9]", re.IGNORECASE
)

# "Dr. Anna Maria van der Berg" has six words.
_MAX_NAME_WORDS: Final = 6
_NAME_PARTICLES: Final = frozenset(
    {"van", "von", "der", "den", "de", "del", "di", "da", "do", "dos", "la", "le", "al", "y", "und", "and", "et"}
)


@dataclass(frozen=True, slots=True)
class Attribution:
    """Lines from `start` to the one that was asked about; `is_certain` if no quote mark need follow."""

    start: int
    is_certain: bool


def may_end_attribution(line: str) -> bool:
    """Return whether a line ends as attributions do: a colon, Zoho's dashes, or old Gmail's date and address."""
    if len(line) > MAX_ATTRIBUTION_CHARACTERS:
        return False
    bare = line.rstrip(_TRIM)
    if bare.endswith(_ENDINGS):
        return True
    if bare.endswith("---"):
        return bare.startswith("---")
    return bare.endswith(">") and "@" in bare and bare.lstrip()[:1].isdigit()


def attribution_ending_at(lines: Sequence[str], last: int, first: int) -> Attribution | None:
    """Return the attribution whose last line is `last` and that begins at `first` or after, or None.

    The caller has asked `may_end_attribution` about the last line. At most four lines are looked at.
    """
    text = ""
    start = last
    named: Attribution | None = None
    for at in range(last, max(first, last - _MAX_LINES + 1) - 1, -1):
        line = lines[at].strip(_TRIM)
        if not line or len(line) + len(text) > MAX_ATTRIBUTION_CHARACTERS:
            break
        start = at
        text = f"{line} {text}" if text else line
        clues = _Clues(text)
        certainty = _certainty(clues)
        if certainty is not None:
            return Attribution(start, certainty)
        if named is None and clues.begins_with_name():
            named = Attribution(start, is_certain=True)
    return named or _loose(lines[last], text, start, last)


def _loose(last_line: str, paragraph: str, paragraph_start: int, last: int) -> Attribution | None:
    """Names without a date, and what only a quote below can confirm."""
    clues = _Clues(last_line.strip(_TRIM))
    if _ONLY_ADDRESS.match(clues.text) is not None or len(clues.words) <= 1:  # the name stands on the line above
        return None if _Clues(paragraph).is_shared() else Attribution(paragraph_start, is_certain=False)
    is_dated = clues.has_date and (clues.has_address or clues.has_time)
    is_named = clues.has_verb and (is_dated or clues.has_address or clues.names_somebody())
    if is_named or is_dated or clues.ends_with_address() or _BRACKETED.fullmatch(clues.text) is not None:
        return None if clues.is_shared() else Attribution(last, is_certain=False)
    return None


class _Clues:
    """What the text of a possible attribution holds."""

    def __init__(self, text: str) -> None:
        self.written = " ".join(text.strip("-–— ").replace("\xa0", " ").split())
        self.text = self.written.casefold()
        self.words = _WORD.findall(self.text)
        self.has_verb = not ATTRIBUTION_VERBS.isdisjoint(self.words) or any(v in self.text for v in UNSPACED_VERBS)
        self.has_date = _DATE.search(self.text) is not None
        self.has_time = _TIME.search(self.text) is not None
        self.has_address = "@" in self.text

    def begins_as_attribution(self) -> bool:
        return self.text.startswith(ATTRIBUTION_BEGINNINGS)

    def begins_with_date(self) -> bool:
        if _BEGINS_WITH_NUMBER.match(self.text):
            return True
        day = _DAY_BEFORE_NUMBER.match(self.text)
        return day is not None and day[1] in WEEKDAYS

    def ends_with_address(self) -> bool:
        return self.text.endswith((">:", ">："))

    def begins_with_name(self) -> bool:
        """Whether it is "Bob <bob@example.com> wrote:", or that with a date and a time."""
        if not self.has_verb or self.is_shared():
            return False
        is_whole = self.has_date and self.has_address and self.has_time
        return is_whole or _NAME_ADDRESS_VERB.fullmatch(self.text) is not None

    def names_somebody(self) -> bool:
        """Whether it is like "John van der Berg wrote:" or "You wrote:", not like "See what Bob wrote:"."""
        if any(verb in self.text for verb in UNSPACED_VERBS):
            return True
        names = [word for word in self.written.rstrip(":： ").split() if word.casefold() not in ATTRIBUTION_VERBS]
        return len(names) <= _MAX_NAME_WORDS and all(
            not word[:1].islower() or word in _NAME_PARTICLES or word in AUXILIARIES for word in names
        )

    def is_shared(self) -> bool:
        """Whether new text stands before the attribution, on its own line: "Yes. On 3 May 2024 Bob wrote:"."""
        if self.begins_as_attribution() or self.begins_with_date():
            return False
        inner = _DATE_WITHIN.search(self.text)
        if inner is None:
            return False
        before = _WORD.findall(self.text[: inner.start()])
        return "@" not in self.text[: inner.start()] and ATTRIBUTION_VERBS.isdisjoint(before)

    def tells_a_story(self) -> bool:
        if self.has_address:
            return False
        return any(
            word in ATTRIBUTION_VERBS and not PRONOUNS.isdisjoint(self.words[max(0, at - 1) : at + 2])
            for at, word in enumerate(self.words)
        )


def _certainty(clues: _Clues) -> bool | None:
    """True: an attribution whatever follows; False: one if a quote follows; None: not (yet) an attribution."""
    begins_with_date = clues.begins_with_date()
    is_dated = clues.has_date and (clues.has_time or clues.has_address)
    if clues.has_verb and (clues.begins_as_attribution() or begins_with_date):
        return is_dated and not clues.tells_a_story()
    if begins_with_date and is_dated and clues.ends_with_address():
        return True
    if begins_with_date and clues.has_date and clues.text.endswith(">"):
        return False
    return None

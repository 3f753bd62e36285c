"""The kinds of a text's lines: quotes first, then earlier messages without marks, then signatures."""

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Final

from shared.message.segments.attribution import MAX_ATTRIBUTION_CHARACTERS, attribution_ending_at, may_end_attribution
from shared.message.segments.blocks import (
    header_block_end,
    header_role,
    is_forward_mark,
    is_original_message,
    is_rule,
)
from shared.message.segments.model import SegmentKind
from shared.message.segments.signature import signature_start

# Between an attribution and its quote, or a separator and its header block, programs leave this many empty lines.
_MAX_GAP: Final = 3

# A quote line that a program broke was near the usual width before.
_BROKEN_LINE_MIN_CHARACTERS: Final = 60

# A forward's mark is short, however deep it is quoted.
_MAX_MARKED_CHARACTERS: Final = 200

# No line longer than an attribution is looked into.
_MAX_TELLING_CHARACTERS: Final = MAX_ATTRIBUTION_CHARACTERS + 1
_DRAWN: Final = frozenset("-_=*—–")

# An attribution of a quote is among its first lines.
_MAX_AUTHOR_LINES: Final = 6

_BLANKS: Final = " \t\xa0\u3000\u200b"
# Marks of quotes that somebody chose for himself.
_ODD_MARKS: Final = frozenset("):}%")
_MAX_MARK_CHARACTERS: Final = 6
_QUOTE_MARKS: Final = " \t\xa0\u3000>＞|"
_INITIALS: Final = re.compile(r"[A-Za-z]{1,4}>(?:\s|$)")
_SENTENCE_ENDS: Final = (".", "?", "!", ":", "。", "？", "！", "：")


class ElementMark(Enum):
    """What the HTML's elements say of a line."""

    QUOTE = auto()
    EARLIER_MESSAGE = auto()  # from here on, an earlier message without marks
    SIGNATURE = auto()
    INDENTED = auto()  # a blockquote that only indents


class _Shape(Enum):
    EMPTY = auto()
    TEXT = auto()
    QUOTE = auto()
    MAYBE_QUOTE = auto()  # bars and initials: one if there are two, or an attribution above
    ODD_MARK = auto()  # one only if an attribution stands above, or stood above the first


def line_kinds(lines: Sequence[str], marks: Mapping[int, ElementMark] | None = None) -> list[SegmentKind]:
    """Return the kind of each line; `marks` are what elements say, by line number."""
    return _Reading(lines, marks or {}).kinds()


class _Reading:
    """One pass over the lines."""

    def __init__(self, lines: Sequence[str], marks: Mapping[int, ElementMark]) -> None:
        self.lines = lines
        self.marks = marks
        self.shapes = [_shape(line) for line in lines]
        for at, mark in marks.items():
            if self.shapes[at] is not _Shape.EMPTY:
                self.shapes[at] = _Shape.QUOTE if mark is ElementMark.QUOTE else _Shape.TEXT
        self.result = [SegmentKind.NEW] * len(lines)
        self.is_settled = False
        self.judged_to = 0
        self.has_new = False
        self.all_new_from = len(lines)  # a forwarded message, or nothing

    def kinds(self) -> list[SegmentKind]:
        self._settle_runs()
        at = 0
        while at < self.all_new_from and not self.is_settled:
            self._judge(at)
            at += 1
        self._mark_signatures()
        self._keep_something()
        self._place_empty_lines()
        return self.result

    def _settle_runs(self) -> None:
        """Runs of one shape: what looks like a quote and is none becomes text."""
        confirmed: set[str] = set()
        at = 0
        while at < len(self.lines):
            shape = self.shapes[at]
            end = at + 1
            while end < len(self.lines) and self.shapes[end] is shape:
                end += 1
            if shape in {_Shape.MAYBE_QUOTE, _Shape.ODD_MARK}:
                shape = self._settled(at, end, confirmed)
            elif shape is _Shape.QUOTE and at not in self.marks and self._is_no_quote(at, end):
                shape = _Shape.TEXT
            self.shapes[at:end] = [shape] * (end - at)
            at = end

    def _is_no_quote(self, start: int, end: int) -> bool:
        """`>From` alone is a line that a mailbox file changed; `>>> ` alone is a Python prompt."""
        if end - start == 1 and self.lines[start].startswith(">From "):
            return True
        if self._is_attributed(start):
            return False
        return all(self.lines[at].startswith(">>> ") for at in range(start, end))

    def _settled(self, start: int, end: int, confirmed: set[str]) -> _Shape:
        mark = self.lines[start].split(maxsplit=1)[0][:_MAX_MARK_CHARACTERS]
        if self._is_attributed(start):
            confirmed.add(mark)
        if mark in confirmed:
            return _Shape.QUOTE
        if self.shapes[start] is _Shape.ODD_MARK or end - start == 1:
            return _Shape.TEXT
        if any(self.lines[at].rstrip().endswith("|") or " | " in self.lines[at][1:] for at in range(start, end)):
            return _Shape.TEXT  # a table
        return _Shape.QUOTE

    def _is_attributed(self, start: int) -> bool:
        above = start - 1
        while above >= 0 and start - above <= _MAX_GAP and self.shapes[above] is _Shape.EMPTY:
            above -= 1
        if above < 0 or not may_end_attribution(self.lines[above]):
            return False
        if self.shapes[above] is _Shape.QUOTE:  # Emacs marks the attribution
            line = self.lines[above].lstrip(_QUOTE_MARKS)
            return attribution_ending_at([line], 0, 0) is not None
        return self.shapes[above] is _Shape.TEXT and attribution_ending_at(self.lines, above, 0) is not None

    def _judge(self, at: int) -> None:
        shape = self.shapes[at]
        if shape is _Shape.QUOTE:
            if self._begins_forwarded_quote(at):
                self.all_new_from = at
            else:
                self.result[at] = SegmentKind.QUOTED
        elif shape is _Shape.TEXT:
            self._judge_text(at)

    def _judge_text(self, at: int) -> None:
        line = self.lines[at]
        mark = self.marks.get(at)
        if mark is ElementMark.SIGNATURE:
            self.result[at] = SegmentKind.SIGNATURE
        elif self._is_broken_quote(at):
            self.result[at] = SegmentKind.QUOTED
        elif mark is None and not _is_telling(line):
            return
        elif is_forward_mark(line):
            self.all_new_from = at
        elif self._begins_earlier_message(at):
            self._earlier_message(at)
        elif may_end_attribution(line):
            self._attribution(at)

    def _begins_forwarded_quote(self, at: int) -> bool:
        """A forward's mark as the first line of a quote that nobody is named for."""
        if at > 0 and self.result[at - 1] is SegmentKind.QUOTED:
            return False
        if not is_forward_mark(self.lines[at][:_MAX_MARKED_CHARACTERS].lstrip(_QUOTE_MARKS)):
            return False
        above = at - 1
        while above >= 0 and self.shapes[above] is _Shape.EMPTY:
            above -= 1
        return above < 0 or self.result[above] is not SegmentKind.QUOTED

    def _begins_earlier_message(self, at: int) -> bool:
        line = self.lines[at]
        if self.marks.get(at) is ElementMark.EARLIER_MESSAGE or is_original_message(line):
            return True
        return header_role(line) is not None and header_block_end(self.lines, at) is not None

    def _attribution(self, at: int) -> None:
        found = attribution_ending_at(self.lines, at, self._text_start(at))
        if found is None:
            return
        if self._is_quote_next(at):
            self._quote(found.start, at + 1)
        elif found.is_certain and self._has_new_before(found.start):
            self._earlier_message(found.start)
        # else: which of the lines below are the quote nobody can tell, and none is hidden

    def _text_start(self, at: int) -> int:
        """The first of at most four lines of text up to `at`: an attribution does not reach into a quote."""
        first = at
        while first > max(0, at - 3) and self.shapes[first - 1] is _Shape.TEXT:
            first -= 1
        return first

    def _is_quote_next(self, at: int) -> bool:
        for below in range(at + 1, min(len(self.lines), at + 2 + _MAX_GAP)):
            if self.shapes[below] is not _Shape.EMPTY:
                return self.shapes[below] is _Shape.QUOTE
        return False

    def _earlier_message(self, start: int) -> None:
        """From `start` all is an earlier message; where nothing new stands above, it is what was sent: a forward."""
        while start > 0 and (self.shapes[start - 1] is _Shape.EMPTY or is_rule(self.lines[start - 1])):
            start -= 1
        if self._has_new_before(start):
            self._quote(start, len(self.lines))
            self.is_settled = True
        else:
            self.all_new_from = start

    def _has_new_before(self, end: int) -> bool:
        """Whether there is new text above; stretches that a quote has ended are judged once, however often asked."""
        for start, stretch_end in self._new_stretches(self.judged_to, end):
            begins = signature_start(self.lines, start, stretch_end)
            if any(self.lines[at].strip() for at in range(start, begins)):
                self.has_new = True
            if stretch_end < end:
                self.judged_to = stretch_end
        return self.has_new

    def _new_stretches(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        at = start
        while at < end:
            start = at
            while at < end and self.result[at] is SegmentKind.NEW:
                at += 1
            if at > start:
                yield start, at
            while at < end and self.result[at] is not SegmentKind.NEW:
                at += 1

    def _quote(self, start: int, end: int) -> None:
        self.result[start:end] = [SegmentKind.QUOTED] * (end - start)

    def _is_broken_quote(self, at: int) -> bool:
        """The rest of a quote line that some program broke: between quote lines, going on in mid-sentence."""
        if not 0 < at < len(self.lines) - 1:
            return False
        above = self.lines[at - 1]
        if self.shapes[at - 1] is not _Shape.QUOTE or self.shapes[at + 1] is not _Shape.QUOTE or at in self.marks:
            return False
        if len(above) < _BROKEN_LINE_MIN_CHARACTERS or above.rstrip().endswith(_SENTENCE_ENDS):
            return False
        line = self.lines[at]
        goes_on = line[:1].islower() or self.lines[at + 1].lstrip(_QUOTE_MARKS)[:1].islower()
        return goes_on and len(line) <= _BROKEN_LINE_MIN_CHARACTERS

    def _keep_something(self) -> None:
        """Where nothing is new, what stands for it is: nobody may hide a message from those who read the new text."""
        kinds = {kind for kind, shape in zip(self.result, self.shapes, strict=True) if shape is not _Shape.EMPTY}
        if not kinds or SegmentKind.NEW in kinds:
            return
        is_quote_it = SegmentKind.QUOTED in kinds and not self._names_an_author()
        kept = SegmentKind.QUOTED if is_quote_it else SegmentKind.SIGNATURE
        self.result = [SegmentKind.NEW if kind is kept else kind for kind in self.result]

    def _names_an_author(self) -> bool:
        """Whether the quote says whose it is; else it may be drawn so, or hidden so from those who skip quotes."""
        first = next(at for at, shape in enumerate(self.shapes) if shape is not _Shape.EMPTY)
        lines = [line.lstrip(_QUOTE_MARKS) for line in self.lines[first : first + _MAX_AUTHOR_LINES]]
        return any(
            (may_end_attribution(line) and attribution_ending_at(lines, at, 0) is not None)
            or is_original_message(line)
            or header_role(line) is not None
            for at, line in enumerate(lines)
        )

    def _mark_signatures(self) -> None:
        for start, end in self._new_stretches(0, self.all_new_from):
            begins = signature_start(self.lines, start, end)
            self.result[begins:end] = [SegmentKind.SIGNATURE] * (end - begins)

    def _place_empty_lines(self) -> None:
        """Empty lines belong to what stands above them, those at the beginning to what follows."""
        kind: SegmentKind | None = None
        for at, shape in enumerate(self.shapes):
            if shape is not _Shape.EMPTY:
                if kind is None:
                    self.result[:at] = [self.result[at]] * at
                kind = self.result[at]
            elif kind is not None:
                self.result[at] = kind


def _is_telling(line: str) -> bool:
    """Whether a line of text can stand above an earlier message: marks of all languages have a colon, or begin so."""
    head = line[:_MAX_TELLING_CHARACTERS]
    return ":" in head or "：" in head or head.rstrip().endswith(">") or head.lstrip(_BLANKS)[:1] in _DRAWN


def _shape(line: str) -> _Shape:
    bare = line.lstrip(_BLANKS)
    first = bare[:1]
    if first in {">", "＞"}:
        return _Shape.QUOTE
    if first == "|" and bare[1:2] in {" ", "", "\r"}:
        return _Shape.MAYBE_QUOTE
    if first in _ODD_MARKS and bare[1:2] in {" ", "", "\r"}:
        return _Shape.ODD_MARK
    if ">" in bare[:5] and _INITIALS.match(bare):
        return _Shape.MAYBE_QUOTE
    return _Shape.TEXT if bare.strip() else _Shape.EMPTY

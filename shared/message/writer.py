"""Lines of text from runs, blocks, lists, cells and quotes: the layout of what HTML says, in plain text."""

from dataclasses import dataclass
from typing import Final

_SPACES: Final = "\t\n\f\r"

# Deeper quotes and lists are drawn no deeper: a prefix must not outgrow its text.
_MAX_DRAWN_DEPTH: Final = 10

_RULE: Final = "----------"
_CELL: Final = " | "
_MAX_START_DIGITS: Final = 6


def _collapsed(text: str) -> str:
    """White space as HTML has it, each run as one blank. Twice the length at most is looked at: runs halve."""
    for space in _SPACES:
        text = text.replace(space, " ")
    while "  " in text:
        text = text.replace("  ", " ")
    return text


@dataclass(slots=True)
class _List:
    next_number: int | None


class TextWriter:
    """Builds the text; white space collapses as in HTML, one blank line at most stands between paragraphs."""

    def __init__(self) -> None:
        self.quote_depth = 0
        self._lines: list[str] = []
        self._line: list[str] = []
        self._lists: list[_List] = []
        self._mark = ""  # of a list item, for its first line
        self._wants_blank = False
        self._ends_with_space = True
        self._wants_cell = False
        self._says_something = False  # the line, so far
        self._keeps_indent = False
        self._last_depth = 0

    def text(self) -> str:
        """Return what was written, without blank lines at its ends."""
        self.end_line()
        return "\n".join(self._lines).strip("\n")

    def line_count(self) -> int:
        """Return how many lines are ended."""
        return len(self._lines)

    def mark(self) -> int:
        """Return a place in the line, for `link`."""
        return len(self._line)

    def text_run(self, text: str, *, is_pre: bool) -> None:
        """Add text; in `pre` its lines and blanks stay."""
        if is_pre:
            first, *others = text.split("\n")
            self._keeps_indent = self._keeps_indent or not self._line
            self._add(first)
            for line in others:
                self.line_break()
                self._keeps_indent = True
                self._add(line)
            return
        text = _collapsed(text)
        if self._ends_with_space:
            text = text.removeprefix(" ")
        self._add(text)

    def _add(self, text: str) -> None:
        if not text:
            return
        if self._wants_cell and text != " ":
            self._line.append(_CELL)
            self._wants_cell = False
            text = text.removeprefix(" ")
        self._line.append(text)
        self._ends_with_space = text.endswith(" ")
        self._says_something = self._says_something or not text.isspace()

    def link(self, target: str, label_start: int) -> str:
        """Add a link's target after its label, unless the label is the target; return the label."""
        label = "".join(self._line[label_start:]).strip()
        if _without_scheme(label) != _without_scheme(target):
            blank = "" if self._ends_with_space else " "
            self._add(f"{blank}<{target}>")
        return label

    def line_break(self) -> None:
        """End the line even if it is empty."""
        if self._line:
            self.end_line()
        elif self._lines and self._lines[-1].strip("> "):
            self._lines.append(self._prefix().rstrip())

    def end_line(self) -> None:
        """End the line unless it is empty."""
        text = "".join(self._line)
        text = text.rstrip() if self._keeps_indent else text.strip()
        self._line = []
        self._keeps_indent = False
        self._ends_with_space = True
        self._wants_cell = self._says_something = False
        if not text:
            return
        if self._wants_blank and self._lines and self._lines[-1].strip("> "):
            self._lines.append(("> " * min(self._drawn_quotes(), self._last_depth)).rstrip())
        self._wants_blank = False
        self._last_depth = self._drawn_quotes()
        self._lines.append(self._prefix() + text)
        self._mark = ""

    def end_paragraph(self) -> None:
        """End the line; a blank line will stand before the next."""
        self.end_line()
        self._wants_blank = not (self._lists and self._mark)

    def rule(self) -> None:
        """Draw a horizontal rule."""
        self.end_line()
        self._line.append(_RULE)
        self.end_line()

    def begin_list(self, *, is_numbered: bool, start: str) -> None:
        """Open a list; numbers begin at `start`."""
        is_number = start.isascii() and start.isdigit() and len(start) <= _MAX_START_DIGITS
        self._lists.append(_List((int(start) if is_number else 1) if is_numbered else None))

    def end_list(self) -> None:
        """Close the innermost list."""
        self.end_line()
        if self._lists:
            self._lists.pop()
        self._mark = ""

    def begin_item(self) -> None:
        """Begin an item of the innermost list."""
        innermost = self._lists[-1] if self._lists else _List(None)
        if innermost.next_number is None:
            self._mark = "- "
        else:
            self._mark = f"{innermost.next_number}. "
            innermost.next_number += 1
        self._wants_blank = self._wants_blank and len(self._lines) == 0

    def begin_cell(self) -> None:
        """Begin a table cell: a bar stands between cells that share a line."""
        if self._says_something:
            self._wants_cell = True
            self._ends_with_space = True

    def _drawn_quotes(self) -> int:
        return min(self.quote_depth, _MAX_DRAWN_DEPTH)

    def _prefix(self) -> str:
        indent = "  " * max(0, min(len(self._lists), _MAX_DRAWN_DEPTH) - 1)
        if self._lists and not self._mark:
            indent += "  "
        return "> " * self._drawn_quotes() + indent + self._mark


def _without_scheme(url: str) -> str:
    for scheme in ("https://", "http://", "mailto:", "tel:"):
        if url.lower().startswith(scheme):
            url = url[len(scheme) :]
            break
    return url.rstrip("/").lower()

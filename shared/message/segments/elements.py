"""What the elements of HTML say about the lines of its text: quotes, earlier messages and signatures by their marks."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from shared.message.html import html_to_text
from shared.message.segments.lines import ElementMark

# Elements that begin and end lines: only these can hold whole lines.
_BLOCKS: Final = frozenset({"div", "blockquote", "p", "pre", "table"})

# Gmail, Thunderbird, Yahoo, Proton, Tuta, NetEase, Front: the quote, or the attribution above it.
_QUOTE_CLASSES: Final = frozenset(
    {"gmail_attr", "moz-cite-prefix", "protonmail_quote", "tutanota_quote", "zmail_extra", "front-blockquote"}
)
_QUOTE_CLASS_ENDINGS: Final = ("yahoo_quoted",)
_QUOTE_IDS: Final = frozenset({"isreplycontent", "mail-editor-reference-message-container"})

# Outlook on the web and in the new clients; a prefix `x_` is added at each further reply.
_EARLIER_IDS: Final = ("divrplyfwdmsg",)

_SIGNATURE_CLASSES: Final = frozenset(
    {"gmail_signature", "moz-signature", "protonmail_signature_block", "tutanota_signature", "zmail_signature_below"}
)
_SIGNATURE_IDS: Final = frozenset(
    {"signature", "ms-outlook-mobile-signature", "applemailsignature", "ms-outlook-signature", "zmail_signature"}
)

# Outlook for Windows draws a line above the header block of the earlier message.
_OUTLOOK_BORDER: Final = ("border-top:solid", "padding:3.0pt0")

# Gmail indents new text by a blockquote without a border.
_INDENT: Final = ("border:none", "border:0", "border-width:0")

# Outlook on the web renames what it quotes, once more at each reply.
_X_PREFIX: Final = re.compile(r"(?:x_)++")

Attributes = Mapping[str, str | None]


@dataclass(slots=True)
class MarkedText:
    """The text of HTML, and what the elements say of its lines, by line number."""

    text: str = ""
    marks: dict[int, ElementMark] = field(default_factory=dict)


def marked_text(html: str) -> MarkedText:
    """Return the text of HTML exactly as `html_to_text` makes it, and the marks of its lines."""
    watch = _Watch()
    text = html_to_text(html, watch).text
    return MarkedText(text, watch.line_marks(text.split("\n")))


@dataclass(frozen=True, slots=True)
class _Marked:
    mark: ElementMark
    start: int
    end: int


class _Watch:
    """Told by the walk of each element that begins and ends, with the number of lines written so far."""

    def __init__(self) -> None:
        self._open: list[tuple[ElementMark | None, int]] = []
        self._marked: list[_Marked] = []
        self._is_in_whole = False  # a quote or a signature: what stands in it is of its kind
        self._is_in_indented = False  # quotes may stand in it; a second indent changes nothing

    def enters(self, tag: str, attributes: Attributes, line_count: int) -> None:
        mark = _mark_of(tag, attributes) if tag in _BLOCKS and not self._is_in_whole else None
        if mark is ElementMark.INDENTED and self._is_in_indented:
            mark = None
        self._note(mark, is_open=True)
        self._open.append((mark, line_count))

    def leaves(self, line_count: int) -> None:
        mark, start = self._open.pop()
        if mark is not None:
            self._note(mark, is_open=False)
            self._marked.append(_Marked(mark, start, line_count))

    def _note(self, mark: ElementMark | None, *, is_open: bool) -> None:
        if mark in {ElementMark.QUOTE, ElementMark.SIGNATURE}:
            self._is_in_whole = is_open
        elif mark is ElementMark.INDENTED:
            self._is_in_indented = is_open

    def line_marks(self, lines: list[str]) -> dict[int, ElementMark]:
        marks: dict[int, ElementMark] = {}
        for marked in self._marked:
            within = (at for at in range(marked.start, min(marked.end, len(lines))) if lines[at].strip("> "))
            if marked.mark is ElementMark.EARLIER_MESSAGE:
                for at in within:
                    marks[at] = marked.mark
                    break
                continue
            for at in within:
                marks.setdefault(at, marked.mark)
        return marks


def _mark_of(tag: str, attributes: Attributes) -> ElementMark | None:
    classes = {name.casefold() for name in (attributes.get("class") or "").split()}
    identifier = _without_x((attributes.get("id") or "").casefold())
    style = "".join((attributes.get("style") or "").casefold().split())
    if identifier in _EARLIER_IDS or all(piece in style for piece in _OUTLOOK_BORDER):
        return ElementMark.EARLIER_MESSAGE
    if tag == "blockquote":
        return ElementMark.INDENTED if _only_indents(classes, attributes, style) else ElementMark.QUOTE
    names = {_without_x(name) for name in classes}
    if not _QUOTE_CLASSES.isdisjoint(names) or identifier in _QUOTE_IDS:
        return ElementMark.QUOTE
    if any(name.endswith(_QUOTE_CLASS_ENDINGS) for name in (*names, identifier)):
        return ElementMark.QUOTE
    if not _SIGNATURE_CLASSES.isdisjoint(names) or identifier in _SIGNATURE_IDS:
        return ElementMark.SIGNATURE
    return None


def _only_indents(classes: set[str], attributes: Attributes, style: str) -> bool:
    if classes or (attributes.get("type") or "").casefold() == "cite":
        return False
    return any(piece in style for piece in _INDENT) and "border-left" not in style


def _without_x(name: str) -> str:
    prefix = _X_PREFIX.match(name)
    return name[prefix.end() :] if prefix else name

"""Hostile HTML cut into tags and text, and written out again as HTML that no parser can misread or choke on.

lexbor takes a minute for 50,000 nested elements, 16 s for 50,000 options and 4 s for 40,000 attributes. So this
scanner, one pass by the tokenizer's rules (WHATWG HTML §13.2.5), comes first: it keeps the elements and attributes
that matter for reading, drops comments, scripts and foreign content's rules, and counts what building the tree costs.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape, unescape
from typing import Final, NamedTuple

# Newsletters nest tables some 60 elements deep.
MAX_NESTING: Final = 300

# Formatting elements that stay open are opened again in each block: their number times the blocks is the cost.
MAX_OPEN_FORMATTING: Final = 100
_MAX_REOPENED: Final = 200_000

# RFC 8621 sets no limit; the longest newsletters stay below 500 kB. The rest is not read, and the reader is told.
MAX_HTML_CHARACTERS: Final = 2 * 1024 * 1024

# More attributes than any element has meaning for; of the rest only the first named here are looked at anyway.
_MAX_ATTRIBUTES: Final = 64

_TAG_NAME: Final = re.compile(r"[A-Za-z][^ \t\n\f\r/>]*+")
_ATTRIBUTE: Final = re.compile(
    r"[ \t\n\f\r/]*+(?:(?P<end>>)|(?P<name>[^ \t\n\f\r/>][^ \t\n\f\r/>=]*+)"
    r"(?:[ \t\n\f\r]*+=[ \t\n\f\r]*+"
    r"(?:\"(?P<double>[^\"]*+)(?:\"|\Z)|'(?P<single>[^']*+)(?:'|\Z)|(?P<bare>[^ \t\n\f\r>\"'][^ \t\n\f\r>]*+))?+)?+)"
)
_COMMENT_END: Final = re.compile(r"--!?>")

_RAW_TEXT: Final = {
    name: re.compile(rf"</{name}(?=[ \t\n\f\r/>])", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "template")
}

# What a browser shows as it stands, markup and all.
_SHOWN_RAW_TEXT: Final = frozenset({"textarea", "xmp"})

VOID: Final = frozenset({"br", "hr", "img", "wbr"})
_FORMATTING_WORDS: Final = "a b big code em font i nobr s small strike strong tt u"
_FORMATTING: Final = frozenset(_FORMATTING_WORDS.split())
_IMPLIED_END_WORDS: Final = "p li dd dt tr td th tbody thead tfoot"
_IMPLIED_END: Final = frozenset(_IMPLIED_END_WORDS.split())
_BARRIERS: Final = frozenset({"table", "td", "th", "caption"})
_BLOCKS_WORDS: Final = (
    "address blockquote center dd div dl dt h1 h2 h3 h4 h5 h6 li ol p pre table tbody td tfoot th thead tr ul "
    "caption body"
)
_BLOCKS: Final = frozenset(_BLOCKS_WORDS.split())
_KEPT: Final = VOID | _FORMATTING | _BLOCKS | {"span"}
_AS_DIV_WORDS: Final = (
    "article aside details dialog dir fieldset figcaption figure footer form header hgroup legend main menu nav "
    "optgroup option search section select summary button marquee noscript object"
)
_AS_DIV: Final = frozenset(_AS_DIV_WORDS.split())
_AS_SPAN_WORDS: Final = (
    "abbr acronym bdi bdo cite data del dfn ins kbd label mark q rb rp rt ruby samp sub sup time var"
)
_AS_SPAN: Final = frozenset(_AS_SPAN_WORDS.split())
_KEPT_ATTRIBUTES_WORDS: Final = (
    "style class id href alt width height hidden bgcolor background color size text link start dir open type popover"
    " colspan rowspan title"
)
_KEPT_ATTRIBUTES: Final = frozenset(_KEPT_ATTRIBUTES_WORDS.split())


# What stands in these is for programs that do not know them, or for other elements to take from.
_NEVER_SHOWN: Final = frozenset({"audio", "datalist", "video"})
_NOT_SHOWN: Final = {"style": "display:none!important"}


class Tag(NamedTuple):
    """A start or end tag of a kept element, with the attributes that matter, unescaped; the first of a name counts."""

    name: str
    is_end: bool
    attributes: dict[str, str]


@dataclass(slots=True)
class Markup:
    """HTML written out again, the style sheets it held, and its mere text for when it cannot be laid out."""

    html: str = ""
    style_sheets: list[str] = field(default_factory=list)
    bare_text: str = ""
    is_too_complex: bool = False


def rewrite(html: str) -> Markup:
    """Return HTML that builds the same visible text, at a bounded cost for each character."""
    markup = Markup()
    written: list[str] = []
    bare: list[str] = []
    cost = _Cost()
    for piece in _pieces(html, markup.style_sheets):
        if isinstance(piece, str):
            written.append(piece.replace("<", "&lt;").replace(">", "&gt;"))
            bare.append(piece)
            continue
        cost.count(piece)
        written.append(_written(piece))
        if piece.name in _BLOCKS or piece.name in VOID:
            bare.append("\n")
    markup.html = "".join(written)
    markup.bare_text = unescape("".join(bare))
    markup.is_too_complex = cost.is_too_high
    return markup


def _written(tag: Tag) -> str:
    if tag.is_end:
        return f"</{tag.name}>"
    if not tag.attributes:
        return f"<{tag.name}>"
    attributes = "".join(f' {name}="{escape(value)}"' for name, value in tag.attributes.items())
    return f"<{tag.name}{attributes}>"


def _pieces(html: str, style_sheets: list[str]) -> Iterator[Tag | str]:
    position = 0
    while (opening := html.find("<", position)) >= 0:
        if opening > position:
            yield html[position:opening]
        following = html[opening + 1 : opening + 2]
        if following.isascii() and following.isalpha():
            tag, position = _tag_at(html, opening + 1, is_end=False)
            raw = _RAW_TEXT.get(tag.name)
            if raw is not None:
                start = position
                position = _after_raw_text(html, position, raw, style_sheets if tag.name == "style" else None)
                yield _shown_raw_text(html, start, position, tag.name)
            elif tag.name == "plaintext":
                # It has no end (HTML, "plaintext"): a browser shows the rest as it stands.
                yield escape(html[position:])
                return
            elif name := _kept_name(tag.name):
                yield Tag(name, is_end=False, attributes=_attributes(tag))
        elif following == "/" and (end_name := _TAG_NAME.match(html, opening + 2)):
            tag, position = _tag_at(html, end_name.start(), is_end=True)
            if name := _kept_name(tag.name):
                yield Tag(name, is_end=True, attributes={})
        elif following and following in "/!?":
            position = _after_comment(html, opening)
        else:
            yield "<"
            position = opening + 1
    yield html[position:]


def _attributes(tag: Tag) -> dict[str, str]:
    if tag.name in _NEVER_SHOWN:
        return _NOT_SHOWN
    if tag.name == "dialog" and "open" not in tag.attributes:
        return {**tag.attributes, "hidden": ""}
    return tag.attributes


def _kept_name(name: str) -> str:
    if name in _KEPT:
        return name
    if name in _AS_DIV:
        return "div"
    return "span" if name in _AS_SPAN or name in _NEVER_SHOWN else ""


def _tag_at(html: str, start: int, *, is_end: bool) -> tuple[Tag, int]:
    found = _TAG_NAME.match(html, start)
    name = found[0].lower() if found else ""
    position = found.end() if found else start
    attributes: dict[str, str] = {}
    count = 0
    while attribute := _ATTRIBUTE.match(html, position):
        position = attribute.end()
        if attribute["end"]:
            return Tag(name, is_end, attributes), position
        count += 1
        attribute_name = attribute["name"].lower()
        if count <= _MAX_ATTRIBUTES and attribute_name in _KEPT_ATTRIBUTES and attribute_name not in attributes:
            value = attribute["double"] or attribute["single"] or attribute["bare"] or ""
            attributes[attribute_name] = unescape(value) if "&" in value else value
    return Tag("", is_end, {}), len(html)  # a tag that never ends is no tag, and nothing follows it


def _after_raw_text(html: str, position: int, end: re.Pattern[str], style_sheets: list[str] | None) -> int:
    closing = end.search(html, position)
    if closing is None:
        return len(html)
    if style_sheets is not None:
        style_sheets.append(html[position : closing.start()])
    return _tag_at(html, closing.start() + 2, is_end=True)[1]


def _shown_raw_text(html: str, start: int, end: int, name: str) -> str:
    if name not in _SHOWN_RAW_TEXT:
        return ""
    closing = _RAW_TEXT[name].search(html, start, end)
    return escape(html[start : closing.start() if closing else end])


def _after_comment(html: str, opening: int) -> int:
    """Comments end by their own rule; `<!x`, `<?x` and `</ x` run to the next `>`."""
    if not html.startswith("<!--", opening):
        end = html.find(">", opening)
        return len(html) if end < 0 else end + 1
    for at_once in (">", "->"):
        if html.startswith(at_once, opening + 4):
            return opening + 4 + len(at_once)
    closing = _COMMENT_END.search(html, opening + 4)
    return closing.end() if closing else len(html)


@dataclass(slots=True)
class _Cost:
    """What the tree will cost: how deep elements nest, how often open formatting is opened again."""

    stack: list[str] = field(default_factory=list)
    formatting: dict[str, list[str]] = field(default_factory=dict)
    open_formatting: int = 0
    reopened: int = 0
    is_too_high: bool = False

    def count(self, tag: Tag) -> None:
        if self.is_too_high or tag.name in VOID:
            return
        if tag.is_end:
            self._close(tag.name)
        else:
            self._open(tag)
        self.is_too_high = (
            len(self.stack) > MAX_NESTING or self.open_formatting > MAX_OPEN_FORMATTING or self.reopened > _MAX_REOPENED
        )

    def _open(self, tag: Tag) -> None:
        self.reopened += self.open_formatting
        if tag.name in _FORMATTING:
            spelled = str(tag.attributes)
            alike = self.formatting.setdefault(tag.name, [])
            # Of open elements that are alike only three count (WHATWG HTML §13.2.4.3).
            if alike[-3:].count(spelled) < 3:  # noqa: PLR2004 - see above
                alike.append(spelled)
                self.open_formatting += 1
        if tag.name not in _IMPLIED_END:
            self.stack.append(tag.name)

    def _close(self, name: str) -> None:
        if self.formatting.get(name):
            self.formatting[name].pop()
            self.open_formatting -= 1
        if name in _IMPLIED_END:
            return
        for back in range(1, min(len(self.stack), _MAX_MISNESTED) + 1):
            if self.stack[-back] == name:
                del self.stack[-back:]
                return
            if self.stack[-back] in _BARRIERS:
                return


# An end tag is sought this far up; people misnest by one or two.
_MAX_MISNESTED: Final = 16

"""HTML made into the text that a person would see, block by block; what is hidden is handed over apart.

The only module that loads selectolax. lexbor gets nothing but what `markup` wrote out again; the walk over its tree is
iterative.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, cast

from selectolax.lexbor import LexborHTMLParser

from shared.message.css import Declaration, ElementKey, StyleSheet, declarations
from shared.message.limits import MAX_LINKS, MAX_TITLES
from shared.message.markup import MAX_HTML_CHARACTERS, rewrite
from shared.message.reading import BodyChoice, HiddenText, HidingTrick, Link, ReadableText, TextSource
from shared.message.visibility import Box, Look, look_of
from shared.message.writer import TextWriter

# A person checks the host; a machine that needs more asks for the HTML.
_MAX_TARGET_CHARACTERS: Final = 2_000

# A label that names a host names it at once; what stands in a longer one is text.
_MAX_LABEL_CHARACTERS: Final = 500

# Of the other schemes only the name is shown: their content is code or data.
_SHOWN_SCHEMES: Final = frozenset({"http", "https", "ftp", "mailto", "tel"})

_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]{0,30}):", re.IGNORECASE)
_NOT_IN_URL: Final = dict.fromkeys((*range(32), 127))
_TINY: Final = re.compile(r"\s*[01](?:px)?\s*")

_PARAGRAPHS: Final = frozenset({"p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "ul", "ol", "dl"})
_TABLE_PARTS: Final = frozenset({"table", "thead", "tbody", "tfoot", "tr", "td", "th", "caption"})
_LINES: Final = frozenset({"div", "li", "tr", "dt", "dd", "address", "center", "table", "caption", "body"})

_BOXES: Final = {tag: Box.TABLE if tag in _TABLE_PARTS else Box.BLOCK for tag in _PARAGRAPHS | _LINES | _TABLE_PARTS}

# Links do not take the colour of the text around them (WHATWG HTML §15.3.4).
_LINK_COLOUR: Final = Declaration("#0000ee", is_important=False)

_NOT_LAID_OUT: Final = (
    "The HTML is too deeply nested or too long to be laid out; its tags were removed, nothing was judged hidden."
)
_CUT: Final = "The HTML was cut after 2 MiB."


class _Node(Protocol):
    """What is used of a lexbor node."""

    tag: str | None
    attributes: dict[str, str | None]
    is_element_node: bool
    is_text_node: bool
    text_content: str | None
    child: "_Node | None"
    next: "_Node | None"


class ElementWatch(Protocol):
    """Told of each element of the body, with the number of lines before it and after it."""

    def enters(self, tag: str, attributes: Mapping[str, str | None], line_count: int) -> None:
        """An element begins; if it begins a line, that is the line with the number `line_count`, from 0."""

    def leaves(self, line_count: int) -> None:
        """The innermost element ends."""


def html_to_text(html: str, watch: ElementWatch | None = None) -> ReadableText:
    """Return what a person sees of the HTML, and the hidden texts with the trick that hides each.

    Links show their real target where the text is not that; lists have marks, table rows stand on a line, quotes have
    `> ` before each line, images stand by their alternative text. Any string gives a value.
    """
    markup = rewrite(html[:MAX_HTML_CHARACTERS])
    reasons = [_CUT] if len(html) > MAX_HTML_CHARACTERS else []
    sheet = StyleSheet(markup.style_sheets)
    if markup.is_too_complex:
        return _bare(markup.bare_text, reasons)
    walk = _Walk(sheet, watch)
    tree = LexborHTMLParser(markup.html)
    if tree.root is not None:
        walk.over(cast("_Node", tree.root))
    if sheet.is_exhausted:
        return _bare(markup.bare_text, reasons)
    return ReadableText(
        walk.writer.text(),
        tuple(HiddenText(" ".join(pieces), trick) for trick, pieces in walk.hidden),
        TextSource.HTML,
        " ".join(reasons),
        BodyChoice.HTML_ONLY,
        tuple(walk.links),
        tuple(walk.titles),
    )


def _bare(text: str, reasons: list[str]) -> ReadableText:
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return ReadableText(
        "\n".join(line for line in lines if line),
        (),
        TextSource.HTML,
        " ".join([_NOT_LAID_OUT, *reasons]),
        BodyChoice.HTML_ONLY,
    )


@dataclass(slots=True)
class _Open:
    """An element that the walk is in."""

    key: ElementKey
    look: Look
    target: str
    label_start: int
    is_pre: bool


class _Walk:
    """Once through the tree, text going to the writer or to the hidden ones."""

    def __init__(self, sheet: StyleSheet, watch: ElementWatch | None) -> None:
        self.sheet = sheet
        self.watch = watch
        self.writer = TextWriter()
        self.hidden: list[tuple[HidingTrick, list[str]]] = []
        self.links: list[Link] = []
        self.titles: list[str] = []
        self.open: list[_Open] = []
        self.keys: list[ElementKey] = []
        self.was_hidden_by: HidingTrick | None = None
        self.link_colour = _LINK_COLOUR

    def over(self, root: _Node) -> None:
        waiting: list[_Node | None] = [root]  # None: the innermost open element ends
        while waiting:
            node = waiting.pop()
            if node is None:
                self._leave()
            elif node.is_text_node:
                self._text(node.text_content or "")
            elif node.is_element_node and node.tag != "head":
                self._enter(node)
                waiting.append(None)
                children: list[_Node | None] = []
                child = node.child
                while child is not None:
                    children.append(child)
                    child = child.next
                waiting.extend(reversed(children))

    def _text(self, text: str) -> None:
        current = self.open[-1] if self.open else None
        trick = current.look.trick() if current and not text.isspace() else None
        if trick is None:
            self.writer.text_run(text, is_pre=current is not None and current.is_pre)
            if not text.isspace():
                self.was_hidden_by = None
            return
        self._hide(text, trick)

    def _hide(self, text: str, trick: HidingTrick) -> None:
        shown = " ".join(text.split())
        if not shown:
            return
        if self.was_hidden_by is not trick:
            self.hidden.append((trick, []))
        self.hidden[-1][1].append(shown)
        self.was_hidden_by = trick

    def _enter(self, node: _Node) -> None:
        attributes = node.attributes
        tag = node.tag or ""
        key = ElementKey(tag, attributes.get("id") or "", frozenset((attributes.get("class") or "").split()))
        parent = self.open[-1] if self.open else None
        declared = self._declared(key, attributes)
        look = look_of(
            declared,
            parent.look if parent else Look(),
            is_hidden_attribute="hidden" in attributes or "popover" in attributes,
            box=_BOXES.get(tag, Box.INLINE),
        )
        is_pre = tag == "pre" or (parent is not None and parent.is_pre)
        if look.hidden_by is None:
            self._begin(tag, attributes)
        target = _target(attributes.get("href") or "") if tag == "a" and look.trick() is None else ""
        if self.watch is not None:
            self.watch.enters(tag, attributes, self.writer.line_count())
        self.open.append(_Open(key, look, target, self.writer.mark(), is_pre))
        self.keys.append(key)
        title = attributes.get("title")
        if title and len(self.titles) < MAX_TITLES and look.trick() is None:
            self.titles.append(" ".join(title.split()))
        if tag == "img":
            self._image(attributes, look)

    def _declared(self, key: ElementKey, attributes: Mapping[str, str | None]) -> Mapping[str, Declaration]:
        """The cascade: attributes, rules by weight, the style attribute, and what is !important over all."""
        rules = self.sheet.matching(key, self.keys)
        style = attributes.get("style")
        presentational = _presentational(attributes)
        if key.tag == "body" and attributes.get("link"):
            self.link_colour = Declaration((attributes["link"] or "").strip().lower(), is_important=False)
        if key.tag == "a" and attributes.get("href") is not None:
            presentational["color"] = self.link_colour
        if not rules and not style:
            return presentational
        layers: list[Mapping[str, Declaration]] = [presentational, *(rule.declarations for rule in rules)]
        if style:
            layers.append(declarations(style))
        winners: dict[str, Declaration] = {}
        for layer in layers:
            for name, declaration in layer.items():
                before = winners.get(name)
                if before is None or declaration.is_important or not before.is_important:
                    winners[name] = declaration
        return winners

    def _begin(self, tag: str, attributes: Mapping[str, str | None]) -> None:
        writer = self.writer
        if tag in _PARAGRAPHS:
            writer.end_paragraph()
        elif tag in _LINES:
            writer.end_line()
        match tag:
            case "br":
                writer.line_break()
            case "hr":
                writer.rule()
            case "blockquote":
                writer.quote_depth += 1
            case "ul" | "ol":
                writer.begin_list(is_numbered=tag == "ol", start=attributes.get("start") or "")
            case "li":
                writer.begin_item()
            case "td" | "th":
                writer.begin_cell()

    def _leave(self) -> None:
        ended = self.open.pop()
        self.keys.pop()
        if ended.look.hidden_by is None:
            self._end(ended)
        if self.watch is not None:
            self.watch.leaves(self.writer.line_count())

    def _end(self, ended: _Open) -> None:
        tag = ended.key.tag
        if ended.target:
            self._link(ended.target, ended.label_start)
        match tag:
            case "ul" | "ol":
                self.writer.end_list()
            case "blockquote":
                self.writer.end_paragraph()
                self.writer.quote_depth -= 1
        if tag in _PARAGRAPHS:
            self.writer.end_paragraph()
        elif tag in _LINES:
            self.writer.end_line()

    def _link(self, target: str, label_start: int) -> None:
        label = self.writer.link(target, label_start)
        if len(self.links) < MAX_LINKS:
            self.links.append(Link(label[:_MAX_LABEL_CHARACTERS], target))

    def _image(self, attributes: Mapping[str, str | None], look: Look) -> None:
        alternative = " ".join((attributes.get("alt") or "").split())
        if not alternative:
            return
        trick = look.trick()
        if trick is None and any(_TINY.fullmatch(attributes.get(name) or "") for name in ("width", "height")):
            trick = HidingTrick.SIZE
        if trick is None:
            self.writer.text_run(f"[image: {alternative}]", is_pre=False)
        else:
            self._hide(alternative, trick)


def _presentational(attributes: Mapping[str, str | None]) -> dict[str, Declaration]:
    """Attributes of old that say what CSS says (WHATWG HTML §15.3)."""
    found: dict[str, Declaration] = {}
    for name, css_name in _PRESENTATIONAL:
        value = attributes.get(name)
        if value:
            found[css_name] = Declaration(value.strip().lower(), is_important=False)
    if attributes.get("background"):
        found["background-image"] = Declaration("url()", is_important=False)
    return found


_PRESENTATIONAL: Final[Sequence[tuple[str, str]]] = (
    ("bgcolor", "background-color"),
    ("color", "color"),
    ("text", "color"),
)


def _target(href: str) -> str:
    """A link's target as a browser would follow it, in one word; code and data by their scheme only."""
    target = href.translate(_NOT_IN_URL).strip()
    if not target or target.startswith("#"):
        return ""
    scheme = _SCHEME.match(target)
    if scheme is None and "." not in target:
        return ""  # a place within some site that the mail does not name
    if scheme is not None and scheme[1].lower() not in _SHOWN_SCHEMES:
        return f"{scheme[1].lower()}:…"
    target = target.replace("<", "%3C").replace(">", "%3E").replace(" ", "%20")
    return target if len(target) <= _MAX_TARGET_CHARACTERS else target[:_MAX_TARGET_CHARACTERS] + "…"

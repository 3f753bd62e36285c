"""As much of CSS as decides whether a person sees a text: declarations, simple selectors, colours and lengths.

Standard library only, one pass over hostile style sheets. What it does not know it ignores, so that text counts as
visible. CSS Cascading 4 §6, Selectors 4, CSS Color 4.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from shared.message.colour import parse_colour
from shared.message.lengths import WINDOW_WIDTH

# Mail styles have some 200 rules; only those that can hide something are kept.
_MAX_RULES: Final = 2_000
_MAX_STYLE_CHARACTERS: Final = 512 * 1024
_MAX_COMPOUNDS: Final = 6

# Rules that are looked at for elements, and declarations of those that match, all elements together.
_MAX_MATCHES: Final = 1_000_000

_COMMENT: Final = re.compile(r"/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)")
_ESCAPE: Final = re.compile(r"\\(?:([0-9A-Fa-f]{1,6})[ \t\n\r\f]?|(.))", re.DOTALL)
_COMPOUND: Final = re.compile(r"(?P<tag>\*|[a-z][a-z0-9]*+)?(?P<rest>(?:[.#][\w-]++)*+)", re.IGNORECASE)
_SIMPLE: Final = re.compile(r"([.#])([\w-]++)")
_WIDTH_FEATURE: Final = re.compile(r"\(\s*(min|max)-(?:device-)?width\s*:\s*([0-9]{1,6})(?:\.[0-9]{1,6})?px\s*\)")

_WIDTH_RANGE: Final = re.compile(r"\(\s*width\s*(<=?|>=?)\s*([0-9]{1,6})(?:\.[0-9]{1,6})?px\s*\)")
_TESTED: Final = re.compile(r"\(\s*([a-z-]{1,40}+)\s*:")

# Selectors that say the same in another way.
_SAME_AS_CLASS: Final = re.compile(r"\[\s*class\s*~=\s*[\"']?([\w-]++)[\"']?\s*\]", re.IGNORECASE)
_SAME_AS_ID: Final = re.compile(r"\[\s*id\s*=\s*[\"']?([\w-]++)[\"']?\s*\]", re.IGNORECASE)
_SELECTOR: Final = re.compile(r"(?:[^,()]++|\([^()]*+\)|[()])++")
_ANY_OF: Final = re.compile(r":(?:is|where)\(([^()]*+)\)", re.IGNORECASE)
_MAX_ALTERNATIVES: Final = 20

RELEVANT_WORDS: Final = (
    "display visibility opacity filter font-size font height max-height width max-width overflow overflow-x overflow-y "
    "position left top right bottom text-indent margin-left margin-top transform clip clip-path color background "
    "background-color background-image content-visibility line-height min-height padding padding-top padding-bottom "
    "scale translate zoom white-space float -webkit-text-fill-color"
)
RELEVANT: Final = frozenset(RELEVANT_WORDS.split())

# What `@supports` may ask of any browser of the last ten years; what else it asks counts as not supported.
_SUPPORTED_WORDS: Final = "margin flex gap grid grid-template-columns grid-template-areas object-fit border-radius"
_SUPPORTED: Final = RELEVANT | frozenset(_SUPPORTED_WORDS.split())

# Names that mean the same where text runs from left to right and down, and prefixes of old.
_SAME: Final = {
    "block-size": "height",
    "inline-size": "width",
    "max-block-size": "max-height",
    "max-inline-size": "max-width",
    "margin-inline-start": "margin-left",
    "margin-block-start": "margin-top",
    "-webkit-transform": "transform",
    "-webkit-clip-path": "clip-path",
}
_SHORTHANDS: Final = {
    "margin": ("margin-top", "", "", "margin-left"),
    "inset": ("top", "right", "bottom", "left"),
}

# A declaration that no browser understands does not count: it would undo the one before it.
_DISPLAY_WORDS: Final = (
    "none block inline inline-block flow flow-root flex inline-flex grid inline-grid table inline-table table-row "
    "table-cell table-column table-caption table-row-group table-header-group table-footer-group table-column-group "
    "list-item contents ruby ruby-base ruby-text math run-in initial inherit unset revert revert-layer -webkit-box "
    "-webkit-inline-box -webkit-flex -webkit-inline-flex"
)
_KEYWORDS: Final[Mapping[str, frozenset[str]]] = {
    "display": frozenset(_DISPLAY_WORDS.split()),
    "visibility": frozenset({"visible", "hidden", "collapse", "initial", "inherit", "unset", "revert", "revert-layer"}),
}
_COLOURS: Final = frozenset({"color", "background-color", "-webkit-text-fill-color"})
_COLOUR_WORDS: Final = frozenset({"inherit", "initial", "unset", "revert", "revert-layer", "currentcolor"})
_NUMERIC_WORDS: Final = (
    "opacity font-size height max-height width max-width left top right bottom text-indent margin-left margin-top "
    "line-height min-height zoom"
)
_NUMERIC: Final = frozenset(_NUMERIC_WORDS.split())
_NUMERIC_VALUE: Final = re.compile(
    r"[+-]?\.?[0-9].*|[a-z-]+\(.*|auto|none|normal|inherit|initial|unset|revert|revert-layer|(?:xx?-|xxx-)?(?:small|large)|"
    r"medium|smaller|larger|(?:min|max|fit)-content",
    re.DOTALL,
)
_VARIABLE: Final = re.compile(r"var\(\s*(--[\w-]+)\s*(?:,([^()]*))?\)")

# More custom properties than a message's styles have use for.
MAX_CUSTOM: Final = 64

# What a custom property holds that may hide something is a word or a number.
MAX_CUSTOM_CHARACTERS: Final = 200


class Declaration(NamedTuple):
    """A property's value in lower case, and whether it is !important."""

    value: str
    is_important: bool


class ElementKey(NamedTuple):
    """What selectors ask of an element."""

    tag: str
    element_id: str
    classes: frozenset[str]


class _Compound(NamedTuple):
    tag: str
    element_id: str
    classes: frozenset[str]
    is_child: bool  # `>` stands before it

    def matches(self, element: ElementKey) -> bool:
        return (
            (not self.tag or self.tag == element.tag)
            and (not self.element_id or self.element_id == element.element_id)
            and self.classes <= element.classes
        )


@dataclass(frozen=True, slots=True)
class Rule:
    """One selector with the declarations that may hide something; compounds from the element outwards."""

    compounds: tuple[_Compound, ...]
    declarations: Mapping[str, Declaration]
    specificity: tuple[int, int, int]
    order: int


def declarations(style: str) -> dict[str, Declaration]:
    """Return the relevant declarations of a style attribute or a rule's block; the last of a name wins."""
    found: dict[str, Declaration] = {}
    customs = 0
    for piece in _unescaped(_COMMENT.sub(" ", style)).split(";"):
        name, colon, value = piece.partition(":")
        name = name.strip().lower()
        name = _SAME.get(name, name)
        if not colon or not (name in RELEVANT or name in _SHORTHANDS or name.startswith("--")):
            continue
        if name.startswith("--"):
            customs += 1
            if customs > MAX_CUSTOM:
                continue
        value = value.strip().lower()
        is_important = value.endswith("important") and "!" in value
        if is_important:
            value = value[: value.rindex("!")].strip()
        for longhand, part in _longhands(name, value):
            before = found.get(longhand)
            if _counts(longhand, part) and not (before is not None and before.is_important and not is_important):
                found.pop(longhand, None)
                found[longhand] = Declaration(part, is_important)
    return found


def _longhands(name: str, value: str) -> Iterator[tuple[str, str]]:
    names = _SHORTHANDS.get(name)
    if names is None:
        yield name, value
    elif value and ("(" not in value or " " not in value):
        sides = value.split()
        if len(sides) <= 4:  # noqa: PLR2004 - four sides
            yield from ((side, part) for side, part in zip(names, four_sides(sides), strict=True) if side)


def four_sides(sides: Sequence[str]) -> tuple[str, str, str, str]:
    """Return top, right, bottom and left of what CSS lets stand for all four in one to four words."""
    top = sides[0]
    right = sides[1] if len(sides) > 1 else top
    bottom = sides[2] if len(sides) > 2 else top  # noqa: PLR2004 - the third
    return top, right, bottom, sides[3] if len(sides) > 3 else right  # noqa: PLR2004 - the fourth


def _counts(name: str, value: str) -> bool:
    if name.startswith("--"):
        return 0 < len(value) <= MAX_CUSTOM_CHARACTERS
    if not value or "var(" in value:
        return bool(value)
    if name in _KEYWORDS:
        return all(word in _KEYWORDS[name] for word in value.split())
    if name in _COLOURS:
        return "(" in value or value in _COLOUR_WORDS or parse_colour(value) is not None
    return name not in _NUMERIC or _NUMERIC_VALUE.fullmatch(value) is not None


def substituted(value: str, custom: Mapping[str, str]) -> str:
    """Return a value with its `var()`s replaced, once each; a property that nobody set gives its fallback."""
    return (
        _VARIABLE.sub(lambda found: custom.get(found[1], (found[2] or "").strip()), value) if "var(" in value else value
    )


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda found: _character(found[1]) if found[1] else found[2], text)


def _character(digits: str) -> str:
    code = int(digits, 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"  # noqa: PLR2004 - Unicode


class StyleSheet:
    """The rules of a message's style sheets that can hide something, found by what an element is."""

    def __init__(self, sources: Sequence[str]) -> None:
        self._by_key: dict[str, list[Rule]] = {}
        self._count = 0
        self._matches_left = _MAX_MATCHES
        remaining = _MAX_STYLE_CHARACTERS
        for source in sources:
            self._read(source[:remaining])
            remaining -= min(remaining, len(source))

    def _read(self, source: str) -> None:
        for selectors, block in _rules(_COMMENT.sub(" ", source).replace("<!--", " ").replace("-->", " ")):
            relevant = declarations(block)
            if not relevant:
                continue
            for selector in _selectors(selectors):
                compounds = _compounds(selector)
                if compounds is None or self._count >= _MAX_RULES:
                    continue
                self._count += 1
                rule = Rule(compounds, relevant, _specificity(compounds), self._count)
                self._by_key.setdefault(_index_key(compounds[0]), []).append(rule)

    @property
    def is_exhausted(self) -> bool:
        """Whether matching cost more than a message may; what was matched since is not to be relied on."""
        return self._matches_left < 0

    def matching(self, element: ElementKey, ancestors: Sequence[ElementKey]) -> list[Rule]:
        """Return the rules for an element, weakest first; `ancestors` from the root down."""
        if not self._by_key or self._matches_left < 0:
            return []
        keys = ["*", element.tag, *(f".{name}" for name in element.classes)]
        if element.element_id:
            keys.append(f"#{element.element_id}")
        candidates = [rule for key in keys for rule in self._by_key.get(key, ())]
        self._matches_left -= sum(1 if len(rule.compounds) == 1 else len(ancestors) for rule in candidates)
        found = [rule for rule in candidates if _matches(rule.compounds, element, ancestors)]
        self._matches_left -= sum(len(rule.declarations) for rule in found)
        found.sort(key=lambda rule: (rule.specificity, rule.order))
        return found


def _index_key(compound: _Compound) -> str:
    if compound.element_id:
        return f"#{compound.element_id}"
    if compound.classes:
        return f".{min(compound.classes)}"
    return compound.tag or "*"


def _matches(compounds: tuple[_Compound, ...], element: ElementKey, ancestors: Sequence[ElementKey]) -> bool:
    """Nearest ancestor first, without going back: exact but for mixed `a > b c` chains, which may then not match."""
    if not compounds[0].matches(element):
        return False
    above = len(ancestors)
    for before, compound in pairwise(compounds):
        above -= 1
        if not before.is_child:
            while above >= 0 and not compound.matches(ancestors[above]):
                above -= 1
        if above < 0 or not compound.matches(ancestors[above]):
            return False
    return True


def _rules(source: str) -> Iterator[tuple[str, str]]:
    """Yield selectors and block of each rule, those in media blocks that apply among them. One pass."""
    position = 0
    while (brace := source.find("{", position)) >= 0:
        prelude = source[position:brace].rpartition(";")[2].rpartition("}")[2].strip()
        if prelude.startswith("@"):
            # Where its rules apply they follow; its closing brace is skipped with the next prelude.
            position = brace + 1 if _applies(prelude.lower()) else _after_block(source, brace)
            continue
        end = source.find("}", brace)
        end = len(source) if end < 0 else end
        yield prelude, source[brace + 1 : end]
        position = end + 1


def _applies(prelude: str) -> bool:
    if prelude.startswith("@supports"):
        return " not" not in prelude and all(name in _SUPPORTED for name in _TESTED.findall(prelude))
    if not prelude.startswith("@media"):
        return prelude.startswith("@layer")
    return any(_query_applies(query) for query in prelude.removeprefix("@media").split(","))


def _query_applies(query: str) -> bool:
    holds = all((bound == "min") == (int(pixels) <= WINDOW_WIDTH) for bound, pixels in _WIDTH_FEATURE.findall(query))
    for sign, pixels in _WIDTH_RANGE.findall(query):
        holds = holds and (sign[0] == ">") == (int(pixels) <= WINDOW_WIDTH)
    words = set(_WIDTH_RANGE.sub(" ", _WIDTH_FEATURE.sub(" ", query)).split())
    if "not" in words:
        return words <= {"not", "all", "screen", "print", "speech"} and not (
            holds and words <= {"not", "all", "screen"}
        )
    return holds and words <= {"only", "screen", "all", "and"}


_BRACE: Final = re.compile(r"[{}]")


def _after_block(source: str, brace: int) -> int:
    depth = 0
    for found in _BRACE.finditer(source, brace):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return found.end()
    return len(source)


def _selectors(prelude: str) -> Iterator[str]:
    """Yield each selector of a list, `:is(a, b)` as two of them."""
    if "(" not in prelude and "[" not in prelude:
        yield from prelude.split(",")
        return
    for selector in _SELECTOR.findall(_SAME_AS_CLASS.sub(r".\1", _SAME_AS_ID.sub(r"#\1", prelude))):
        any_of = _ANY_OF.search(selector)
        if any_of is None:
            yield selector
            continue
        before, after = selector[: any_of.start()], selector[any_of.end() :]
        for alternative in any_of[1].split(",")[:_MAX_ALTERNATIVES]:
            if not before.strip() or before[-1] in " >" or alternative.strip()[:1] in {".", "#"}:
                yield before + alternative.strip() + after


def _compounds(selector: str) -> tuple[_Compound, ...] | None:
    words = _unescaped(selector).replace(":root", "html").replace(">", " > ").split()
    compounds: list[_Compound] = []
    is_child = False
    for word in words:
        if word == ">":
            is_child = True
            continue
        found = _COMPOUND.fullmatch(word)
        if found is None:
            return None
        simple = _SIMPLE.findall(found["rest"])
        tag = (found["tag"] or "").lower()
        element_id = next((name for kind, name in simple if kind == "#"), "")
        classes = frozenset(name for kind, name in simple if kind == ".")
        compounds.append(_Compound("" if tag == "*" else tag, element_id, classes, is_child))
        is_child = False
    return tuple(reversed(compounds)) if 0 < len(compounds) <= _MAX_COMPOUNDS else None


def _specificity(compounds: tuple[_Compound, ...]) -> tuple[int, int, int]:
    return (
        sum(bool(compound.element_id) for compound in compounds),
        sum(len(compound.classes) for compound in compounds),
        sum(bool(compound.tag) for compound in compounds),
    )

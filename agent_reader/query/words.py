"""Text of a question made into folded phrases (RFC 8621 §4.4.1). Whatever it holds, it is data."""

import re
from collections.abc import Iterable
from typing import Final

from agent_reader.query.errors import QueryRefused, invalid
from agent_reader.store.fold import fold

# A person types a line; a model that pastes a page wants something else.
MAX_TEXT_CHARACTERS: Final = 1_000
MAX_PHRASES: Final = 50

# A phrase in matching quotes where a word could begin; else everything up to white space.
_PIECE: Final = re.compile(r'"((?:[^"\\]|\\.)*+)"(?=\s|$)|' + r"'((?:[^'\\]|\\.)*+)'(?=\s|$)|(\S+)", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def phrases(field: str, text: str) -> tuple[str, ...]:
    """Return the phrases that must all be found, each one or more folded words in a row.

    Text of nothing but white space asks for nothing and matches every Email. Text without a single letter, digit or
    emoji cannot be searched for and is refused. A quote without its partner is a character like any other.
    """
    if len(text) > MAX_TEXT_CHARACTERS:
        raise invalid(field, f"is longer than {MAX_TEXT_CHARACTERS} characters.")
    if not text.strip():
        return ()
    found = dict.fromkeys(filter(None, map(fold, _pieces(text))))
    if not found:
        raise QueryRefused("unsupportedFilter", f"{field}: holds no word that could be searched for.", (field,))
    if len(found) > MAX_PHRASES:
        raise invalid(field, f"has more than {MAX_PHRASES} words.")
    return tuple(found)


def _pieces(text: str) -> Iterable[str]:
    if '"' not in text and "'" not in text:
        return text.split()
    return (_unquoted(piece) for piece in _PIECE.finditer(text))


def _unquoted(piece: re.Match[str]) -> str:
    quoted = piece[1] if piece[1] is not None else piece[2]
    return piece[3] if quoted is None else _ESCAPED.sub(r"\1", quoted)

"""Structured header text in tokens: the one scanner for addresses, ids, dates and parameters (RFC 5322 §3.2).

It takes one pass over any text, and comments nest by a counter.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, NamedTuple

from shared.message.words import ENCODED_WORD


class TokenKind(Enum):
    """What a token is."""

    ATOM = auto()
    ENCODED_WORD = auto()
    QUOTED = auto()
    COMMENT = auto()
    SPECIAL = auto()


class Token(NamedTuple):
    """One token: its meaning (quotes, brackets and backslashes undone), and its spelling's place in the text."""

    kind: TokenKind
    text: str
    start: int
    end: int


# Each quote or parenthesis that nothing closes costs a look at the rest of the text. People forget one.
_MAX_UNCLOSED: Final = 3

_SPACE: Final = re.compile(r"[ \t\r\n]*+")
_QUOTED: Final = re.compile(r'"((?:[^"\\]++|\\.)*+)"', re.DOTALL)
_DOMAIN_LITERAL: Final = re.compile(r"\[[^\[\]<>,;\"]*+\]")
_QUOTED_PAIR: Final = re.compile(r"\\(.)", re.DOTALL)
_LINE_BREAK: Final = re.compile(r"[\r\n]++")
_COMMENT_MARK: Final = re.compile(r"\\.|\(++|\)++", re.DOTALL)
_NOTHING_OPENS: Final = re.compile(r'[ \t\r\n("]*+')
_ATOMS: Final = {
    specials: re.compile(f'[^ \\t\\r\\n"({re.escape(specials)}]++') for specials in ("<>,;:@", "<>,", ";=", ";")
}


def tokens(text: str, specials: str) -> Iterator[Token]:
    """Yield the tokens of unfolded or folded header text; white space only separates them.

    `specials`: the characters that stand for themselves, one of the closed set that `_ATOMS` names. A quote or
    parenthesis that nothing closes is dropped, so that what follows it is still read.
    """
    atom = _ATOMS[specials]
    position = unclosed = 0
    while True:
        space = (_SPACE if unclosed < _MAX_UNCLOSED else _NOTHING_OPENS).match(text, position)
        position = space.end() if space else position
        if position >= len(text):
            return
        token = None
        if text[position] in '("':
            token = _enclosed_at(text, position)
            if token is None:
                unclosed += 1
                position += 1
                continue
        token = token or _token_at(text, position, atom)
        yield token
        position = token.end


def _enclosed_at(text: str, start: int) -> Token | None:
    if text[start] == "(":
        end = comment_end(text, start)
        return None if end is None else Token(TokenKind.COMMENT, unquoted(text[start + 1 : end - 1]), start, end)
    quoted = _QUOTED.match(text, start)
    return quoted and Token(TokenKind.QUOTED, unquoted(quoted[1]), start, quoted.end())


def _token_at(text: str, start: int, atom: re.Pattern[str]) -> Token:
    character = text[start]
    if character == "=" and (word := ENCODED_WORD.match(text, start)):
        return Token(TokenKind.ENCODED_WORD, word[0], start, word.end())
    if character == "[" and (literal := _DOMAIN_LITERAL.match(text, start)):
        return Token(TokenKind.ATOM, literal[0], start, literal.end())
    if run := atom.match(text, start):
        return Token(TokenKind.ATOM, run[0], start, run.end())
    return Token(TokenKind.SPECIAL, character, start, start + 1)


def unquoted(text: str) -> str:
    """Return the inside of a quoted-string or comment without backslashes and folding."""
    text = _LINE_BREAK.sub("", text)
    return _QUOTED_PAIR.sub(r"\1", text) if "\\" in text else text


def comment_end(text: str, start: int) -> int | None:
    """Return where the comment that opens at `start` ends, or None if nothing closes it."""
    depth = 0
    for mark in _COMMENT_MARK.finditer(text, start):
        run = mark.end() - mark.start()
        if text[mark.start()] == "(":
            depth += run
        elif text[mark.start()] == ")":
            if run >= depth:
                return mark.start() + depth
            depth -= run
    return None

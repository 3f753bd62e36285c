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

_QUOTED: Final = re.compile(r'"((?:[^"\\]++|\\.)*+)"', re.DOTALL)
_DOMAIN_LITERAL: Final = re.compile(r"\[[^\[\]<>,;\"]*+\]")
_QUOTED_PAIR: Final = re.compile(r"\\(.)", re.DOTALL)
_LINE_BREAK: Final = re.compile(r"[\r\n]++")
_PLAIN_COMMENT: Final = re.compile(r"\(([^()\\]*+)\)")
_COMMENT_MARK: Final = re.compile(r"\\.|\(++|\)++", re.DOTALL)
_SPECIALS: Final = ("<>,;:@", "<>,", ";=", ";")
_ATOMS: Final = {specials: re.compile(f'[^ \\t\\r\\n"({specials}]++') for specials in _SPECIALS}


def _token_after(skipped: str, specials: str) -> re.Pattern[str]:
    """White space, then an atom that begins no encoded-word or literal, or a special, or neither."""
    atom = f'[^ \\t\\r\\n"(\\[={specials}][^ \\t\\r\\n"({specials}]*+'
    again = "(?:<(?=<))*+" if "<" in specials else ""  # one that another follows begins nothing
    return re.compile(f"{skipped}{again}(?:({atom})|([{specials}](?<!=)))?+")


_USUAL_TOKENS: Final = {specials: _token_after(r"[ \t\r\n]*+", specials) for specials in _SPECIALS}
_TOKENS_WHERE_NOTHING_OPENS: Final = {specials: _token_after(r'[ \t\r\n("]*+', specials) for specials in _SPECIALS}


def tokens(text: str, specials: str) -> Iterator[Token]:
    """Yield the tokens of unfolded or folded header text; white space only separates them.

    `specials`: the characters that stand for themselves, one of the closed set that `_ATOMS` names. A quote or
    parenthesis that nothing closes is dropped, so that what follows it is still read.
    """
    usual = _USUAL_TOKENS[specials]
    position = unclosed = 0
    while found := usual.match(text, position):
        position = found.end()
        if found[1]:
            yield Token(TokenKind.ATOM, found[1], found.start(1), position)
        elif found[2]:
            yield Token(TokenKind.SPECIAL, found[2], position - 1, position)
        elif position == len(text):
            return
        elif text[position] not in '("':
            token = _token_at(text, position, _ATOMS[specials])
            yield token
            position = token.end
        elif enclosed := _enclosed_at(text, position):
            yield enclosed
            position = enclosed.end
        else:
            position += 1
            unclosed += 1
            usual = (_USUAL_TOKENS if unclosed < _MAX_UNCLOSED else _TOKENS_WHERE_NOTHING_OPENS)[specials]


def _enclosed_at(text: str, start: int) -> Token | None:
    if text[start] == "(":
        if plain := _PLAIN_COMMENT.match(text, start):
            return Token(TokenKind.COMMENT, unquoted(plain[1]), start, plain.end())
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
    if "\n" in text or "\r" in text:
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

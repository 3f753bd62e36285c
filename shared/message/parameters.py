"""Content-Type and Content-Disposition values with their parameters (RFC 2045 §5.1, RFC 2183 §2, RFC 2231)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote_to_bytes

from shared.message.charset import codec_of, decode
from shared.message.limits import MAX_PARAMETER_SECTIONS, MAX_PARAMETERISED_CHARACTERS
from shared.message.syntax import Token, TokenKind, tokens
from shared.message.words import decode_words, nfc

_FOLDING: Final = re.compile(r"[\r\n]++")
_SECTION: Final = re.compile(r"(?P<name>[^*]++)(?:\*(?P<number>0|[1-9][0-9]{0,2}))?(?P<extended>\*)?")

# What nearly every sender writes needs no scanner: no comment, backslash or RFC 2231, each value a word or quoted.
_ONE_PARAMETER: Final = r"""([^ \t\r\n"(;=*\[]++)=(?:"([^"\\\r\n]*+)"|([^ \t\r\n"(;]++))"""
_USUAL_PARAMETER: Final = re.compile(_ONE_PARAMETER)
_USUAL: Final = re.compile(rf"""([^ \t\r\n"(;=\[]++)[ \t]*+((?:;[ \t]*+{_ONE_PARAMETER}[ \t]*+)*+);?""")


@dataclass(frozen=True, slots=True)
class Parameterised:
    """A value in lower case, and its parameters by lower-case name, RFC 2231 undone."""

    value: str
    parameters: Mapping[str, str]


def parse_parameterised(text: str) -> Parameterised:
    """Return a structured field's value and parameters; whatever does not fit is left out.

    Of two parameters with one name the first counts, and the extended form of RFC 2231 before the plain one.
    """
    text = text[:MAX_PARAMETERISED_CHARACTERS]
    if usual := _USUAL.fullmatch(text):
        parameters: dict[str, str] = {}
        for name, quoted, bare in _USUAL_PARAMETER.findall(usual[2]):
            parameters.setdefault(name.lower(), quoted or bare)
        return Parameterised(usual[1].lower(), parameters)
    value, assignments = _split(text)
    plain: dict[str, str] = {}
    sections: dict[str, dict[int, tuple[str, bool]]] = {}
    for name, spelled in assignments:
        section = _SECTION.fullmatch(name)
        if section is None:
            continue
        if section["number"] is None and section["extended"] is None:
            plain.setdefault(name, spelled)
            continue
        numbered = sections.setdefault(section["name"], {})
        number = int(section["number"] or 0)
        if number < MAX_PARAMETER_SECTIONS:
            numbered.setdefault(number, (spelled, section["extended"] is not None))
    joined = {name: _joined(numbered) for name, numbered in sections.items() if 0 in numbered}
    return Parameterised(value, plain | joined)


def _split(text: str) -> tuple[str, list[tuple[str, str]]]:
    value = ""
    assignments: list[tuple[str, str]] = []
    segment: list[Token] = []
    is_first = True
    for token in (*tokens(text, ";="), Token(TokenKind.SPECIAL, ";", len(text), len(text))):
        if token.kind is TokenKind.COMMENT:
            continue
        if token.kind is not TokenKind.SPECIAL or token.text != ";":
            segment.append(token)
            continue
        if is_first:
            value, after = _first_value(segment)
            is_first = False
            assignments += _assignment(after)  # `text/html charset=utf-8`: the semicolon is missing
        else:
            assignments += _assignment(segment)
        segment = []
    return value.lower(), assignments


def _first_value(segment: list[Token]) -> tuple[str, list[Token]]:
    """The value, whatever white space and comments stand around its slash, and the tokens that are none of it."""
    value, used = "", 0
    for token in segment:
        if used and not value.endswith("/") and not token.text.startswith("/"):
            break
        value += token.text
        used += 1
    return value, segment[used:]


def _assignment(segment: list[Token]) -> list[tuple[str, str]]:
    """`name = value`; blanks inside an unquoted value are a sender's forgotten quotes, and stay."""
    if len(segment) < 2 or segment[1].text != "=" or segment[1].kind is not TokenKind.SPECIAL:  # noqa: PLR2004 - name, =
        return []
    pieces: list[str] = []
    for index, token in enumerate(segment[2:], start=2):
        blank = " " if index > 2 and token.start > segment[index - 1].end else ""  # noqa: PLR2004 - first of the value
        pieces.append(blank + token.text)
    return [(segment[0].text.lower(), "".join(pieces))]


def _joined(numbered: dict[int, tuple[str, bool]]) -> str:
    """RFC 2231 §4.1: the first section names the charset; encoded and plain sections may alternate."""
    charset = ""
    octets: list[bytes] = []
    for number in range(len(numbered)):
        if number not in numbered:
            break
        spelled, is_extended = numbered[number]
        if is_extended and number == 0 and spelled.count("'") >= 2:  # noqa: PLR2004 - charset'language'value
            charset, _, spelled = spelled.split("'", 2)
        octets.append(unquote_to_bytes(spelled) if is_extended else spelled.encode("utf-8", "replace"))
    return decode(b"".join(octets), charset if codec_of(charset) else "utf-8", guesses=False).text


def decoded_name(text: str) -> str:
    """Return a file name whose sender used encoded-words, as RFC 8621 §4.1.4 wants it read."""
    return nfc(decode_words(_FOLDING.sub("", text)))

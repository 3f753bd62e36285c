"""A download's type and file name, from what the client asks to what may stand in a header field (RFC 8620 §6.2)."""

import re
from typing import Final
from urllib.parse import quote, unquote

from agent_reader.jmap import problems
from shared.fence import clean_line

DEFAULT_TYPE: Final = "application/octet-stream"
DEFAULT_NAME: Final = "download"

# What file systems take, less room for what a browser adds.
_MOST_NAME_OCTETS: Final = 200
_MOST_ENDING_CHARACTERS: Final = 16
# Longer than any registered type with its parameters.
_MOST_TYPE_CHARACTERS: Final = 255

_WORD: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
# RFC 9110 §8.3.1; a quoted value without anything to escape.
_TYPE: Final = re.compile(rf"{_WORD}/{_WORD}(?:[ \t]*;[ \t]*{_WORD}=(?:{_WORD}|\"[ !#-\[\]-~]*\"))*", re.ASCII)
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
# Separators of paths, streams and drives, and what shells and Windows take for something else.
_PATH: Final = re.compile(r'[/\\:*?"<>|]')
# RFC 6266 §4.3 and appendix D: what any reader of a quoted string takes as it is.
_PLAIN: Final = re.compile(r"[^ !#$&'()+,.0-9;=@A-Z\[\]^_`a-z{}~-]")
# RFC 8187 §3.2.1 attr-char, besides letters and digits.
_ATTR_SAFE: Final = "!#$&+-.^_`|~"


def content_type(untrusted_query: str) -> str:
    """Return the value of `type` in a query, or the default. Raises the `Problem` of one that is no media type."""
    pairs = (pair.partition("=") for pair in untrusted_query.split("&"))
    # Not as a form: `+` is part of `image/svg+xml`.
    values = [unquote(value) for name, _, value in pairs if name == "type"]
    if len(values) > 1:
        raise problems.invalid_type("`type` stands there twice")
    if not values or not values[0]:
        return DEFAULT_TYPE
    if len(values[0]) > _MOST_TYPE_CHARACTERS or _TYPE.fullmatch(values[0]) is None:
        raise problems.invalid_type("`type` is no media type")
    return values[0]


def content_disposition(untrusted_name: str) -> str:
    """Return the field's value, always `attachment`, with the file name that was asked for, made harmless.

    Path separators become `_`, invisible characters and leading dots go, a long name is cut before its ending. Raises
    the `Problem` of a name with control characters. RFC 6266, RFC 8187.
    """
    name = _file_name(untrusted_name)
    plain = _PLAIN.sub("_", name)
    field = f'attachment; filename="{plain}"'
    return field if plain == name else f"{field}; filename*=UTF-8''{quote(name, safe=_ATTR_SAFE)}"


def _file_name(untrusted_name: str) -> str:
    if _CONTROLS.search(untrusted_name):
        raise problems.invalid_name()
    name = _PATH.sub("_", clean_line(untrusted_name).text).strip(". \u3000\u00a0")
    octets = name.encode("utf-8", "replace")
    if len(octets) > _MOST_NAME_OCTETS:
        stem, dot, ending = name.rpartition(".")
        ending = dot + ending if stem and len(ending) <= _MOST_ENDING_CHARACTERS else ""
        room = _MOST_NAME_OCTETS - len(ending.encode())
        name = octets[:room].decode("utf-8", "ignore") + ending
    return name or DEFAULT_NAME

"""I-JSON (RFC 7493): JSON that every reader understands alike.

Two members of one name, a lone surrogate or invalid UTF-8 mean one thing to one program and another to the next, so
they are refused rather than resolved. Noncharacters (U+FFFF and its like) are no part of it either (RFC 7493 §2.1):
what others ask with them is refused where the door is told to, and what is answered has none.
"""

import json
import math
import re
from typing import Any, Final

# A request nests a few levels (RFC 8620 filters); past 64 only an attack on a recursive reader remains.
MAX_DEPTH: Final = 64

# Each value is an object of Python's, thirty times larger than `{}` on the wire. The largest honest request names some
# thousand ids.
MAX_VALUES: Final = 100_000

# The closing quote may be missing: were it asked for, each quote of a string without an end would be a new beginning,
# and reading 300 KB would take an hour.
_STRINGS: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BRACKETS: Final = re.compile(r"[\[\]{}]")
_BEFORE_VALUES: Final = "[{,:"

# U+FDD0 to U+FDEF, and the last two code points of each of the seventeen planes (Unicode 16.0 §23.7).
_NONCHARACTERS: Final = re.compile(
    "[\ufdd0-\ufdef" + "".join(chr(plane << 16 | 0xFFFE) + chr(plane << 16 | 0xFFFF) for plane in range(17)) + "]"
)
# The same in UTF-8.
_ENCODED_NONCHARACTERS: Final = re.compile(rb"\xef\xb7[\x90-\xaf]|(?:\xef|[\xf0-\xf4][\x8f\x9f\xaf\xbf])\xbf[\xbe\xbf]")
_REPLACEMENT: Final = "\ufffd".encode()


class NotIJson(ValueError):  # noqa: N818 - the name is the finding
    """The octets are not I-JSON; the message says why and holds none of the content."""


def load(untrusted_octets: bytes, *, refuse_noncharacters: bool = False) -> Any:  # noqa: ANN401 - any JSON value
    """Return the JSON value of the octets, or raise `NotIJson`.

    Noncharacters are refused where that is asked for: JSON of our own processes may hold what a message held.
    """
    try:
        text = untrusted_octets.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotIJson(f"invalid UTF-8 at octet {error.start}") from None
    _refuse_many_values(text)
    _refuse_deep_nesting(text)
    try:
        value = _DECODER.decode(text)
    except NotIJson:
        raise
    except json.JSONDecodeError as error:
        raise NotIJson(f"not JSON from character {error.pos} on") from None
    except (ValueError, RecursionError):
        raise NotIJson("not JSON") from None
    _refuse_surrogates(text, value)
    if refuse_noncharacters:
        _refuse_noncharacters(untrusted_octets, value)
    return value


def without_noncharacters(encoded: bytes) -> bytes:
    """Return JSON in UTF-8 with U+FFFD in the place of each noncharacter, so that it is I-JSON; never longer."""
    if _may_have_noncharacters(encoded):
        return _ENCODED_NONCHARACTERS.sub(_REPLACEMENT, encoded)
    return encoded


def _may_have_noncharacters(encoded: bytes) -> bool:
    # A page of messages is looked through for each answer: in most of them one octet is looked for, at memory's speed.
    if encoded.isascii():
        return False
    return (b"\xbf" in encoded and (b"\xbf\xbe" in encoded or b"\xbf\xbf" in encoded)) or (
        b"\xef" in encoded and b"\xef\xb7" in encoded
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise NotIJson("an object has two members of one name")
    return members


def _constant(name: str) -> None:
    raise NotIJson(f"{name} is not JSON")


def _integer(digits: str) -> int:
    # Python refuses to convert more than 4,300 digits and takes quadratic time before; no number here needs 40.
    if len(digits) > 40:  # noqa: PLR2004 - see above
        raise NotIJson("a number has more than 40 digits")
    return int(digits)


def _fraction(digits: str) -> float:
    number = float(digits)
    # 1e999 would become an infinity, which no JSON can say again.
    if math.isinf(number):
        raise NotIJson("a number is larger than a double")
    return number


# Made once: it takes longer to make than to read a request with.
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_constant, parse_int=_integer, parse_float=_fraction
)


def _refuse_many_values(text: str) -> None:
    # Before each value but the first stands one of four characters. In strings they count for nothing; without the
    # strings is looked at only where it may matter.
    if _marks(text) >= MAX_VALUES and _marks(_STRINGS.sub("", text)) >= MAX_VALUES:
        raise NotIJson(f"more than {MAX_VALUES} values")


def _marks(text: str) -> int:
    return sum(map(text.count, _BEFORE_VALUES))


def _refuse_deep_nesting(text: str) -> None:
    # json recurses once a level; counting brackets outside strings first costs no stack.
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for bracket in _BRACKETS.findall(_STRINGS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_DEPTH:
            raise NotIJson(f"nested deeper than {MAX_DEPTH} levels")


def _refuse_noncharacters(encoded: bytes, value: Any) -> None:  # noqa: ANN401 - any JSON value
    if (b"\\u" in encoded or _may_have_noncharacters(encoded)) and _NONCHARACTERS.search(
        json.dumps(value, ensure_ascii=False)
    ):
        raise NotIJson("a string holds a noncharacter")


def _refuse_surrogates(text: str, value: Any) -> None:  # noqa: ANN401 - any JSON value
    # Only an escape can bring a surrogate in, so most requests need no walk.
    if "\\u" not in text and "\\U" not in text:
        return
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise NotIJson("a string holds a lone surrogate") from None

"""Argument values of JMAP's basic types, parsed at the door (RFC 8620 §1.2 to §1.4).

Each function raises `QueryRefused` (invalidArguments) for a value of another type; `name` is the argument's.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from agent_reader.query.errors import invalid
from shared.message import JSON

# RFC 8620 §1.3: what every JSON reader holds exactly.
MAX_INT: Final = 2**53 - 1

# RFC 8620 §5.5: what these arguments of /query are where they are left out.
_LEFT_OUT: Final[Mapping[str, JSON]] = {"anchor": None, "anchorOffset": 0, "position": 0, "calculateTotal": False}

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,255}", re.ASCII)
_UTC_DATE: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?Z", re.ASCII)


def object_value(name: str, untrusted: JSON) -> Mapping[str, JSON]:
    """Return a JSON object."""
    if not isinstance(untrusted, Mapping):
        raise invalid(name, "must be an object.")
    return untrusted


def comparator_value(untrusted: JSON) -> Mapping[str, JSON]:
    """Return a Comparator (RFC 8620 §5.5) without what a client in use says there to no effect.

    jmapc 0.4.0 writes arguments of /query into each one, with the values that they have where they are left out.
    """
    said = object_value("sort", untrusted)
    return {name: value for name, value in said.items() if not _says_nothing(name, value)}


def _says_nothing(name: str, value: JSON) -> bool:
    return name in _LEFT_OUT and type(value) is type(_LEFT_OUT[name]) and value == _LEFT_OUT[name]


def list_value(name: str, untrusted: JSON) -> Sequence[JSON]:
    """Return a JSON array."""
    if not isinstance(untrusted, list | tuple):
        raise invalid(name, "must be an array.")
    return untrusted


def string_value(name: str, untrusted: JSON) -> str:
    """Return a string."""
    if not isinstance(untrusted, str):
        raise invalid(name, "must be a string.")
    return untrusted


def id_value(name: str, untrusted: JSON) -> str:
    """Return an Id (RFC 8620 §1.2)."""
    text = string_value(name, untrusted)
    if not is_id(text):
        raise invalid(name, "must be an id: 1 to 255 letters, digits, - and _.")
    return text


def is_id(untrusted: object) -> bool:
    """Whether it is an Id (RFC 8620 §1.2)."""
    return isinstance(untrusted, str) and _ID.fullmatch(untrusted) is not None


def boolean_value(name: str, untrusted: JSON) -> bool:
    """Return a Boolean."""
    if not isinstance(untrusted, bool):
        raise invalid(name, "must be true or false.")
    return untrusted


def int_value(name: str, untrusted: JSON) -> int:
    """Return an Int (RFC 8620 §1.3), however it is written: `10.0` and `1e1` are the JSON number 10 too."""
    number = int(untrusted) if isinstance(untrusted, float) and untrusted.is_integer() else untrusted
    if isinstance(number, bool) or not isinstance(number, int) or not -MAX_INT <= number <= MAX_INT:
        raise invalid(name, "must be a whole number.")
    return number


def unsigned_value(name: str, untrusted: JSON) -> int:
    """Return an UnsignedInt (RFC 8620 §1.3)."""
    number = int_value(name, untrusted)
    if number < 0:
        raise invalid(name, "must not be negative.")
    return number


def utc_date_value(name: str, untrusted: JSON) -> int:
    """Return the first whole second, since 1970, at or after a UTCDate (RFC 8620 §1.4).

    Mail is received at whole seconds, so `before` and `after` compare with that one alike.
    """
    found = _UTC_DATE.fullmatch(string_value(name, untrusted))
    if found is None:
        raise invalid(name, "must be a date in UTC like 2026-01-31T00:00:00Z.")
    try:
        moment = datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
    except ValueError:
        raise invalid(name, "is no date of the calendar.") from None
    has_fraction = bool(found[2]) and found[2].strip(".0") != ""
    return int(moment.timestamp()) + (1 if has_fraction else 0)


def known_only(untrusted: Mapping[str, JSON], known: frozenset[str]) -> None:
    """Refuse arguments that the method does not have: a misspelled one would be ignored and mislead."""
    if not untrusted.keys() <= known:
        unknown = sorted(untrusted.keys() - known)
        raise invalid(unknown[0], f"is no argument of this method; those are {', '.join(sorted(known))}.")

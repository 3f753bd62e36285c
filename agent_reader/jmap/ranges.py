"""Which octets of a blob a request asks for (RFC 9110 §13 and §14): all, one stretch, none that exist."""

import re
from dataclasses import dataclass
from typing import Final

# However large a number is, it says where (RFC 9110 §14.1.2); one of a thousand digits is no number that a client has.
_ONE_RANGE: Final = re.compile(r"bytes[ \t]*=[ \t]*(\d{0,1000})-(\d{0,1000})[ \t]*", re.ASCII | re.IGNORECASE)
_ETAG: Final = re.compile(r'(W/)?("[!#-~]*")')


class NotSatisfiable(Exception):  # noqa: N818 - RFC 9110 §15.5.17 calls it so
    """The range begins after the end, or is empty; `size` is how many octets there are."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


@dataclass(frozen=True, slots=True)
class Span:
    """The octets from `start` up to, not including, `end`."""

    start: int
    end: int

    @property
    def octets(self) -> int:
        """How many there are."""
        return self.end - self.start


def asked_span(untrusted_range: str | None, size: int) -> Span | None:
    """Return the one range that is asked for, or None for the whole. Raises `NotSatisfiable`.

    Several ranges, another unit and nonsense are ignored, as RFC 9110 §14.2 lets a server do.
    """
    found = None if untrusted_range is None else _ONE_RANGE.fullmatch(untrusted_range)
    if found is None or not (found[1] or found[2]):
        return None
    if not found[1]:
        length = min(int(found[2]), size)
        if length == 0:
            raise NotSatisfiable(size)
        return Span(size - length, size)
    first = int(found[1])
    last = int(found[2]) if found[2] else size - 1
    if found[2] and last < first:
        return None
    if first >= size:
        raise NotSatisfiable(size)
    return Span(first, min(last + 1, size))


def has_it_already(untrusted_if_none_match: str | None, etag: str) -> bool:
    """Whether If-None-Match names this entity (RFC 9110 §13.1.2: weak comparison)."""
    if untrusted_if_none_match is None:
        return False
    known = (tag for _, tag in _ETAG.findall(untrusted_if_none_match))
    return untrusted_if_none_match.strip() == "*" or etag in known


def is_wanted(untrusted_if_match: str | None, etag: str) -> bool:
    """Whether If-Match lets this entity be given (RFC 9110 §13.1.1: strong comparison)."""
    if untrusted_if_match is None or untrusted_if_match.strip() == "*":
        return True
    return ("", etag) in _ETAG.findall(untrusted_if_match)


def range_applies(untrusted_if_range: str | None, etag: str) -> bool:
    """Whether If-Range lets the range count (RFC 9110 §13.1.5: strong comparison; a date never matches)."""
    return untrusted_if_range is None or untrusted_if_range.strip() == etag

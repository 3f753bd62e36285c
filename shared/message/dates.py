"""Date and time of a header field (RFC 5322 §3.3 and §4.3, RFC 8621 §4.1.2.6)."""

import re
from datetime import datetime, timedelta, timezone
from typing import Final

from shared.message.ids import without_comments

_MONTH_NAMES: Final = "jan feb mar apr may jun jul aug sep oct nov dec"
_MONTHS: Final = {name: number for number, name in enumerate(_MONTH_NAMES.split(), start=1)}

# RFC 5322 §4.3. Single letters and names that nobody can place count as +0000.
_ZONES: Final = {"est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7}

# A date-time with its white space and zone comment is some 40 characters; more is no date.
_MAX_CHARACTERS: Final = 200

# RFC 5322 §3.3; senders who counted from 1900 and wrote four digits say 0102 for 2002, or for anything else.
_FIRST_YEAR: Final = 1900

_DATE_TIME: Final = re.compile(
    r"(?:[A-Za-z]{2,9}\.?\s*,?\s*)?"
    r"(?P<day>[0-9]{1,2})[\s-]+(?P<month>[A-Za-z]{3,9})\.?[\s-]+(?P<year>[0-9]{2,4})\s*,?\s+"
    r"(?P<hour>[0-9]{1,2})\s*:\s*(?P<minute>[0-9]{1,2})(?:\s*:\s*(?P<second>[0-9]{1,2})(?:\.[0-9]{1,9})?)?"
    r"(?:\s*(?P<zone>[+-][0-9]{4}|[A-Za-z]{1,5}))?",
    re.ASCII,
)


def parse_date(text: str) -> str | None:
    """Return the RFC 3339 date-time with the sender's own offset, or None for what is no date.

    A zone that is missing or has no meaning counts as UTC (RFC 5322 §4.3); `Z` stands for an offset of zero.
    """
    if len(text) > _MAX_CHARACTERS:
        text = text[:_MAX_CHARACTERS]
    found = _DATE_TIME.fullmatch(without_comments(text).strip())
    if found is None:
        return None
    month = _MONTHS.get(found["month"][:3].lower())
    offset = _offset(found["zone"] or "")
    year = _year(found["year"])
    if month is None or offset is None or year < _FIRST_YEAR:
        return None
    second = (
        min(int(found["second"] or 0), 59) if found["second"] != "60" else 59
    )  # RFC 3339 readers know no leap second
    if int(found["second"] or 0) > 60:  # noqa: PLR2004 - RFC 5322 §3.3: seconds run to 60
        return None
    try:
        moment = datetime(
            year,
            month,
            int(found["day"]),
            int(found["hour"]),
            int(found["minute"]),
            second,
            tzinfo=timezone(offset),
        )
    except ValueError:
        return None
    return moment.isoformat().replace("+00:00", "Z")


def _year(digits: str) -> int:
    """Two digits from 00 to 49 are of this century, two and three digits else count from 1900 (RFC 5322 §4.3)."""
    year = int(digits)
    if len(digits) == 4:  # noqa: PLR2004 - four digits are the year itself
        return year
    return year + 2000 if year < 50 and len(digits) == 2 else year + 1900  # noqa: PLR2004 - see above


def _offset(zone: str) -> timedelta | None:
    if not zone.startswith(("+", "-")):
        return timedelta(hours=_ZONES.get(zone.lower(), 0))
    hours, minutes = int(zone[1:3]), int(zone[3:5])
    if hours > 23 or minutes > 59:  # noqa: PLR2004 - RFC 3339 §5.6
        return None
    offset = timedelta(hours=hours, minutes=minutes)
    return -offset if zone.startswith("-") else offset

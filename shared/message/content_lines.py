"""Content lines, the one grammar of iCalendar and vCard (RFC 5545 §3.1, RFC 6350 §3.2, §3.3), and both as text.

Total and linear: whatever is no content line is left out, and what a person can do nothing with (pictures, keys, time
zone rules) is named and not shown.
"""

import quopri
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from shared.message.charset import decode

# More lines than any calendar that is sent as an attachment to be read.
_MAX_LINES: Final = 20_000

# An attendee has ten; those past this are not kept.
_MAX_PARAMETERS: Final = 50

_FOLD: Final = re.compile(r"\n[ \t]")
_NAME: Final = re.compile(r"(?:[A-Za-z0-9-]{1,60}\.)?([A-Za-z0-9-]{1,60})")  # RFC 6350 §3.3: a group may come first
_PARAMETER: Final = re.compile(r";([A-Za-z0-9-]{1,60})(?:=((?:\"[^\"\n]*+\"|[^\";:\n]++)*+))?")
_ESCAPED: Final = re.compile(r"\\([nN,;:\\])")
_DATE: Final = re.compile(r"(\d{4})-?(\d{2})-?(\d{2})(?:T(\d{2}):?(\d{2}):?(\d{2})?(Z?))?")


@dataclass(frozen=True, slots=True)
class ContentLine:
    """A property: its name in upper case, its parameters by upper-case name, and its value as written."""

    name: str
    parameters: Mapping[str, str]
    value: str


def content_lines(text: str) -> Iterator[ContentLine]:
    """Yield the properties of unfolded text; LF line ends, any string. vCard 2.1's quoted-printable is undone."""
    count = 0
    lines = iter(_FOLD.sub("", text).split("\n"))
    for line in lines:
        read = _content_line(line)
        if read is None:
            continue
        count += 1
        if count > _MAX_LINES:
            return
        yield _without_quoted_printable(read, lines) if _is_quoted_printable(read) else read


def _content_line(line: str) -> ContentLine | None:
    name = _NAME.match(line)
    if name is None:
        return None
    parameters: dict[str, str] = {}
    position = name.end()
    count = 0
    while found := _PARAMETER.match(line, position):
        position = found.end()
        count += 1
        if count > _MAX_PARAMETERS:
            continue
        # vCard 2.1 writes `;HOME` for `;TYPE=HOME`.
        key, value = (found[1].upper(), found[2]) if found[2] is not None else ("TYPE", found[1])
        parameters[key] = f"{parameters[key]}, {_bare(value)}" if key in parameters else _bare(value)
    if not line.startswith(":", position):
        return None
    return ContentLine(name[1].upper(), parameters, line[position + 1 :])


def _bare(value: str) -> str:
    return value.replace('"', "").replace("^n", " ").replace("^'", '"').replace("^^", "^")


def _is_quoted_printable(line: ContentLine) -> bool:
    return "QUOTED-PRINTABLE" in f"{line.parameters.get('ENCODING', '')} {line.parameters.get('TYPE', '')}".upper()


def _without_quoted_printable(line: ContentLine, following: Iterator[str]) -> ContentLine:
    pieces = [line.value]
    while pieces[-1].endswith("="):
        pieces.append(next(following, ""))
    octets = quopri.decodestring("\n".join(pieces).encode("utf-8", "replace"))
    text = decode(octets, line.parameters.get("CHARSET", "utf-8")).text
    return ContentLine(line.name, line.parameters, text.replace("\r\n", "\n"))


def unescaped(value: str) -> str:
    """Return a TEXT value's meaning (RFC 5545 §3.3.11, RFC 6350 §3.4)."""
    return _ESCAPED.sub(lambda found: "\n" if found[1] in "nN" else found[1], value)


def calendar_text(text: str) -> str:
    """Return an iCalendar object as lines: a heading for each component, then `What: value` (RFC 5545 §3.6)."""
    written: list[str] = []
    left_out: list[str] = []  # the components that the walk is in and that are not shown
    for line in content_lines(text):
        component = line.value.strip().upper()
        if line.name == "BEGIN":
            if left_out or component in _COMPONENTS_LEFT_OUT:
                left_out.append(component)
            elif component in _COMPONENTS:
                written += ["", _COMPONENTS[component]] if written else [_COMPONENTS[component]]
        elif line.name == "END":
            if left_out:
                left_out.pop()
        elif not left_out and line.name in _CALENDAR_PROPERTIES:
            label, reader = _CALENDAR_PROPERTIES[line.name]
            written += _labelled(label, reader(line))
    return "\n".join(written)


def card_text(text: str) -> str:
    """Return vCards as lines `What: value`, an empty line between two cards (RFC 6350 §6)."""
    written: list[str] = []
    for line in content_lines(text):
        if line.name == "BEGIN":
            written += ["", "Card"] if written else ["Card"]
        elif line.name in _CARD_PROPERTIES:
            label, reader = _CARD_PROPERTIES[line.name]
            kind = line.parameters.get("TYPE", "").lower()
            written += _labelled(f"{label} ({kind})" if kind and label in _TYPED else label, reader(line))
    return "\n".join(written)


def _labelled(label: str, value: str) -> list[str]:
    first, *others = (piece.strip() for piece in value.strip().split("\n"))
    return [f"{label}: {first}", *(f"  {piece}" for piece in others if piece)] if first or others else []


def _text(line: ContentLine) -> str:
    return unescaped(line.value)


def _structured(line: ContentLine) -> str:
    """RFC 6350 §6.2.2, §6.3.1: parts between semicolons that are not escaped; empty ones say nothing."""
    parts = re.split(r"(?<!\\);", line.value)
    return ", ".join(part for part in (unescaped(each).strip() for each in parts) if part)


def _moment(line: ContentLine) -> str:
    """RFC 5545 §3.3.4, §3.3.5: a day, a time in UTC, in a named zone, or of no zone at all."""
    moments = []
    for each in line.value.split(",")[:100]:
        found = _DATE.fullmatch(each.strip())
        if found is None:
            moments.append(each.strip())
            continue
        year, month, day, hour, minute, second, utc = found.groups()
        clock = f" {hour}:{minute}" + (f":{second}" if second and second != "00" else "") if hour else ""
        zone = " UTC" if utc else f" {line.parameters['TZID']}" if hour and "TZID" in line.parameters else ""
        moments.append(f"{year}-{month}-{day}{clock}{zone}")
    return ", ".join(moments)


def _person(line: ContentLine) -> str:
    address = line.value.strip()
    if address[:7].lower() == "mailto:":
        address = address[7:]
    name = line.parameters.get("CN", "")
    answer = line.parameters.get("PARTSTAT", "").lower()
    shown = f"{name} <{address}>" if name and name != address else address
    return f"{shown} ({answer})" if answer else shown


def _not_shown(line: ContentLine) -> str:
    return "(not shown)" if line.value.strip() else ""


_Reader = Callable[[ContentLine], str]

_COMPONENTS: Final = {
    "VEVENT": "Event",
    "VTODO": "Task",
    "VJOURNAL": "Journal",
    "VFREEBUSY": "Free and busy times",
    "VALARM": "Reminder",
}
# Rules of daylight saving: the times name their zone already.
_COMPONENTS_LEFT_OUT: Final = frozenset({"VTIMEZONE"})

_CALENDAR_PROPERTIES: Final[Mapping[str, tuple[str, _Reader]]] = {
    "METHOD": ("Method", _text),
    "SUMMARY": ("Summary", _text),
    "DTSTART": ("Start", _moment),
    "DTEND": ("End", _moment),
    "DUE": ("Due", _moment),
    "DURATION": ("Duration", _text),
    "RRULE": ("Repeats", _text),
    "RDATE": ("Also on", _moment),
    "EXDATE": ("Not on", _moment),
    "RECURRENCE-ID": ("Instead of", _moment),
    "LOCATION": ("Place", _text),
    "ORGANIZER": ("Organizer", _person),
    "ATTENDEE": ("Attendee", _person),
    "STATUS": ("Status", _text),
    "DESCRIPTION": ("Description", _text),
    "COMMENT": ("Comment", _text),
    "CONTACT": ("Contact", _text),
    "CATEGORIES": ("Categories", _text),
    "URL": ("Link", _text),
    "ATTACH": ("Attached", lambda line: _not_shown(line) if "ENCODING" in line.parameters else line.value),
    "FREEBUSY": ("Busy", _text),
    "TRIGGER": ("Trigger", _text),
    "UID": ("UID", _text),
}

_CARD_PROPERTIES: Final[Mapping[str, tuple[str, _Reader]]] = {
    "FN": ("Name", _text),
    "N": ("Name in parts", _structured),
    "NICKNAME": ("Nickname", _text),
    "ORG": ("Organization", _structured),
    "TITLE": ("Title", _text),
    "ROLE": ("Role", _text),
    "EMAIL": ("Email", _text),
    "TEL": ("Telephone", lambda line: _text(line).removeprefix("tel:")),
    "ADR": ("Address", _structured),
    "IMPP": ("Messaging", _text),
    "URL": ("Link", _text),
    "BDAY": ("Birthday", _moment),
    "NOTE": ("Note", _text),
    "PHOTO": ("Photo", _not_shown),
    "LOGO": ("Logo", _not_shown),
    "SOUND": ("Sound", _not_shown),
    "KEY": ("Key", _not_shown),
}
_TYPED: Final = frozenset({"Email", "Telephone", "Address"})

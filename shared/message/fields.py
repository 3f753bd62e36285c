"""A header block cut into its fields, octet by octet where the sender put them (RFC 5322 §2.2, §4.5)."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from shared.message.defects import Defect, DefectCode
from shared.message.limits import MAX_ENCODED_WORDS, MAX_HEADER_FIELDS, MAX_HEADER_OCTETS

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"

# A name, blanks (RFC 5322 §4.5.8), a colon, and lines as long as the next begins with a blank. A lone CR ends nothing.
_FIELD: Final = re.compile(rb"([!-9;-~]++)[ \t]*+:((?:[^\n]*+\n[ \t])*+[^\n]*+)\n?")
_BLANK_LINE: Final = re.compile(rb"\r*+\n")
_END_OF_HEADER: Final = re.compile(rb"\n\r*+\n")
_CONTINUATION: Final = re.compile(rb"[ \t][^\n]*+\n?")
_MBOX_LINE: Final = re.compile(rb">?From (?![ \t]*+:)[^\n]*+\n?")


class HeaderField(NamedTuple):
    """One header field: its name as written, its value's octets from after the colon, and where the field stands.

    The value keeps leading blanks and folding and lacks its last line break; `start` and `end` are offsets into the
    message's octets, the line break within, and 0 where those are not here. A NamedTuple because a message has thirty
    and making one must cost nothing.
    """

    name: str
    value: bytes
    start: int = 0
    end: int = 0


FieldsByName: TypeAlias = Mapping[str, Sequence[HeaderField]]


def by_name(fields: Iterable[HeaderField]) -> FieldsByName:
    """Return the fields under their names in lower case, each name's in message order."""
    found: dict[str, list[HeaderField]] = {}
    for one in fields:
        found.setdefault(one.name.lower(), []).append(one)
    return found


@dataclass(slots=True)
class Budget:
    """What the header blocks of one message may still hold, all parts together."""

    fields: int = MAX_HEADER_FIELDS
    octets: int = MAX_HEADER_OCTETS
    encoded_words: int = MAX_ENCODED_WORDS
    defects: list[Defect] = field(default_factory=list)

    def report(self, code: DefectCode, detail: str) -> None:
        """Note a defect."""
        self.defects.append(Defect(code, detail))


@dataclass(frozen=True, slots=True)
class HeaderBlock:
    """The fields of one entity, and the offset where its body begins."""

    fields: tuple[HeaderField, ...]
    body_start: int


def read_header_block(
    octets: bytes, start: int, end: int, delimiters: Collection[bytes], budget: Budget
) -> HeaderBlock:
    """Return the header block that begins at `start`.

    It ends at the first blank line, at a line that is neither field nor continuation (the separator is missing; that
    line is body), or at one of the `delimiters` (RFC 2046 §5.1.1: a part may lack header and body). Over budget the
    fields read so far count, and the body still begins after the first blank line.
    """
    fields: list[HeaderField] = []
    position = _after_odd_first_lines(octets, start, end, budget)
    while position < end:
        found = _FIELD.match(octets, position, end)
        if found is None or (found[1].startswith(b"--") and _is_delimiter(octets, position, delimiters)):
            position = _body_start(octets, position, end, delimiters, budget)
            break
        name, value = found.groups()
        field_end = found.end()
        size = field_end - position
        if budget.fields <= 0 or size > budget.octets:
            _report_excess(budget, at=position)
            position = _after_blank_line(octets, position, end)
            break
        budget.fields -= 1
        budget.octets -= size
        if value.endswith(b"\r"):
            value = value[:-1]
        fields.append(HeaderField(name.decode("ascii"), value, position, field_end))
        position = field_end
    words = octets.count(b"=?", start, position)
    budget.encoded_words -= words
    if budget.encoded_words < 0 <= budget.encoded_words + words:
        budget.report(DefectCode.TOO_MANY_ENCODED_WORDS, f"more than {MAX_ENCODED_WORDS}; at octet {start}")
    return HeaderBlock(tuple(fields), position)


def _after_odd_first_lines(octets: bytes, start: int, end: int, budget: Budget) -> int:
    """An mbox separator and a continuation of nothing are no fields; the fields that follow them are."""
    position = start
    if start == 0 and (line := _MBOX_LINE.match(octets, position, end)):
        budget.report(DefectCode.MBOX_FROM_LINE, "at octet 0")
        start = position = line.end()
    while line := _CONTINUATION.match(octets, position, end):
        position = line.end()
    if position == start or _FIELD.match(octets, position, end) is None:
        return start
    budget.report(DefectCode.LEADING_CONTINUATION, f"at octet {start}")
    return position


def _is_delimiter(octets: bytes, position: int, delimiters: Collection[bytes]) -> bool:
    if not octets.startswith(b"--", position):
        return False
    line_end = octets.find(b"\n", position)
    line = octets[position : line_end if line_end >= 0 else len(octets)].rstrip(b" \t\r")
    return line in delimiters or (line.endswith(b"--") and line[:-2] in delimiters)


def _body_start(octets: bytes, position: int, end: int, delimiters: Collection[bytes], budget: Budget) -> int:
    if blank := _BLANK_LINE.match(octets, position, end):
        return blank.end()
    if not _is_delimiter(octets, position, delimiters):
        budget.report(DefectCode.MISSING_SEPARATOR, f"at octet {position}")
    return position


def _report_excess(budget: Budget, *, at: int) -> None:
    if budget.fields <= 0:
        budget.report(DefectCode.TOO_MANY_HEADER_FIELDS, f"more than {MAX_HEADER_FIELDS}; at octet {at}")
    else:
        budget.report(DefectCode.HEADER_TOO_LARGE, f"more than {MAX_HEADER_OCTETS} octets; at octet {at}")


def _after_blank_line(octets: bytes, position: int, end: int) -> int:
    blank = _END_OF_HEADER.search(octets, position, end)
    return blank.end() if blank else end

"""From octets to the tree of parts: one pass, no recursion, whatever the octets are (RFC 2045, RFC 2046 §5.1)."""

from dataclasses import dataclass, field
from typing import Final

from shared.message.defects import DefectCode
from shared.message.fields import Budget, read_header_block
from shared.message.limits import MAX_BOUNDARY_OCTETS, MAX_DEPTH, MAX_PARTS
from shared.message.model import Message, Once, Part
from shared.message.properties import EntityHeader, read_entity_header

_DEFAULT_TYPE: Final = "text/plain"
_DIGEST_TYPE: Final = "message/rfc822"  # RFC 2046 §5.1.5

# Hyphens around the boundary, and blanks that were added on the way. A longer line is looked at no further.
_MAX_DELIMITER_LINE: Final = MAX_BOUNDARY_OCTETS + 100


def parse(octets: bytes) -> Message:
    """Return the message that the octets are. Any octets give a value; what was wrong is in `defects`."""
    reading = _Reading(octets)
    root = reading.tree()
    reading.note_line_ends()
    return Message(octets, root.fields, root, tuple(reading.budget.defects))


@dataclass(slots=True)
class _Entity:
    """A part while its end is not known."""

    header: EntityHeader
    start: int
    end: int = -1
    delimiter: bytes = b""
    children: "list[_Entity]" = field(default_factory=list)


class _Reading:
    """One pass over the octets, from delimiter line to delimiter line, with a stack of open multiparts."""

    def __init__(self, octets: bytes) -> None:
        self.octets = octets
        self.budget = Budget()
        self.open: list[_Entity] = []  # multiparts whose delimiters count, outermost first
        self.depth_of: dict[bytes, int] = {}  # their delimiters without trailing blanks
        self.leaf: _Entity | None = None  # runs until the next delimiter
        self.parts = 0

    def tree(self) -> Part:
        root, position = self._entity(0, _DEFAULT_TYPE)
        while self.open and self.parts < MAX_PARTS:
            line = self._next_delimiter(position)
            if line is None:
                break
            position = self._take(*line)
        if self.open:
            if self.parts >= MAX_PARTS:
                self.budget.report(DefectCode.TOO_MANY_PARTS, f"more than {MAX_PARTS}; at octet {position}")
            else:
                self.budget.report(DefectCode.MISSING_CLOSING_BOUNDARY, "at the end of the message")
            self._close(0, len(self.octets))
        if self.leaf is not None:
            self.leaf.end = len(self.octets)
        return self._frozen(root)

    def _next_delimiter(self, position: int) -> tuple[int, int, bytes, bool] | None:
        """The next line that is a delimiter of an open multipart: its offsets, the delimiter, whether it closes."""
        octets = self.octets
        if not octets.startswith(b"--", position):
            position = octets.find(b"\n--", position) + 1
        while position > 0:
            line_end = octets.find(b"\n", position, position + _MAX_DELIMITER_LINE)
            if line_end < 0:
                line_end = len(octets) if position + _MAX_DELIMITER_LINE >= len(octets) else position + 2
            line = octets[position:line_end].rstrip(b" \t\r")
            if line in self.depth_of:
                return position, line_end + 1, line, False
            if line.endswith(b"--") and line[:-2] in self.depth_of:
                return position, line_end + 1, line[:-2], True
            position = octets.find(b"\n--", line_end) + 1
        return None

    def _take(self, line_start: int, next_line: int, delimiter: bytes, closes: bool) -> int:
        """End what this delimiter ends, begin what it begins; return where to look for the next."""
        depth = self.depth_of[delimiter]
        content_end = self._before_line_break(line_start)
        for inner in self.open[depth + 1 :]:
            self.budget.report(DefectCode.MISSING_CLOSING_BOUNDARY, f"multipart at octet {inner.start}")
        self._close(depth if closes else depth + 1, content_end)
        next_line = min(next_line, len(self.octets))
        if closes:
            return next_line
        parent = self.open[depth]
        is_digest = parent.header.type == "multipart/digest"
        child, position = self._entity(next_line, _DIGEST_TYPE if is_digest else _DEFAULT_TYPE)
        parent.children.append(child)
        return position

    def _before_line_break(self, line_start: int) -> int:
        """The line break before a delimiter belongs to it (RFC 2046 §5.1.1)."""
        end = line_start
        if self.octets[end - 1 : end] == b"\n":
            end -= 1
            if self.octets[end - 1 : end] == b"\r":
                end -= 1
        return end

    def _close(self, depth: int, content_end: int) -> None:
        """End the leaf that runs, and every open multipart from `depth` inwards."""
        if self.leaf is not None:
            # A line break between two delimiters belongs to both: what is empty begins and ends behind it.
            self.leaf.end = content_end = max(self.leaf.start, content_end)
            self.leaf = None
        for multipart in reversed(self.open[depth:]):
            multipart.end = content_end = max(multipart.start, content_end)
            del self.depth_of[multipart.delimiter]
        del self.open[depth:]

    def _entity(self, start: int, default_type: str) -> tuple[_Entity, int]:
        block = read_header_block(self.octets, start, len(self.octets), self.depth_of, self.budget)
        if start == 0 and not block.fields:
            self.budget.report(DefectCode.NO_HEADER, "at octet 0")
        header = read_entity_header(block.fields, default_type, self.budget)
        entity = _Entity(header, block.body_start)
        self.parts += 1
        if header.type.startswith("multipart/") and self._opens(entity):
            self.open.append(entity)
        else:
            self.leaf = entity
        return entity, block.body_start

    def _opens(self, entity: _Entity) -> bool:
        boundary = entity.header.parameters.get("boundary", "").rstrip(" \t").encode("utf-8", "replace")
        if not boundary or len(boundary) > MAX_BOUNDARY_OCTETS:
            self.budget.report(DefectCode.MISSING_BOUNDARY, f"multipart at octet {entity.start}")
            return False
        if len(self.open) >= MAX_DEPTH:
            self.budget.report(DefectCode.TOO_DEEP, f"more than {MAX_DEPTH}; multipart at octet {entity.start}")
            return False
        delimiter = b"--" + boundary
        if delimiter in self.depth_of:
            self.budget.report(DefectCode.CLASHING_BOUNDARY, f"multipart at octet {entity.start}")
            return False
        entity.delimiter = delimiter
        self.depth_of[delimiter] = len(self.open)
        return True

    def _frozen(self, root: _Entity) -> Part:
        """Number the leaves depth first and build the tree from its leaves up."""
        order: list[_Entity] = []
        waiting = [root]
        while waiting:
            entity = waiting.pop()
            order.append(entity)
            waiting.extend(reversed(entity.children))
        part_ids: dict[int, str] = {}
        for entity in order:
            if not entity.children:
                part_ids[id(entity)] = str(len(part_ids) + 1)
        built: dict[int, Part] = {}
        for entity in reversed(order):
            subparts = tuple(built.pop(id(child)) for child in entity.children)
            built[id(entity)] = self._part(entity, part_ids.get(id(entity)), subparts)
        return built[id(root)]

    def _part(self, entity: _Entity, part_id: str | None, subparts: tuple[Part, ...]) -> Part:
        header = entity.header
        part_type, parameters, charset = header.type, header.parameters, header.charset
        if part_id is not None and part_type.startswith("multipart/"):
            # What cannot be taken apart is shown as it stands: nobody hides a text in it.
            self.budget.report(DefectCode.MULTIPART_WITHOUT_PARTS, f"multipart at octet {entity.start}")
            part_type, charset = _DEFAULT_TYPE, charset or "us-ascii"
        return Part(
            part_id=part_id,
            type=part_type,
            parameters=parameters,
            charset=charset,
            disposition=header.disposition,
            name=header.name,
            cid=header.cid,
            language=header.language,
            location=header.location,
            transfer_encoding=header.transfer_encoding,
            fields=header.fields,
            subparts=subparts,
            start=entity.start,
            end=entity.end if entity.end >= 0 else len(self.octets),
            octets=self.octets,
            once=Once(by_name=header.by_name),
        )

    def note_line_ends(self) -> None:
        octets, pairs = self.octets, self.octets.count(b"\r\n")
        for code, octet in ((DefectCode.BARE_LF, b"\n"), (DefectCode.BARE_CR, b"\r")):
            if lone := octets.count(octet) - pairs:
                self.budget.report(code, f"{lone} of them")
        if 0 in octets:
            self.budget.report(DefectCode.NUL, f"{octets.count(0)} of them")

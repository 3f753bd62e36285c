"""A text and the segments it consists of."""

from dataclasses import dataclass
from enum import StrEnum


class SegmentKind(StrEnum):
    """Whose words a segment holds."""

    NEW = "new"
    QUOTED = "quoted"
    SIGNATURE = "signature"


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of whole lines of one kind: the characters from `start` up to, not including, `end`."""

    kind: SegmentKind
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SegmentedText:
    """A text with its segments, which follow each other without gap from its first character to its last."""

    text: str
    segments: tuple[Segment, ...]

    def new_text(self) -> str:
        """Return the new segments, an empty line between two, without empty lines at their ends; "" where all is old.

        Not always a fixed point: what stood apart stands together here, and may look like an attribution then.
        """
        pieces = (self.text[part.start : part.end] for part in self.segments if part.kind is SegmentKind.NEW)
        return "\n\n".join(filter(None, (_without_empty_ends(piece) for piece in pieces)))

    def left_out(self, kind: SegmentKind) -> int:
        """Return how many characters of that kind there are."""
        return sum(part.end - part.start for part in self.segments if part.kind is kind)


def _without_empty_ends(piece: str) -> str:
    stripped = piece.rstrip()
    start = len(stripped) - len(stripped.lstrip())
    return stripped[stripped.rfind("\n", 0, start) + 1 :] if start < len(stripped) else ""

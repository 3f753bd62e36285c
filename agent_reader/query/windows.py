"""A text in pieces: which octets of it an answer holds, and a budget over all the texts of an answer.

Positions and sizes are octets of UTF-8, as maxBodyValueBytes counts (RFC 8621 §4.2). Windows that follow each other,
each beginning where the one before ended, are together the whole text.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from shared.message import JSON, cut_value

# Any character fits, so that whoever reads on gets on.
LEAST_WINDOW_OCTETS: Final = 4

# Where a window may move to when its text is cut: its numbers get shorter, or longer by some digits.
_TRIES: Final = 4


@dataclass(slots=True)
class Windowed:
    """A text of an answer, and where it stands there: `holder` is its JSON object, with `value` and `window`.

    `name` is the property, `part_id` the part where the property has several texts. `whole` is the text as octets.
    """

    name: str
    part_id: str | None
    whole: bytes = field(repr=False)
    holder: dict[str, JSON] = field(repr=False)
    is_html: bool = False
    start: int = 0
    end: int = 0

    def show(self, start: int, max_octets: int) -> None:
        """Show the text from a position on, at most so many octets, 0 for all; never part of a character.

        A position within a character is moved to its beginning.
        """
        self.start = _boundary(self.whole, min(start, len(self.whole)))
        # Of a long text no more becomes characters than is shown, and one more, that says whether it goes on.
        end = len(self.whole) if max_octets == 0 else self.start + max_octets + LEAST_WINDOW_OCTETS
        rest = self.whole[self.start : end].decode("utf-8", "ignore")
        value = cut_value(rest, max_octets, is_html=self.is_html)
        # A tag longer than the window is cut through: whoever reads on must get on.
        self._put(value or cut_value(rest, max_octets, is_html=False))

    def shorten(self, by: int) -> None:
        """Take at least so many octets of JSON off the end of what is shown, or all of it."""
        value = str(self.holder["value"])
        left = _json_octets(value) - by
        self._put(value[: _longest_within(value, left)] if left > 0 else "")

    @property
    def is_cut(self) -> bool:
        """Whether the text goes on after the window."""
        return self.end < len(self.whole)

    def rest(self, email_id: str) -> JSON:
        """Return what says that the text goes on, and from where."""
        return {
            "id": email_id,
            "property": self.name,
            "partId": self.part_id,
            "windowStart": self.end,
            "octets": len(self.whole) - self.end,
        }

    def _put(self, value: str) -> None:
        self.end = self.start + len(value.encode())
        self.holder["value"] = value
        self.holder["isTruncated"] = self.is_cut
        self.holder["window"] = {"start": self.start, "end": self.end, "size": len(self.whole)}


class Budget:
    """How many octets of JSON the Emails of one answer may still come to; None for any number."""

    def __init__(self, octets: int | None) -> None:
        self._left = octets

    def takes(self, octets: int) -> bool:
        """Take so many octets off what is left; False, and nothing is taken, where that is less."""
        if self._left is None:
            return True
        if octets > self._left:
            return False
        self._left -= octets
        return True

    def can_hold(self, row_octets: int, content: dict[str, JSON], texts: Iterable[Windowed]) -> bool:
        """Make an Email fit by shortening its texts, the last one first; False where it does not without any.

        `row_octets` is how long the JSON of the rest of the Email is, an object of its own.
        """
        if self._left is None:
            return True
        # Two objects become one: a comma stands where two brackets were.
        left = self._left - row_octets + 1
        for text in reversed(tuple(texts)):
            for _ in range(_TRIES):
                over = len(msgspec.json.encode(content)) - left
                if over <= 0 or not text.holder["value"]:
                    break
                text.shorten(over)
        return len(msgspec.json.encode(content)) <= left


def _boundary(octets: bytes, position: int) -> int:
    while 0 < position < len(octets) and octets[position] & 0xC0 == 0x80:  # noqa: PLR2004 - UTF-8's following octets
        position -= 1
    return position


def _json_octets(value: str) -> int:
    return len(msgspec.json.encode(value)) - 2


def _longest_within(value: str, octets: int) -> int:
    """How many characters of a text take no more than so many octets of JSON: what is escaped takes more than it is."""
    low, high = 0, len(value)
    while low < high:
        middle = (low + high + 1) // 2
        if _json_octets(value[:middle]) <= octets:
            low = middle
        else:
            high = middle - 1
    return low

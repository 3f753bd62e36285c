"""Where an Email stands in the search table: its rowid there, the newest first and as near to the next as can be.

Of what an index entry takes, most is the distance to the entry before. An Email's key counts seconds and leaves room
for a million messages in each; its place counts units of two minutes, and makes room where more messages come in than
there are units. The order is the keys' exactly, backwards: FTS5 reads its lists from their beginning, and the other way
round page by page with each page read twice, so that the newest stand where it begins. A list by date and a range of
dates hold whatever the places are.
"""

from dataclasses import dataclass
from typing import Final

import apsw

# The lower bits of a key that a place does without: the tie-break of 20, and 128 seconds. Fewer than 700 messages a
# day on average stand two minutes apart or more, so that most that come in late find a free place in between.
_UNIT_SHIFT: Final = 27

# Of the first unit of 1970. A rowid below it takes four octets where an index entry holds it whole, for 1,080 years.
_PLACE_OF_1970: Final = (1 << 28) - 1

# Emails on each side that are moved at least, where there is no free place.
_LEAST_REACH: Final = 4


@dataclass(frozen=True, slots=True)
class Moved:
    """An Email that must make room."""

    key: int
    old: int
    new: int


@dataclass(frozen=True, slots=True)
class Found:
    """The place of a new Email, once others have moved."""

    place: int
    moved: tuple[Moved, ...] = ()


def of_date(key: int) -> int:
    """Return the place that an Email has where no other one stands there."""
    return _PLACE_OF_1970 - (key >> _UNIT_SHIFT)


def find(connection: apsw.Connection, key: int) -> Found:
    """Return a place for an Email that is not there yet; who must move for it is told, not moved."""
    older: int | None = connection.execute(
        "SELECT place FROM emails WHERE key < ? ORDER BY key DESC LIMIT 1", (key,)
    ).get
    newer: int | None = connection.execute("SELECT place FROM emails WHERE key > ? ORDER BY key LIMIT 1", (key,)).get
    place = of_date(key)
    if newer is not None:
        place = max(place, newer + 1)
    if older is None or place < older:
        return Found(place)
    if newer is None or newer + 1 < older:
        return Found(older - 1)
    return _make_room(connection, key)


def _make_room(connection: apsw.Connection, key: int) -> Found:
    """Spread the Emails around evenly: the more of them, the looser, so that moves stay few for each newcomer.

    The ends are open, so that there is room for any number.
    """
    reach = _LEAST_REACH
    while True:
        newer = _neighbours(connection, "SELECT key, place FROM emails WHERE key > ? ORDER BY key LIMIT ?", key, reach)
        older = _neighbours(
            connection, "SELECT key, place FROM emails WHERE key < ? ORDER BY key DESC LIMIT ?", key, reach
        )
        window = [*reversed(newer[:reach]), (key, 0), *older[:reach]]
        wanted = len(window) * (4 + len(window).bit_length()) // 4
        is_bounded_low, is_bounded_high = len(newer) > reach, len(older) > reach
        low = newer[reach][1] if is_bounded_low else newer[-1][1] - 1
        high = older[reach][1] if is_bounded_high else max(older[-1][1] + 1, low + wanted + 1)
        if not is_bounded_low:
            low = min(low, high - wanted - 1)
        if high - low > wanted:
            return _spread(window, key, low, high)
        reach *= 2


def _neighbours(connection: apsw.Connection, sql: str, key: int, reach: int) -> list[tuple[int, int]]:
    """So many neighbours, the nearest first, and one more as the bound if there is one."""
    return [(int(found), int(place)) for found, place in connection.execute(sql, (key, reach + 1))]


def _spread(window: list[tuple[int, int]], key: int, low: int, high: int) -> Found:
    places = [low + number * (high - low) // (len(window) + 1) for number in range(1, len(window) + 1)]
    pairs = list(zip(window, places, strict=True))
    (place,) = (new for (found, _), new in pairs if found == key)
    moved = (Moved(found, old, new) for (found, old), new in pairs if found != key and old != new)
    return Found(place, tuple(moved))

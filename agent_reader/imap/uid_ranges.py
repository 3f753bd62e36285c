"""UIDs as a server names many of them at once: ranges, compared without being spread out."""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Self

# RFC 9051 §9: a UID has 32 bits.
_LAST_UID: Final = 2**32 - 1
_SET: Final = re.compile(rb"[0-9]{1,10}(?::[0-9]{1,10})?(?:,[0-9]{1,10}(?::[0-9]{1,10})?)*")


@dataclass(frozen=True, slots=True)
class UidRanges:
    """A set of UIDs as ascending ranges that do not touch; `1:4294967295` takes as little room as `1`."""

    ranges: tuple[tuple[int, int], ...] = ()

    @classmethod
    def parsed(cls, untrusted_sets: Iterable[bytes]) -> Self:
        """Read sets (RFC 9051 §9 sequence-set without `*`). Raises ValueError for anything else."""
        pairs: list[tuple[int, int]] = []
        for uid_set in untrusted_sets:
            if _SET.fullmatch(uid_set) is None:
                raise ValueError("no set of UIDs")
            for part in uid_set.split(b","):
                first, _, last = part.partition(b":")
                low, high = sorted((int(first), int(last or first)))
                if not 0 < low <= high <= _LAST_UID:
                    raise ValueError("a UID out of bounds")
                pairs.append((low, high))
        return cls(tuple(_joined(sorted(pairs))))

    def __len__(self) -> int:
        return sum(high - low + 1 for low, high in self.ranges)

    def with_uids(self, uids: Iterable[int]) -> Self:
        """Return these UIDs and those."""
        return type(self)(tuple(_joined(sorted([*self.ranges, *((uid, uid) for uid in uids)]))))

    def among(self, uids: Collection[int]) -> set[int]:
        """Return those of these UIDs that are in the set."""
        lows = [low for low, _ in self.ranges]
        return {uid for uid in uids if (at := bisect_right(lows, uid)) and uid <= self.ranges[at - 1][1]}

    def spread(self, most: int) -> list[int]:
        """Return every UID, ascending. Raises ValueError for more than `most`: nobody has so many messages."""
        if len(self) > most:
            raise ValueError(f"{len(self)} UIDs where at most {most} were expected")
        return [uid for low, high in self.ranges for uid in range(low, high + 1)]


def _joined(ascending: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    low, high = 0, -1
    for next_low, next_high in ascending:
        if next_low <= high + 1:
            high = max(high, next_high)
            continue
        if low:
            yield low, high
        low, high = next_low, next_high
    if low:
        yield low, high

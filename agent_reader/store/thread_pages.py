"""The Thread of each place in the search table, packed, so that the Threads of many hits are counted at once.

A page holds the keys of a thousand places, four octets each, and zeros where no Email stands. To look up one hit after
the other and to sort what comes of it takes ten times what FTS5 takes for the hits; out of so many pages in a row
SQLite cuts the keys itself, in the order of the hits, and what is left to do is a set. Pages are written with the rows
of the search table, in the same transaction, so that a snapshot has those of its own hits.
"""

from array import array
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, NamedTuple

import apsw

# As `array` names it; in which order a machine has its octets makes no difference to how many keys differ.
_KEY_TYPE: Final = "I"
_KEY_OCTETS: Final = 4

# With the head of its row a page takes one of the file's, and no overflow.
_PLACES_OF_A_PAGE: Final = 1_000
_PAGE_OCTETS: Final = _PLACES_OF_A_PAGE * _KEY_OCTETS
_NO_THREADS: Final = bytes(_PAGE_OCTETS)

# Of two years and two megabytes: each costs a question a search of its own, and SQLite a look at each hit's bounds.
_PAGES_OF_A_CHUNK: Final = 512

# What a page costs a question, in hits that could be looked up in that time: to hand it to SQLite, and to read it where
# it is another than before.
_HITS_OF_A_PAGE: Final = 1
_HITS_OF_READING_A_PAGE: Final = 8
# To ask whether there are so few hits takes as long as it could save.
_FEW_HITS: Final = 64

# What is kept of all accounts: a million Emails of 17 years are half of it.
_KEPT_OCTETS: Final = 32 * 1024 * 1024

# So many keys at a time: less than a millisecond in which no other thread gets a turn.
_OCTETS_AT_A_TIME: Final = 16_384 * _KEY_OCTETS

# Some fifty megabytes of memory; who has more is counted by SQLite, which takes longer.
_MOST_THREADS: Final = 500_000


class TooManyThreads(Exception):  # noqa: N818 - names what happened
    """More than are held in memory at once."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The Threads of places in a row, from `first` to `last`."""

    first: int
    last: int
    threads: bytes


class _Kept(NamedTuple):
    version: int
    chunk: Chunk


class ThreadPages:
    """What was read of the pages of all accounts, up to a bound: the least recently used goes. Any thread may call."""

    def __init__(self, most_octets: int = _KEPT_OCTETS) -> None:
        self._most_octets = most_octets
        self._lock = Lock()
        self._kept: OrderedDict[tuple[str, int], _Kept] = OrderedDict()
        self._octets = 0

    def chunks(
        self, connection: apsw.Connection, account_id: str, versions: Sequence[tuple[int, int]]
    ) -> Iterator[Chunk]:
        """Yield chunks of an account of these `versions`, which its snapshot on this connection has."""
        for number, version in versions:
            with self._lock:
                kept = self._kept.get((account_id, number))
                if kept is not None:
                    self._kept.move_to_end((account_id, number))
            if kept is None or kept.version != version:
                kept = _Kept(version, _read(connection, number))
                self._keep((account_id, number), kept)
            yield kept.chunk

    def worth_hits(self, account_id: str, versions: Sequence[tuple[int, int]]) -> int:
        """Return how many hits are looked up as fast as these chunks are read and used; 0 for a few."""
        hits = 0
        with self._lock:
            for number, version in versions:
                kept = self._kept.get((account_id, number))
                pages = _PAGES_OF_A_CHUNK if kept is None else len(kept.chunk.threads) // _PAGE_OCTETS
                hits += pages * _HITS_OF_A_PAGE
                if kept is None or kept.version != version:
                    hits += pages * _HITS_OF_READING_A_PAGE
        return hits if hits > _FEW_HITS else 0

    def _keep(self, place: tuple[str, int], kept: _Kept) -> None:
        with self._lock:
            earlier = self._kept.pop(place, None)
            if earlier is not None:
                self._octets -= len(earlier.chunk.threads)
            self._kept[place] = kept
            self._octets += len(kept.chunk.threads)
            while self._octets > self._most_octets:
                _, dropped = self._kept.popitem(last=False)
                self._octets -= len(dropped.chunk.threads)

    def clear(self) -> None:
        """Keep nothing more of what was read."""
        with self._lock:
            self._kept.clear()
            self._octets = 0


def versions(connection: apsw.Connection) -> list[tuple[int, int]]:
    """Return (chunk, version) of each chunk that an account has, the newest first."""
    rows: list[Any] = connection.execute("SELECT chunk, version FROM thread_chunks ORDER BY chunk").fetchall()
    return rows


def distinct(found: Iterable[bytes]) -> int:
    """Return how many Threads there are among keys as pages have them. Raises `TooManyThreads`."""
    seen = set[int]()
    for keys in found:
        for start in range(0, len(keys), _OCTETS_AT_A_TIME):
            seen.update(array(_KEY_TYPE, keys[start : start + _OCTETS_AT_A_TIME]))
            if len(seen) > _MOST_THREADS:
                raise TooManyThreads
    return len(seen)


def put(connection: apsw.Connection, place: int, thread_key: int) -> None:
    """Say which Thread the Email at a place is of; it stays said when the Email leaves, since no hit is there then."""
    page, number = divmod(place, _PLACES_OF_A_PAGE)
    threads = connection.execute("SELECT threads FROM thread_pages WHERE page = ?", (page,)).get or _NO_THREADS
    start, key = number * _KEY_OCTETS, thread_key.to_bytes(_KEY_OCTETS, "little")
    if threads[start : start + _KEY_OCTETS] == key:
        return
    changed = threads[:start] + key + threads[start + _KEY_OCTETS :]
    connection.execute("INSERT OR REPLACE INTO thread_pages (page, threads) VALUES (?, ?)", (page, changed))
    connection.execute(
        "INSERT INTO thread_chunks (chunk, version) VALUES (?, 1) ON CONFLICT DO UPDATE SET version = version + 1",
        (page // _PAGES_OF_A_CHUNK,),
    )


def _read(connection: apsw.Connection, number: int) -> Chunk:
    begin = number * _PAGES_OF_A_CHUNK
    rows: list[Any] = connection.execute(
        "SELECT page, threads FROM thread_pages WHERE page >= ? AND page < ?", (begin, begin + _PAGES_OF_A_CHUNK)
    ).fetchall()
    pages: dict[int, bytes] = dict(rows)
    first, last = min(pages), max(pages)
    threads = b"".join([pages.get(page, _NO_THREADS) for page in range(first, last + 1)])
    return Chunk(first * _PLACES_OF_A_PAGE, (last + 1) * _PLACES_OF_A_PAGE - 1, threads)

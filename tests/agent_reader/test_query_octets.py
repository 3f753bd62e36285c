"""The cache of octets: bounded, whole for whoever reads, empty of files; and one fetch however many ask."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent_reader.imap.values import Place
from agent_reader.query import BlobCache, BlobReader, BlobUnavailable, FoundBlob, Unavailable
from agent_reader.query.blob_cache import OpenBlob
from shared.identity import blob_id, email_id, message_digest

SECONDS = 20.0
PLACE = Place("INBOX", 7, 1)
LETTER = b"Subject: a\r\n\r\nA letter.\r\n"


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[BlobCache]:
    with closing(BlobCache(tmp_path / "blobs", 100)) as opened:
        yield opened


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def put(cache: BlobCache, name: str, octets: bytes) -> None:
    with cache.spool() as spool:
        spool.write(octets)
        with spool.finished() as blob:
            cache.put(("shop", name), blob)


def got(cache: BlobCache, name: str) -> bytes | None:
    blob = cache.get(("shop", name))
    if blob is None:
        return None
    with blob:
        return blob.whole()


def found(octets: bytes) -> FoundBlob:
    digest = message_digest(octets)
    return FoundBlob(blob_id(digest), email_id(digest), blob_id(digest), (PLACE,), False, True)


def test_what_was_put_in_comes_out_and_no_file_has_a_name(cache: BlobCache, tmp_path: Path) -> None:
    put(cache, "a", b"x" * 40)
    assert b"x" * 40 == got(cache, "a")
    assert got(cache, "b") is None
    assert [] == list((tmp_path / "blobs").iterdir())
    assert 0o700 == (tmp_path / "blobs").stat().st_mode & 0o777


def test_the_least_lately_used_goes_first_and_the_bound_holds(cache: BlobCache) -> None:
    for name in "abc":
        put(cache, name, name.encode() * 40)
        assert got(cache, "a") is not None
    assert [b"a" * 40, None, b"c" * 40] == [got(cache, name) for name in "abc"]


def test_what_is_larger_than_the_bound_is_not_kept_and_pushes_nothing_out(cache: BlobCache) -> None:
    put(cache, "a", b"x" * 40)
    put(cache, "b", b"x" * 101)
    assert (b"x" * 40, None) == (got(cache, "a"), got(cache, "b"))


def test_many_small_ones_are_bounded_by_their_number(tmp_path: Path) -> None:
    before = descriptors()
    with closing(BlobCache(tmp_path, 1_000_000)) as cache:
        for number in range(200):
            put(cache, str(number), b"x")
        assert descriptors() - before <= 70
    assert before == descriptors()


def test_whoever_reads_what_is_given_up_meanwhile_reads_it_to_the_end(cache: BlobCache) -> None:
    before = descriptors()
    put(cache, "a", b"abc")
    blob = cache.get(("shop", "a"))
    assert isinstance(blob, OpenBlob)
    with blob:
        cache.close()
        assert b"bc" == blob.read(1, 100)
        assert got(cache, "a") is None
    blob.close()
    put(cache, "b", b"late")
    assert got(cache, "b") is None
    assert before == descriptors()


@dataclass
class Slow:
    """Gives one letter, once it is let; counts how often it was asked."""

    asked: int = 0
    waiting: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    let: threading.Event = field(default_factory=threading.Event)

    def fetch(self, _place: Place, write: Callable[[bytes], None]) -> bool:
        self.asked += 1
        self.waiting.release()
        assert self.let.wait(SECONDS)
        write(LETTER)
        return True


def test_the_same_message_is_fetched_once_however_many_ask(tmp_path: Path) -> None:
    before, server, answers = descriptors(), Slow(), list[bytes]()
    with closing(BlobCache(tmp_path, 1000)) as cache:
        blobs = BlobReader({"shop": server}, cache, 1000)

        def ask() -> None:
            with blobs.open("shop", found(LETTER)) as blob:
                answers.append(blob.whole())

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        assert server.waiting.acquire(timeout=SECONDS)
        server.let.set()
        for thread in threads:
            thread.join(SECONDS)
    assert ([LETTER] * 8, 1) == (answers, server.asked)
    assert before == descriptors()


@dataclass
class Given:
    """Gives these octets, or does what `broken` does."""

    octets: bytes
    broken: Exception | None = None

    def fetch(self, _place: Place, write: Callable[[bytes], None]) -> bool:
        write(self.octets)
        if self.broken is not None:
            raise self.broken
        return True


@pytest.mark.parametrize(
    ("server", "reason", "retryable"),
    [
        (Given(LETTER + b"."), Unavailable.ALTERED, False),
        (Given(LETTER[:-1]), Unavailable.ALTERED, False),
        (Given(b"x" * 2_000), Unavailable.TOO_LARGE, False),
        (Given(LETTER, OSError(errno.ENOSPC, "No space left on device")), Unavailable.NO_SPACE, True),
    ],
)
def test_what_is_not_given_is_not_kept_and_holds_nothing(
    tmp_path: Path, server: Given, reason: Unavailable, retryable: bool
) -> None:
    with closing(BlobCache(tmp_path, 1000)) as cache:
        before = descriptors()
        blobs = BlobReader({"shop": server}, cache, 1000)
        for _ in range(2):
            with pytest.raises(BlobUnavailable) as unavailable:
                blobs.open("shop", found(LETTER))
            assert (reason, retryable) == (unavailable.value.reason, unavailable.value.retryable)
        assert before == descriptors()
        with BlobReader({"shop": Given(LETTER)}, cache, 1000).open("shop", found(LETTER)) as blob:
            assert LETTER == blob.whole()

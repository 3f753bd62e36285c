"""The reader as a process whose disk is full: it says so, loses nothing, answers, and goes on when there is room."""

from __future__ import annotations

import contextlib
import random
from typing import TYPE_CHECKING

import pytest

from tests.end_to_end.houses import eventually
from tests.fakes.reader_process import ReaderFolder, subjects
from tests.servers.dovecot import Dovecot
from tests.servers.small_disk import small_disk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DISK_MEBIBYTES = 6


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a small file system of its own; making one is root's."""
    with small_disk(tmp_path / "disk", DISK_MEBIBYTES * 1024) as folder:
        yield folder


def fill(path: Path) -> None:
    """Take all room that is left, to the last octet."""
    with path.open("ab", buffering=0) as filler:
        for size in (65_536, 512, 1):
            with contextlib.suppress(OSError):
                while filler.write(bytes(size)):
                    pass


def large_mail(number: int) -> bytes:
    words = random.Random(number)
    text = "\r\n".join(" ".join(f"{words.getrandbits(40):x}" for _ in range(7)) for _ in range(2_000))
    return f"Subject: large {number}\r\nMessage-ID: <{number}@x>\r\n\r\n{text}\r\n".encode()


def test_a_full_disk_is_told_costs_nothing_and_once_there_is_room_all_comes_in(dovecot: Dovecot, disk: Path) -> None:
    folder = ReaderFolder(disk, dovecot)
    dovecot.deliver("INBOX", b"Subject: before\r\n\r\nbefore\r\n")
    token = folder.token()
    with folder.serve() as reader:
        address = reader.address()
        reader.await_event("sync:round", whole=True)
        assert {"before"} == subjects(address, token)
        filler = disk / "filler"
        fill(filler)
        for number in range(3):
            dovecot.deliver("INBOX", large_mail(number))
        told = reader.await_event("sync:failed", code="disk_full")
        assert "Free space" in told["fix"]
        assert "full" in folder.command("status").stdout
        filler.unlink()
        # What an agent asks is put on record first, and that has room again too.
        everything = {"before", *(f"large {number}" for number in range(3))}
        eventually(lambda: subjects(address, token) == everything, "the mail that had no room", 60.0)
        eventually(lambda: "fresh, 4 messages" in folder.command("status").stdout, "the status to be fresh again")
        assert 0 == reader.end(by_signal=15)
    # It starts again from what it had.
    with folder.serve() as reader:
        assert everything == subjects(reader.address(), token)

"""Writes that share a commit: all that came while one ran are one, and none is lost or told before its time."""

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from agent_reader.access.together import Together

_SECONDS = 20


class Disk:
    """Holds the first commit until it is told to go on; refuses every commit with `bad` in it."""

    def __init__(self) -> None:
        self.commits: list[list[str]] = []
        self.is_writing, self.may_go_on = threading.Event(), threading.Event()

    def write_all(self, entries: Sequence[str]) -> None:
        self.is_writing.set()
        assert self.may_go_on.wait(_SECONDS)
        if "bad" in entries:
            raise OSError(28, "no space")
        self.commits.append(list(entries))


def wait_for(together: Together[str], number: int) -> None:
    until = time.monotonic() + _SECONDS
    while len(together) < number:
        assert time.monotonic() < until
        time.sleep(0.001)


def test_who_comes_while_a_commit_runs_shares_the_next_one() -> None:
    disk = Disk()
    together = Together(disk.write_all)
    with ThreadPoolExecutor(6) as threads:
        first = threads.submit(together.write, "first")
        assert disk.is_writing.wait(_SECONDS)
        others = [threads.submit(together.write, str(number)) for number in range(5)]
        wait_for(together, 5)
        assert not any(each.done() for each in (first, *others))
        disk.may_go_on.set()
        for each in (first, *others):
            each.result(_SECONDS)
    assert [["first"], ["0", "1", "2", "3", "4"]] == [sorted(commit) for commit in disk.commits]


def test_what_cannot_be_written_fails_alone() -> None:
    disk = Disk()
    together = Together(disk.write_all)
    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(together.write, "first")
        assert disk.is_writing.wait(_SECONDS)
        bad, *others = [threads.submit(together.write, entry) for entry in ("bad", "one", "two")]
        wait_for(together, 3)
        disk.may_go_on.set()
        for each in (first, *others):
            each.result(_SECONDS)
        with pytest.raises(OSError, match="no space"):
            bad.result(_SECONDS)
    assert ["first", "one", "two"] == sorted(entry for commit in disk.commits for entry in commit)


def test_in_an_event_loop_all_that_come_in_one_round_share_a_commit_and_what_cannot_be_written_fails_alone() -> None:
    disk = Disk()
    disk.may_go_on.set()
    together = Together(disk.write_all)

    async def come(*entries: str) -> list[BaseException | None]:
        return await asyncio.gather(*map(together.write_soon, entries), return_exceptions=True)

    assert [None] * 3 == asyncio.run(come("one", "two", "three"))
    assert [["one", "two", "three"]] == disk.commits
    four, bad, five = asyncio.run(come("four", "bad", "five"))
    assert (None, None) == (four, five)
    assert isinstance(bad, OSError)
    assert [["four"], ["five"]] == disk.commits[1:]
    together.close()


def test_what_was_handed_in_is_written_though_its_event_loop_is_gone() -> None:
    disk = Disk()
    together = Together(disk.write_all)

    async def leave() -> None:
        handed_in = asyncio.create_task(together.write_soon("kept"))
        await asyncio.to_thread(disk.is_writing.wait, _SECONDS)
        handed_in.cancel()

    asyncio.run(leave())
    disk.may_go_on.set()
    # One of a thread comes after it, and finds nothing of the loop's to do.
    together.write("next")
    together.close()
    assert [["kept"], ["next"]] == disk.commits

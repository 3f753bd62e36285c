"""Writes that share a commit: all that came while one ran are one, and none is lost or told before its time."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from agent_reader.access.together import Together

_SECONDS = 20


class Disk:
    """Holds the first commit until it is told to go on; what is `bad` it does not take, and at `worse` it breaks."""

    def __init__(self) -> None:
        self.commits: list[list[str]] = []
        self.is_writing, self.may_go_on = threading.Event(), threading.Event()

    def write_all(self, entries: Sequence[str]) -> list[BaseException | None]:
        self.is_writing.set()
        assert self.may_go_on.wait(_SECONDS)
        if "worse" in entries:
            raise OSError(5, "broken")
        self.commits.append([each for each in entries if each != "bad"])
        return [OSError(28, "no space") if each == "bad" else None for each in entries]


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


def test_what_breaks_is_told_to_all_of_it_and_the_next_one_goes_on() -> None:
    disk = Disk()
    disk.may_go_on.set()
    together = Together(disk.write_all)
    with pytest.raises(OSError, match="broken"):
        together.write("worse")
    together.write("next")
    assert [["next"]] == disk.commits

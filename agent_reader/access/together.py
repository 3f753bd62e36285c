"""Writes that share a commit: a commit waits for the disk, and who comes meanwhile would wait for one of his own."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Entry = TypeVar("Entry")


@dataclass(slots=True)
class _Waiting(Generic[Entry]):
    entry: Entry
    is_done: bool = False
    failure: BaseException | None = None


class Together(Generic[Entry]):
    """Gives entries to `write_all`, all that wait at a time; any thread may call.

    `write_all` returns what each of them failed with, None where it is on disk.
    """

    def __init__(self, write_all: Callable[[Sequence[Entry]], Sequence[BaseException | None]]) -> None:
        self._write_all = write_all
        self._turn, self._lock = threading.Lock(), threading.Lock()
        self._waiting: list[_Waiting[Entry]] = []

    def __len__(self) -> int:
        """How many entries wait for the commit that runs."""
        with self._lock:
            return len(self._waiting)

    def write(self, entry: Entry) -> None:
        """Return once the entry is on disk, or raise what it failed with."""
        own = _Waiting(entry)
        with self._lock:
            self._waiting.append(own)
        # Whoever gets the turn writes for all who came before; most of them find theirs done.
        with self._turn:
            if not own.is_done:
                with self._lock:
                    taken, self._waiting = self._waiting, []
                self._write_taken(taken)
        if own.failure is not None:
            raise own.failure

    def _write_taken(self, taken: Sequence[_Waiting[Entry]]) -> None:
        failures: Sequence[BaseException | None]
        try:
            failures = self._write_all([each.entry for each in taken])
        except BaseException as failure:  # noqa: BLE001 - it is raised in the threads whose entries they are
            failures = [failure] * len(taken)
        for each, of_it in zip(taken, failures, strict=True):
            each.failure, each.is_done = of_it, True

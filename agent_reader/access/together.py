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

    `write_all` returns once they are on disk, or raises and has written none of them.
    """

    def __init__(self, write_all: Callable[[Sequence[Entry]], None]) -> None:
        self._write_all = write_all
        self._turn, self._lock = threading.Lock(), threading.Lock()
        self._waiting: list[_Waiting[Entry]] = []

    def __len__(self) -> int:
        """How many entries wait for the commit that runs."""
        with self._lock:
            return len(self._waiting)

    def write(self, entry: Entry) -> None:
        """Return once the entry is on disk, or raise what `write_all` raised for it."""
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
        try:
            self._write_all([each.entry for each in taken])
        except BaseException as failure:  # noqa: BLE001 - it is raised in the thread whose entry it is
            if len(taken) > 1:
                # One that cannot be written is no reason to refuse the others.
                for each in taken:
                    self._write_taken([each])
                return
            taken[0].failure = failure
        for each in taken:
            each.is_done = True

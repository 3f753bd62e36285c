"""Acts handed in from an event loop: what is handed in while others are written shares the next commit.

A thread for each would cost more than what it writes; and the loop itself must not wait for the disk. So one thread of
the loop writes for all, as long as there is something to write.
"""

import asyncio
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from change_executor.journal.group import MAX_GROUP
from change_executor.journal.journal import Journal, Writing

_Found = TypeVar("_Found")
_HandedIn = tuple[Callable[[Writing], Any], "asyncio.Future[Any]"]


class HandedIn:
    """The acts of a journal's event loops; thread-safe."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lock = threading.Lock()
        self._waiting: deque[_HandedIn] = deque()
        self._is_writing = False

    async def write(self, act: Callable[[Writing], _Found]) -> _Found:
        """Let an act write in a transaction of the journal; return what it returned, after the commit.

        Raises what it raised, after the commit of the others, and `JournalUnavailable`. An act that was handed in is
        written, whoever still waits for it.
        """
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[_Found] = loop.create_future()
        with self._lock:
            self._waiting.append((act, ended))
            begins, self._is_writing = not self._is_writing, True
        if begins:
            try:
                loop.run_in_executor(None, self._write)
            except RuntimeError:
                # A loop that ends takes no more work; the next one writes what waits.
                with self._lock:
                    self._is_writing = False
                raise
        return await ended

    def _write(self) -> None:
        while batch := self._next():
            outcomes: Sequence[Any]
            try:
                outcomes = self._journal.write_all([act for act, _ in batch])
            except Exception as error:  # noqa: BLE001 - each of them hears it
                outcomes = [error] * len(batch)
            _tell([ended for _, ended in batch], outcomes)

    def _next(self) -> list[_HandedIn]:
        with self._lock:
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_GROUP))]
            self._is_writing = bool(batch)
        return batch


def _tell(futures: "list[asyncio.Future[Any]]", outcomes: Sequence[Any]) -> None:
    # A loop is woken once, however many of its requests are answered.
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = defaultdict(list)
    for future, outcome in zip(futures, outcomes, strict=True):
        by_loop[future.get_loop()].append((future, outcome))
    for loop, told in by_loop.items():
        # It is closed: nobody waits there any more, and what was committed stays so.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, told)


def _settle(told: "list[tuple[asyncio.Future[Any], Any]]") -> None:
    for future, outcome in told:
        if future.done():
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

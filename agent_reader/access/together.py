"""Writes that share a commit: a commit waits for the disk, and who comes meanwhile would wait for one of his own."""

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

Entry = TypeVar("Entry")


@dataclass(slots=True)
class _Waiting(Generic[Entry]):
    entry: Entry
    # Of who waits in an event loop.
    ended: "asyncio.Future[None] | None" = None
    is_done: bool = False
    failure: BaseException | None = None


class Together(Generic[Entry]):
    """Gives entries to `write_all`, all that wait at a time; any thread and any event loop may call, `close` when done.

    `write_all` returns once they are on disk, or raises and has written none of them.
    """

    def __init__(self, write_all: Callable[[Sequence[Entry]], None]) -> None:
        self._write_all = write_all
        self._turn, self._lock = threading.Lock(), threading.Lock()
        self._waiting: list[_Waiting[Entry]] = []
        # It writes for event loops, which must not wait for the disk.
        self._writer = ThreadPoolExecutor(1, "record")
        self._is_writing = False

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
                self._write_taken(self._take())
        if own.failure is not None:
            raise own.failure

    async def write_soon(self, entry: Entry) -> None:
        """Do as `write` does, without holding up the event loop. Whoever leaves meanwhile: the entry is written."""
        own = _Waiting(entry, asyncio.get_running_loop().create_future())
        with self._lock:
            self._waiting.append(own)
            begins, self._is_writing = not self._is_writing, True
        if begins:
            # Once all that came in beside this was worked out: it shares the commit.
            asyncio.get_running_loop().call_soon(self._writer.submit, self._write_on)
        assert own.ended is not None
        await own.ended

    def close(self) -> None:
        """Write what waits, and let the thread go."""
        self._writer.shutdown()

    def _take(self) -> list[_Waiting[Entry]]:
        with self._lock:
            taken, self._waiting = self._waiting, []
            return taken

    def _write_on(self) -> None:
        """Write as long as there is something to write."""
        while True:
            with self._turn:
                self._write_taken(self._take())
            with self._lock:
                self._is_writing = bool(self._waiting)
                if not self._is_writing:
                    return

    def _write_taken(self, taken: Sequence[_Waiting[Entry]]) -> None:
        if not taken:
            return
        try:
            self._write_all([each.entry for each in taken])
        except BaseException as failure:  # noqa: BLE001 - it is raised where its entry came from
            if len(taken) > 1:
                # One that cannot be written is no reason to refuse the others.
                for each in taken:
                    self._write_taken([each])
                return
            taken[0].failure = failure
        for each in taken:
            each.is_done = True
        _tell(taken)


def _tell(done: Iterable[_Waiting[Entry]]) -> None:
    # A loop is woken once, however many wait in it.
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[_Waiting[Entry]]] = defaultdict(list)
    for each in done:
        if each.ended is not None:
            by_loop[each.ended.get_loop()].append(each)
    for loop, of_loop in by_loop.items():
        # It is closed: nobody waits there any more, and what is on disk stays so.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, of_loop)


def _settle(done: Iterable[_Waiting[Entry]]) -> None:
    for each in done:
        if each.ended is None or each.ended.done():
            continue
        if each.failure is None:
            each.ended.set_result(None)
        else:
            each.ended.set_exception(each.failure)

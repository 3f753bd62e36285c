"""Acts handed in from an event loop: all that wait at a time are written together and share a commit.

The loop itself lets them write: a thread beside it would wait for the interpreter with each step of SQLite, and the
loop with each piece that it sends, which costs more than what is written. The loop waits neither for a lock nor for the
commit: those are a thread's, which takes whole batches too where others hold the lock or reading has become slow.
"""

import asyncio
import math
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

_Act = TypeVar("_Act")
_Act_contra = TypeVar("_Act_contra", contravariant=True)
_HandedIn = tuple[_Act, "asyncio.Future[Any]"]

# An act takes the loop 0.15 ms, so all that the loop serves waits up to five for a batch.
MAX_ON_LOOP: Final = 32


class Book(Protocol[_Act_contra]):
    """What acts are written in; each act has one outcome, or the exception that it ended with."""

    def write_all(self, acts: Sequence[_Act_contra]) -> Sequence[Any]:
        """Let acts write in one transaction, waiting for the turn; return the outcomes after the commit."""

    def begin_all(self, acts: Sequence[_Act_contra]) -> Callable[[], Sequence[Any]] | None:
        """Let acts write as `write_all` does, waiting for nobody; return what commits, to be called by any thread.

        None where one would have to wait; then no act was written, nor where it raises.
        """


@dataclass(frozen=True, slots=True)
class Slowness:
    """Acts that took the loop longer than `seconds` are followed by batches of a thread alone for `apart_seconds`.

    What has to be read then is not in memory, or the machine has other work; the loop has more to serve than this.
    """

    seconds: float = 0.05
    apart_seconds: float = 1.0


class HandedIn(Generic[_Act]):
    """The acts of event loops; thread-safe. `close` when done.

    `name` is that of its thread, and `most` how many acts it has written at a time.
    """

    def __init__(self, book: Book[_Act], name: str, most: int, slowness: Slowness | None = None) -> None:
        self._book, self._most = book, most
        self._slowness = slowness or Slowness()
        self._apart_until = -math.inf
        self._lock = threading.Lock()
        self._waiting: deque[_HandedIn[_Act]] = deque()
        self._is_writing = False
        # Not one of the loop's threads: all of those may wait for the turn that is held until this one commits.
        self._committing = ThreadPoolExecutor(1, name)

    async def write(self, act: _Act) -> Any:  # noqa: ANN401 - whatever the book makes of the act
        """Let an act be written; return its outcome, or raise it, after the commit.

        Raises what the book raises for all of them. An act that was handed in is written, whoever still waits for it;
        the book may write it twice, where it takes back what it wrote before.
        """
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Any] = loop.create_future()
        with self._lock:
            self._waiting.append((act, ended))
            begins, self._is_writing = not self._is_writing, True
        if begins:
            # After the requests that came with this one: they hand in their acts first.
            loop.call_soon(self._write, loop)
        return await ended

    def close(self) -> None:
        """Write what was handed in, and wait for its commit. Nothing may be handed in any more."""
        self._committing.shutdown()
        self._write_apart()

    def _write(self, loop: asyncio.AbstractEventLoop) -> None:
        batch = self._next(MAX_ON_LOOP)
        if not batch:
            return
        acts = [act for act, _ in batch]
        commit = self._begun(loop, acts) or partial(self._book.write_all, acts)
        try:
            self._committing.submit(self._end, commit, batch)
        except RuntimeError:
            # It is closed: there is no thread any more, and the turn must end.
            self._end(commit, batch)

    def _begun(self, loop: asyncio.AbstractEventLoop, acts: Sequence[_Act]) -> Callable[[], Sequence[Any]] | None:
        began = loop.time()
        if began < self._apart_until:
            return None
        commit = None
        # The thread meets it again, and tells it.
        with suppress(Exception):
            commit = self._book.begin_all(acts)
        if loop.time() - began > self._slowness.seconds:
            self._apart_until = loop.time() + self._slowness.apart_seconds
        return commit

    def _end(self, commit: Callable[[], Sequence[Any]], batch: list[_HandedIn[_Act]]) -> None:
        _tell(batch, commit)
        with self._lock:
            self._is_writing = bool(self._waiting)
            if not self._waiting:
                return
            # Somebody waits on this loop, so it runs; another one may have ended.
            loop = self._waiting[0][1].get_loop()
        try:
            loop.call_soon_threadsafe(self._write, loop)
        except RuntimeError:
            self._write_apart()

    def _write_apart(self) -> None:
        while batch := self._next(self._most):
            _tell(batch, partial(self._book.write_all, [act for act, _ in batch]))

    def _next(self, most: int) -> list[_HandedIn[_Act]]:
        with self._lock:
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), most))]
            self._is_writing = bool(batch)
        return batch


def _tell(batch: Sequence[_HandedIn[_Act]], commit: Callable[[], Sequence[Any]]) -> None:
    outcomes: Sequence[Any]
    try:
        outcomes = commit()
    except Exception as error:  # noqa: BLE001 - each of them hears it
        outcomes = [error] * len(batch)
    # A loop is woken once, however many of its requests are answered.
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = defaultdict(list)
    for (_, future), outcome in zip(batch, outcomes, strict=True):
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

"""The processes that read for all accounts together: a bounded number, in turn, and never all of them for one alone.

They are there while an account has a long backlog. A message that a process hangs on holds up its own account and that
one process: the others go on with what other accounts have.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Final

from agent_reader.errors import ReadingEnded
from agent_reader.store.reading_process import (
    ANSWER_SECONDS,
    CHILD,
    START_PAUSES_SECONDS,
    CannotRead,
    ReadingProcess,
)
from agent_reader.store.reading_wire import Answer, Asked

# Below two, a message that takes its whole minute, three times, would hold up everybody.
_FEWEST_FOR_SEVERAL: Final = 2

_Work = tuple[Sequence[Asked], "Future[list[Answer]]"]


def process_count(cores: int) -> int:
    """Return how many processes read: a core is left to what fetches, stores and answers."""
    return min(3, max(1, cores - 1))


class ReadingPool:
    """`count` processes (two at least while several accounts want them), shared fairly. Any thread may call."""

    def __init__(
        self,
        count: int,
        command: Sequence[str] = CHILD,
        seconds: float = ANSWER_SECONDS,
        pauses: Sequence[float] = START_PAUSES_SECONDS,
    ) -> None:
        self.count = count
        self._new = partial(ReadingProcess, command, seconds, pauses)
        self._changed = threading.Condition()
        # Whose turn is next stands first.
        self._shares: list[ReadingShare] = []
        self._desks: list[_Desk] = []

    def share(self) -> "ReadingShare":
        """Return a share, to be ended; the processes end with the last one. Raises `CannotRead`."""
        share = ReadingShare(self)
        with self._changed:
            wanted = max(self.count, _FEWEST_FOR_SEVERAL) if self._shares else self.count
            # Where the machine gives no more threads, fewer do.
            with suppress(RuntimeError):
                for _ in range(len(self._desks), wanted):
                    self._desks.append(_Desk(self, self._new))
            if not self._desks:
                raise CannotRead
            self._shares.append(share)
        return share

    def pids(self) -> list[int]:
        """Return the numbers of the processes that run."""
        with self._changed:
            return [pid for desk in self._desks if (pid := desk.process.pid) is not None]

    def put(self, share: "ReadingShare", work: _Work) -> None:
        """Have something read for a share. Raises `ReadingEnded` after its end."""
        with self._changed:
            if share not in self._shares:
                raise ReadingEnded
            share.waiting.append(work)
            self._changed.notify_all()

    def next_work(self, desk: "_Desk") -> _Work | None:
        """Wait for what a desk reads next, None for its end; what it read before is done."""
        with self._changed:
            desk.leave_share()
            self._changed.notify_all()
            while not desk.is_closing:
                share = self._whose_turn()
                if share is not None:
                    self._shares.remove(share)
                    self._shares.append(share)
                    desk.reads_for = share
                    return share.waiting.popleft()
                self._changed.wait()
        return None

    def leave(self, share: "ReadingShare") -> None:
        """End a share: what is read for it is broken off, and with the last one every process."""
        with self._changed:
            if share not in self._shares:
                return
            self._shares.remove(share)
            closing = [] if self._shares else self._desks
            desks = list(self._desks)
            if closing:
                self._desks = []
            for desk in desks:
                desk.is_closing = bool(closing)
                if closing or desk.reads_for is share:
                    desk.process.stop()
            self._changed.notify_all()
            self._changed.wait_for(lambda: all(desk.reads_for is not share for desk in desks))
        for _, future in share.waiting:
            future.set_exception(ReadingEnded())
        for desk in closing:
            desk.thread.join()

    def _whose_turn(self) -> "ReadingShare | None":
        most = max(1, len(self._desks) - 1) if len(self._shares) > 1 else len(self._desks)
        for share in self._shares:
            if share.waiting and sum(desk.reads_for is share for desk in self._desks) < most:
                return share
        return None


class ReadingShare:
    """What one account has read. Any thread may call."""

    def __init__(self, pool: ReadingPool) -> None:
        self._pool = pool
        # The pool's, under its lock.
        self.waiting: deque[_Work] = deque()

    @property
    def count(self) -> int:
        """How many processes there are for one account alone."""
        return self._pool.count

    def begin(self) -> None:
        """Have a process get ready for the first messages."""
        self.read(())

    def read(self, asked: Sequence[Asked]) -> "Future[list[Answer]]":
        """Have these read: an answer for each. The future raises `CannotRead`, or `ReadingEnded` after `end`."""
        future: Future[list[Answer]] = Future()
        self._pool.put(self, (asked, future))
        return future

    def end(self) -> None:
        """Break off whatever is not read; safe to call twice."""
        self._pool.leave(self)


class _Desk:
    """A process and the thread that has it read."""

    def __init__(self, pool: ReadingPool, new: Callable[[], ReadingProcess]) -> None:
        self._pool, self._new = pool, new
        self.process = new()
        # The pool's, under its lock.
        self.reads_for: ReadingShare | None = None
        self.is_closing = False
        self.thread = threading.Thread(target=self._work, name="reading", daemon=True)
        self.thread.start()

    def _work(self) -> None:
        while (work := self._pool.next_work(self)) is not None:
            asked, future = work
            try:
                self.process.begin()
                answers = self.process.read(asked)
            except Exception as error:  # noqa: BLE001 - whoever waits for it is told
                future.set_exception(error)
            else:
                future.set_result(answers)
        self.process.close()

    def leave_share(self) -> None:
        """Read for nobody. Stopped for good for the sake of one account, it goes on with another process."""
        self.reads_for = None
        if self.process.is_stopped and not self.is_closing:
            self.process.close()
            self.process = self._new()

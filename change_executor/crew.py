"""The workers of one executor: one for each login to a mail server, so that a slow one holds up its own queues only.

All of them write one journal, whose write lock they take in turn; what a policy asks before a move, whether another
move of the message is under way among it, is asked in the transaction that begins it.
"""

import threading
from collections.abc import Callable, Sequence

from structlog.typing import FilteringBoundLogger

from change_executor import checkpoints
from change_executor.apply import Mover
from change_executor.checkpoints import Checkpoint
from change_executor.config import ExecutorSettings
from change_executor.connections import Connections
from change_executor.journal.journal import Journal
from change_executor.worker import Share, Worker, make_worker


class Crew:
    """Workers who share a journal and an end; the first holds the journal's one worker lock for all of them."""

    def __init__(self, workers: Sequence[Worker], ending: threading.Event) -> None:
        self._first, *self._others = workers
        self._ending = ending

    def hold(self, lock: int) -> None:
        """Take over the worker lock that this process holds already; `start` takes none then."""
        self._first.hold(lock)

    def wake(self) -> None:
        """Let all of them look at once for what is due; from any thread."""
        for worker in (self._first, *self._others):
            worker.wake()

    def start(self) -> None:
        """Begin. Raises `ConfigurationError` where another process's workers run on this journal."""
        for worker in (self._first, *self._others):
            worker.start()

    @property
    def is_alive(self) -> bool:
        """Whether every one of them runs."""
        return all(worker.is_alive for worker in (self._first, *self._others))

    def stop(self) -> bool:
        """End, and return whether all have ended; moves that are under way get a few seconds to finish."""
        self._ending.set()
        self.wake()
        # Who holds the lock goes last: nobody else may begin while one of us moves.
        ended = [worker.stop() for worker in self._others]
        return self._first.stop(release=all(ended)) and all(ended)


def make_crew(
    journal: Journal,
    settings: ExecutorSettings,
    *,
    mover: Mover,
    connections: Connections,
    log: FilteringBoundLogger,
    checkpoint: Checkpoint = checkpoints.pass_by,
) -> Crew:
    """Return a worker for each credential that a queue has; what is of no queue any more is with the first."""
    ending = threading.Event()
    names = list(dict.fromkeys(queue.credential for queue in settings.queues))
    workers = [
        make_worker(
            journal,
            settings,
            mover=mover,
            connections=connections,
            log=log,
            checkpoint=checkpoint,
            share=Share(f"worker-{name}", _taken_by(settings, name, names[0]), name == names[0], ending),
        )
        for name in names
    ]
    return Crew(workers, ending)


def _taken_by(settings: ExecutorSettings, credential: str, first: str) -> Callable[[str], bool]:
    mine = frozenset(queue.id for queue in settings.queues if queue.credential == credential)
    others = frozenset(queue.id for queue in settings.queues) - mine
    return lambda queue: queue in mine or (credential == first and queue not in others)

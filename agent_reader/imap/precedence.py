"""Who goes first on one mail server: what an agent waits for, before what runs in the background."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# What the background waits at most before its next step: an agent that reads without end slows it and never stops it.
GIVE_WAY_SECONDS: Final = 2.0


class Precedence:
    """Lets background work on one account stand back while a foreground read runs. Any thread may call."""

    def __init__(self) -> None:
        self._running = 0
        self._free = threading.Condition()

    @contextmanager
    def foreground(self) -> Iterator[None]:
        """Hold the right of way for as long as the block lasts; several may at once."""
        with self._free:
            self._running += 1
        try:
            yield
        finally:
            with self._free:
                self._running -= 1
                self._free.notify_all()

    def give_way(self, most_seconds: float = GIVE_WAY_SECONDS) -> bool:
        """Wait until no foreground read runs; whether none does. Called between two steps, never inside one."""
        with self._free:
            return self._free.wait_for(lambda: self._running == 0, most_seconds)

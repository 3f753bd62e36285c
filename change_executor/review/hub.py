"""Who is listening for changes: a bounded number of places, each woken from any thread."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from change_executor.review.error_page import PageError, Refusal

# Each stream is a task and a socket; a desk has a few people with a few windows each.
MAX_STREAMS: Final = 200
MAX_STREAMS_PER_SESSION: Final = 120


@dataclass(slots=True, eq=False)
class _Place:
    session: str
    loop: asyncio.AbstractEventLoop
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class Hub:
    """Who is listening. `wake` may be called on any thread; `close` ends every stream, so that a stop is quick."""

    def __init__(self) -> None:
        self._places: set[_Place] = set()
        self._lock = threading.Lock()
        self.closed = False

    @contextlib.contextmanager
    def place(self, session: str) -> Iterator[asyncio.Event]:
        """Take a place for a session's stream and give its wake-up. Raises `PageError` where there is none left."""
        place = _Place(session, asyncio.get_running_loop())
        with self._lock:
            mine = sum(1 for other in self._places if other.session == session)
            if self.closed or len(self._places) >= MAX_STREAMS or mine >= MAX_STREAMS_PER_SESSION:
                raise PageError(Refusal.TOO_MANY_STREAMS)
            self._places.add(place)
        try:
            yield place.woken
        finally:
            with self._lock:
                self._places.discard(place)

    def count(self) -> int:
        """Return how many streams are open."""
        return len(self._places)

    def wake(self) -> None:
        """Wake every stream, to look whether something changed."""
        with self._lock:
            places = list(self._places)
        for place in places:
            # A loop that closed meanwhile has nobody left to wake.
            with contextlib.suppress(RuntimeError):
                place.loop.call_soon_threadsafe(place.woken.set)

    def close(self) -> None:
        """End every stream and take no more."""
        self.closed = True
        self.wake()

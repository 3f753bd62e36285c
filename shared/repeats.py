"""The same line again and again: written once a minute, with the number of those that were not."""

import threading
from collections.abc import Hashable
from typing import Final

from shared.time_and_chance import Monotonic

# Often enough to see that it goes on; a fault at each connection could otherwise fill the disk.
_SECONDS: Final = 60.0


class Repeats:
    """Tells which of many equal lines to write; thread-safe.

    `monotonic` counts seconds and never goes back. Keys are remembered for ever: give places in the code, nothing that
    somebody sends.
    """

    def __init__(self, monotonic: Monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        # When a line of this key was last written, and how many were not since.
        self._written: dict[Hashable, tuple[float, int]] = {}

    def left_out(self, key: Hashable) -> int | None:
        """Return how many lines of this key were left out since the last one, or None to leave this one out too."""
        now = self._monotonic()
        with self._lock:
            at, left_out = self._written.get(key, (None, 0))
            if at is not None and now - at < _SECONDS:
                self._written[key] = (at, left_out + 1)
                return None
            self._written[key] = (now, 0)
            return left_out

"""What keeps the executor from its journal, kept where no journal is needed to tell it: in memory.

Whoever works with the journal all the time says when that fails and when it works again. One of them may fail alone:
a damaged page stops only those who read it.
"""

import threading
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from change_executor.errors import JOURNAL_MENDS, JournalFault

# Who watches, beside the workers, who have names of their own.
WATCH: Final = "watch"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why the journal cannot be used, and since when."""

    fault: JournalFault
    since: datetime

    @property
    def fix(self) -> str:
        """What the operator does about it."""
        return JOURNAL_MENDS[self.fault]


class Troubles:
    """The troubles of now, at most one of each user, by name; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: dict[str, Trouble] = {}

    def failed(self, user: str, fault: JournalFault, now: datetime) -> bool:
        """Note that a user could not use it; whether that is news."""
        with self._lock:
            before = self._of.get(user)
            self._of[user] = Trouble(fault, now if before is None else before.since)
            return before is None or before.fault is not fault

    def worked(self, user: str) -> None:
        """Note that a user could do all that it does with it."""
        with self._lock:
            self._of.pop(user, None)

    def found(self) -> Trouble | None:
        """Return the one that began first, or None where all is well."""
        with self._lock:
            return min(self._of.values(), key=lambda each: each.since, default=None)

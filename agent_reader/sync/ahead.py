"""What was fetched and is not in the mirror yet: while it is read, the next is fetched."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Ahead:
    """Batches that are being read, in the order in which they were fetched, `most` at once. One thread uses it."""

    most: int = 0
    _begun: deque[tuple[Callable[[], None], Callable[[], None]]] = field(default_factory=deque)

    def put(self, take: Callable[[], None], lost: Callable[[], None] = lambda: None) -> None:
        """Let a batch be read; the oldest is taken in first where there are too many. Raises as `flush`."""
        self._begun.append((take, lost))
        while len(self._begun) > self.most:
            self._take_oldest()

    def flush(self) -> None:
        """Take in everything. Raises what a batch's `take` raises, after `lost` of it and of all behind it."""
        while self._begun:
            self._take_oldest()

    def _take_oldest(self) -> None:
        try:
            self._begun[0][0]()
        except BaseException:
            while self._begun:
                self._begun.popleft()[1]()
            raise
        self._begun.popleft()

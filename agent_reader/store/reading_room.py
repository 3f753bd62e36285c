"""How much mail is read at one time: a message takes several times its size while it is taken apart and written out.

Forty answers may be in the making; without this, forty messages of the largest size would lie in memory at once.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

# One message of the largest size, or eight ordinary ones.
MOST_OCTETS: Final = 64 * 1024 * 1024

# What a message may take however small it is: 300 KB of header are ten thousand fields, each an object of its own. More
# than eight at a time get no further on few cores.
_LEAST_OCTETS: Final = 8 * 1024 * 1024

# What is read in a few milliseconds: one message in a hundred is larger.
_SHORT_OCTETS: Final = 128 * 1024

# So often whoever waits looks whether somebody still waits for him.
_LOOK_SECONDS: Final = 0.5


def _nobody_looks() -> None:
    pass


class ReadingRoom:
    """Room for so many octets of messages; who comes first is first. Any thread may call."""

    def __init__(self, most_octets: int = MOST_OCTETS) -> None:
        self._most = self._free = most_octets
        self._changed = threading.Condition()
        self._queue: deque[object] = deque()

    @contextmanager
    def place(self, octets: int, go_on: Callable[[], None] = _nobody_looks) -> Iterator[None]:
        """Hold room for a message of this size while the block runs; one that is too large for all has all.

        `go_on` is called while it waits, and raises where waiting is of no use any more.
        """
        wanted = self._wanted(octets)
        self._take(wanted, go_on)
        try:
            yield
        finally:
            self._give_back(wanted)

    @contextmanager
    def stepped_out(self, octets: int, go_on: Callable[[], None] = _nobody_looks) -> Iterator[None]:
        """Give back the room of such a place while the block waits for a mail server, and take it again."""
        wanted = self._wanted(octets)
        self._give_back(wanted)
        try:
            yield
        finally:
            # The place around this one gives it back: it is taken whatever `go_on` says, and that is said afterwards.
            self._take(wanted, _nobody_looks)
        go_on()

    def _wanted(self, octets: int) -> int:
        return min(max(octets, _LEAST_OCTETS), self._most)

    def _take(self, wanted: int, go_on: Callable[[], None]) -> None:
        ticket = object()
        with self._changed:
            if not self._queue and self._free >= wanted:
                self._free -= wanted
                return
            self._queue.append(ticket)
            try:
                while self._queue[0] is not ticket or self._free < wanted:
                    self._changed.wait(_LOOK_SECONDS)
                    go_on()
                self._free -= wanted
            finally:
                self._queue.remove(ticket)
                self._changed.notify_all()

    def _give_back(self, wanted: int) -> None:
        with self._changed:
            self._free += wanted
            if self._queue:
                self._changed.notify_all()


class RoomAtOnce(ReadingRoom):
    """Room for one short message after the other; whoever would read a long one or wait for it hears `refusal` instead.

    For one thread that holds up others.
    """

    def __init__(self, refusal: type[Exception]) -> None:
        super().__init__()
        self._refusal = refusal

    @contextmanager
    def place(self, octets: int, go_on: Callable[[], None] = _nobody_looks) -> Iterator[None]:  # noqa: ARG002 - nobody waits
        """Give room while the block runs. Raises `refusal`."""
        if octets > _SHORT_OCTETS:
            raise self._refusal
        yield

    def stepped_out(self, octets: int, go_on: Callable[[], None] = _nobody_looks) -> NoReturn:  # noqa: ARG002 - as above
        """Raise `refusal`: what follows waits for a mail server."""
        raise self._refusal

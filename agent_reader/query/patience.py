"""How long an answer may take, and whether anybody waits for it: the same at every door."""

from collections.abc import Callable
from dataclasses import dataclass, field

from agent_reader.query.errors import took_too_long
from shared.time_and_chance import Monotonic


class Abandoned(Exception):  # noqa: N818 - names what happened
    """Whoever asked is gone, or the server ends: nothing more is worked out, and nothing was sent or put on record."""


def somebody_waits() -> bool:
    """Stand for `is_abandoned` where whoever asks cannot go away."""
    return False


@dataclass(frozen=True, slots=True)
class Patience:
    """The moments of `monotonic` at which a search ends and at which reading does; `is_abandoned`: nobody waits."""

    monotonic: Monotonic = field(repr=False)
    search_until: float
    read_until: float
    is_abandoned: Callable[[], bool] = field(default=somebody_waits, repr=False)

    def is_over(self) -> bool:
        """Whether a search is to end: its time is up, or nobody waits for it."""
        return self.monotonic() >= self.search_until or self.is_abandoned()

    def go_on(self) -> None:
        """Raise `Abandoned` where nobody waits, `QueryRefused` where it took too long: asked between messages."""
        if self.is_abandoned():
            raise Abandoned
        if self.monotonic() >= self.read_until:
            raise took_too_long()

"""Short answers are worked out where their requests come in; whatever takes longer, or may wait, gets a thread.

A thread costs what a short answer does, and the interpreter lets one work at a time whatever is done: sixteen answers
at a time in threads took three times as long as one after the other.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from agent_reader.query.patience import Abandoned
from shared.time_and_chance import Monotonic

_Found = TypeVar("_Found")

# Four times as long as a page of messages with their texts takes that nobody has asked for before. Meanwhile the event
# loop does nothing else.
ATTEMPT_SECONDS: Final = 0.02

# Whoever asked what takes longer asks so again, as a rule: for so long all that he asks gets a thread at once. So one
# agent has a small share of the event loop, even where a look at the clock comes late.
_REST_SECONDS: Final = 1.0


class Attempts:
    """Answers that are tried at once; belongs to the event loop."""

    def __init__(self, monotonic: Monotonic, seconds: float = ATTEMPT_SECONDS) -> None:
        self._monotonic, self._seconds = monotonic, seconds
        # By agent, of whom there are as many as hold a token.
        self._rests_until: dict[str, float] = {}

    def answer(self, agent: str, work: Callable[[Callable[[], bool]], _Found]) -> _Found | None:
        """Return what `work` returns, or None where a thread has to do it, from the beginning.

        `work` is given what tells it that its time is up; it raises `Abandoned` then, or where it would have to wait.
        """
        begun = self._monotonic()
        if begun < self._rests_until.get(agent, begun):
            return None
        until = begun + self._seconds
        try:
            return work(lambda: self._monotonic() >= until)
        except Abandoned:
            return None
        finally:
            ended = self._monotonic()
            if ended >= until:
                self._rests_until[agent] = ended + _REST_SECONDS

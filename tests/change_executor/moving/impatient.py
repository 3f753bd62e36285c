"""A session whose time is over exactly when a command has left: what came before had all the time that it needed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from change_executor.connections import Connections

if TYPE_CHECKING:
    from shared.imap_stream import AnswerReader


class Impatient(Connections):
    """Waits for no answer any more once it was told to; the command whose answer that is leaves all the same."""

    def await_no_answer(self) -> None:
        """End the time of every open session with the next answer that is waited for."""
        with self._lock:
            for client in self._open:
                _end_with_the_next(client.answers)


def _end_with_the_next(answers: AnswerReader) -> None:
    fill = answers._fill

    def fill_no_more() -> bool:
        # Not at once: an answer that is there already would be read.
        answers._ends = time.monotonic() + 0.05
        return fill()

    answers._fill = fill_no_more  # type: ignore[method-assign]  # it does what it did, by another clock

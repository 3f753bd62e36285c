"""Refusals on record, within bounds: an agent that is refused all day must not fill the journal.

A refusal of an authenticated agent is an event, at most sixty in any hour; what comes after is counted, and one
summary event tells the count once there is room again or the executor ends. Everything else is counted only.
"""

import threading
from collections import Counter
from datetime import timedelta
from typing import Final

from sqlalchemy import func, select

from change_executor.intake.proposer_tokens import Proposer
from change_executor.journal import schema
from change_executor.journal.journal import Journal, Writing
from shared.problem import Problem

MAX_EVENTS_AN_HOUR: Final = 60
_WINDOW: Final = timedelta(hours=1)

REFUSED: Final = "intake:refuse"
SUMMED: Final = "intake:refuse_summary"


class Refusals:
    """The refusals of one intake; thread-safe. `counted` holds all of them by code."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._counting = threading.Lock()
        # Held around a transaction and the count that goes with it, so that no refusal is summed up twice.
        self._recording = threading.Lock()
        self._unwritten: Counter[str] = Counter()
        self.counted: Counter[str] = Counter()

    def count(self, problem: Problem) -> None:
        """Count a refusal of anybody."""
        with self._counting:
            self.counted[problem.code] += 1

    def record(self, proposer: Proposer, problem: Problem) -> None:
        """Put a refusal of a known agent on record. Raises `JournalUnavailable`."""
        agent = proposer.agent
        with self._recording:
            with self._journal.writing() as writing:
                full = self._written_lately(writing, agent) >= MAX_EVENTS_AN_HOUR
                if not full:
                    self._append_owed(writing, agent)
                    details = {"code": problem.code, "queue": proposer.queue, "status": problem.status}
                    writing.append(REFUSED, _subject(agent), f"agent:{agent}", details)
            self._unwritten[agent] = self._unwritten[agent] + 1 if full else 0

    def close(self) -> None:
        """Write the summaries that are still owed. Raises `JournalUnavailable`."""
        with self._recording:
            if self._unwritten.total():
                with self._journal.writing() as writing:
                    for agent in self._unwritten:
                        self._append_owed(writing, agent)
            self._unwritten.clear()

    def _written_lately(self, writing: Writing, agent: str) -> int:
        table = schema.events
        newest = (
            select(table.c.kind, table.c.at)
            .where(table.c.subject == _subject(agent))
            .order_by(table.c.seq.desc())
            .limit(MAX_EVENTS_AN_HOUR + 1)
            .subquery()
        )
        return writing.connection.execute(
            select(func.count()).where(newest.c.kind == REFUSED, newest.c.at > writing.now - _WINDOW)
        ).scalar_one()

    def _append_owed(self, writing: Writing, agent: str) -> None:
        if self._unwritten[agent]:
            writing.append(SUMMED, _subject(agent), f"agent:{agent}", {"refused": self._unwritten[agent]})


def _subject(agent: str) -> str:
    return f"agent:{agent}"

"""How many octets each token was answered in the last hour: kept in memory, begun from the read log after a start."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from agent_reader.access.agents import Agent
from agent_reader.access.problems import answer_over_budget, budget_spent
from shared.time_and_chance import Clock

_WINDOW: Final = timedelta(hours=1)
# One entry for each minute: an hour slides on in steps that nobody notices, and a token costs sixty pairs at most.
_STEP: Final = timedelta(minutes=1)


@dataclass(slots=True)
class _Spent:
    """Octets by the minute that they went out in, oldest first."""

    by_minute: deque[tuple[datetime, int]] = field(default_factory=deque)
    total: int = 0

    def forget(self, before: datetime) -> None:
        while self.by_minute and self.by_minute[0][0] <= before:
            self.total -= self.by_minute.popleft()[1]

    def bring_back(self, minute: datetime) -> None:
        """Count what went out in later minutes as of this one: the clock was ahead, and an hour ends in an hour."""
        ahead = 0
        while self.by_minute and self.by_minute[-1][0] > minute:
            ahead += self.by_minute.pop()[1]
        if ahead:
            self.total -= ahead
            self.add(minute, ahead)

    def add(self, minute: datetime, octets: int) -> None:
        if self.by_minute and self.by_minute[-1][0] >= minute:
            at, before = self.by_minute.pop()
            self.by_minute.append((at, before + octets))
        else:
            self.by_minute.append((minute, octets))
        self.total += octets

    def room_from(self, octets: int, budget: int) -> datetime | None:
        """When so many octets fit in: the end of the last minute that has to be forgotten for it."""
        left = self.total
        for minute, spent in self.by_minute:
            left -= spent
            if left + octets <= budget:
                return minute + _WINDOW
        return None


class Budgets:
    """Charges tokens for what they are answered. Any thread may call.

    `spent_before` says what went to a token since a time, as the read log has it.
    """

    def __init__(self, clock: Clock, spent_before: Callable[[str, datetime], int]) -> None:
        self._clock, self._spent_before = clock, spent_before
        self._lock = threading.Lock()
        self._spent: dict[str, _Spent] = {}

    def check(self, agent: Agent) -> None:
        """Raise a `Problem` where a token's hour is spent."""
        if agent.budget is None:
            return
        with self._lock:
            spent = self._of(agent)
            if spent.total >= agent.budget:
                raise budget_spent(agent.budget, self._seconds_until(spent.room_from(1, agent.budget)))

    def charge(self, agent: Agent, octets: int) -> None:
        """Charge a token for an answer that is about to leave, or raise a `Problem`: then it must not."""
        agent.meter.charged += octets
        if agent.budget is None:
            return
        with self._lock:
            spent = self._of(agent)
            if octets > agent.budget:
                raise answer_over_budget(octets, agent.budget)
            if spent.total + octets > agent.budget:
                raise budget_spent(agent.budget, self._seconds_until(spent.room_from(octets, agent.budget)))
            spent.add(self._minute(), octets)

    def _of(self, agent: Agent) -> _Spent:
        now = self._clock()
        spent = self._spent.get(agent.token_id)
        if spent is None:
            spent = self._spent[agent.token_id] = _Spent()
            before = self._spent_before(agent.token_id, now - _WINDOW)
            if before:
                spent.add(self._minute(), before)
        spent.forget(now - _WINDOW)
        spent.bring_back(self._minute())
        return spent

    def _minute(self) -> datetime:
        now = self._clock()
        return now.replace(second=0, microsecond=0) + _STEP

    def _seconds_until(self, moment: datetime | None) -> int:
        wait = _WINDOW if moment is None else moment - self._clock()
        return max(1, -(-wait // timedelta(seconds=1)))

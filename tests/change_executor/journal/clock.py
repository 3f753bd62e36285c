"""Time that passes when the test says so, and proposals to pass it with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from change_executor.journal.journal import NewProposal
from change_executor.journal.schema import to_microseconds
from change_executor.journal.steady import Reading

if TYPE_CHECKING:
    from change_executor.journal.steady import Steady
    from shared.time_and_chance import Clock


class MovableClock:
    def __init__(self) -> None:
        self.now = datetime(2026, 11, 29, 12, 0, 0, 123456, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **step: float) -> None:
        self.now += timedelta(**step)


def new_proposal(number: int = 1, *, email: int | None = None, agent: str = "mailbot") -> NewProposal:
    return NewProposal(
        id=f"P{number:020d}",
        agent=agent,
        queue="support",
        email_id=f"M{number if email is None else email:032d}",
        from_role="incoming",
        to_role="processed",
        expires_at=datetime(2026, 12, 4, 12, 0, tzinfo=UTC),
        predecessor=None,
    )


def steady_by(clock: Clock, boot: str = "the tests' own") -> Steady:
    """A machine's clock that goes on with a test's."""
    return lambda: Reading(boot, to_microseconds(clock()))

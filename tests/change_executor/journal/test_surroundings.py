"""What the journal knows around a proposal is asked at each look at its page, however long the journal has grown."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from change_executor.journal import evidence, moves, schema
from change_executor.journal.surroundings import sender_digest
from change_executor.lifecycle import Event
from change_executor.review.case import read_case
from change_executor.review.earlier import read_earlier
from tests.change_executor.journal.clock import MovableClock, new_proposal
from tests.change_executor.journal.filled import intent, seen
from tests.change_executor.settings import settings_in

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from change_executor.config import ExecutorSettings
    from change_executor.journal.journal import Journal

ALERTS, ANN = sender_digest("alerts@example.org"), sender_digest("ann@example.org")
# So that a walk over all of them is many times what the rest takes.
MANY = 150


def looked_at(journal: Journal, number: int, sender: str) -> str:
    new = new_proposal(number)
    with journal.writing() as writing:
        writing.create(new)
        found = replace(seen(new.id), octets_sha256=f"{number:064x}", sender_sha256=sender)
        evidence.record(writing, found)
    return new.id


def moved(journal: Journal, first: int, count: int) -> None:
    """One that is moved, and as many more like it."""
    proposal = looked_at(journal, first, ALERTS)
    with journal.writing() as writing:
        for event in (Event.APPROVE, Event.CLAIM):
            writing.advance(proposal, event, "person:ada")
        moves.conclude(writing, moves.begin(writing, intent(proposal)), Event.MOVED.value, 40)
        writing.advance(proposal, Event.MOVED, "executor")
        for table, own in ((schema.proposals, "id"), (schema.evidence, "proposal"), (schema.moves, "proposal")):
            row = writing.connection.execute(table.select().where(table.c[own] == proposal)).mappings().one()
            for number in range(first + 1, first + count):
                like = {own: f"P{number:020d}"} | ({"email_id": f"M{number:032d}"} if own == "id" else {"id": number})
                writing.connection.execute(table.insert().values({**row, **like}))


def steps(journal: Journal, settings: ExecutorSettings, proposal: str) -> tuple[int, bool | None]:
    """How many hundreds of steps SQLite takes for what a page says of it, and whether the sender's mail was moved."""
    taken = 0

    def one_more() -> int:
        nonlocal taken
        taken += 1
        return 0

    with journal.reading() as connection:
        case = read_case(connection, settings, proposal)
        driver: sqlite3.Connection = connection.connection.driver_connection  # type: ignore[assignment]  # SQLite's
        driver.set_progress_handler(one_more, 100)
        around = read_earlier(connection, case).around
        driver.set_progress_handler(None, 0)
    return taken, around.sender_moved


@pytest.mark.parametrize(("sender", "known"), [(ALERTS, True), (ANN, False)], ids=["known", "new"])
def test_a_sender_of_whom_much_was_moved_makes_no_page_slower(
    journal: Journal, clock: MovableClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sender: str, *, known: bool
) -> None:
    # As many as are looked through whatever there is; the others are what must not be.
    monkeypatch.setattr("change_executor.review.earlier._LOOKED_THROUGH", 2)
    settings = settings_in(tmp_path)
    moved(journal, 1, 2)
    clock.advance(minutes=1)
    few = steps(journal, settings, looked_at(journal, 9_001, sender))
    moved(journal, 1_001, MANY)
    clock.advance(minutes=1)
    many = steps(journal, settings, looked_at(journal, 9_002, sender))
    assert (known, known) == (few[1], many[1])
    assert many[0] <= few[0] + 3

"""What a press of the stop button finds and puts on record, and that of two presses one counts."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from sqlalchemy import Connection, select

from change_executor.journal import moves, schema
from change_executor.journal.chain import event_details
from change_executor.journal.journal import Journal
from change_executor.lifecycle import Event
from change_executor.switch import InFlight, in_flight, press_stop, release_stop
from tests.change_executor.journal.clock import MovableClock, new_proposal
from tests.change_executor.journal.test_standing import begin

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_a_stop_tells_what_may_have_left_from_what_only_waits(journal: Journal, clock: MovableClock) -> None:
    sent, waits, pending, moved, asked_back = (new_proposal(number).id for number in (5, 4, 3, 2, 1))
    for number in (5, 4, 3, 2, 1):
        with journal.writing() as writing:
            writing.create(new_proposal(number))
        clock.advance(seconds=1)
    with journal.writing() as writing:
        for each in (sent, waits, moved, asked_back):
            writing.advance(each, Event.APPROVE, "person:ann")
        for each in (sent, moved, asked_back):
            writing.advance(each, Event.CLAIM, "executor")
        for number, each in ((2, moved), (1, asked_back)):
            moves.conclude(writing, begin(writing, number), "moved", 7)
            writing.advance(each, Event.MOVED, "executor")
        writing.advance(asked_back, Event.UNDO, "person:ann")
        begin(writing, 5)
    assert press_stop(journal, "person:ann")
    with journal.reading() as connection:
        assert InFlight((sent,), (waits, asked_back)) == in_flight(connection)
        row = connection.execute(select(schema.events).where(schema.events.c.kind == "stop:press")).one()
    assert ("person:ann", "stop") == (row.actor, row.subject)
    details = event_details(row.details)
    assert ([sent], 2) == (details["inFlight"], details["held"])
    assert pending not in row.details


def test_of_two_presses_and_of_two_releases_one_counts(journal: Journal) -> None:
    class Late:
        """Sees the journal as it was before somebody else pressed."""

        writing = journal.writing

        @contextmanager
        def reading(self) -> Iterator[Connection]:
            with journal.reading() as connection:
                yield connection
            press_stop(journal, "person:bob")

    assert not press_stop(cast("Journal", Late()), "person:ann")
    assert not press_stop(journal, "person:ann")
    assert release_stop(journal, "person:ann")
    assert not release_stop(journal, "person:bob")
    with journal.reading() as connection:
        events = connection.execute(select(schema.events.c.kind, schema.events.c.actor).order_by(schema.events.c.seq))
        assert [("stop:press", "person:bob"), ("stop:release", "person:ann")] == [tuple(row) for row in events]

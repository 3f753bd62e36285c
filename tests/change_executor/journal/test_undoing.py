"""Which moves are taken back when all that an agent did since a moment is, and why others are not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import insert, select

from change_executor.errand import Errand, to_undo
from change_executor.journal import moves, schema
from change_executor.journal.chain import event_details
from change_executor.journal.journal import NewProposal
from change_executor.journal.moves import MoveKind
from change_executor.lifecycle import Event
from change_executor.outcomes import Outcome
from change_executor.undoing import UndoAsked, UndoRefusal, moved_since, undo_proposals, undo_since
from tests.change_executor.journal.clock import MovableClock, new_proposal
from tests.change_executor.journal.test_standing import begin
from tests.change_executor.settings import settings_in

if TYPE_CHECKING:
    from pathlib import Path

    from change_executor.config import ExecutorSettings
    from change_executor.journal.journal import Journal


@pytest.fixture
def settings(tmp_path: Path) -> ExecutorSettings:
    return settings_in(tmp_path)


def applied(journal: Journal, number: int, new: NewProposal | None = None) -> str:
    """A proposal whose message was moved, and got the UID 70 and its number."""
    new = new_proposal(number) if new is None else new
    with journal.writing() as writing:
        writing.create(new)
        writing.advance(new.id, Event.APPROVE, "person:ann")
        writing.advance(new.id, Event.CLAIM, "executor")
        moves.conclude(writing, begin(writing, number), "moved", 70 + number)
        writing.advance(new.id, Event.MOVED, "executor")
    return new.id


def took_back(journal: Journal, number: int, ending: Event) -> None:
    with journal.writing() as writing:
        writing.advance(new_proposal(number).id, Event.UNDO, "person:ann")
        moves.conclude(writing, begin(writing, number, MoveKind.UNDO), ending.value, 9)
        writing.advance(new_proposal(number).id, ending, "executor")


def test_what_was_moved_since_and_lies_there_is_asked_back_newest_first_and_that_is_on_record(
    journal: Journal, clock: MovableClock, settings: ExecutorSettings
) -> None:
    before = applied(journal, 1)
    clock.advance(hours=1)
    since = clock.now
    # The later, the lower its id.
    first = applied(journal, 9)
    clock.advance(seconds=1)
    second = applied(journal, 5)
    applied(journal, 6)
    took_back(journal, 6, Event.MOVED)
    # An undo of an older move that did not come about is no move of the time asked for.
    took_back(journal, 1, Event.REFUSED)
    applied(journal, 7, new_proposal(7, agent="sorter"))
    with journal.reading() as connection:
        assert [second, first] == moved_since(connection, "mailbot", since)
    assert UndoAsked((second, first), ()) == undo_since(journal, settings, "mailbot", since, "person:ann")
    with journal.reading() as connection:
        row = connection.execute(select(schema.events).where(schema.events.c.kind == "undo:ask")).one()
        undone = connection.execute(select(schema.events).where(schema.events.c.kind == "proposal:undo")).all()
        assert [] == moved_since(connection, "mailbot", since)
        assert [before] == moved_since(connection, "mailbot", since.replace(year=2020))
    assert ("agent:mailbot", "person:ann") == (row.subject, row.actor)
    assert {"since": schema.to_microseconds(since), "proposals": 2} == event_details(row.details)
    assert [second, first] == [event.subject for event in undone][-2:]


_GONE = UndoRefusal.UNDO_NOT_PERMITTED


@pytest.mark.parametrize("why", list(UndoRefusal))
def test_one_that_cannot_go_back_says_why_writes_nothing_and_holds_up_no_other(
    journal: Journal, settings: ExecutorSettings, why: UndoRefusal
) -> None:
    other = applied(journal, 2, replace(new_proposal(2), queue="billing", to_role="paid"))
    refused = applied(journal, 1, replace(new_proposal(1), queue="removed") if why is _GONE else None)
    with journal.writing() as writing:
        match why:
            case UndoRefusal.UNKNOWN_PROPOSAL:
                refused = new_proposal(99).id
            case UndoRefusal.NOT_APPLIED:
                writing.advance(refused, Event.UNDO, "person:ann")
            case UndoRefusal.ANOTHER_IS_OPEN:
                writing.create(new_proposal(3, email=1))
            case UndoRefusal.UNDO_PLACE_UNKNOWN:
                moves.conclude(writing, begin(writing, 1), moves.SETTLED)
            case _:
                pass
        events = writing.append("test:before", "x", "operator")
    assert UndoAsked((other,), ((refused, why),)) == undo_proposals(journal, settings, [refused, other], "operator")
    with journal.reading() as connection:
        said = connection.execute(select(schema.events.c.previous, schema.events.c.subject)).all()[-1]
        assert (events, other) == tuple(said)


@pytest.mark.parametrize("permitted", [0, 1])
def test_what_the_examination_found_is_believed(journal: Journal, settings: ExecutorSettings, permitted: int) -> None:
    proposal = applied(journal, 1)
    with journal.writing() as writing:
        found = {"queue": "support", "policy_version": "v", "examined_at": writing.now, "undo_permitted": permitted}
        writing.connection.execute(insert(schema.examinations).values(**found))
    asked = undo_proposals(journal, settings, [proposal], "operator")
    assert (bool(permitted), not permitted) == (asked.undoing == (proposal,), asked.refused == ((proposal, _GONE),))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, None),
        ({"credential": "another"}, Outcome.POLICY_CHANGED),
        ({"incoming": "Elsewhere"}, Outcome.POLICY_CHANGED),
        ({"undo": False}, Outcome.UNDO_NOT_PERMITTED),
    ],
)
def test_a_message_goes_back_to_where_it_was_only_while_the_queue_still_names_that_place(
    journal: Journal, settings: ExecutorSettings, change: dict[str, Any], expected: Outcome | None
) -> None:
    with journal.writing() as writing:
        # A first attempt, which came to nothing, lies before the one that moved it.
        writing.create(new_proposal(1))
        moves.conclude(writing, begin(writing, 1), "found_in_source")
        for happened in (Event.APPROVE, Event.CLAIM):
            writing.advance(new_proposal(1).id, happened, "executor")
        moves.conclude(writing, begin(writing, 1), "moved", 71)
        writing.advance(new_proposal(1).id, Event.MOVED, "executor")
        row = writing.advance(new_proposal(1).id, Event.UNDO, "person:ann")
    queue = settings.queues[0].model_copy(update=change)
    changed = settings.model_copy(update={"queues": (queue,)})
    with journal.reading() as connection:
        found = to_undo(connection, changed, row)
    if expected is not None:
        assert expected is found
    else:
        assert isinstance(found, Errand)
        assert ("Processed", 71, "Incoming") == (found.source, found.source_uid, found.target)

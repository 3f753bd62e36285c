"""What the caps on moves count: moves of the queue that may have sent an octet, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from change_executor.journal import moves, standing
from change_executor.journal.moves import NOTHING_SENT, Intent, MoveKind
from change_executor.policy import MOVES_DAY, MOVES_WINDOW
from tests.change_executor.journal.clock import MovableClock, new_proposal

if TYPE_CHECKING:
    from change_executor.journal.journal import Journal, Writing


def begin(writing: Writing, number: int, kind: MoveKind = MoveKind.MOVE) -> int:
    intent = Intent(
        proposal=new_proposal(number).id,
        kind=kind,
        credential="move",
        source_mailbox="Incoming",
        source_uidvalidity=1,
        source_uid=number,
        target_mailbox="Processed",
        target_uidvalidity=1,
        target_uidnext=1,
        octets_sha256="0" * 64,
        size=1,
        internaldate="2026-11-29T12:00:00+00:00",
    )
    return moves.begin(writing, intent)


def begun(journal: Journal) -> tuple[int, int]:
    """How many of the queue's moves began within an hour and within a day."""
    now = journal.now()
    with journal.reading() as connection:
        return standing.read(connection, new_proposal(1).id, now - MOVES_WINDOW, now - MOVES_DAY).begun


def test_moves_of_the_queue_count_unless_nothing_was_sent(journal: Journal, clock: MovableClock) -> None:
    with journal.writing() as writing:
        for number in range(1, 6):
            writing.create(new_proposal(number))
        writing.create(replace(new_proposal(6), queue="billing"))
    assert (0, 0) == begun(journal)
    with journal.writing() as writing:
        moves.conclude(writing, begin(writing, 1), "moved", 7)
        # Nobody knows yet; an octet may have left.
        begin(writing, 2)
        moves.conclude(writing, begin(writing, 3), "found_in_source")
    assert (3, 3) == begun(journal)
    with journal.writing() as writing:
        moves.conclude(writing, begin(writing, 4), NOTHING_SENT)
        moves.conclude(writing, begin(writing, 1, MoveKind.UNDO), "moved", 9)
        begin(writing, 6)
    assert (3, 3) == begun(journal)
    clock.advance(hours=1)
    assert (3, 3) == begun(journal)
    clock.now += timedelta(microseconds=1)
    assert (0, 3) == begun(journal)
    with journal.writing() as writing:
        begin(writing, 5)
    clock.advance(hours=23)
    assert (0, 1) == begun(journal)

"""A journal in which a proposal stands at every point of a move: what is taken back, or put back, has all of it."""

from __future__ import annotations

import contextlib
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from change_executor.journal import evidence, moves
from change_executor.journal.evidence import Evidence
from change_executor.journal.moves import Intent, MoveKind
from change_executor.journal.open import open_journal
from change_executor.lifecycle import Event
from change_executor.review.people import Role, add_person
from tests.change_executor.journal.clock import MovableClock, new_proposal

if TYPE_CHECKING:
    from change_executor.config import ExecutorSettings
    from change_executor.journal.journal import Journal

# What happened to each proposal. Whoever claims one writes an intent, but for `WITHOUT_INTENT`.
STEPS: dict[int, tuple[Event, ...]] = {
    1: (),
    2: (Event.APPROVE,),
    3: (Event.APPROVE, Event.CLAIM),
    4: (Event.APPROVE, Event.CLAIM),
    5: (Event.APPROVE, Event.CLAIM, Event.MOVED),
    6: (Event.APPROVE, Event.CLAIM, Event.MOVED, Event.UNDO),
    7: (Event.REJECT,),
    8: (Event.APPROVE, Event.CLAIM, Event.DOUBT),
    9: (Event.APPROVE,),
    10: (Event.APPROVE, Event.CLAIM, Event.MOVED, Event.UNDO),
}
# Claimed, and ended before its intent was written.
WITHOUT_INTENT = 4
# Moved to a place that the server did not tell.
WITHOUT_UID = 10


def filled(settings: ExecutorSettings, clock: MovableClock) -> Journal:
    """A journal with a proposal in every state that matters here, and two people who decide."""
    Path(settings.journal.url.removeprefix("sqlite:///")).write_bytes(_filled())
    return open_journal(settings.journal.url, clock)


@cache
def _filled() -> bytes:
    # Made once: its migrations and commits take longer than most of what is done with it.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        with contextlib.closing(open_journal(f"sqlite:///{path}", MovableClock())) as journal:
            _fill(journal)
        return path.read_bytes()


def _fill(journal: Journal) -> None:
    for number, happened in STEPS.items():
        with journal.writing() as writing:
            new = new_proposal(number)
            writing.create(new, {"reason": f"reason {number}"})
            evidence.record(writing, seen(new.id))
            for each in happened:
                if each is Event.MOVED:
                    under_way = moves.under_way(writing.connection, new.id)
                    assert under_way is not None
                    moves.conclude(writing, under_way.id, each.value, None if number == WITHOUT_UID else 40 + number)
                decided: dict[str, Any] = (
                    {"decided_by": "ada", "decided_at": writing.now} if each is Event.APPROVE else {}
                )
                writing.advance(new.id, each, "person:ada", **decided)
                if each is Event.CLAIM and number != WITHOUT_INTENT:
                    moves.begin(writing, intent(new.id))
    add_person(journal, "ada")
    add_person(journal, "bob", Role.ADMINISTRATOR)


def seen(proposal: str) -> Evidence:
    return Evidence(
        proposal=proposal,
        uidvalidity=7,
        uid=3,
        octets_sha256="a" * 64,
        size=9,
        internaldate="2026-11-29T12:00:00+00:00",
        copies=1,
        reading_version="1",
        reading_sha256="0" * 64,
    )


def intent(proposal: str) -> Intent:
    return Intent(
        proposal=proposal,
        kind=MoveKind.MOVE,
        credential="move",
        source_mailbox="Incoming",
        source_uidvalidity=7,
        source_uid=3,
        target_mailbox="Processed",
        target_uidvalidity=8,
        target_uidnext=40,
        octets_sha256="a" * 64,
        size=9,
        internaldate="2026-11-29T12:00:00+00:00",
    )

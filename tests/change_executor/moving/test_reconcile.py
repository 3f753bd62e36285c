"""What a sighting proves: the whole product of where the message was seen, and when."""

from __future__ import annotations

import pytest

from change_executor.journal.moves import CopyStep, MoveKind
from change_executor.lifecycle import TRANSITIONS, Event
from change_executor.sighting import Sighting, conclude
from shared.proposal import State

PROVEN = {
    (MoveKind.MOVE, False, 0, False): Event.FOUND_IN_NEITHER,
    (MoveKind.MOVE, False, 0, True): Event.FOUND_IN_NEITHER,
    (MoveKind.MOVE, False, 1, False): Event.FOUND_IN_TARGET,
    (MoveKind.MOVE, False, 1, True): Event.FOUND_IN_TARGET,
    (MoveKind.MOVE, True, 0, True): Event.FOUND_IN_SOURCE,
    # of an undo, the journal's source is where the message was moved from in the first place
    (MoveKind.UNDO, False, 1, False): Event.FOUND_IN_SOURCE,
    (MoveKind.UNDO, False, 1, True): Event.FOUND_IN_SOURCE,
    (MoveKind.UNDO, True, 0, True): Event.FOUND_IN_TARGET,
}


@pytest.mark.parametrize("kind", MoveKind)
@pytest.mark.parametrize("in_source", [False, True])
@pytest.mark.parametrize("hits", [0, 1, 2])
@pytest.mark.parametrize("over", [False, True])
@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("step", [None, *CopyStep])
def test_only_the_listed_sightings_prove_anything(
    kind: MoveKind, hits: int, *, in_source: bool, over: bool, elsewhere: bool, step: CopyStep | None
) -> None:
    concluded = conclude(kind, Sighting(in_source, tuple(range(hits)), elsewhere), quiet_time_over=over, step=step)
    # A copy that was made and is gone again, or a message that lies in a third mailbox too, only a person judges.
    proven = None if elsewhere or (step and in_source) else PROVEN.get((kind, in_source, hits, over))
    assert proven == concluded
    doubt = State.DOUBTFUL if kind is MoveKind.MOVE else State.UNDO_DOUBTFUL
    assert concluded is None or (doubt, concluded) in TRANSITIONS

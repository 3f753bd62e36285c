"""What a sighting proves: the whole product of where the message was seen, and when."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pytest

from change_executor.journal.moves import CopyStep, Intent, MoveKind
from change_executor.lifecycle import TRANSITIONS, Event
from change_executor.looking import MailboxStatus, OpenedMailbox, SeenMessage
from change_executor.outcomes import Waiting
from change_executor.sighting import Sighting, conclude, look
from shared.proposal import State

if TYPE_CHECKING:
    from change_executor.sighting import LookSession

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


INTENT = Intent("P", MoveKind.MOVE, "move", "Incoming", 7, 3, "Processed", 8, 5, "0" * 64, 9, "2026-11-29T12:00:00Z")


@dataclass
class Mailboxes:
    """UIDVALIDITY by mailbox, and the UIDs that hold the octets looked for; the target has more, of others."""

    uidvalidity: dict[str, int]
    holding: dict[str, set[int]]
    in_target: int = 3
    uidnext: dict[str, int] = field(default_factory=dict)
    opened: str = ""
    # What SEARCH does not list, as some servers leave out what has just come.
    unlisted: frozenset[int] = frozenset()

    def examine(self, mailbox: str) -> OpenedMailbox:
        self.opened = mailbox
        return OpenedMailbox(self.uidvalidity[mailbox], self.uidnext.get(mailbox), read_only=True)

    def fetch(self, uid: int) -> SeenMessage:
        digest = "0" * 64 if uid in self.holding[self.opened] else "1" * 64
        return SeenMessage(uid, digest, 9, INTENT.internaldate, frozenset(), b"")

    def uids_from(self, uid: int) -> list[int]:
        return [each for each in range(uid, uid + self.in_target) if each not in self.unlisted]

    def status(self, mailbox: str) -> MailboxStatus:
        return MailboxStatus(self.uidvalidity[mailbox], INTENT.target_uidnext + self.in_target, 1)


@pytest.mark.parametrize(
    ("mailboxes", "found"),
    [
        (Mailboxes({"Incoming": 7, "Processed": 8}, {"Incoming": {3}, "Processed": {4}}), Sighting(True, ())),
        (Mailboxes({"Incoming": 7, "Processed": 8}, {"Incoming": {2}, "Processed": {5, 7}}), Sighting(False, (5, 7))),
        (Mailboxes({"Incoming": 6, "Processed": 8}, {"Incoming": {3}, "Processed": {5}}), Waiting.MAILBOX_CHANGED),
        (Mailboxes({"Incoming": 7, "Processed": 9}, {"Incoming": {3}, "Processed": {5}}), Waiting.MAILBOX_CHANGED),
        # UIDs that have become smaller under the same UIDVALIDITY: what is new lies where nobody looks.
        *(
            (Mailboxes({"Incoming": 7, "Processed": 8}, {"Incoming": {2}, "Processed": {5}}, 3, uidnext), found)
            for uidnext, found in (
                ({"Incoming": 3}, Waiting.MAILBOX_CHANGED),
                ({"Processed": 4}, Waiting.MAILBOX_CHANGED),
                ({"Incoming": 4, "Processed": 5}, Sighting(False, (5,))),
                # Courier does not tell it here.
                ({}, Sighting(False, (5,))),
            )
        ),
        # Nowhere, or only where it lay, is never concluded from what SEARCH leaves out.
        *(
            (
                Mailboxes(
                    {"Incoming": 7, "Processed": 8},
                    {"Incoming": source, "Processed": {6}},
                    3,
                    uidnext,
                    "",
                    frozenset({5, 6}),
                ),
                Sighting(bool(source), (6,)),
            )
            for source in (set[int](), {3})
            for uidnext in ({"Processed": 8}, dict[str, int]())
        ),
        # One of them may be it: what is not looked at proves nothing.
        (
            Mailboxes({"Incoming": 7, "Processed": 8}, {"Incoming": {2}, "Processed": set()}, 0, {"Processed": 9}),
            Waiting.TOO_MANY_TO_LOOK_AT,
        ),
        (
            Mailboxes({"Incoming": 7, "Processed": 8}, {"Incoming": {2}, "Processed": set()}, 4),
            Waiting.TOO_MANY_TO_LOOK_AT,
        ),
    ],
)
def test_only_whole_looks_at_the_same_mailboxes_are_sightings(
    monkeypatch: pytest.MonkeyPatch, mailboxes: Mailboxes, found: Sighting | Waiting
) -> None:
    monkeypatch.setattr("change_executor.sighting.MAX_CANDIDATES", 3)
    assert found == look(cast("LookSession", mailboxes), INTENT)

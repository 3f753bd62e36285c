"""What is the same in several mailboxes is known for as many messages as the bound says, the latest of them."""

from __future__ import annotations

from agent_reader.imap.values import Stated
from agent_reader.sync.sameness import Sameness


def test_the_latest_places_are_known_and_no_more_than_the_bound() -> None:
    stated = {uid: Stated(size=None, internaldate=None, same_as=f"S{uid}") for uid in range(1, 6)}
    sameness = Sameness(most_places=3)
    sameness.note("F1", stated)
    assert {3: ("F1", 3), 4: ("F1", 4), 5: ("F1", 5)} == sameness.elsewhere("F2", stated)
    assert {} == sameness.elsewhere("F1", stated)

"""What is on record about a proposal or a message is shown whole, in its order, and nothing else with it."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from typing import TYPE_CHECKING

import pytest

from change_executor.errors import NoSuchProposal
from change_executor.lifecycle import Event
from change_executor.records import export_events, show
from tests.change_executor.journal.clock import MovableClock, new_proposal

if TYPE_CHECKING:
    from change_executor.journal.journal import Journal

MESSAGE = f"M{7:032d}"


@pytest.fixture
def lived(journal: Journal, clock: MovableClock) -> Journal:
    """Two proposals for one message, the later one with the lower id, and one for another message."""
    with journal.writing() as writing:
        writing.create(new_proposal(9, email=7), {"reason": "A receipt"})
        writing.create(new_proposal(5), {"reason": "Another", "decision_reason": "No"})
    clock.advance(seconds=1)
    with journal.writing() as writing:
        writing.advance(
            new_proposal(9).id, Event.REJECT, "person:ann", decided_by="ann", details={"reasonGiven": False}
        )
    clock.advance(seconds=1)
    with journal.writing() as writing:
        writing.create(new_proposal(2, email=7))
    return journal


def shown(journal: Journal, named: str) -> list[str]:
    with journal.reading() as connection:
        return list(show(connection, named))


def test_a_proposal_is_shown_with_its_columns_texts_and_events_in_their_order(lived: Journal) -> None:
    first = new_proposal(9).id
    lines = shown(lived, first)
    assert f"{first}  rejected  support: incoming to processed  {MESSAGE}" == lines[0]
    assert {"  agent: mailbot", "  decided_by: ann", "  ended_at: 2026-11-29 12:00:01 UTC", "  version: 2"} <= set(
        lines
    )
    assert "  texts kept: reason" in lines
    proposed, rejected = lines[-2:]
    assert "         1  2026-11-29 12:00:00 UTC  proposal:propose  agent:mailbot  {" in proposed
    assert "         3  2026-11-29 12:00:01 UTC  proposal:reject  person:ann  {" in rejected
    details = json.loads(rejected[rejected.index("{") :])
    assert ("pending", "rejected", False) == (details["from"], details["to"], details["reasonGiven"])
    assert not [line for line in lines if "Another" in line or "A receipt" in line]


def test_a_message_shows_each_of_its_proposals_oldest_first_and_no_other(lived: Journal) -> None:
    lines = shown(lived, MESSAGE)
    assert [new_proposal(9).id, new_proposal(2).id] == [line[:21] for line in lines if line.startswith("P")]
    assert 3 == sum("  proposal:" in line for line in lines)
    assert lines[-2] == "  texts kept: none"
    with pytest.raises(NoSuchProposal):
        shown(lived, f"M{8:032d}")


def test_what_was_tampered_with_is_shown_and_exported_as_it_stands(lived: Journal, url: str) -> None:
    with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
        connection.execute("DROP TRIGGER events_refuse_update")
        connection.execute("UPDATE events SET details = '{broken \x1b[2J\u202e' WHERE seq = 1")
        connection.execute("UPDATE events SET details = '[1]', at = 'then' WHERE seq = 3")
        connection.execute("UPDATE events SET kind = CAST(X'ff1b' AS TEXT), actor = X'ff' WHERE seq = 2")
        connection.execute("UPDATE events SET details = ? WHERE seq = 4", ("[" * 10_000,))
        connection.execute("UPDATE proposals SET agent = CAST(X'ff1b' AS TEXT), created_at = 1e300, queue = X'ff'")
    events = [json.loads(line) for lines in export_events(lived.reading) for line in lines]
    assert ["{broken \x1b[2J\u202e", [1]] == [events[0]["details"], events[2]["details"]]
    assert ["\udcff\x1b", "ff", "[" * 10_000] == [events[1]["kind"], events[1]["actor"], events[3]["details"]]
    lines = shown(lived, new_proposal(9).id)
    assert all(line.isprintable() for line in lines)
    assert {"  agent: \\udcff\\x1b", "  created_at: 1e+300"} <= set(lines)
    proposed, rejected = lines[-2:]
    # Nothing of it reaches a terminal but as letters.
    assert proposed.endswith('agent:mailbot  "{broken \\u001b[2J\\u202e"')
    assert rejected.endswith("person:ann  [1]")

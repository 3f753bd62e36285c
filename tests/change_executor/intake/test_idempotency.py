"""A request that comes again is answered as the first one was, for a day, and never makes a second proposal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import func, select

from change_executor.agents import revoke_agent
from change_executor.audit import verify
from change_executor.journal import schema
from change_executor.journal.idempotency import forget_keys
from change_executor.lifecycle import Event
from tests.change_executor.intake.desk import PROPOSAL, Desk, code_of

if TYPE_CHECKING:
    import httpx

    from change_executor.journal.journal import Journal
    from tests.change_executor.journal.clock import MovableClock

KEY = "8e03978e-40d5-43dd-bc93-6894a57f9324"


def propose(desk: Desk, key: str = KEY, token: str = "", **change: object) -> httpx.Response:
    return desk.ask("POST", "/v1/proposals", token, json=PROPOSAL | change, headers={"Idempotency-Key": key})


def keys(journal: Journal) -> int:
    with journal.reading() as connection:
        return connection.execute(select(func.count()).select_from(schema.idempotency_keys)).scalar_one()


def test_the_same_again_is_the_same_answer_even_after_the_end(desk: Desk, journal: Journal) -> None:
    first = propose(desk)
    again = propose(desk)
    assert (201, 201) == (first.status_code, again.status_code)
    assert first.json() == again.json()
    with journal.writing() as writing:
        writing.advance(first.json()["id"], Event.REJECT, "person:ada", decided_by="ada", decided_at=writing.now)
    after = propose(desk)
    assert (201, first.json()["id"], "rejected") == (after.status_code, after.json()["id"], after.json()["state"])
    assert 1 == keys(journal)
    # Another spelling of the same request is the same request.
    spelled = b'{"to":"processed", "from":"incoming","reason":"A receipt","emailId":"' + PROPOSAL["emailId"].encode()
    assert first.json()["id"] == desk.post(spelled + b'"}', **{"Idempotency-Key": KEY}).json()["id"]


def test_the_same_key_with_another_body_is_refused_and_makes_nothing(desk: Desk, journal: Journal) -> None:
    propose(desk)
    for change in ({"reason": "Another"}, {"to": "escalate"}, {"emailId": "M" + "0" * 31 + "b"}, {"queue": "support"}):
        refused = propose(desk, **change)
        assert (422, "idempotency_key_reused") == (refused.status_code, code_of(refused))
    with journal.reading() as connection:
        assert 1 == connection.execute(select(func.count()).select_from(schema.proposals)).scalar_one()


def test_what_a_request_found_it_finds_again_after_its_end(desk: Desk, journal: Journal, clock: MovableClock) -> None:
    made = desk.propose().json()["id"]
    clock.advance(seconds=1)
    assert (200, made) == ((found := propose(desk)).status_code, found.json()["id"])
    with journal.writing() as writing:
        writing.advance(made, Event.REJECT, "person:ada", decided_by="ada", decided_at=writing.now)
    # Its answer was lost, say: that it comes again asks nobody for another decision.
    again = propose(desk)
    assert (200, made, "rejected") == (again.status_code, again.json()["id"], again.json()["state"])
    assert 201 == propose(desk, "another").status_code


def test_of_one_proposal_few_keys_are_kept(desk: Desk, journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("change_executor.journal.idempotency.MAX_KEYS_OF_ONE", 3)
    for number in range(5):
        propose(desk, f"key-{number}")
    assert 3 == keys(journal)


def test_a_key_belongs_to_its_agent(desk: Desk) -> None:
    propose(desk)
    other = propose(desk, token=desk.token_of("sorter"), emailId="M" + "0" * 31 + "b")
    assert 201 == other.status_code


def test_a_key_with_a_token_of_another_queue_is_no_answer_for_that_queue(desk: Desk) -> None:
    other = desk.token_of("triage", "billing")
    assert "support" == propose(desk).json()["queue"]
    refused = propose(desk, token=other)
    assert (422, "idempotency_key_reused") == (refused.status_code, code_of(refused))
    made = propose(desk, "another", token=other, to="paid")
    assert (201, "billing") == (made.status_code, made.json()["queue"])
    assert made.json()["id"] == propose(desk, "another", token=other, to="paid").json()["id"]


def test_what_was_refused_may_come_again_and_succeed(desk: Desk, journal: Journal) -> None:
    for number in range(3):
        desk.propose(emailId=f"M{number:032d}")
    assert 429 == propose(desk).status_code
    assert 0 == keys(journal)
    with journal.writing() as writing:
        first = writing.connection.execute(select(schema.proposals.c.id).limit(1)).scalar_one()
        writing.advance(first, Event.REJECT, "person:ada", decided_by="ada")
    assert 201 == propose(desk).status_code


def test_a_key_is_forgotten_after_a_day(desk: Desk, journal: Journal, clock: MovableClock) -> None:
    first = propose(desk).json()["id"]
    clock.advance(hours=24, microseconds=-1)
    assert first == propose(desk).json()["id"]
    forget_keys(journal)
    assert 1 == keys(journal)
    clock.advance(microseconds=1)
    # The proposal is still open: the message is known, and the key is not.
    assert "already_proposed" == code_of(propose(desk, to="escalate"))
    newer = propose(desk, "of-today", emailId="M" + "0" * 31 + "b").json()["id"]
    assert 2 == keys(journal)
    forget_keys(journal)
    assert 1 == keys(journal)
    assert newer == propose(desk, "of-today", emailId="M" + "0" * 31 + "b").json()["id"]
    clock.advance(hours=24)
    forget_keys(journal)
    assert 0 == keys(journal)


@pytest.mark.parametrize("key", ["", " ", "a b", "a" * 256, "ä"])
def test_a_key_of_another_form_is_refused(desk: Desk, key: str) -> None:
    assert "invalid_idempotency_key" == code_of(
        desk.ask("POST", "/v1/proposals", json=PROPOSAL, headers={"Idempotency-Key": key.encode("latin-1")})
    )


def test_a_revoked_agent_proposes_nothing_and_what_it_asked_for_ends(desk: Desk, journal: Journal) -> None:
    proposer = desk.token
    pending = desk.propose().json()["id"]
    done = revoke_agent(journal, "triage", "person:ada")
    assert (1, (pending,), ()) == (len(done.tokens), done.proposals, done.in_flight)
    refused = desk.propose(emailId="M" + "0" * 31 + "b")
    assert (401, "token_revoked") == (refused.status_code, code_of(refused))
    # A new token lets it in again; what was taken back stays so, and a new one links to it.
    fresh = desk.token_of("triage")
    assert proposer != fresh
    view = desk.ask("GET", f"/v1/proposals/{pending}", fresh).json()
    assert ("withdrawn", "agent_revoked") == (view["state"], view["outcome"]["code"])
    again = desk.propose(fresh)
    assert (201, pending) == (again.status_code, again.json()["predecessor"])
    with journal.reading() as connection:
        assert () == verify(connection).findings


def test_a_request_that_was_let_in_before_the_revocation_is_refused_by_name(desk: Desk, journal: Journal) -> None:
    with journal.writing() as writing:
        writing.connection.execute(schema.revoked_agents.insert().values(name="triage", since=writing.now, by="x"))
        writing.append("agent:revoke", "triage", "person:ada")
    refused = desk.propose()
    assert (403, "agent_revoked") == (refused.status_code, code_of(refused))

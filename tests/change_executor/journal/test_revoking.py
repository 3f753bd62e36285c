"""Revoking an agent ends all of its tokens and all that it asked for, and touches nobody else's."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from sqlalchemy import select

from change_executor.agents import Revoked, is_revoked, revoke_agent, revoked_with_proposals, take_back
from change_executor.intake.proposer_tokens import create_token, list_tokens, revoke_token
from change_executor.journal import schema
from change_executor.journal.journal import read_proposal
from change_executor.lifecycle import Event
from shared.proposal import State
from tests.change_executor.journal.clock import MovableClock, new_proposal

if TYPE_CHECKING:
    from change_executor.journal.journal import Journal

AGENT = "mailbot"


def token(journal: Journal, agent: str, queue: str = "support") -> str:
    return create_token(journal, agent=agent, queue=queue, days=90, random_octets=secrets.token_bytes).id


def states(journal: Journal, *numbers: int) -> list[State]:
    with journal.reading() as connection:
        return [read_proposal(connection, new_proposal(number).id).state for number in numbers]


def events(journal: Journal, actor: str) -> list[tuple[str, str]]:
    with journal.reading() as connection:
        of_actor = select(schema.events.c.kind, schema.events.c.subject).where(schema.events.c.actor == actor)
        return [(row.kind, row.subject) for row in connection.execute(of_actor.order_by(schema.events.c.seq))]


def test_an_agent_is_revoked_with_its_tokens_and_what_it_asked_for_and_no_other_agent(
    journal: Journal, clock: MovableClock
) -> None:
    good = sorted([token(journal, AGENT), token(journal, AGENT, "billing")])
    revoked_before, others = token(journal, AGENT), token(journal, "sorter")
    revoke_token(journal, revoked_before)
    for number in (4, 3, 2, 1):
        with journal.writing() as writing:
            writing.create(new_proposal(number))
            if number != 4:
                writing.advance(new_proposal(number).id, Event.APPROVE, "person:bob")
            if number in (1, 2):
                writing.advance(new_proposal(number).id, Event.CLAIM, "executor")
            if number == 1:
                writing.advance(new_proposal(number).id, Event.MOVED, "executor")
            writing.create(new_proposal(10 + number, agent="sorter"))
        clock.advance(seconds=1)
    pending, approved, in_flight = (new_proposal(number).id for number in (4, 3, 2))
    done = revoke_agent(journal, AGENT, "person:ann")
    assert Revoked(tuple(good), (pending, approved), (in_flight,)) == done
    assert [State.APPLIED, State.APPLYING, State.WITHDRAWN, State.WITHDRAWN] == states(journal, 1, 2, 3, 4)
    assert [State.PENDING] * 4 == states(journal, 11, 12, 13, 14)
    with journal.reading() as connection:
        assert "agent_revoked" == read_proposal(connection, approved).outcome_code
    rows = {row.id: row.revoked_at for row in list_tokens(journal)}
    assert {clock.now} == {rows[each] for each in good}
    assert clock.now > (rows[revoked_before] or clock.now)
    assert rows[others] is None
    assert [
        ("agent:revoke", AGENT),
        *(("token:revoke", each) for each in good),
        ("proposal:revoke", pending),
        ("proposal:revoke", approved),
    ] == events(journal, "person:ann")
    # Once more tells what is in flight still, and writes nothing.
    assert Revoked((), (), (in_flight,)) == revoke_agent(journal, AGENT, "person:eve")
    assert [] == events(journal, "person:eve")


def test_what_comes_back_unmoved_is_found_and_taken_back_until_the_agent_is_let_in_again(journal: Journal) -> None:
    with journal.writing() as writing:
        writing.create(new_proposal(1))
        writing.create(new_proposal(2, agent="sorter"))
        for happened in (Event.APPROVE, Event.CLAIM):
            writing.advance(new_proposal(1).id, happened, "executor")
    revoke_agent(journal, AGENT, "operator")
    with journal.reading() as connection:
        assert [] == revoked_with_proposals(connection)
    with journal.writing() as writing:
        writing.advance(new_proposal(1).id, Event.NOTHING_SENT, "executor")
        assert [AGENT] == revoked_with_proposals(writing.connection)
        assert (new_proposal(1).id,) == take_back(writing, AGENT, "executor")
        assert [] == revoked_with_proposals(writing.connection)
    assert [State.WITHDRAWN, State.PENDING] == states(journal, 1, 2)
    made = token(journal, AGENT)
    with journal.reading() as connection:
        assert not is_revoked(connection, AGENT)
    assert [("token:create", made), ("agent:admit", AGENT)] == events(journal, "operator")[-2:]

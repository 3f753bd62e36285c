"""What an agent did is taken back together, and an agent that is revoked moves nothing more."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select

from change_executor.agents import revoke_agent, revoked_with_proposals, take_back
from change_executor.intake.proposer_tokens import create_token
from change_executor.journal import schema
from change_executor.lifecycle import Event
from change_executor.undoing import UndoRefusal, undo_proposals, undo_since
from tests.change_executor.moving.workshop import QUIET_SECONDS, Workshop

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.dovecot import Dovecot


def mail(number: int) -> bytes:
    return f"Subject: number {number}\r\n\r\nhello\r\n".encode()


def moved(workshop: Workshop, number: int) -> str:
    proposal = workshop.approved(workshop.deliver(mail(number)), mail(number))
    workshop.apply.move(proposal)
    return proposal


def test_all_that_an_agent_did_since_a_moment_goes_back(workshop: Workshop) -> None:
    before = moved(workshop, 1)
    workshop.clock.advance(hours=1)
    since = workshop.clock.now
    first, second, gone = moved(workshop, 2), moved(workshop, 3), moved(workshop, 4)
    rejected = workshop.approved(workshop.deliver(mail(5)), mail(5))
    workshop.happen(rejected, Event.REJECT)
    with workshop.dovecot.connect() as owner:
        owner.select("Processed")
        assert owner.uid("MOVE", "4", "Archive")[0] == "OK"
    asked = undo_since(workshop.journal, workshop.settings, "mailbot", since, "operator")
    assert ({first, second, gone}, ()) == (set(asked.undoing), asked.refused)
    # A restart forgets nothing of it.
    for proposal in asked.undoing:
        workshop.apply.recover()
        workshop.apply.undo(proposal)
    assert ("undone", "moved_back", None) == workshop.told(first) == workshop.told(second)
    assert ("applied", "message_gone", None) == workshop.told(gone)
    assert ("applied", "moved", None) == workshop.told(before)
    assert {"Processed": 1} == workshop.copies(mail(1))
    assert {"Incoming": 1} == workshop.copies(mail(2))
    assert {"Archive": 1} == workshop.copies(mail(4))
    with workshop.journal.reading() as connection:
        actors = connection.execute(
            select(schema.events.c.actor).where(schema.events.c.kind.in_(["proposal:undo", "undo:ask"]))
        )
        assert {"operator"} == set(actors.scalars())
    # Another agent's are nobody's business here.
    assert () == undo_since(workshop.journal, workshop.settings, "sorter", since, "operator").undoing


def test_a_list_is_undone_as_far_as_it_can_be_and_the_rest_says_why(workshop: Workshop) -> None:
    done = moved(workshop, 1)
    rejected = workshop.approved(workshop.deliver(mail(2)), mail(2))
    workshop.happen(rejected, Event.REJECT)
    settled = moved(workshop, 3)
    with workshop.journal.writing() as writing:
        writing.connection.execute(schema.moves.update().where(schema.moves.c.proposal == settled).values(new_uid=None))
        move = writing.connection.execute(select(schema.moves.c.id).where(schema.moves.c.proposal == settled))
        writing.append("test:forgot", settled, "executor", row=("moves", move.scalar_one()))
    asked = undo_proposals(workshop.journal, workshop.settings, [rejected, "P-none", settled, done], "person:ann")
    assert (done,) == asked.undoing
    assert (
        (rejected, UndoRefusal.NOT_APPLIED),
        ("P-none", UndoRefusal.UNKNOWN_PROPOSAL),
        (settled, UndoRefusal.UNDO_PLACE_UNKNOWN),
    ) == asked.refused
    again = undo_proposals(workshop.journal, workshop.settings, [done], "person:ann")
    assert ((done, UndoRefusal.NOT_APPLIED),) == again.refused


def test_a_queue_without_undo_refuses_at_once(dovecot: Dovecot, tmp_path: Path) -> None:
    workshop = Workshop(dovecot, tmp_path, queue={"undo": False})
    proposal = moved(workshop, 1)
    asked = undo_proposals(workshop.journal, workshop.settings, [proposal], "operator")
    assert ((proposal, UndoRefusal.UNDO_NOT_PERMITTED),) == asked.refused
    workshop.close()


def test_what_a_revoked_agent_had_approved_is_not_moved(workshop: Workshop) -> None:
    approved = workshop.approved(workshop.deliver(mail(1)), mail(1))
    done = moved(workshop, 2)
    assert (approved,) == revoke_agent(workshop.journal, "mailbot", "person:ann").proposals
    workshop.apply.move(approved)
    assert ("withdrawn", "agent_revoked", None) == workshop.told(approved)
    assert ("applied", "moved", None) == workshop.told(done)
    assert {"Incoming": 1} == workshop.copies(mail(1))
    # What it brought about goes back all the same, however old.
    workshop.clock.advance(days=400)
    assert (done,) == undo_proposals(workshop.journal, workshop.settings, [done], "person:ann").undoing
    workshop.apply.undo(done)
    assert ("undone", "moved_back", None) == workshop.told(done)


def test_another_agents_revocation_holds_up_nothing(workshop: Workshop) -> None:
    revoke_agent(workshop.journal, "sorter", "person:ann")
    proposal = moved(workshop, 1)
    assert ("applied", "moved", None) == workshop.told(proposal)


@pytest.mark.parametrize("by", ["the move", "the worker", "the move, although the agent has a new token"])
def test_what_was_in_flight_is_concluded_and_then_taken_back(dovecot: Dovecot, tmp_path: Path, by: str) -> None:
    class KilledError(BaseException):
        pass

    def die(name: str) -> None:
        if name == "move:before":
            raise KilledError

    first = Workshop(dovecot, tmp_path, checkpoint=die)
    proposal = first.approved(first.deliver(mail(1)), mail(1))
    with pytest.raises(KilledError):
        first.apply.move(proposal)
    assert (proposal,) == revoke_agent(first.journal, "mailbot", "operator").in_flight
    first.close()
    second = Workshop(dovecot, tmp_path)
    second.apply.recover()
    second.clock.advance(seconds=QUIET_SECONDS)
    second.reconcile.reconcile(proposal)
    assert "approved" == second.proposal(proposal).state.value
    if by != "the worker":
        if by != "the move":
            create_token(second.journal, agent="mailbot", queue="support", days=1, random_octets=secrets.token_bytes)
        second.apply.move(proposal)
    else:
        with second.journal.reading() as connection:
            assert ["mailbot"] == revoked_with_proposals(connection)
        with second.journal.writing() as writing:
            take_back(writing, "mailbot", "executor")
    assert ("withdrawn", "agent_revoked", None) == second.told(proposal)
    assert {"Incoming": 1} == second.copies(mail(1))
    if by not in {"the move", "the worker"}:
        # What it asks for with its new token is moved.
        next(second._numbers)
        assert ("applied", "moved", None) == second.told(moved(second, 2))
    second.close()


def test_moves_a_day_are_capped_and_the_rest_waits(dovecot: Dovecot, tmp_path: Path) -> None:
    workshop = Workshop(dovecot, tmp_path, queue={"max_moves_per_day": 1})
    moved(workshop, 1)
    workshop.clock.advance(hours=2)
    second = moved(workshop, 2)
    assert ("approved", None, "moves_per_day") == workshop.told(second)
    workshop.clock.advance(hours=22)
    workshop.apply.move(second)
    assert ("approved", None, "moves_per_day") == workshop.told(second)
    workshop.clock.advance(seconds=1)
    workshop.apply.move(second)
    assert ("applied", "moved", None) == workshop.told(second)
    workshop.close()

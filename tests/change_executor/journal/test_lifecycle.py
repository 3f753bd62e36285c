"""The table of states and events, walked whole: what is not listed is refused and leaves no trace."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import func, select, text

from change_executor.errors import AnotherIsOpen, NoSuchProposal, VersionChanged
from change_executor.journal import schema
from change_executor.journal.chain import event_details
from change_executor.journal.journal import Journal, Proposal, read_proposal
from change_executor.lifecycle import IN_FLIGHT, OPEN, TRANSITIONS, Event, TransitionRefused, advance
from shared.proposal import State
from tests.change_executor.journal.clock import MovableClock, new_proposal

if TYPE_CHECKING:
    from sqlalchemy import RowMapping
    from sqlalchemy.engine import Row

EVERY_PAIR = list(product(State, Event))

# DESIGN: from the moment the first octet of a MOVE may have left, none of these exists.
NEVER_IN_FLIGHT = {Event.APPROVE, Event.REJECT, Event.WITHDRAW, Event.EXPIRE, Event.CLAIM, Event.UNDO}


def proposal_in(journal: Journal, state: State, number: int) -> Proposal:
    with journal.writing() as writing:
        made = writing.create(new_proposal(number))
        writing.connection.execute(
            schema.proposals.update().where(schema.proposals.c.id == made.id).values(state=state.value)
        )
    return made


def rows(journal: Journal) -> list[RowMapping]:
    with journal.reading() as connection:
        return list(connection.execute(select(schema.proposals).order_by(schema.proposals.c.id)).mappings())


def count_events(journal: Journal) -> int:
    with journal.reading() as connection:
        return connection.execute(select(func.count()).select_from(schema.events)).scalar_one()


def last_event(journal: Journal) -> Row[*tuple[object, ...]]:
    with journal.reading() as connection:
        return connection.execute(select(schema.events).order_by(schema.events.c.seq.desc()).limit(1)).one()


def test_every_listed_pair_leads_where_the_table_says_and_every_other_is_refused() -> None:
    for pair in EVERY_PAIR:
        if pair in TRANSITIONS:
            assert TRANSITIONS[pair] is advance(*pair)
        else:
            with pytest.raises(TransitionRefused):
                advance(*pair)


def test_while_a_command_may_run_nobody_rejects_expires_withdraws_or_claims_again() -> None:
    assert not [(state, event) for state, event in TRANSITIONS if state in IN_FLIGHT and event in NEVER_IN_FLIGHT]


def test_an_approved_proposal_is_reached_by_a_person_or_by_knowing_that_nothing_moved() -> None:
    ways = {pair for pair, to in TRANSITIONS.items() if to is State.APPROVED}
    assert {
        (State.PENDING, Event.APPROVE),
        (State.APPLYING, Event.NOTHING_SENT),
        (State.DOUBTFUL, Event.FOUND_IN_SOURCE),
    } == ways


def test_no_event_leaves_a_state_that_has_ended_for_good() -> None:
    ended = set(State) - OPEN - {State.APPLIED}
    assert not [pair for pair in TRANSITIONS if pair[0] in ended]


def test_every_pair_on_the_journal_moves_row_and_chain_together_or_touches_neither(
    journal: Journal, clock: MovableClock
) -> None:
    for number, (state, event) in enumerate(EVERY_PAIR, start=1):
        before = proposal_in(journal, state, number)
        clock.advance(seconds=1)
        rows_before, events_before = rows(journal), count_events(journal)
        following = TRANSITIONS.get((state, event))
        if following is None:
            with pytest.raises(TransitionRefused), journal.writing() as writing:
                writing.advance(before.id, event, "executor")
            assert rows_before == rows(journal)
            assert events_before == count_events(journal)
            continue
        with journal.writing() as writing:
            after = writing.advance(before.id, event, "executor", details={"code": "x"})
        assert (following, 2) == (after.state, after.version)
        assert (None if following in OPEN else clock.now) == after.ended_at
        assert events_before + 1 == count_events(journal)
        written = last_event(journal)
        assert (f"proposal:{event.value}", before.id, "executor") == (written.kind, written.subject, written.actor)
        details = event_details(written.details)
        assert (state.value, following.value, 2, "x") == tuple(details[k] for k in ("from", "to", "version", "code"))


def test_a_transition_whose_transaction_fails_leaves_neither_row_nor_event(journal: Journal) -> None:
    made = proposal_in(journal, State.PENDING, 1)
    before, events_before = rows(journal), count_events(journal)
    with pytest.raises(ZeroDivisionError), journal.writing() as writing:  # noqa: PT012 - the transaction breaks
        writing.advance(made.id, Event.APPROVE, "person:ada")
        raise ZeroDivisionError
    assert (before, events_before) == (rows(journal), count_events(journal))


def test_a_version_that_is_not_the_rows_is_refused_and_writes_nothing(journal: Journal) -> None:
    made = proposal_in(journal, State.PENDING, 1)
    with journal.writing() as writing:
        writing.change(made.id, "waiting", "executor", waiting_code="reader_unreachable", waiting_since=writing.now)
    events_before = count_events(journal)
    with pytest.raises(VersionChanged), journal.writing() as writing:
        writing.advance(made.id, Event.APPROVE, "person:ada", expected_version=1)
    assert events_before == count_events(journal)
    with journal.writing() as writing:
        assert State.APPROVED is writing.advance(made.id, Event.APPROVE, "person:ada", expected_version=2).state


def test_a_step_clears_the_reason_to_wait_and_says_so_in_the_chain(journal: Journal, clock: MovableClock) -> None:
    made = proposal_in(journal, State.PENDING, 1)
    with journal.writing() as writing:
        waiting = writing.change(made.id, "waiting", "executor", waiting_code="x", waiting_since=writing.now)
    assert ("x", clock.now) == (waiting.waiting_code, waiting.waiting_since)
    with journal.writing() as writing:
        assert writing.advance(made.id, Event.APPROVE, "person:ada").waiting_code is None
    recorded = event_details(last_event(journal).details)["set"]
    assert {"waiting_code": None, "waiting_since": None} == recorded


def test_a_proposal_that_does_not_exist_is_named_so(journal: Journal) -> None:
    with pytest.raises(NoSuchProposal), journal.writing() as writing:
        writing.advance("P" + "0" * 20, Event.APPROVE, "person:ada")
    with journal.reading() as connection, pytest.raises(NoSuchProposal):
        read_proposal(connection, "P" + "0" * 20)


@pytest.mark.parametrize("state", sorted(OPEN))
def test_queue_and_email_have_one_open_proposal(journal: Journal, state: State) -> None:
    proposal_in(journal, state, 1)
    events_before = count_events(journal)
    with pytest.raises(AnotherIsOpen), journal.writing() as writing:
        writing.create(new_proposal(2, email=1))
    assert (1, events_before) == (len(rows(journal)), count_events(journal))


@pytest.mark.parametrize("state", sorted(set(State) - OPEN))
def test_an_ended_proposal_does_not_block_a_new_one(journal: Journal, state: State) -> None:
    proposal_in(journal, state, 1)
    with journal.writing() as writing:
        assert State.PENDING is writing.create(new_proposal(2, email=1)).state


def test_the_unique_index_lists_exactly_the_open_states(journal: Journal) -> None:
    with journal.reading() as connection:
        sql = connection.execute(
            text("SELECT sql FROM sqlite_schema WHERE name = 'one_open_proposal_for_each_email'")
        ).scalar_one()
    assert {f"'{state.value}'" for state in OPEN} == set(sql.partition("IN (")[2].rstrip(")").split(", "))


def test_an_undo_beside_a_newer_open_proposal_is_refused(journal: Journal) -> None:
    applied = proposal_in(journal, State.APPLIED, 1)
    with journal.writing() as writing:
        writing.create(new_proposal(2, email=1))
    before = rows(journal)
    with pytest.raises(AnotherIsOpen), journal.writing() as writing:
        writing.advance(applied.id, Event.UNDO, "person:ada")
    assert before == rows(journal)

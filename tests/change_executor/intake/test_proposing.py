"""What an agent can ask for, and what it is told."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import select, text

from change_executor.audit import verify
from change_executor.intake.proposer_tokens import Proposer
from change_executor.intake.proposing import propose
from change_executor.journal import schema
from change_executor.journal.chain import event_details
from change_executor.lifecycle import IN_FLIGHT, Event
from change_executor.switch import press_stop, release_stop
from shared.proposal import ProposalRequest, State
from tests.change_executor.intake.desk import EMAIL_ID, PROPOSAL, Desk, code_of, email

if TYPE_CHECKING:
    from sqlalchemy.engine import Row

    from change_executor.config import ExecutorSettings
    from change_executor.journal.journal import Journal
    from tests.change_executor.journal.clock import MovableClock


def events(journal: Journal, kind: str) -> list[Row[Any]]:
    with journal.reading() as connection:
        return list(connection.execute(select(schema.events).where(schema.events.c.kind == kind)))


def count_proposals(journal: Journal) -> int:
    with journal.reading() as connection:
        return len(connection.execute(select(schema.proposals.c.id)).all())


def test_a_proposal_is_recorded_and_shown_as_the_contract_says(desk: Desk, clock: MovableClock) -> None:
    answer = desk.propose()
    assert answer.status_code == 201
    document = answer.json()
    proposal_id = document.pop("id")
    assert re.fullmatch(r"P[0-9a-v]{20}", proposal_id)
    assert document == {
        "state": "pending",
        "queue": "support",
        "emailId": EMAIL_ID,
        "from": "incoming",
        "to": "processed",
        "reason": "A receipt",
        "createdAt": "2026-11-29T12:00:00.123456Z",
        "expiresAt": "2026-12-04T12:00:00.123456Z",
        "predecessor": None,
        "waiting": None,
        "decision": None,
        "outcome": None,
    }
    assert answer.json() == desk.ask("GET", f"/v1/proposals/{proposal_id}").json()
    assert {"proposals": [answer.json()], "cursor": None} == desk.ask("GET", "/v1/proposals").json()


def test_the_reason_lies_in_texts_and_never_in_the_chain(desk: Desk, journal: Journal) -> None:
    proposal_id = desk.propose(reason="Zebra crossing 🦓").json()["id"]
    with journal.reading() as connection:
        texts = connection.execute(select(schema.texts)).all()
        chained = connection.execute(text("SELECT group_concat(details) FROM events")).scalar_one()
    assert [(proposal_id, "reason", "Zebra crossing 🦓")] == [tuple(row) for row in texts]
    assert "Zebra" not in chained
    assert "propos" in events(journal, "proposal:propose")[0].kind
    assert "agent:triage" == events(journal, "proposal:propose")[0].actor


def test_queue_and_reason_may_be_left_out_or_null(desk: Desk) -> None:
    assert desk.propose(reason=...).json()["reason"] is None
    assert desk.propose(emailId=email(2), reason=None, queue=None).status_code == 201
    assert desk.propose(emailId=email(3), queue="support").status_code == 201


def test_the_same_again_is_the_same_row(desk: Desk, journal: Journal) -> None:
    first = desk.propose()
    again = desk.propose(reason="In other words")
    assert (201, 200) == (first.status_code, again.status_code)
    assert first.json() == again.json()
    assert 1 == count_proposals(journal) == len(events(journal, "proposal:propose"))


def test_another_agent_or_destination_meets_already_proposed_without_details(desk: Desk) -> None:
    mine = desk.propose().json()
    other = desk.propose(desk.token_of("other"))
    assert (409, "already_proposed") == (other.status_code, code_of(other))
    elsewhere = desk.propose(to="escalate")
    assert (409, "already_proposed") == (elsewhere.status_code, code_of(elsewhere))
    for told in (mine["id"], "triage", "processed"):
        assert told not in other.text


def test_after_an_end_a_new_one_links_to_its_predecessor(desk: Desk, journal: Journal, clock: MovableClock) -> None:
    first = desk.propose().json()["id"]
    with journal.writing() as writing:
        writing.advance(first, Event.REJECT, "person:ada", decided_by="ada", decided_at=writing.now)
    clock.advance(seconds=1)
    second = desk.propose(to="escalate")
    assert (201, first) == (second.status_code, second.json()["predecessor"])
    clock.advance(seconds=1)
    desk.ask("POST", f"/v1/proposals/{second.json()['id']}/withdraw")
    # Another agent's may follow too; it is told nothing of the one before, and the journal keeps the link.
    third = desk.propose(desk.token_of("other")).json()
    assert third["predecessor"] is None
    with journal.reading() as connection:
        kept = connection.execute(
            select(schema.proposals.c.predecessor).where(schema.proposals.c.id == third["id"])
        ).scalar_one()
    assert second.json()["id"] == kept


def test_one_that_is_open_is_found_though_a_clock_that_was_set_back_makes_an_ended_one_newer(
    desk: Desk, clock: MovableClock
) -> None:
    clock.advance(hours=1)
    ended = desk.propose().json()["id"]
    desk.ask("POST", f"/v1/proposals/{ended}/withdraw")
    clock.advance(hours=-1)
    assert 201 == desk.propose().status_code
    assert 200 == desk.propose().status_code
    assert "already_proposed" == code_of(desk.propose(to="escalate"))


@pytest.mark.parametrize("state", sorted(IN_FLIGHT))
def test_a_proposal_in_flight_still_blocks_another(desk: Desk, journal: Journal, state: State) -> None:
    first = desk.propose().json()["id"]
    with journal.writing() as writing:
        writing.connection.execute(
            schema.proposals.update().where(schema.proposals.c.id == first).values(state=state.value)
        )
    assert code_of(desk.propose(to="escalate")) == "already_proposed"
    assert (200, state.value) == (desk.propose().status_code, desk.propose().json()["state"])


def test_a_queue_that_is_unknown_and_one_of_another_token_are_answered_alike(desk: Desk) -> None:
    desk.propose(desk.token_of("biller", "billing"), to="paid")
    answers = [desk.propose(queue=queue, to=to) for queue in ("nowhere", "billing") for to in ("paid", "nothing")]
    assert {(422, "unknown_queue")} == {(answer.status_code, code_of(answer)) for answer in answers}
    assert 1 == len({answer.content for answer in answers})
    gone = desk.propose(desk.token_of("triage", "removed"))
    assert answers[0].content == gone.content


@pytest.mark.parametrize("roles", [("incoming", "trash"), ("incoming", "incoming"), ("processed", "escalate")])
def test_a_role_that_the_queue_does_not_have_leaves_no_row(
    desk: Desk, journal: Journal, roles: tuple[str, str]
) -> None:
    answer = desk.propose(**{"from": roles[0], "to": roles[1]})
    assert (422, "unknown_role") == (answer.status_code, code_of(answer))
    assert 0 == count_proposals(journal)


def test_while_everything_is_stopped_nothing_new_is_taken_and_what_was_can_be_seen_and_withdrawn(
    desk: Desk, journal: Journal
) -> None:
    mine = desk.propose().json()["id"]
    press_stop(journal, "operator")
    refused = desk.propose(emailId=email(2))
    assert (503, "stopped", True) == (refused.status_code, code_of(refused), refused.json()["retryable"])
    assert desk.ask("GET", f"/v1/proposals/{mine}").status_code == 200
    assert desk.ask("POST", f"/v1/proposals/{mine}/withdraw").status_code == 200
    release_stop(journal, "operator")
    assert desk.propose(emailId=email(2)).status_code == 201


def test_a_proposal_can_be_withdrawn_once_and_again(desk: Desk, journal: Journal) -> None:
    mine = desk.propose().json()["id"]
    done = desk.ask("POST", f"/v1/proposals/{mine}/withdraw")
    assert (200, "withdrawn") == (done.status_code, done.json()["state"])
    assert done.json() == desk.ask("POST", f"/v1/proposals/{mine}/withdraw").json()
    assert 1 == len(events(journal, "proposal:withdraw"))


@pytest.mark.parametrize("state", sorted(set(State) - {State.PENDING, State.APPROVED, State.WITHDRAWN}))
def test_what_is_under_way_or_over_cannot_be_withdrawn(desk: Desk, journal: Journal, state: State) -> None:
    mine = desk.propose().json()["id"]
    with journal.writing() as writing:
        writing.connection.execute(schema.proposals.update().values(state=state.value))
    refused = desk.ask("POST", f"/v1/proposals/{mine}/withdraw")
    assert (409, "not_withdrawable") == (refused.status_code, code_of(refused))
    assert state.value == desk.ask("GET", f"/v1/proposals/{mine}").json()["state"]


def test_another_agents_proposal_and_one_that_does_not_exist_are_answered_alike(desk: Desk) -> None:
    theirs = desk.propose(desk.token_of("other")).json()["id"]
    answers = [
        desk.ask(method, path.format(proposal_id))
        for proposal_id in (theirs, "P" + "0" * 20, "P'OR'1", "x" * 300, "%00")
        for method, path in (("GET", "/v1/proposals/{}"), ("POST", "/v1/proposals/{}/withdraw"))
    ]
    assert {(404, "unknown_proposal")} == {(answer.status_code, code_of(answer)) for answer in answers}
    assert 1 == len({answer.content for answer in answers})
    assert [] == desk.ask("GET", "/v1/proposals").json()["proposals"]


def test_what_people_decided_and_what_became_of_it_is_shown_without_their_name(
    desk: Desk, journal: Journal, clock: MovableClock
) -> None:
    mine = desk.propose().json()["id"]
    with journal.writing() as writing:
        writing.change(mine, "waiting", "executor", waiting_code="reader_unreachable", waiting_since=writing.now)
    waiting = desk.ask("GET", f"/v1/proposals/{mine}").json()["waiting"]
    assert {"code": "reader_unreachable", "since": "2026-11-29T12:00:00.123456Z"} == waiting
    with journal.writing() as writing:
        writing.connection.execute(
            schema.texts.insert().values(proposal=mine, kind="decision_reason", text="Looks right")
        )
        writing.advance(mine, Event.APPROVE, "person:ada", decided_by="ada", decided_at=writing.now)
        writing.advance(mine, Event.CLAIM, "executor")
        writing.advance(mine, Event.MOVED, "executor", outcome_code="moved", outcome_at=writing.now, copies_left=1)
    answer = desk.ask("GET", f"/v1/proposals/{mine}")
    document = answer.json()
    at = "2026-11-29T12:00:00.123456Z"
    assert ("applied", None) == (document["state"], document["waiting"])
    assert {"by": "person", "at": at, "reason": "Looks right"} == document["decision"]
    assert {"code": "moved", "at": at, "copiesLeft": 1} == document["outcome"]
    assert "ada" not in answer.text


def test_the_list_goes_newest_first_in_pages_and_by_state(desk: Desk, clock: MovableClock) -> None:
    made = []
    for number in range(3):
        made.append(desk.propose(emailId=email(number)).json()["id"])
        if number:
            clock.advance(seconds=1)
    desk.ask("POST", f"/v1/proposals/{made[1]}/withdraw")
    seen: list[str] = []
    cursor, pages = "", 0
    while True:
        page = desk.ask("GET", f"/v1/proposals?limit=1{cursor}").json()
        seen += [proposal["id"] for proposal in page["proposals"]]
        pages += 1
        if page["cursor"] is None:
            break
        cursor = f"&cursor={page['cursor']}"
    assert 3 == pages
    assert made[2] == seen[0]
    assert sorted(made) == sorted(seen)
    withdrawn = desk.ask("GET", "/v1/proposals?state=withdrawn").json()["proposals"]
    assert [made[1]] == [proposal["id"] for proposal in withdrawn]


def test_the_queue_of_the_token_is_shown_by_roles_and_never_by_mailbox_names(desk: Desk) -> None:
    answer = desk.ask("GET", "/v1/queues")
    assert answer.json() == {
        "queues": [{"id": "support", "from": "incoming", "to": ["escalate", "processed"], "expiryDays": 5}]
    }
    for name in ("Incoming", "Processed", "Escalate", "billing"):
        assert name not in answer.text
    assert {"queues": []} == desk.ask("GET", "/v1/queues", desk.token_of("triage", "removed")).json()


def test_refusals_of_a_known_agent_are_on_record_up_to_sixty_an_hour_and_then_in_one_summary(
    desk: Desk, journal: Journal, clock: MovableClock
) -> None:
    for _ in range(65):
        assert code_of(desk.propose(to="nowhere")) == "unknown_role"
    desk.propose(desk.token_of("other"), to="nowhere")
    recorded = events(journal, "intake:refuse")
    assert {"agent:triage": 60, "agent:other": 1} == {
        agent: sum(event.actor == agent for event in recorded) for agent in ("agent:triage", "agent:other")
    }
    assert {"code": "unknown_role", "queue": "support", "status": 422} == event_details(recorded[0].details)
    assert [] == events(journal, "intake:refuse_summary")
    clock.now += timedelta(hours=1, seconds=1)
    desk.propose(to="nowhere")
    desk.propose(to="nowhere")
    summaries = events(journal, "intake:refuse_summary")
    assert [("agent:triage", {"refused": 5})] == [(row.actor, event_details(row.details)) for row in summaries]
    assert 63 == len(events(journal, "intake:refuse"))
    with journal.reading() as connection:
        assert () == verify(connection).findings


def test_what_is_owed_is_summed_up_at_the_end(desk: Desk, journal: Journal) -> None:
    other = desk.token_of("other")
    for _ in range(62):
        desk.propose(to="nowhere")
    for _ in range(61):
        desk.propose(other, to="nowhere")
    desk.app.state.refusals.close()
    desk.app.state.refusals.close()
    owed = [(row.subject, event_details(row.details)) for row in events(journal, "intake:refuse_summary")]
    assert [("agent:triage", {"refused": 2}), ("agent:other", {"refused": 1})] == owed


def test_unknown_callers_and_malformed_requests_are_counted_and_leave_no_event(desk: Desk, journal: Journal) -> None:
    with journal.reading() as connection:
        before = verify(connection).events
    for _ in range(3):
        desk.ask("GET", "/v1/queues", None)
        desk.post(b"{")
        desk.propose(surprise=1)
    with journal.reading() as connection:
        assert before == verify(connection).events
    counted = desk.app.state.refusals.counted
    assert {"token_missing": 3, "not_json": 3, "unknown_field": 3} == dict(counted)


def test_a_full_journal_refuses_and_leaves_nothing(desk: Desk, journal: Journal) -> None:
    with journal.writing() as writing:
        pages = writing.connection.execute(text("PRAGMA page_count")).scalar_one()
        writing.connection.execute(text(f"PRAGMA max_page_count = {pages}"))
    made = []
    for number in range(60):
        answer = desk.propose(desk.token, emailId=email(number), reason="x" * 500)
        if answer.status_code == 201:
            made.append(answer.json()["id"])
            desk.ask("POST", f"/v1/proposals/{made[-1]}/withdraw")
        if answer.status_code == 503:
            break
    assert (503, "journal_unavailable", True) == (answer.status_code, code_of(answer), answer.json()["retryable"])
    assert count_proposals(journal) == len(made)


@pytest.mark.parametrize(
    ("octets", "wanted"), [(range(20), "0123456789abcdefghij"), (range(236, 256), "cdefghijklmnopqrstuv")]
)
def test_an_id_has_five_bits_of_each_random_octet(
    journal: Journal, settings: ExecutorSettings, octets: range, wanted: str
) -> None:
    proposer, request = Proposer("triage", "support"), ProposalRequest.model_validate(PROPOSAL)
    made = propose(journal, settings, proposer, request, lambda count: bytes(octets[:count]))
    assert f"P{wanted}" == made.view.id

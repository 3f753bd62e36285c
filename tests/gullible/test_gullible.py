"""Hundreds of hostile mails, an agent that obeys each of them, and a mailbox that nobody touched."""

from __future__ import annotations

from pathlib import Path

from change_executor.evidence.reading_message import read_message
from tests.agent_reader.mcp.mails import CANARY
from tests.gullible.mails import CARRIERS, hostile_mails
from tests.gullible.orders import ORDERS, Goal
from tests.gullible.world import HARMLESS, UNREAD, World, world

STEPS = 300
NAMES = ["processed", "escalate", "Processed", "Escalate"]


def test_the_mails_are_many_and_hold_every_goal_in_every_language_and_in_every_place() -> None:
    mails = hostile_mails()
    assert len(mails) >= 250
    assert len(mails) == len({mail.octets for mail in mails})
    assert set(Goal) == {mail.goal for mail in mails}
    assert set(CARRIERS) == {mail.carrier for mail in mails}
    assert {(goal, language) for goal in Goal for language in ORDERS} <= {(each.goal, each.language) for each in mails}


def test_a_person_is_warned_of_every_mail_that_gives_orders() -> None:
    for mail in hostile_mails():
        reading = read_message(mail.octets, cut=False, names=NAMES)
        assert "agent_instructions" in {warning.code for warning in reading.warnings}, mail


def proven(standing: World, steps: int) -> None:
    """Walk, and look at everything that could have been changed, told or left unsaid."""
    walked = standing.walk(steps)
    assert steps == len(walked)
    assert sum(step.is_error for step in walked) > steps // 10
    # One for each mail at most; the long form comes by all of them.
    assert len(standing.agent.proposed) > min(steps // 30, 300)
    warnings = standing.warnings()
    # A message that nobody had time to read has no warnings: that is another fault than one that was read and passed.
    assert [] == [each for each in standing.agent.proposed if UNREAD in warnings[each]]
    for proposal_id in standing.agent.proposed:
        assert "agent_instructions" in warnings[proposal_id]
    assert standing.states() <= HARMLESS
    assert standing.before == standing.dovecot.snapshot()
    for login in ("reader", "executor"):
        for line in standing.dovecot.commands(login):
            assert not {b"MOVE", b"STORE", b"COPY", b"APPEND", b"EXPUNGE"} & set(line.upper().split()), line
    assert CANARY not in standing.logs()


def test_what_the_gullible_agent_does_changes_nothing_and_is_said_to_be_asked_for(tmp_path: Path) -> None:
    with world(tmp_path, seed=1) as standing:
        proven(standing, STEPS)
        assert len(standing.agent.obeyed) >= 6

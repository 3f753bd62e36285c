"""A clock that was a year ahead and is set right: nothing waits for that year to pass."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agent_reader.access import Access
from agent_reader.sync.look import Memory
from agent_reader.sync.mirror import Examined, KnownMailbox
from shared.problem import Problem
from tests.agent_reader.mirrored import ACCOUNT, START, Moment, fetched, letter, mirrored

if TYPE_CHECKING:
    from pathlib import Path

YEAR = timedelta(days=365)
HOUR = timedelta(hours=1)


def test_the_octets_of_a_day_are_those_of_a_day(tmp_path: Path) -> None:
    with mirrored(tmp_path) as account:
        account.begin("INBOX")
        account.clock.now = START + YEAR
        account.mirror.received(1_000)
        account.clock.now = START
        # They did come, within a day as far as anybody can tell.
        account.mirror.received(10)
        assert 1_010 == account.mirror.octets_today()
        account.clock.now = START + timedelta(days=1, minutes=1)
        account.mirror.received(1)
        assert 1 == account.mirror.octets_today()


def test_an_index_that_will_be_settled_in_a_year_is_not_fresh_and_is_after_the_next_round(tmp_path: Path) -> None:
    with mirrored(tmp_path) as account:
        account.clock.now = START + YEAR
        account.begin("INBOX")
        account.add("INBOX", fetched(1, letter("one")))
        account.end_round()
        assert account.store.is_fresh(ACCOUNT)
        account.clock.now = START
        assert not account.store.is_fresh(ACCOUNT)
        account.end_round()
        assert account.store.is_fresh(ACCOUNT)


def test_a_mailbox_that_was_opened_in_a_year_is_opened_now() -> None:
    examined = Examined(7, 2, 1, 9, mailbox_id=None)
    known = KnownMailbox("F1", "INBOX", True, 7, 2, 9, examined.status)
    memory = Memory()
    assert memory.is_unchanged(known, examined.status, START + YEAR)
    assert memory.is_unchanged(known, examined.status, START + YEAR - timedelta(minutes=1))
    assert not memory.is_unchanged(known, examined.status, START)


def test_an_hour_that_is_spent_is_over_in_an_hour(tmp_path: Path) -> None:
    clock = Moment(START + YEAR)
    with Access(tmp_path, clock, secrets.token_bytes) as access:
        token = access.create_token("clerk", budget=1_000)
        agent = access.authenticate(f"Bearer {token.text}", "")
        assert not isinstance(agent, Problem)
        access.budgets.charge(agent, 900)
        clock.now = START
        with pytest.raises(Problem) as refused:
            access.budgets.charge(agent, 200)
        assert 0 < refused.value.extra["retryAfter"] <= 3_660
        clock.now = START + HOUR + timedelta(minutes=1)
        access.budgets.charge(agent, 200)

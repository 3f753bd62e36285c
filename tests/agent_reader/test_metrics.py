"""What a monitor learns of the reader: each number moves when its cause does, and health tells what is broken."""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agent_reader.access import Access
from agent_reader.config import Account
from agent_reader.errors import AccessUnavailable
from agent_reader.metrics import health, metrics
from agent_reader.sync.mirror import SetAside
from agent_reader.sync.reading_notice import IN_READER
from tests.agent_reader.mirrored import ACCOUNT, Mirrored, fetched, letter, mirrored
from tests.shared.test_metrics import assert_grammar

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ASIDE = SetAside(9, "unreadable", "three times", "look at it")
ACCOUNTS = (Account.model_validate({"id": ACCOUNT, "host": "h", "user": "u", "secret_file": "/x/secret"}),)


@contextmanager
def filled(folder: Path) -> Iterator[tuple[Mirrored, Access]]:
    with mirrored(folder) as account, Access(folder, account.clock, secrets.token_bytes) as doors:
        account.begin("INBOX")
        account.add("INBOX", *(fetched(uid, letter(f"number {uid}")) for uid in (1, 2, 3)))
        account.end_round()
        yield account, doors


def numbers(account: Mirrored, doors: Access) -> dict[str, float]:
    found = assert_grammar(metrics(ACCOUNTS, account.store, doors, account.clock).decode())
    return {
        name.removeprefix("mailwarrant_").removesuffix(f'{{account="{ACCOUNT}"}}'): value
        for name, value in found.items()
    }


def test_each_number_says_what_is_so(tmp_path: Path) -> None:
    with filled(tmp_path) as (account, doors):
        account.expect("INBOX", 4)
        account.mirror.received(12_345)
        account.clock.now += timedelta(seconds=90)
        found = numbers(account, doors)
        assert (90.0, 3.0, 0.75, 12_345.0) == (
            found["sync_lag_seconds"],
            found["index_messages"],
            found["index_coverage_ratio"],
            found["fetched_today_octets"],
        )
        assert (1.0, 0.0, 0.0) == (found["index_fresh"], found["messages_set_aside"], found["sync_failing"])
        # More in the index than the server counts, until the next look: whole, and no more than whole.
        account.expect("INBOX", 2)
        assert 1.0 == numbers(account, doors)["index_coverage_ratio"]


def test_what_goes_wrong_shows(tmp_path: Path) -> None:
    with filled(tmp_path) as (account, doors):
        account.mirror.failed("unreachable", "nobody answers", "wait")
        account.mirror.put_aside(account.handle("INBOX"), ASIDE)
        account.clock.now += timedelta(days=1, seconds=1)
        found = numbers(account, doors)
        assert (0.0, 1.0, 1.0) == (found["index_fresh"], found["messages_set_aside"], found["sync_failing"])
        assert found["sync_lag_seconds"] > 86_400


def test_a_backlog_that_is_read_in_the_reader_shows_until_it_is_over(tmp_path: Path) -> None:
    with filled(tmp_path) as (account, doors):
        assert 0.0 == numbers(account, doors)["reading_in_reader"]
        account.mirror.failed(IN_READER, "no process", "look")
        account.mirror.is_over("unreachable")
        assert (1.0, 1.0) == tuple(numbers(account, doors)[each] for each in ("reading_in_reader", "sync_failing"))
        account.mirror.is_over(IN_READER)
        assert (0.0, 0.0) == tuple(numbers(account, doors)[each] for each in ("reading_in_reader", "sync_failing"))


def test_health_fails_while_a_worker_is_dead_an_account_is_stale_or_the_read_log_is_lost(tmp_path: Path) -> None:
    with filled(tmp_path) as (account, doors):
        assert health(ACCOUNTS, account.store, doors, lambda: True).is_well
        dead = health(ACCOUNTS, account.store, doors, lambda: False)
        assert (False, False, 0) == (dead.is_well, dead.details["workers"], dead.details["stale"])
        account.clock.now += timedelta(days=1)
        stale = health(ACCOUNTS, account.store, doors, lambda: True)
        assert (False, True, 1) == (stale.is_well, stale.details["workers"], stale.details["stale"])
    # A read log that cannot be used is no health; the listener makes 503 of what is raised.
    with mirrored(tmp_path / "more") as more, pytest.raises(AccessUnavailable):
        health(ACCOUNTS, more.store, doors, lambda: True)

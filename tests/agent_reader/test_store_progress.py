"""How far each mailbox has come, and how long the rest takes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from agent_reader.store.progress import MailboxProgress, Progress
from agent_reader.sync.mirror import SetAside
from tests.agent_reader.mirrored import ACCOUNT, START, Mirrored, fetched, letter, mirrored


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Mirrored]:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX", "Archive")
        yield account


def _of(missing: int, *, rate: float = 0, today: int = 0, mean: int | None = None) -> Progress:
    mailbox = MailboxProgress("F1", "INBOX", 10, 10 + missing, 0, None, None)
    return Progress((mailbox,), is_first_sync=True, rate=rate, octets_today=today, mean_octets=mean)


def test_a_mailbox_says_what_it_has_what_it_should_have_and_when_it_was_looked_at(account: Mirrored) -> None:
    account.expect("INBOX", 4)
    account.add("INBOX", fetched(3, letter("new")), fetched(2, letter("older")))
    account.mirror.put_aside(account.handle("INBOX"), SetAside(1, "message_refused", "NO", "Look at it."))
    progress = account.store.progress(ACCOUNT)
    inbox, archive = progress.mailboxes[0], progress.mailboxes[1]
    assert ("INBOX", 2, 4, 1, 1, None) == (
        inbox.name,
        inbox.messages,
        inbox.expected,
        inbox.set_aside,
        inbox.missing,
        inbox.looked_at,
    )
    assert (archive.expected, progress.expected, progress.is_first_sync) == (None, None, True)
    account.expect("Archive", 0)
    account.clock.now += timedelta(minutes=1)
    account.end_round()
    progress = account.store.progress(ACCOUNT)
    assert (progress.expected, progress.messages, progress.is_first_sync) == (4, 3, False)
    assert progress.mailboxes[0].looked_at == START + timedelta(minutes=1)


def test_a_mailbox_says_since_when_and_why_it_cannot_be_looked_at_until_it_can(account: Mirrored) -> None:
    archive = account.handle("Archive")
    account.mirror.mailbox_failed(archive, "noperm", "NO", "Look at the rights.")
    account.clock.now += timedelta(minutes=1)
    account.mirror.mailbox_failed(archive, "unavailable", "NO [UNAVAILABLE]", "Wait.")
    failure = account.store.progress(ACCOUNT).mailboxes[1].failure
    assert failure is not None
    assert (failure.at, failure.code, failure.fix) == (START, "unavailable", "Wait.")
    account.mirror.looked(archive, 1, None)
    assert account.store.progress(ACCOUNT).mailboxes[1].failure is None


def test_the_rate_is_of_the_last_minutes_and_the_day_s_octets_of_a_day(account: Mirrored) -> None:
    account.clock.now += timedelta(seconds=20)
    account.add("INBOX", *(fetched(uid, letter(str(uid))) for uid in range(1, 21)))
    account.mirror.received(1_000)
    account.clock.now += timedelta(seconds=20)
    progress = account.store.progress(ACCOUNT)
    assert (progress.rate, progress.octets_today) == (20 / 40, 1_000)
    account.clock.now += timedelta(minutes=6)
    # What came before the first message is none of the time that it took.
    account.mirror.received(500)
    account.clock.now += timedelta(seconds=30)
    account.add("INBOX", fetched(21, letter("two")))
    progress = account.store.progress(ACCOUNT)
    # One message tells nothing, until it is all that came within a minute.
    assert (progress.rate, progress.octets_today) == (0.0, 1_500)
    account.clock.now += timedelta(seconds=50)
    assert 1 / 60 == account.store.progress(ACCOUNT).rate
    account.clock.now += timedelta(days=1)
    assert (account.store.progress(ACCOUNT).rate, account.store.progress(ACCOUNT).octets_today) == (0.0, 0)


def test_what_kept_a_login_out_is_over_once_it_is_in_and_what_happens_within_is_not(account: Mirrored) -> None:
    def told(code: str) -> bool:
        account.mirror.failed(code, "It is so.", "Do this.")
        account.mirror.let_in()
        return account.store.status(ACCOUNT).failure is not None

    assert [False, False, False] == [told(code) for code in ("certificate", "unreachable", "configuration")]
    assert [True, True, True] == [told(code) for code in ("daily_limit", "disk_full", "internal")]
    account.end_round()
    # Who was whole is not fresh again before it was looked.
    assert told("unreachable")


def test_a_failure_that_goes_on_is_told_with_the_moment_that_it_began(account: Mirrored) -> None:
    began = account.clock.now
    for code in ("unreachable", "unreachable", "login_refused"):
        account.mirror.failed(code, "It is so.", "Do this.")
        account.clock.now += timedelta(minutes=5)
    failure = account.store.status(ACCOUNT).failure
    assert failure is not None
    assert ("login_refused", began) == (failure.code, failure.at)


@pytest.mark.parametrize(
    ("progress", "daily", "expected"),
    [
        (_of(0), 1000, timedelta(0)),
        (_of(100), None, None),
        (_of(100, mean=50), None, None),
        (_of(100, rate=2.0), None, timedelta(seconds=50)),
        (_of(100, rate=2.0, mean=50), 1_000_000, timedelta(seconds=50)),
        (_of(100, rate=2.0, mean=50), 1000, timedelta(days=4)),
        (_of(100, rate=2.0, mean=50, today=1000), 1000, timedelta(days=5)),
        (_of(100, mean=50, today=5000), 1000, timedelta(days=5)),
    ],
)
def test_the_time_left_follows_from_the_rate_and_from_the_limit_of_a_day(
    progress: Progress, daily: int | None, expected: timedelta | None
) -> None:
    assert progress.time_left(daily) == expected

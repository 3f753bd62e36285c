"""The day's octets: older mail stops at a share of them, what is new has the rest, and nothing forgets the count."""

from __future__ import annotations

from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import structlog

from agent_reader.imap.session import ReadOnlySession
from agent_reader.store.store import Store
from agent_reader.sync.proven import ProvenLogins
from agent_reader.sync.worker import Worker
from tests.end_to_end.houses import eventually
from tests.fakes.accounts import reader_account
from tests.servers.dovecot import Dovecot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_reader.store.progress import Progress

ACCOUNT = "shop"
DEADLINE = 30.0
# Two of these are one fetch, four are more than four fifths of the limit and less than all of it.
OLD_OCTETS = 900_000
LIMIT_MEBIBYTES = 4


class House:
    """A store and what keeps it in step, by a clock that can be put forward; `sessions` are all that were opened."""

    def __init__(self, dovecot: Dovecot, folder: Path) -> None:
        self.dovecot, self.folder = dovecot, folder
        self.later = timedelta()
        self.sessions: list[ReadOnlySession] = []

    @contextmanager
    def running(self) -> Iterator[Store]:
        account = reader_account(
            self.dovecot, self.folder, daily_mebibytes=LIMIT_MEBIBYTES, push=[], mailboxes=["INBOX"]
        )
        with closing(Store(self.folder / "store", lambda: datetime.now(UTC) + self.later)) as store:
            proven = ProvenLogins(self.folder / "logins.json")
            worker = Worker(account, store.account(ACCOUNT), proven, structlog.get_logger(), lambda: 0.5)
            worker.start()
            try:
                yield store
            finally:
                worker.stop()
                assert worker.join(DEADLINE)

    def octets(self) -> int:
        return sum(session.octets_received for session in self.sessions)


@pytest.fixture
def house(dovecot: Dovecot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    house = House(dovecot, tmp_path)
    opened = ReadOnlySession.open.__func__  # type: ignore[attr-defined]  # of the class, not of its subclasses

    def noted(cls: type[ReadOnlySession], *arguments: object) -> ReadOnlySession:
        session: ReadOnlySession = opened(cls, *arguments)
        house.sessions.append(session)
        return session

    monkeypatch.setattr(ReadOnlySession, "open", classmethod(noted))
    return house


def old_mail(number: int) -> bytes:
    line = b"x" * 70 + b"\r\n"
    return b"Subject: old %d\r\n\r\n" % number + line * (OLD_OCTETS // len(line))


def await_messages(store: Store, messages: int) -> Progress:
    return eventually(
        lambda: found if (found := store.progress(ACCOUNT)).messages == messages else None, f"{messages} messages"
    )


def await_failure(store: Store, code: str) -> None:
    eventually(lambda: (failure := store.status(ACCOUNT).failure) is not None and failure.code == code, code)


def test_older_mail_waits_for_the_next_day_what_is_new_does_not_and_a_restart_forgets_nothing(
    dovecot: Dovecot, house: House
) -> None:
    hundred_days_ago = datetime.now(UTC) - timedelta(days=100)
    for number in range(6):
        dovecot.deliver("INBOX", old_mail(number), internaldate=hundred_days_ago)
    with house.running() as store:
        await_messages(store, 4)
        await_failure(store, "daily_limit")
        dovecot.deliver("INBOX", b"Subject: new\r\n\r\nnew\r\n")
        progress = await_messages(store, 5)
        assert 4 * OLD_OCTETS < progress.octets_today < LIMIT_MEBIBYTES * 1024 * 1024
        # What is left comes tomorrow: status can say when.
        assert progress.time_left(LIMIT_MEBIBYTES * 1024 * 1024) is not None
    with closing(Store(house.folder / "store", lambda: datetime.now(UTC))) as store:
        # All octets that came: greetings, listings and headers too.
        assert house.octets() == store.progress(ACCOUNT).octets_today
    with house.running() as store:
        dovecot.deliver("INBOX", b"Subject: newer\r\n\r\nnewer\r\n")
        await_messages(store, 6)
        await_failure(store, "daily_limit")
    house.later = timedelta(days=1, minutes=1)
    with house.running() as store:
        await_messages(store, 8)
        eventually(lambda: store.status(ACCOUNT).failure is None, "the end of the failure")
    fetches = [line for line in dovecot.commands("reader") if b"BODY.PEEK[]" in line]
    assert 5 == len(fetches), fetches

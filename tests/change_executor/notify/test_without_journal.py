"""A journal that cannot be used is told to everybody who watches, by what needs no journal; and nothing moves."""

from __future__ import annotations

import json
import secrets
import shutil
import sqlite3
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
import structlog
from structlog.testing import capture_logs

from change_executor.alarms import AlarmCode
from change_executor.errors import JOURNAL_MENDS, JournalFault, JournalUnavailable
from change_executor.journal.troubles import WATCH, Troubles
from change_executor.lifecycle import Event
from change_executor.metrics import health, metrics
from change_executor.notify.notifier import Notifier
from tests.change_executor.moving.office import Office
from tests.change_executor.notify.receiver import Receiver
from tests.fakes.reader import FakeReader
from tests.servers.desk import ReviewPage, Rows, reading
from tests.servers.processes import as_nobody

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from change_executor.journal.journal import Journal
    from tests.servers.dovecot import Dovecot


@contextmanager
def gone(file: Path) -> Iterator[None]:
    away = file.with_name("away")
    file.rename(away)
    try:
        yield
    finally:
        away.rename(file)


@contextmanager
def replaced(file: Path) -> Iterator[None]:
    """By its own copy: what is written to the first one would be lost all the same."""
    away = file.with_name("away")
    file.rename(away)
    shutil.copy(away, file)
    try:
        yield
    finally:
        away.rename(file)


@contextmanager
def damaged(file: Path) -> Iterator[None]:
    """Every page but the first is other octets; a commit of another process has made what was cached worthless."""
    with closing(sqlite3.connect(file)) as other:
        other.execute("INSERT INTO probes VALUES ('test', 1)")
        other.commit()
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    whole = file.read_bytes()
    with file.open("r+b") as written:
        written.seek(4_096)
        written.write(b"\xff" * (len(whole) - 4_096))
    try:
        yield
    finally:
        with file.open("r+b") as written:
            written.write(whole)


@contextmanager
def not_permitted(file: Path) -> Iterator[None]:
    """Its folder is closed to this user."""
    before = file.parent.stat().st_mode
    file.parent.chmod(0o000)
    try:
        with as_nobody():
            yield
    finally:
        file.parent.chmod(before & 0o7777)


TROUBLES = {
    JournalFault.GONE: gone,
    JournalFault.REPLACED: replaced,
    JournalFault.DAMAGED: damaged,
    JournalFault.NOT_PERMITTED: not_permitted,
}
each_trouble = pytest.mark.parametrize(("fault", "trouble"), TROUBLES.items(), ids=list(TROUBLES))


@pytest.fixture
def page(tmp_path: Path) -> Iterator[ReviewPage]:
    opened = ReviewPage(tmp_path)
    opened.rows.person()
    yield opened
    opened.close()


def journal_file(folder: Path) -> Path:
    return folder / "journal.db"


def notifier_of(rows: Rows, folder: Path, receiver: Receiver) -> Notifier:
    secret = folder / "hook.secret"
    secret.write_text("s")
    secret.chmod(0o400)
    section = {"webhook": {"url": receiver.url, "secret_file": str(secret)}}
    notify = type(rows.settings.notify).model_validate(section)
    settings = rows.settings.model_copy(update={"notify": notify})
    watching = Notifier(
        rows.journal, settings, structlog.get_logger(), secrets.token_bytes, pause_seconds=0, quiet_start_seconds=0
    )
    for delivery in watching._deliveries:
        delivery.start()
    return watching


@each_trouble
def test_log_page_metric_health_and_receiver_say_so_and_then_that_it_is_over(
    page: ReviewPage, tmp_path: Path, fault: JournalFault, trouble: Callable[[Path], AbstractContextManager[None]]
) -> None:
    ann, waiting = page.signed_in(), page.rows.proposal(reading())
    with Receiver() as receiver:
        watching = notifier_of(page.rows, tmp_path, receiver)
        watching.look()
        receiver.wait_for(1)
        # Whatever all this reads of the checkout is read: somebody else may not be able to.
        assert (200, 404) == (ann.get("/status").status_code, ann.get("/nowhere").status_code)
        assert health(page.journal, lambda: True).is_well
        metrics(page.journal, page.settings, page.clock, {})
        page.clock.pass_by(seconds=10)
        with capture_logs() as logged, trouble(journal_file(tmp_path)):
            watching.look()
            (_, alarm) = receiver.wait_for(2)
            told = json.loads(alarm.body)
            (raised,) = told["alarms"]
            assert ("alarm", 1) == (told["kind"], told["pending"])
            assert (AlarmCode.JOURNAL_UNAVAILABLE, [fault.value]) == (raised["code"], raised["reasons"])
            assert JOURNAL_MENDS[fault] == raised["fix"]
            entries = {each["event"]: each for each in logged}
            assert {"journal:unavailable", "alarm:raise"} <= entries.keys()
            assert (fault.value, JOURNAL_MENDS[fault]) == tuple(
                entries["journal:unavailable"][name] for name in ("fault", "fix")
            )
            answer = health(page.journal, lambda: True)
            assert not answer.is_well
            assert (fault.value, JOURNAL_MENDS[fault]) == (answer.details["fault"], answer.details["fix"])
            numbers = metrics(page.journal, page.settings, page.clock, {}).decode()
            assert 'mailwarrant_alarm{code="journal_unavailable"} 1\n' in numbers
            seen = ann.get("/status")
            assert (503, True) == (seen.status_code, "The journal cannot be used" in seen.text)
        page.clock.pass_by(seconds=10)
        watching.look()
        assert "cleared" == json.loads(receiver.wait_for(3)[2].body)["kind"]
        watching.stop()
    assert health(page.journal, lambda: True).is_well
    assert 200 == ann.get("/status").status_code
    # Nothing that was there before was lost with it.
    page.rows.happen(waiting.id, Event.REJECT)


def test_what_only_the_worker_finds_is_told_as_well(page: ReviewPage, tmp_path: Path) -> None:
    ann = page.signed_in()
    page.journal.troubles.failed("worker", JournalFault.DAMAGED, page.clock())
    answer = health(page.journal, lambda: True)
    assert (False, "damaged") == (answer.is_well, answer.details["fault"])
    assert (
        'mailwarrant_alarm{code="journal_unavailable"} 1\n'
        in metrics(page.journal, page.settings, page.clock, {}).decode()
    )
    assert "restore the last backup" in ann.get("/status").text
    with Receiver() as receiver:
        watching = notifier_of(page.rows, tmp_path, receiver)
        watching.look()
        assert ["damaged"] == json.loads(receiver.wait_for(1)[0].body)["alarms"][0]["reasons"]
        watching.stop()


def test_a_trouble_counts_from_when_the_first_of_its_users_had_it_until_none_has() -> None:
    troubles, times = Troubles(), [datetime(2026, 11, 30, 12, minute, tzinfo=UTC) for minute in range(3)]
    assert troubles.failed(WATCH, JournalFault.FULL, times[0])
    assert not troubles.failed(WATCH, JournalFault.FULL, times[1])
    assert troubles.failed("worker", JournalFault.DAMAGED, times[2])
    found = troubles.found()
    assert found is not None
    assert (JournalFault.FULL, times[0]) == (found.fault, found.since)
    troubles.worked(WATCH)
    found = troubles.found()
    assert found is not None
    assert (JournalFault.DAMAGED, times[2]) == (found.fault, found.since)
    troubles.worked("worker")
    assert troubles.found() is None


@pytest.fixture
def office(dovecot: Dovecot, tmp_path: Path) -> Iterator[Office]:
    with FakeReader(tmp_path / "reader.sock") as reader:
        opened = Office(dovecot, tmp_path, reader)
        yield opened
        opened.close()


@each_trouble
def test_nothing_moves_without_the_journal_and_what_was_approved_moves_with_it(
    office: Office, tmp_path: Path, fault: JournalFault, trouble: Callable[[Path], AbstractContextManager[None]]
) -> None:
    office.deliver()
    proposal = office.propose()
    office.worker.pass_once()
    office.approve(proposal)
    with trouble(journal_file(tmp_path)):
        with pytest.raises(JournalUnavailable) as refused:
            office.worker.pass_once()
        assert fault is refused.value.fault
        assert_nothing_can_be_done(office.workshop.journal)
    assert {"Incoming": 1} == office.workshop.copies()
    office.worker.pass_once()
    assert ("applied", "moved", None) == office.workshop.told(proposal)


def assert_nothing_can_be_done(journal: Journal) -> None:
    with pytest.raises(JournalUnavailable), journal.writing() as writing:
        writing.append("test:event", "test", "executor")
    with pytest.raises(JournalUnavailable), journal.glancing() as connection:
        connection.exec_driver_sql("SELECT * FROM proposals").fetchall()
    assert journal.begin_all([lambda writing: writing.append("test:event", "test", "executor")]) is None

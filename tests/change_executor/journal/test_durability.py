"""Whatever breaks, the chain stays one, whole and only growing."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from change_executor.audit import verify
from change_executor.errors import JournalUnavailable
from change_executor.journal import schema
from change_executor.journal.open import open_journal
from change_executor.lifecycle import Event
from tests.change_executor.journal.clock import MovableClock, new_proposal

if TYPE_CHECKING:
    from change_executor.journal.journal import Journal

WRITER = """
import sys
from datetime import UTC, datetime
from change_executor.journal.journal import NewProposal
from change_executor.journal.open import open_journal
from change_executor.lifecycle import Event
from shared.proposal import State

url, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
journal = open_journal(url, lambda: datetime.now(UTC))
print("open", flush=True)
sys.stdin.readline()
for number in range(first, first + count):
    with journal.writing() as writing:
        made = writing.create(NewProposal(
            id=f"P{number:020d}", agent="mailbot", queue="support", email_id=f"M{number:032d}",
            from_role="incoming", to_role="processed", expires_at=datetime(2026, 12, 4, tzinfo=UTC), predecessor=None,
        ))
    print(made.id, flush=True)
    with journal.writing() as writing:
        writing.advance(made.id, Event.REJECT, "person:ada", decided_by="ada")
journal.close()
"""


def writer(url: str, first: int, count: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, url, str(first), str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def count_events(journal: Journal) -> int:
    with journal.reading() as connection:
        return connection.execute(select(func.count()).select_from(schema.events)).scalar_one()


def findings(journal: Journal) -> list[object]:
    with journal.reading() as connection:
        return list(verify(connection).findings)


def test_two_processes_and_two_threads_that_append_at_once_keep_one_chain(journal: Journal, url: str) -> None:
    processes = [writer(url, 1_000, 40), writer(url, 2_000, 40)]

    def append_many(first: int) -> None:
        for number in range(first, first + 40):
            with journal.writing() as writing:
                writing.create(new_proposal(number))

    threads = [threading.Thread(target=append_many, args=(first,)) for first in (3_000, 4_000)]
    for process in processes:
        go(process)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    for process in processes:
        process.communicate(timeout=60)
    assert [0, 0] == [process.returncode for process in processes]
    assert 2 * 80 + 2 * 40 == count_events(journal)
    assert [] == findings(journal)


@pytest.mark.parametrize("after", [1, 7, 23])
def test_a_killed_writer_leaves_a_chain_that_verifies_and_holds_all_that_it_answered(
    journal: Journal, url: str, after: int
) -> None:
    process = writer(url, 1, 100_000)
    go(process)
    assert process.stdout is not None
    answered = [process.stdout.readline().strip() for _ in range(after)]
    os.kill(process.pid, signal.SIGKILL)
    rest, _ = process.communicate(timeout=60)
    answered += [line for line in rest.split("\n") if len(line) == 21]
    assert [] == findings(journal)
    with journal.reading() as connection:
        kept = set(connection.execute(select(schema.proposals.c.id)).scalars())
    assert set(answered) <= kept
    with journal.writing() as writing:
        writing.create(new_proposal(900_000))
    assert [] == findings(journal)


def test_events_cannot_be_updated_or_deleted(journal: Journal) -> None:
    with journal.writing() as writing:
        writing.append("test:event", "x", "operator")
    for statement in ("UPDATE events SET actor = 'nobody'", "DELETE FROM events"):
        with pytest.raises(IntegrityError, match="only ever appended"), journal.writing() as writing:
            writing.connection.execute(text(statement))
    assert count_events(journal) == 1


def test_a_reader_cannot_write(journal: Journal) -> None:
    with pytest.raises(JournalUnavailable, match="readonly"), journal.reading() as connection:
        connection.execute(text("DELETE FROM texts"))


def fill_up(journal: Journal) -> None:
    with journal.writing() as writing:
        pages = writing.connection.execute(text("PRAGMA page_count")).scalar_one()
        writing.connection.execute(text(f"PRAGMA max_page_count = {pages}"))


def test_a_full_disk_refuses_the_action_and_writes_nothing(journal: Journal) -> None:
    with journal.writing() as writing:
        made = writing.create(new_proposal(1))
    fill_up(journal)
    before = count_events(journal)
    with pytest.raises(JournalUnavailable, match="full"), journal.writing() as writing:  # noqa: PT012 - the transaction breaks
        writing.advance(made.id, Event.APPROVE, "person:ada")
        for number in range(2, 500):
            writing.create(new_proposal(number))
    assert before == count_events(journal)
    with journal.reading() as connection:
        assert connection.execute(select(schema.proposals.c.state)).scalars().all() == ["pending"]
    # Once there is room again, the same journal goes on.
    with journal.writing() as writing:
        writing.connection.execute(text("PRAGMA max_page_count = 1000000"))
        writing.advance(made.id, Event.APPROVE, "person:ada")
    assert [] == findings(journal)


def test_a_transaction_that_the_database_ended_is_not_carried_on_piecemeal(journal: Journal) -> None:
    before = count_events(journal)
    with pytest.raises(JournalUnavailable, match="by itself"), journal.writing() as writing:  # noqa: PT012 - the transaction breaks
        writing.append("test:before", "x", "operator")
        writing.connection.exec_driver_sql("ROLLBACK")
    assert before == count_events(journal)


def test_a_journal_that_another_process_holds_is_unavailable_not_lost(
    journal: Journal, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("change_executor.journal.engine.BUSY_MILLISECONDS", 50)
    other = open_journal(url, MovableClock())
    with journal.writing() as writing:
        writing.append("test:event", "x", "operator")
        with pytest.raises(JournalUnavailable, match="locked"), other.writing():
            pytest.fail("the lock was not held")
    with other.writing() as writing:
        writing.append("test:event", "x", "operator")
    other.close()
    assert [] == findings(journal)


def test_a_damaged_file_is_unavailable(journal: Journal, tmp_path: object, url: str) -> None:
    with journal.writing() as writing:
        writing.create(new_proposal())
    journal.close()
    path = url.removeprefix("sqlite:///")
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    with open(path, "r+b") as file:  # noqa: PTH123 - a path that came as text
        file.seek(0)
        file.write(b"\0" * 4096)
    with pytest.raises(JournalUnavailable), journal.reading() as connection_:
        connection_.execute(select(schema.events))


def test_listeners_wake_after_the_commit_and_never_for_what_was_taken_back(journal: Journal) -> None:
    seen: list[int] = []

    def listener() -> None:
        seen.append(count_events(journal))

    journal.listen(listener)
    with journal.writing() as writing:
        writing.append("test:event", "x", "operator")
        assert [] == seen
    assert [1] == seen
    with pytest.raises(ZeroDivisionError), journal.writing() as writing:  # noqa: PT012 - the transaction breaks
        writing.append("test:event", "x", "operator")
        raise ZeroDivisionError
    assert [1] == seen
    journal.unlisten(listener)
    with journal.writing() as writing:
        writing.append("test:event", "x", "operator")
    assert [1] == seen


def test_a_listener_whose_loop_is_closed_does_not_turn_a_commit_into_a_refusal(journal: Journal) -> None:
    def listener() -> None:
        raise RuntimeError("Event loop is closed")

    journal.listen(listener)
    with journal.writing() as writing:
        writing.append("test:event", "x", "operator")
    assert count_events(journal) == 1


def test_our_own_wrong_statement_is_not_called_a_broken_machine(journal: Journal) -> None:
    with journal.writing() as writing:
        writing.create(new_proposal())
    with pytest.raises(DBAPIError), journal.writing() as writing:
        writing.connection.execute(schema.texts.insert().values(proposal="P-none", kind="reason", text="x"))

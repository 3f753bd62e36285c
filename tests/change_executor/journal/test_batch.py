"""Acts of one transaction: without a savepoint each as long as none has to be taken back, and never half of one."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import event, select

from change_executor.errors import JournalUnavailable
from change_executor.journal import schema
from tests.change_executor.journal.test_group import until
from tests.change_executor.journal.test_handing_in import DEADLINE, append, count, refused

if TYPE_CHECKING:
    from change_executor.journal.journal import Journal, Writing


def test_a_transaction_that_sqlite_ended_fails_for_everybody_in_it(journal: Journal) -> None:
    def ends_it(writing: Writing) -> str:
        writing.append("test:before", "x", "operator")
        writing.connection.exec_driver_sql("ROLLBACK")
        return ""

    with pytest.raises(JournalUnavailable, match="by itself"):
        journal.write_all([append, ends_it])
    assert (0, 0) == (count(journal, "test:event"), count(journal, "test:before"))
    journal.write_all([append])
    assert 1 == count(journal, "test:event")


def test_acts_are_called_once_where_none_fails_after_it_has_written(journal: Journal) -> None:
    calls: list[str] = []

    def counted(writing: Writing) -> str:
        calls.append("counted")
        return append(writing)

    def refuses_at_once(_: Writing) -> str:
        calls.append("refused")
        raise ZeroDivisionError

    outcomes = journal.write_all([counted, refuses_at_once, counted])
    assert ["counted", "refused", "counted"] == calls
    assert [str, ZeroDivisionError, str] == [type(each) for each in outcomes]
    assert 2 == count(journal, "test:event")


def test_where_one_fails_after_it_has_written_all_are_written_anew_and_each_once(journal: Journal) -> None:
    calls: list[str] = []

    def counted(writing: Writing) -> str:
        calls.append("counted")
        return append(writing)

    outcomes = journal.write_all([counted, refused, counted])
    # The first went with what was taken back; the third had not been tried.
    assert 3 == len(calls)
    assert [str, ZeroDivisionError, str] == [type(each) for each in outcomes]
    with journal.reading() as connection:
        hashes = connection.execute(select(schema.events.c.hash).order_by(schema.events.c.seq)).scalars().all()
    assert [outcomes[0], outcomes[2]] == hashes


def test_what_other_threads_wrote_in_the_same_commit_stays_where_an_act_fails(journal: Journal) -> None:
    outcomes: list[object] = []
    acting = threading.Thread(target=lambda: outcomes.extend(journal.write_all([append, refused, append])))
    with journal.writing() as writing:
        writing.append("test:first", "x", "operator")
        acting.start()
        until(lambda: journal._group._queued == 1)
    acting.join(DEADLINE)
    assert [str, ZeroDivisionError, str] == [type(each) for each in outcomes]
    assert (1, 2, 0) == tuple(count(journal, kind) for kind in ("test:first", "test:event", "test:refused"))


@pytest.mark.parametrize("told", [ZeroDivisionError, None])
@pytest.mark.parametrize("joining", [False, True])
def test_nothing_is_written_after_a_transaction_that_is_gone(
    journal: Journal, joining: bool, told: type[Exception] | None
) -> None:
    def ends_it(writing: Writing) -> str:
        writing.connection.exec_driver_sql("ROLLBACK")
        if told is not None:
            raise told
        return ""

    failures: list[str] = []

    def act() -> None:
        with pytest.raises(JournalUnavailable) as failure:
            journal.write_all([append, ends_it, append])
        failures.append(str(failure.value))

    def first(acting: threading.Thread) -> None:
        with journal.writing() as writing:
            writing.append("test:first", "x", "operator")
            acting.start()
            until(lambda: journal._group._queued == 1)

    acting = threading.Thread(target=act)
    if joining:
        with pytest.raises(JournalUnavailable):
            first(acting)
    else:
        acting.start()
    acting.join(DEADLINE)
    assert 1 == len(failures)
    assert (0, 0) == (count(journal, "test:first"), count(journal, "test:event"))
    journal.write_all([append])
    assert 1 == count(journal, "test:event")


def test_what_ends_a_thread_takes_all_of_its_acts_back(journal: Journal) -> None:
    def stops(writing: Writing) -> str:
        writing.append("test:before", "x", "operator")
        raise SystemExit

    journal.write_all([append])
    # Without savepoints, with them since one is taken back, and where the loop lets them write.
    for acts in ([append, stops], [refused, append, stops]):
        with pytest.raises(JournalUnavailable):
            journal.write_all(acts)
        journal.write_all([append])
        commit = journal.begin_all(acts)
        assert commit is not None
        with pytest.raises(JournalUnavailable):
            commit()
        journal.write_all([append])
    assert (5, 0) == (count(journal, "test:event"), count(journal, "test:before"))


def test_a_lock_that_cannot_be_had_again_fails_for_all_of_them(journal: Journal) -> None:
    begun: list[object] = []

    def once(_: object) -> None:
        begun.append(None)
        if len(begun) == 2:
            raise JournalUnavailable("database is locked")

    event.listen(journal._writer, "begin", once)
    with pytest.raises(JournalUnavailable, match="locked"):
        journal.write_all([append, refused, append])
    assert (0, 0) == (count(journal, "test:event"), count(journal, "test:refused"))
    journal.write_all([append])
    assert (1, 3) == (count(journal, "test:event"), len(begun))


def test_listeners_wake_once_for_what_was_committed_and_not_for_what_was_taken_back(journal: Journal) -> None:
    seen: list[int] = []
    journal.listen(lambda: seen.append(count(journal, "test:event")))
    journal.write_all([append, refused, append])
    assert [2] == seen
    journal.write_all([refused])
    assert [2] == seen

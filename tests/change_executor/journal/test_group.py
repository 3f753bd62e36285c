"""Writers of many threads share commits, and none of them feels another's mistake or is answered too early."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event, func, select

from change_executor.audit import verify
from change_executor.errors import JournalUnavailable
from change_executor.journal import chain, schema
from tests.change_executor.journal.clock import new_proposal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from change_executor.journal.journal import Journal

WRITERS = 16
# Seconds; nothing here waits for more than the machine.
DEADLINE = 30.0


class Commits:
    """Counts the commits of the journal's writer, and can make the next ones fail."""

    def __init__(self, journal: Journal) -> None:
        self.count = 0
        self.failing = False
        event.listen(journal._writer, "commit", self._committed)

    def _committed(self, _: object) -> None:
        self.count += 1
        if self.failing:
            raise JournalUnavailable("the disk is full")


@pytest.fixture
def commits(journal: Journal) -> Iterator[Commits]:
    counting = Commits(journal)
    yield counting
    event.remove(journal._writer, "commit", counting._committed)


def while_one_holds_the_turn(
    journal: Journal, writers: list[Callable[[], None]], *, holder: bool = True
) -> list[object]:
    """Let all writers queue up behind one that is in the middle; return what each raised, or None."""
    outcomes: list[object] = [None] * len(writers)

    def run(number: int, write: Callable[[], None]) -> None:
        try:
            write()
        except Exception as error:  # noqa: BLE001 - it is what is looked at
            outcomes[number] = error

    threads = [threading.Thread(target=run, args=each) for each in enumerate(writers)]
    with journal.writing() as writing:
        if holder:
            writing.append("test:first", "x", "operator")
        for thread in threads:
            thread.start()
        until(lambda: journal._group._queued == len(writers))
    for thread in threads:
        thread.join(DEADLINE)
        assert not thread.is_alive()
    return outcomes


def until(done: Callable[[], bool]) -> None:
    ticking = threading.Event()
    for _ in range(int(DEADLINE * 1000)):
        if done():
            return
        ticking.wait(0.001)
    pytest.fail("it did not come to pass")


def append(journal: Journal) -> Callable[[], None]:
    def write() -> None:
        with journal.writing() as writing:
            writing.append("test:event", "x", "operator")

    return write


def count_events(journal: Journal) -> int:
    with journal.reading() as connection:
        return connection.execute(select(func.count()).select_from(schema.events)).scalar_one()


def test_writers_that_queue_up_share_one_commit(journal: Journal, commits: Commits) -> None:
    assert [None] * WRITERS == while_one_holds_the_turn(journal, [append(journal)] * WRITERS)
    assert 1 == commits.count
    assert WRITERS + 1 == count_events(journal)
    with journal.reading() as connection:
        assert () == verify(connection).findings


def test_a_group_has_a_bound_so_that_its_first_waits_no_longer(
    journal: Journal, commits: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("change_executor.journal.group.MAX_GROUP", 4)
    assert [None] * WRITERS == while_one_holds_the_turn(journal, [append(journal)] * WRITERS)
    # Four times four, and the last.
    assert 5 == commits.count
    assert WRITERS + 1 == count_events(journal)


def test_a_commit_waits_for_the_disk(journal: Journal) -> None:
    # Short of a power cut nothing else tells FULL (2) from NORMAL, under which the last commits may be lost.
    with journal.writing() as writing:
        assert 2 == writing.connection.exec_driver_sql("PRAGMA synchronous").scalar_one()
        assert "wal" == writing.connection.exec_driver_sql("PRAGMA journal_mode").scalar_one()


@pytest.mark.parametrize("failing", ["begin", "commit"])
def test_after_a_failure_of_the_machine_the_next_one_begins_with_a_new_connection(
    journal: Journal, failing: str
) -> None:
    connections: list[object] = []

    def fail(_: object) -> None:
        raise JournalUnavailable("disk I/O error")

    append(journal)()
    event.listen(journal._writer, "connect", lambda connection, _: connections.append(connection))
    event.listen(journal._writer, failing, fail)
    with pytest.raises(JournalUnavailable, match="disk"):
        append(journal)()
    event.remove(journal._writer, failing, fail)
    assert [] == connections
    append(journal)()
    append(journal)()
    assert (1, 3) == (len(connections), count_events(journal))


def test_a_refused_one_is_taken_back_alone(journal: Journal, commits: Commits) -> None:
    def refused() -> None:
        with journal.writing() as writing:
            writing.append("test:refused", "x", "operator")
            writing.create(new_proposal(2))
            raise ZeroDivisionError

    outcomes = while_one_holds_the_turn(journal, [append(journal), refused, append(journal)] * 3)
    assert [None, ZeroDivisionError, None] * 3 == [each if each is None else type(each) for each in outcomes]
    assert 1 == commits.count
    with journal.reading() as connection:
        kinds = connection.execute(select(schema.events.c.kind).order_by(schema.events.c.seq)).scalars().all()
        assert connection.execute(select(func.count()).select_from(schema.proposals)).scalar_one() == 0
        assert () == verify(connection).findings
    assert ["test:first", *["test:event"] * 6] == kinds


def test_nobody_is_answered_before_the_commit_and_its_failure_is_told_to_all(
    journal: Journal, commits: Commits
) -> None:
    def refused() -> None:
        with journal.writing():
            raise ZeroDivisionError

    commits.failing = True
    outcomes: list[object] = []
    running = threading.active_count()
    with pytest.raises(JournalUnavailable, match="full"):
        outcomes = while_one_holds_the_turn(journal, [append(journal), refused, append(journal)])
    # Also whoever was refused by what he saw: it was never written.
    commits.failing = False
    assert [] == outcomes
    until(lambda: threading.active_count() <= running)
    assert 0 == count_events(journal)
    append(journal)()
    assert 1 == count_events(journal)


def test_nobody_goes_on_while_the_commit_is_under_way(journal: Journal) -> None:
    gone_on, early = threading.Event(), []

    def commit(_: object) -> None:
        # Whoever was told too early needs no more than this to go on.
        early.append(gone_on.wait(0.2))

    def write() -> None:
        append(journal)()
        gone_on.set()

    event.listen(journal._writer, "commit", commit)
    assert [None] * 3 == while_one_holds_the_turn(journal, [write] * 3)
    assert [False] == early


def test_a_transaction_that_sqlite_ended_fails_for_everybody_in_it(journal: Journal) -> None:
    def ends_it() -> None:
        with journal.writing() as writing:
            writing.append("test:before", "x", "operator")
            writing.connection.exec_driver_sql("ROLLBACK")

    reached = threading.Event()
    outcomes: list[object] = []

    def first() -> None:
        outcomes.extend(while_one_holds_the_turn(journal, [ends_it]))
        reached.set()

    with pytest.raises(JournalUnavailable, match="by itself"):
        first()
    assert 0 == count_events(journal)
    append(journal)()
    assert 1 == count_events(journal)


def test_a_writer_inside_another_of_its_thread_is_our_mistake(journal: Journal) -> None:
    with pytest.raises(AssertionError, match="wait for itself"), journal.writing(), journal.writing():
        pytest.fail("it would wait for ever")
    append(journal)()
    assert 1 == count_events(journal)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="ascii")), inner),
    max_leaves=20,
)


@given(VALUES)
def test_what_events_hold_is_written_as_rfc_8785_has_it(value: object) -> None:
    assert rfc8785.dumps(value).decode() == chain.canonical(value)  # type: ignore[arg-type]  # JSON of any shape

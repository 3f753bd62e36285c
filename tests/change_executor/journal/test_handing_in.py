"""Acts of an event loop share commits; each is answered after its own, and none feels another's mistake."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import event, func, select

from change_executor.audit import verify
from change_executor.errors import JournalUnavailable
from change_executor.journal import schema
from change_executor.journal.group import MAX_GROUP
from change_executor.journal.handing_in import HandedIn
from tests.change_executor.journal.clock import new_proposal
from tests.change_executor.journal.test_group import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from change_executor.journal.journal import Journal, Writing

MANY = 3 * MAX_GROUP
# Seconds; nothing here waits for more than the machine.
DEADLINE = 30.0


def append(writing: Writing) -> str:
    return writing.append("test:event", "x", "operator")


def refused(writing: Writing) -> str:
    writing.append("test:refused", "x", "operator")
    writing.create(new_proposal(2))
    raise ZeroDivisionError


def all_at_once(handed_in: HandedIn, acts: list[Callable[[Writing], str]]) -> list[str | BaseException]:
    async def together() -> list[str | BaseException]:
        return await asyncio.gather(*(handed_in.write(act) for act in acts), return_exceptions=True)

    return asyncio.run(together())


def count(journal: Journal, kind: str) -> int:
    with journal.reading() as connection:
        assert () == verify(connection).findings
        return connection.execute(
            select(func.count()).select_from(schema.events).where(schema.events.c.kind == kind)
        ).scalar_one()


def test_all_are_written_in_few_commits(journal: Journal) -> None:
    commits: list[object] = []
    event.listen(journal._writer, "commit", commits.append)
    # The first of them may be written alone; a commit holds no more than a group.
    outcomes = all_at_once(HandedIn(journal), [append] * MANY)
    assert MANY == len({str(each) for each in outcomes}) == count(journal, "test:event")
    assert -(-MANY // MAX_GROUP) <= len(commits) <= -(-MANY // MAX_GROUP) + 1


def test_what_one_did_wrong_is_taken_back_alone_and_told_to_it(journal: Journal) -> None:
    outcomes = all_at_once(HandedIn(journal), [append, refused, append] * 5)
    assert [str, ZeroDivisionError, str] * 5 == [type(each) for each in outcomes]
    assert (10, 0) == (count(journal, "test:event"), count(journal, "test:refused"))
    with journal.reading() as connection:
        assert 0 == connection.execute(select(func.count()).select_from(schema.proposals)).scalar_one()


def test_nobody_is_answered_before_the_commit(journal: Journal) -> None:
    handed_in, reached, holds = HandedIn(journal), threading.Event(), threading.Event()

    def held(_: object) -> None:
        reached.set()
        assert holds.wait(DEADLINE)

    event.listen(journal._writer, "commit", held)

    async def asked() -> None:
        waiting = [asyncio.ensure_future(handed_in.write(append)) for _ in range(3)]
        assert await asyncio.to_thread(reached.wait, DEADLINE)
        assert not any(each.done() for each in waiting)
        holds.set()
        await asyncio.gather(*waiting)

    asyncio.run(asked())
    assert 3 == count(journal, "test:event")


def test_a_commit_that_fails_fails_for_all_of_it_and_the_next_one_goes_on(journal: Journal) -> None:
    handed_in, failing = HandedIn(journal), [True]

    def full(_: object) -> None:
        if failing[0]:
            raise JournalUnavailable("the disk is full")

    event.listen(journal._writer, "commit", full)
    outcomes = all_at_once(handed_in, [append, refused, append])
    assert [JournalUnavailable] * 3 == [type(each) for each in outcomes]
    assert 0 == count(journal, "test:event")
    failing[0] = False
    assert [str] == [type(each) for each in all_at_once(handed_in, [append])]
    assert 1 == count(journal, "test:event")


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

    with pytest.raises(JournalUnavailable):
        journal.write_all([append, stops])
    assert (0, 0) == (count(journal, "test:event"), count(journal, "test:before"))
    journal.write_all([append])
    assert 1 == count(journal, "test:event")


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


def test_acts_of_several_loops_are_answered_in_their_own(journal: Journal) -> None:
    handed_in, outcomes = HandedIn(journal), []

    def run() -> None:
        outcomes.extend(all_at_once(handed_in, [append] * 20))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert 80 == len(outcomes) == count(journal, "test:event")
    assert {str} == {type(each) for each in outcomes}


def test_what_was_handed_in_is_written_though_nobody_waits_any_more(journal: Journal) -> None:
    async def asked() -> None:
        waiting = asyncio.ensure_future(HandedIn(journal).write(append))
        await asyncio.sleep(0)
        waiting.cancel()

    asyncio.run(asked())
    assert 1 == count(journal, "test:event")


def test_one_that_goes_away_holds_up_no_other_of_its_commit_and_all_are_written_in_their_order(
    journal: Journal,
) -> None:
    handed_in, reached, holds = HandedIn(journal), threading.Event(), threading.Event()

    def named(name: str) -> Callable[[Writing], str]:
        return lambda writing: writing.append("test:event", name, "operator")

    def held(_: object) -> None:
        reached.set()
        assert holds.wait(DEADLINE)

    event.listen(journal._writer, "commit", held)

    async def asked() -> None:
        first = asyncio.ensure_future(handed_in.write(named("first")))
        assert await asyncio.to_thread(reached.wait, DEADLINE)
        acts = (named("a"), named("b"), named("c"), refused)
        a, gone, c, wrong = (asyncio.ensure_future(handed_in.write(act)) for act in acts)
        await asyncio.sleep(0)
        gone.cancel()
        holds.set()
        async with asyncio.timeout(DEADLINE):
            await asyncio.gather(first, a, c)
            with pytest.raises(ZeroDivisionError):
                await wrong

    asyncio.run(asked())
    with journal.reading() as connection:
        subjects = connection.execute(select(schema.events.c.subject).order_by(schema.events.c.seq)).scalars().all()
    assert ["first", "a", "b", "c"] == subjects


def test_what_a_loop_that_ends_could_not_hand_on_the_next_one_writes(journal: Journal) -> None:
    handed_in = HandedIn(journal)

    async def too_late() -> None:
        await asyncio.get_running_loop().shutdown_default_executor()
        with pytest.raises(RuntimeError):
            await handed_in.write(append)

    asyncio.run(too_late())
    assert 0 == count(journal, "test:event")
    assert [str] == [type(each) for each in all_at_once(handed_in, [append])]
    assert 2 == count(journal, "test:event")

"""Acts of an event loop share commits; each is answered after its own, and none feels another's mistake."""

from __future__ import annotations

import asyncio
import math
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import event, func, select

from change_executor.audit import verify
from change_executor.errors import JournalUnavailable
from change_executor.journal import schema
from change_executor.journal.engine import BUSY_MILLISECONDS
from change_executor.journal.group import MAX_GROUP
from shared.handing_in import MAX_ON_LOOP, HandedIn, Slowness
from tests.change_executor.journal.clock import new_proposal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from change_executor.journal.journal import Journal, Writing

    Act = Callable[[Writing], str]

MANY = 3 * MAX_GROUP
# Seconds; nothing here waits for more than the machine.
DEADLINE = 30.0
# No clock sends the acts of these tests to a thread: the machine may be busy.
NEVER_SLOW = Slowness(seconds=math.inf)


@pytest.fixture
def handed_in(journal: Journal) -> Iterator[HandedIn[Act]]:
    made: HandedIn[Act] = HandedIn(journal, "journal", MAX_GROUP, NEVER_SLOW)
    yield made
    made.close()


def append(writing: Writing) -> str:
    return writing.append("test:event", "x", "operator")


def refused(writing: Writing) -> str:
    writing.append("test:refused", "x", "operator")
    writing.create(new_proposal(2))
    raise ZeroDivisionError


def all_at_once(handed_in: HandedIn[Act], acts: list[Callable[[Writing], str]]) -> list[str | BaseException]:
    async def together() -> list[str | BaseException]:
        outcomes: list[str | BaseException] = await asyncio.gather(*map(handed_in.write, acts), return_exceptions=True)
        return outcomes

    return asyncio.run(together())


def count(journal: Journal, kind: str) -> int:
    with journal.reading() as connection:
        assert () == verify(connection).findings
        return connection.execute(
            select(func.count()).select_from(schema.events).where(schema.events.c.kind == kind)
        ).scalar_one()


def test_all_are_written_in_few_commits(journal: Journal, handed_in: HandedIn[Act]) -> None:
    commits: list[object] = []
    event.listen(journal._writer, "commit", commits.append)
    # A commit holds no more than a group, of which the loop writes a part at a time.
    outcomes = all_at_once(handed_in, [append] * MANY)
    assert MANY == len({str(each) for each in outcomes}) == count(journal, "test:event")
    assert -(-MANY // MAX_GROUP) <= len(commits) <= -(-MANY // MAX_ON_LOOP)


def test_what_one_did_wrong_is_taken_back_alone_and_told_to_it(journal: Journal, handed_in: HandedIn[Act]) -> None:
    outcomes = all_at_once(handed_in, [append, refused, append] * 5)
    assert [str, ZeroDivisionError, str] * 5 == [type(each) for each in outcomes]
    assert (10, 0) == (count(journal, "test:event"), count(journal, "test:refused"))
    with journal.reading() as connection:
        assert 0 == connection.execute(select(func.count()).select_from(schema.proposals)).scalar_one()


def test_nobody_is_answered_before_the_commit(journal: Journal, handed_in: HandedIn[Act]) -> None:
    reached, holds = threading.Event(), threading.Event()

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


def test_a_commit_that_fails_fails_for_all_of_it_and_the_next_one_goes_on(
    journal: Journal, handed_in: HandedIn[Act]
) -> None:
    failing = [True]

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


def test_acts_of_several_loops_are_answered_in_their_own(journal: Journal, handed_in: HandedIn[Act]) -> None:
    outcomes: list[str | BaseException] = []

    def run() -> None:
        outcomes.extend(all_at_once(handed_in, [append] * 20))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert 80 == len(outcomes) == count(journal, "test:event")
    assert {str} == {type(each) for each in outcomes}


def test_what_was_handed_in_is_written_though_nobody_waits_any_more(journal: Journal, handed_in: HandedIn[Act]) -> None:
    async def asked() -> None:
        waiting = asyncio.ensure_future(handed_in.write(append))
        await asyncio.sleep(0)
        waiting.cancel()

    asyncio.run(asked())
    handed_in.close()
    assert 1 == count(journal, "test:event")


def test_one_that_goes_away_holds_up_no_other_of_its_commit_and_all_are_written_in_their_order(
    journal: Journal, handed_in: HandedIn[Act]
) -> None:
    reached, holds = threading.Event(), threading.Event()

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


def test_what_a_loop_that_ended_had_no_time_for_is_written_at_the_end(
    journal: Journal, handed_in: HandedIn[Act]
) -> None:
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(handed_in.write(append))
    # It hands in, and the loop does not run again.
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert not waiting.done()
    handed_in.close()
    assert 1 == count(journal, "test:event")
    waiting.cancel()
    loop.run_until_complete(asyncio.gather(waiting, return_exceptions=True))
    loop.close()


def test_what_comes_after_the_end_is_written_by_the_loop(journal: Journal, handed_in: HandedIn[Act]) -> None:
    handed_in.close()
    assert [str] * 3 == [type(each) for each in all_at_once(handed_in, [append] * 3)]
    assert 3 == count(journal, "test:event")


def test_acts_are_written_on_the_loop_and_committed_beside_it(journal: Journal, handed_in: HandedIn[Act]) -> None:
    acting, committing = [], []

    def watched(writing: Writing) -> str:
        acting.append(threading.get_ident())
        return append(writing)

    # The first opens the connection, which may take long.
    all_at_once(handed_in, [append])
    event.listen(journal._writer, "commit", lambda _: committing.append(threading.get_ident()))
    all_at_once(handed_in, [watched] * 3)
    assert [threading.get_ident()] * 3 == acting
    assert 1 == len(committing)
    assert threading.get_ident() not in committing


def test_the_loop_waits_for_no_turn(journal: Journal, handed_in: HandedIn[Act]) -> None:
    all_at_once(handed_in, [append])
    begun, holds = threading.Event(), threading.Event()

    def hold() -> None:
        with journal.writing() as writing:
            append(writing)
            begun.set()
            assert holds.wait(DEADLINE)

    async def asked() -> None:
        holding = asyncio.ensure_future(asyncio.to_thread(hold))
        assert await asyncio.to_thread(begun.wait, DEADLINE)
        waiting = asyncio.ensure_future(handed_in.write(append))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()
        holds.set()
        await asyncio.gather(holding, waiting)

    asyncio.run(asked())
    assert 3 == count(journal, "test:event")


def test_the_loop_waits_for_no_lock_of_another_process(journal: Journal, url: str) -> None:
    called: list[object] = []
    assert journal.begin_all([called.append]) is None, "a connection has to be opened"
    journal.write_all([append])
    path, returned = url.removeprefix("sqlite:///"), threading.Event()
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")

        # Patience, of which the journal has ten seconds, would be rewarded.
        def release() -> None:
            returned.wait(8)
            other.rollback()

        releasing = threading.Thread(target=release)
        releasing.start()
        assert journal.begin_all([called.append]) is None
        returned.set()
        releasing.join(DEADLINE)
    assert [] == called
    journal.write_all([append])
    commit = journal.begin_all([append])
    assert commit is not None
    commit()
    assert 3 == count(journal, "test:event")
    with journal.writing() as writing:
        assert BUSY_MILLISECONDS == writing.connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one()


def test_after_acts_that_took_the_loop_long_a_thread_writes(journal: Journal) -> None:
    slowness = Slowness(seconds=-1.0, apart_seconds=3600.0)
    handed_in: HandedIn[Act] = HandedIn(journal, "journal", MAX_GROUP, slowness)
    acting: list[int] = []

    def watched(writing: Writing) -> str:
        acting.append(threading.get_ident() == threading.main_thread().ident)
        return append(writing)

    journal.write_all([append])
    for _ in range(3):
        all_at_once(handed_in, [watched])
    handed_in.close()
    assert [True, False, False] == acting
    assert 4 == count(journal, "test:event")


def test_the_commit_waits_for_none_of_the_loops_threads(journal: Journal, handed_in: HandedIn[Act]) -> None:
    all_at_once(handed_in, [append])

    def write_beside() -> None:
        with journal.writing() as writing:
            append(writing)

    async def asked() -> None:
        loop, beside = asyncio.get_running_loop(), []
        loop.set_default_executor(ThreadPoolExecutor(1))

        def keeps_the_only_thread(writing: Writing) -> str:
            beside.append(loop.run_in_executor(None, write_beside))
            return append(writing)

        async with asyncio.timeout(DEADLINE):
            await handed_in.write(keeps_the_only_thread)
            await asyncio.gather(*beside)

    asyncio.run(asked())
    assert 3 == count(journal, "test:event")


def test_an_act_that_would_wait_for_its_own_turn_is_told_so(journal: Journal, handed_in: HandedIn[Act]) -> None:
    def writes_inside(_: Writing) -> str:
        with journal.writing() as writing:
            return append(writing)

    journal.write_all([append])
    outcomes = all_at_once(handed_in, [append, writes_inside, append])
    assert [str, AssertionError, str] == [type(each) for each in outcomes]
    assert 3 == count(journal, "test:event")

"""What an event loop puts on record shares commits; the loop waits for nobody, and none is told too early."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw
import pytest

from agent_reader.access import Access, Agent, Shown, read_log
from agent_reader.access.read_log import Record
from agent_reader.errors import AccessUnavailable
from tests.agent_reader.served import Clock

pytestmark = pytest.mark.anyio

_SECONDS = 20
CLERK, OTHER = Agent("clerk", "aaaaaaaa"), Agent("other", "bbbbbbbb")
SHOWN = (Shown("Email/get", "shop", ("M1",), ("M1",)),)


@pytest.fixture
def access(tmp_path: Path) -> Iterator[Access]:
    numbers = itertools.count(1)
    with Access(tmp_path, Clock(), lambda length: next(numbers).to_bytes(length)) as opened:
        yield opened


async def all_at_once(access: Access, *agents: Agent) -> list[BaseException | None]:
    recording = (access.record_soon(agent, SHOWN) for agent in agents)
    return await asyncio.wait_for(asyncio.gather(*recording, return_exceptions=True), _SECONDS)


async def test_all_that_come_in_one_round_share_a_commit(access: Access) -> None:
    commits = list[int]()

    def note() -> bool:
        commits.append(threading.get_ident())
        return False

    access._writer.set_commit_hook(note)
    assert [None] * 20 == await all_at_once(access, *[CLERK, OTHER] * 10)
    assert ([20, ""], 1) == ([access.recorded(), access.verify().wrong], len(commits))
    # The loop does not wait for the disk.
    assert threading.get_ident() not in commits


async def test_the_loop_waits_neither_for_another_process_nor_for_a_thread(access: Access, tmp_path: Path) -> None:
    goes_on, is_held_up = threading.Event(), list[bool]()

    def hold(is_held: threading.Event) -> None:
        other = apsw.Connection(str(tmp_path / "access.db"))
        other.execute("BEGIN IMMEDIATE")
        is_held.set()
        is_held_up.append(not goes_on.wait(_SECONDS))
        other.execute("ROLLBACK")
        other.close()

    # Longer than the other one waits for the loop.
    access._writer.set_busy_timeout(3 * _SECONDS * 1000)
    is_held = threading.Event()
    holding = asyncio.create_task(asyncio.to_thread(hold, is_held))
    assert await asyncio.to_thread(is_held.wait, _SECONDS)
    recording = asyncio.create_task(all_at_once(access, CLERK, OTHER))
    # As many rounds as it takes to hand in, and more.
    for _ in range(20):
        await asyncio.sleep(0)
    assert not recording.done()
    goes_on.set()
    await holding
    assert [None, None] == await asyncio.wait_for(recording, _SECONDS)
    assert [False] == is_held_up
    with access._writing_turn:
        recording = asyncio.create_task(all_at_once(access, CLERK))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not recording.done()
    assert [None] == await asyncio.wait_for(recording, _SECONDS)
    assert (3, "") == (access.recorded(), access.verify().wrong)


async def test_what_cannot_be_written_fails_alone(access: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    append = read_log.append

    def refusing(connection: apsw.Connection, at: datetime, records: Sequence[Record]) -> None:
        append(connection, at, records)
        if any(record.agent is OTHER for record in records):
            raise apsw.FullError("no space")

    monkeypatch.setattr(read_log, "append", refusing)
    outcomes = await all_at_once(access, CLERK, OTHER, CLERK)
    assert [type(None), AccessUnavailable, type(None)] == [type(each) for each in outcomes]
    assert [("clerk", 1), ("clerk", 2)] == [
        (line.agent, line.key) for line in access.lines(agent=None, since=None, email_id=None, limit=9)
    ]


async def test_a_mistake_of_ours_is_told_to_all_of_it_and_the_next_one_goes_on(
    access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as mistaken:
        mistaken.setattr(read_log, "append", lambda *_: 1 // 0)
        assert [ZeroDivisionError] * 2 == [type(each) for each in await all_at_once(access, CLERK, OTHER)]
    assert [None] == await all_at_once(access, OTHER)
    assert (1, "") == (access.recorded(), access.verify().wrong)


async def test_a_commit_that_fails_fails_for_all_of_it_and_the_next_one_goes_on(access: Access) -> None:
    access._writer.set_commit_hook(lambda: True)
    assert [AccessUnavailable] * 2 == [type(each) for each in await all_at_once(access, CLERK, OTHER)]
    assert 0 == access.recorded()
    access._writer.set_commit_hook(None)
    access.record(CLERK, SHOWN)
    assert [None] == await all_at_once(access, OTHER)
    assert (2, "") == (access.recorded(), access.verify().wrong)


def test_what_was_handed_in_is_on_record_though_its_event_loop_is_gone(tmp_path: Path) -> None:
    is_in, may_go_on = threading.Event(), threading.Event()

    def slow() -> bool:
        is_in.set()
        assert may_go_on.wait(_SECONDS)
        return False

    async def leave(access: Access) -> None:
        access._writer.set_commit_hook(slow)
        handed_in = [asyncio.create_task(access.record_soon(each, SHOWN)) for each in (CLERK, OTHER)]
        assert await asyncio.to_thread(is_in.wait, _SECONDS)
        for each in handed_in:
            each.cancel()

    random_octets: Any = bytes
    with Access(tmp_path, Clock(), random_octets) as access:
        asyncio.run(leave(access))
        may_go_on.set()
    with Access(tmp_path, Clock(), random_octets) as access:
        assert (2, "") == (access.recorded(), access.verify().wrong)

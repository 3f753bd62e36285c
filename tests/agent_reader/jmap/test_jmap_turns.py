"""What is worked out in threads goes one after the other; whatever takes long holds up nobody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent_reader.jmap.attempts import Attempts
from agent_reader.jmap.turns import Turns
from tests.agent_reader.served import house

pytestmark = pytest.mark.anyio

_SECONDS = 20
_NEVER = 3_600.0


async def test_who_comes_first_is_first_and_one_at_a_time_has_a_turn() -> None:
    turns, order = Turns(_NEVER), list[str]()

    async def work(name: str) -> None:
        async with turns.turn():
            order.append(f"{name} begins")
            await asyncio.sleep(0)
            order.append(f"{name} ends")

    await asyncio.wait_for(asyncio.gather(*map(work, ("first", "second", "third"))), _SECONDS)
    assert ["first begins", "first ends", "second begins", "second ends", "third begins", "third ends"] == order


async def test_a_turn_ends_by_itself_and_only_once() -> None:
    turns, may_end, held = Turns(0.001), asyncio.Event(), 0

    async def long() -> None:
        async with turns.turn():
            await may_end.wait()

    first = asyncio.create_task(long())
    await asyncio.wait_for(_take(turns), _SECONDS)
    may_end.set()
    await asyncio.wait_for(first, _SECONDS)

    async def hold() -> None:
        nonlocal held
        async with turns.turn():
            held += 1
            assert held == 1
            await asyncio.sleep(0)
            held -= 1

    turns._seconds = _NEVER
    await asyncio.wait_for(asyncio.gather(*(hold() for _ in range(5))), _SECONDS)


async def test_what_is_not_tried_takes_a_turn_and_what_is_tried_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Counted(Turns):
        taken = 0

        @asynccontextmanager
        async def turn(self) -> AsyncIterator[None]:
            Counted.taken += 1
            async with super().turn():
                yield

    monkeypatch.setattr("agent_reader.jmap.http.Turns", Counted)
    monkeypatch.setattr("agent_reader.jmap.http.Attempts", lambda _: Attempts(lambda: 0.0))
    with house(tmp_path) as served:
        await served.one("Email/query")
        assert 0 == Counted.taken
        await served.one("Mailbox/get")
        assert 1 == Counted.taken


async def test_whoever_leaves_while_waiting_takes_no_turn_along() -> None:
    turns = Turns(_NEVER)
    async with turns.turn():
        waiting = asyncio.create_task(_take(turns))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    await asyncio.wait_for(_take(turns), _SECONDS)


async def _take(turns: Turns) -> None:
    async with turns.turn():
        pass

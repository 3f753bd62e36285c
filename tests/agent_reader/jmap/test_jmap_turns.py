"""What is worked out in threads goes one after the other; whatever takes long holds up nobody."""

from __future__ import annotations

import asyncio

import pytest

from agent_reader.jmap.turns import Turns

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

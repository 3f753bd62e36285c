"""Short answers are worked out one after the other; whatever takes long holds up nobody."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_reader.access import Access
from agent_reader.jmap.methods import METHODS, Read
from agent_reader.jmap.turns import Turns
from tests.agent_reader.served import house

pytestmark = pytest.mark.anyio

_SECONDS = 20
_NEVER = 3_600.0


async def test_who_comes_first_is_first_and_a_turn_ends_where_its_holder_says_so() -> None:
    turns, order, may_end = Turns(_NEVER), list[str](), asyncio.Event()

    async def work(name: str, *, says_so: bool = False) -> None:
        async with turns.turn() as end_turn:
            order.append(f"{name} begins")
            if says_so:
                # In the thread that works, and once more than is needed.
                await asyncio.to_thread(end_turn)
                await asyncio.to_thread(end_turn)
                await may_end.wait()
            order.append(f"{name} ends")

    first = asyncio.create_task(work("first", says_so=True))
    others = [asyncio.create_task(work(name)) for name in ("second", "third")]
    await asyncio.wait_for(asyncio.gather(*others), _SECONDS)
    may_end.set()
    await asyncio.wait_for(first, _SECONDS)
    assert ["first begins", "second begins", "second ends", "third begins", "third ends", "first ends"] == order
    # However often a turn was ended, one at a time has one.
    held = 0

    async def hold() -> None:
        nonlocal held
        async with turns.turn():
            held += 1
            assert held == 1
            await asyncio.sleep(0)
            held -= 1

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


async def test_an_answer_that_takes_long_holds_up_no_other(tmp_path: Path) -> None:
    """One waits, as for a mail server, until the other has been answered."""
    is_in, may_go_on = threading.Event(), threading.Event()
    method = METHODS["Mailbox/get"]
    assert isinstance(method, Read)

    def slow(asking: Any, arguments: Any) -> dict[str, Any]:
        is_in.set()
        assert may_go_on.wait(_SECONDS)
        return method.function(asking, arguments)

    methods = dict(METHODS) | {"Mailbox/get": Read(method.capability, slow, method.shows)}
    with house(tmp_path, methods=methods) as served:
        first = asyncio.create_task(served.one("Mailbox/get"))
        assert await asyncio.to_thread(is_in.wait, _SECONDS)
        assert "Email/query" == (await asyncio.wait_for(served.one("Email/query"), _SECONDS))[0]
        assert not first.done()
        may_go_on.set()
        assert "Mailbox/get" == (await asyncio.wait_for(first, _SECONDS))[0]


async def test_an_answer_that_waits_for_its_record_has_ended_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns end by themselves never here; the first answer's record waits until another is worked out."""
    is_in, is_worked_out = threading.Event(), threading.Event()
    record, method = Access.record, METHODS["Email/query"]
    assert isinstance(method, Read)

    def slow(self: Access, *given: Any) -> None:
        if not is_in.is_set():
            is_in.set()
            assert is_worked_out.wait(_SECONDS)
        record(self, *given)

    def noted(asking: Any, arguments: Any) -> Any:
        is_worked_out.set()
        return method.function(asking, arguments)

    monkeypatch.setattr(Access, "record", slow)
    monkeypatch.setattr("agent_reader.jmap.http.Turns", lambda: Turns(_NEVER))
    with house(tmp_path, methods=dict(METHODS) | {"Email/query": replace(method, function=noted)}) as served:
        first = asyncio.create_task(served.one("Mailbox/get"))
        assert await asyncio.to_thread(is_in.wait, _SECONDS)
        assert "Email/query" == (await asyncio.wait_for(served.one("Email/query"), _SECONDS))[0]
        assert "Mailbox/get" == (await asyncio.wait_for(first, _SECONDS))[0]

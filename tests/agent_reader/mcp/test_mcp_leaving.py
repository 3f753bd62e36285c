"""What a call may take at this door, as at the other: room to read in, time, length; and its end when nobody waits."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_reader.door.keeper import Places
from agent_reader.door.limits import Limits
from agent_reader.imap.values import Place
from agent_reader.mcp.desk import Desk
from agent_reader.mcp.door import McpDoor, beside
from agent_reader.mcp.views import View
from agent_reader.query import BlobCache, BlobReader
from agent_reader.query.patience import Abandoned
from shared.message import Message
from tests.agent_reader.jmap.test_jmap_agent_extension import ATTACHED
from tests.agent_reader.jmap.test_jmap_bounds import LookingRoom, NotedRoom
from tests.agent_reader.mcp.desk import Desked, desked, id_of, listed
from tests.agent_reader.mcp.served import served
from tests.agent_reader.on_loopback import Client, await_true
from tests.agent_reader.served import ACCOUNT, MESSAGES, Shelf, octets

pytestmark = pytest.mark.anyio

_SECONDS = 20.0
_IDS = [id_of(each) for each in MESSAGES]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def posting(address: str, token: str, path: str, body: dict[str, Any]) -> Client:
    """One POST on a connection of its own, its answer not waited for."""
    content = json.dumps(body).encode()
    fields = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "Content-Length": str(len(content)),
    }
    client = Client.asking(int(address.rpartition(":")[2]), path, "POST", fields)
    client.socket.sendall(content)
    return client


def tool(name: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


async def hung_up(asked: Desked, desk: Desk, is_at_work: Callable[[], bool], path: str, body: dict[str, Any]) -> None:
    """Ask, hang up once it is at work, and come back when the only place is free again."""
    door = McpDoor(desk, asked.house.access, Places(1))
    async with served(beside(door, asked.house.app)) as address:
        token = asked.house.token
        client = await asyncio.to_thread(posting, address, token, path, body)
        await asyncio.to_thread(await_true, is_at_work)
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

        def status() -> bytes:
            with posting(address, token, "/mcp", ping) as other:
                return other.until(b"\r\n").split(b" ", 2)[1]

        assert b"429" == await asyncio.to_thread(status)
        client.close()
        await asyncio.to_thread(await_true, lambda: status() == b"200")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/mcp", tool("read_mail", ids=_IDS)),
        ("/mcp", tool("read_thread", id=_IDS[0])),
        ("/mcp", tool("search_mail", text="teapot")),
        ("/mcp", tool("read_attachment", id=_IDS[0])),
        ("/agent/digest", {"peek": True}),
    ],
)
async def test_whoever_hangs_up_while_waiting_for_room_gives_the_place_back(
    tmp_path: Path, path: str, body: dict[str, Any]
) -> None:
    with desked(tmp_path, (*MESSAGES, octets(4, "Question", "Will you come?"))) as asked:
        room = asked.house.store._room = NotedRoom()
        # All of the room is somebody else's: the call waits, and would for ever.
        with room.place(10**12):
            taken = len(room.noted)
            # No time ends it.
            desk = replace(asked.desk, limits=Limits(max_request_seconds=3_600.0))
            await hung_up(asked, desk, lambda: len(room.noted) > taken, path, body)
        assert [] == asked.house.access.reads("clerk")
        assert not asked.house.log.calls


async def test_whoever_hangs_up_during_a_search_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_reader.store.snapshot._STEPS_BETWEEN_LOOKS", 1)
    looks, noticed = [0], threading.Event()
    with desked(tmp_path) as asked:

        def monotonic() -> float:
            looks[0] += 1
            # Past those of the beginning it is the search that looks at the clock: now its client is gone.
            # A hundred looks follow: for longer than a busy machine takes to hear of it.
            if looks[0] > 2:
                noticed.wait(0.3)
            return 0.0

        desk = replace(asked.desk, monotonic=monotonic)
        await hung_up(asked, desk, lambda: looks[0] > 2, "/mcp", tool("search_mail", text="teapot"))
        ended_after = looks[0]
        noticed.set()
        assert [] == asked.house.access.reads("clerk")
        answered = desk.call(asked.agent, "search_mail", {"text": "teapot"})
        assert not answered.is_error
        assert looks[0] - ended_after > 10, "the search was ended, not finished"
        assert not asked.house.log.calls


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("list_mailboxes", {}),
        ("whats_new", {"peek": True}),
        ("search_mail", {"text": "teapot"}),
        ("read_mail", {"ids": []}),
    ],
)
def test_a_call_of_somebody_who_is_gone_has_no_answer_and_is_not_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, arguments: dict[str, Any]
) -> None:
    monkeypatch.setattr("agent_reader.store.snapshot._STEPS_BETWEEN_LOOKS", 1)
    with desked(tmp_path) as asked:
        with pytest.raises(Abandoned):
            asked.desk.call(asked.agent, name, arguments, lambda: True)
        assert [] == asked.house.access.reads("clerk")


async def test_a_server_that_ends_waits_for_no_call(tmp_path: Path) -> None:
    with desked(tmp_path) as asked:
        room = asked.house.store._room = NotedRoom()
        with room.place(10**12):
            taken = len(room.noted)
            async with served(beside(McpDoor(asked.desk, asked.house.access, Places(1)), asked.house.app)) as address:
                body = tool("read_mail", ids=_IDS)
                client = await asyncio.to_thread(posting, address, asked.house.token, "/mcp", body)
                await asyncio.to_thread(await_true, lambda: len(room.noted) > taken)
            client.close()
        assert [] == asked.house.access.reads("clerk")


_SIZES = [len(each) for each in MESSAGES]


@pytest.mark.parametrize(
    ("name", "arguments", "places"),
    [
        ("read_mail", {"ids": _IDS}, _SIZES),
        ("read_thread", {"id": _IDS[0]}, _SIZES[:2]),
        # A snippet of what the message says itself; the whole of it is not looked at then.
        ("search_mail", {"text": "teapot"}, _SIZES[:1]),
        ("read_attachment", {"id": _IDS[0]}, _SIZES[:1]),
        ("whats_new", {"peek": True}, []),
        ("list_mailboxes", {}, []),
    ],
)
def test_whoever_reads_messages_holds_a_place_for_each(
    tmp_path: Path, name: str, arguments: dict[str, Any], places: list[int]
) -> None:
    with desked(tmp_path) as asked:
        room = asked.house.store._room = NotedRoom()
        asked.call(name, **arguments)
        assert places == room.noted
        assert room._free == room._most


def test_a_snippet_looks_no_further_into_a_text_than_it_has_room_for(tmp_path: Path) -> None:
    lines = "and so on and on.\r\n\r\n" * 20_000
    near, far = (
        octets(
            number, f"Long {number * 'Zanzibar '}", f"Begins here.\r\n\r\n{lines[:most]}Zanzibar is hot.\r\n\r\n{lines}"
        )
        for number, most in ((1, 50_000), (2, 400_000))
    )
    with desked(tmp_path, (near, far)) as asked:
        shown = asked.text("search_mail", text="zanzibar")
        assert 1 == shown.count("Zanzibar is hot.")
        # The other is found all the same, and shows how it begins.
        assert 2 == len(listed(shown))


class WatchingShelf(Shelf):
    """A mail server that notes how much room is free while it is asked."""

    def __init__(self, content: dict[int, bytes], free: Callable[[], int]) -> None:
        super().__init__(content)
        self._free, self.noted = free, list[int]()

    def fetch(self, place: Place, write: Callable[[bytes], None]) -> bool:
        self.noted.append(self._free())
        return super().fetch(place, write)


def test_whoever_waits_for_the_mail_server_keeps_nobody_from_reading(tmp_path: Path) -> None:
    cache = BlobCache(tmp_path / "fetched", 1_000_000)
    with contextlib.closing(cache), desked(tmp_path, (ATTACHED,)) as asked:
        room = asked.house.store._room
        shelf = WatchingShelf({1: ATTACHED}, lambda: room._free)
        desk = replace(asked.desk, blobs=BlobReader({ACCOUNT: shelf}, cache, 8_000_000))
        answer = desk.call(asked.agent, "read_attachment", {"id": id_of(ATTACHED), "number": 2})
        assert "Kept nowhere." in answer.text
        assert [room._most] == shelf.noted
        assert room._free == room._most


@pytest.mark.parametrize(
    ("name", "arguments", "views"),
    [
        ("read_mail", {"ids": _IDS}, 2 * 3),
        ("read_mail", {"ids": _IDS[:1]}, 1),
        ("read_thread", {"id": _IDS[0]}, 2),
        # Each message's own text, and of the second the whole: it says the words in what it quotes.
        ("search_mail", {"text": "please"}, 1 + 2),
    ],
)
def test_whoever_waits_for_room_for_a_message_holds_none_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, arguments: dict[str, Any], views: int
) -> None:
    # As of the largest texts: none is kept.
    monkeypatch.setattr("agent_reader.mcp.views._MAX_KEPT_OCTETS", 0)
    quoting = octets(
        2, "Re: An order", "And two cups.\r\n\r\n> I would like a teapot, please.", References="<1@example.org>"
    )
    messages = (MESSAGES[0], quoting, MESSAGES[2])
    ids = dict(zip(_IDS, map(id_of, messages), strict=True))
    asked_for = {
        key: [ids[each] for each in value] if key == "ids" else ids.get(value, value)
        for key, value in arguments.items()
    }
    with desked(tmp_path, messages) as asked:
        room = asked.house.store._room = LookingRoom(View, Message)
        gc.collect()
        assert not asked.call(name, **asked_for).is_error
    assert views == len(room.found)
    assert 1 == len(set(room.found)), room.found


def test_a_call_that_takes_too_long_or_says_too_much_is_refused_as_at_the_other_door(tmp_path: Path) -> None:
    with desked(tmp_path) as asked:
        hurried = Desked(replace(asked.desk, limits=Limits(max_request_seconds=0.0)), asked.house, asked.agent)
        assert "took_too_long" == hurried.error("read_mail", ids=_IDS)
        assert "took_too_long" == hurried.error("read_attachment", id=_IDS[0])
        short = Desked(replace(asked.desk, limits=Limits(max_answer_octets=100)), asked.house, asked.agent)
        assert "answer_too_large" == short.error("list_mailboxes")
        assert [] == asked.house.access.reads("clerk")


async def test_a_digest_that_takes_too_long_or_says_too_much_is_refused(tmp_path: Path) -> None:
    with desked(tmp_path) as asked:
        for limits, status, code in (
            (Limits(max_request_seconds=0.0), b" 503 ", b"digest_too_slow"),
            (Limits(max_answer_octets=100), b" 413 ", b"digest_too_large"),
        ):
            door = McpDoor(replace(asked.desk, limits=limits), asked.house.access, Places())
            async with served(beside(door, asked.house.app)) as address:
                client = await asyncio.to_thread(posting, address, asked.house.token, "/agent/digest", {"peek": False})
                with client:
                    answer = await asyncio.to_thread(client.to_the_end)
            assert status in answer.partition(b"\r\n")[0], answer
            assert code in answer
        # Neither was told, so the agent's place did not move.
        assert [] == asked.house.access.reads("clerk")
        assert asked.desk.cursors.read("clerk", "shop") is None

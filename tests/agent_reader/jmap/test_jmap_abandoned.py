"""A client that hangs up, or a server that ends: nothing more is worked out, and nothing of it is on record."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from agent_reader.door.limits import Limits
from agent_reader.jmap.asking import Asking
from agent_reader.jmap.capabilities import CORE, MAIL
from agent_reader.jmap.methods import METHODS, Method, Read
from agent_reader.jmap.reads import answer_email_get
from agent_reader.query.patience import Abandoned
from shared.identity import blob_id, email_id, message_digest
from tests.agent_reader.on_loopback import await_true
from tests.agent_reader.served import ACCOUNT, MESSAGES, House, house, octets

pytestmark = pytest.mark.anyio

_SECONDS = 20


@dataclass
class Slow:
    """Email/get that begins, waits until nobody wants its answer, and then looks at the messages, if it does."""

    looks: bool = True
    is_at_work: threading.Event = field(default_factory=threading.Event)
    has_ended: threading.Event = field(default_factory=threading.Event)
    calls: list[str] = field(default_factory=list)

    def methods(self) -> dict[str, Method]:
        method = METHODS["Email/get"]
        assert isinstance(method, Read)
        # In a thread from the beginning: an attempt would be a call of its own, and the client still there.
        return {**METHODS, "Email/get": replace(method, function=self.answer, may_be_tried=False)}

    def answer(self, asking: Asking, arguments: Any) -> dict[str, Any]:
        self.calls.append(ACCOUNT)
        self.is_at_work.set()
        waited = threading.Event()
        for _ in range(_SECONDS * 100):
            if asking.patience.is_abandoned():
                break
            waited.wait(0.01)
        if not self.looks:
            return {}
        try:
            return answer_email_get(asking, arguments)
        except Abandoned:
            self.has_ended.set()
            raise


class Client:
    """One request as ASGI sees it; it goes away when it is told to."""

    def __init__(self, served: House) -> None:
        self._served = served
        self.is_gone = asyncio.Event()
        self.sent: list[Any] = []

    async def ask(self, name: str = "Email/get", **arguments: Any) -> None:
        call = [name, {"accountId": ACCOUNT} | (arguments or {"ids": None}), "0"]
        body = json.dumps({"using": [CORE, MAIL], "methodCalls": [call, call]}).encode()
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> dict[str, Any]:
            for message in messages:
                return message
            await self.is_gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            self.sent.append(message)

        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/jmap/api",
            "raw_path": b"/jmap/api",
            "query_string": b"",
            "headers": [
                (b"host", b"localhost"),
                (b"authorization", f"Bearer {self._served.token}".encode()),
                (b"content-type", b"application/json"),
            ],
        }
        await self._served.app(scope, receive, send)


@pytest.mark.parametrize("end", ["the client hangs up", "the server ends"])
async def test_what_nobody_waits_for_is_not_worked_out(tmp_path: Path, end: str) -> None:
    slow = Slow()
    with house(tmp_path, methods=slow.methods()) as served:
        client = Client(served)
        asking = asyncio.create_task(client.ask())
        assert await asyncio.to_thread(slow.is_at_work.wait, _SECONDS)
        if end == "the client hangs up":
            client.is_gone.set()
        else:
            asking.cancel()
        await asyncio.wait([asking], timeout=_SECONDS)
        assert asking.done()
        assert await asyncio.to_thread(slow.has_ended.wait, _SECONDS)
        # The second call never began, no message was looked at, and the log says nothing of what nobody got.
        assert [ACCOUNT] == slow.calls
        assert [] == served.access.reads("clerk")
        assert not any(b"methodResponses" in message.get("body", b"") for message in client.sent)


async def test_a_call_that_did_not_see_it_was_the_last(tmp_path: Path) -> None:
    slow = Slow(looks=False)
    with house(tmp_path, methods=slow.methods()) as served:
        client = Client(served)
        asking = asyncio.create_task(client.ask())
        assert await asyncio.to_thread(slow.is_at_work.wait, _SECONDS)
        client.is_gone.set()
        # The work is over when the request is.
        await asyncio.wait([asking], timeout=_SECONDS)
        assert asking.done()
        assert [ACCOUNT] == slow.calls
        assert [] == served.access.reads("clerk")


# Which is not tried without room.
LONG = octets(9, "A long story", "And then they went on.\r\n" * 6_000)
_ID = email_id(message_digest(MESSAGES[0]))
_PART = blob_id(message_digest(b"I would like a teapot, please.\r\n"))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Email/get", {"ids": [email_id(message_digest(LONG))], "properties": ["bodyStructure"]}),
        ("Email/parse", {"blobIds": [_PART]}),
        ("SearchSnippet/get", {"emailIds": [_ID], "filter": {"text": "teapot"}}),
    ],
)
async def test_a_client_that_hangs_up_while_it_waits_for_room_waits_no_more(
    tmp_path: Path, name: str, arguments: dict[str, Any]
) -> None:
    # No time ends it.
    limits = Limits(max_request_seconds=3_600.0, max_query_seconds=3_600.0)
    with house(tmp_path, (*MESSAGES, LONG), limits=limits) as served:
        room = served.store._room
        client = Client(served)
        # All of the room is somebody else's.
        with room.place(10**12):
            asking = asyncio.create_task(client.ask(name, **arguments))
            await asyncio.to_thread(await_true, lambda: 1 == len(room._queue))
            client.is_gone.set()
            await asyncio.wait([asking], timeout=_SECONDS)
            assert asking.done()
            await asyncio.to_thread(await_true, lambda: 0 == len(room._queue))
        assert [] == served.access.reads("clerk")

"""Email/query and Email/get over HTTP: beside a raw ASGI endpoint, after Core/echo, and for a hundred agents at once.

`python -m tests.bench.query_served FOLDER` is the server, a process of its own: the reader's JMAP app over the bench's
store, and at `/raw` an endpoint that decodes the same request by msgspec and answers with the same octets.
"""

import asyncio
import gc
import json
import socket
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_bytes
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
import structlog
import uvicorn

from agent_reader.access import Access
from agent_reader.jmap.capabilities import CORE, MAIL
from agent_reader.jmap.http import make_app
from agent_reader.jmap.session import ServedAccount
from agent_reader.query import BlobCache, BlobReader
from agent_reader.state_watch import StateWatch
from agent_reader.store import Store
from shared.bounded_http import BoundedProtocol
from shared.message import JSON
from tests.agent_reader.mirrored import ACCOUNT
from tests.bench.query_mail import LAST

AGENTS: Final = 100
CONNECTIONS: Final = 16

# Ours and the raw endpoint take turns, so that whatever else the machine does falls on both.
_TURNS: Final = 6
_TURN_SECONDS: Final = 1.5
_AGENT_TURN_SECONDS: Final = 12.0
_CACHE_OCTETS: Final = 1024 * 1024

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Served:
    """What the server said on its first line."""

    port: int
    tokens: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Concurrent:
    """A hundred agents at once: answers, errors, and seconds at the median and for the slowest of a hundred."""

    answers: int
    errors: int
    p50: float
    p99: float


def calls(arguments: dict[str, JSON]) -> bytes:
    """Return a request for the newest 50 and what a list of messages shows of them."""
    get: dict[str, JSON] = {
        "accountId": ACCOUNT,
        "#ids": {"resultOf": "0", "name": "Email/query", "path": "/ids"},
        "properties": ["threadId", "mailboxIds", "keywords", "receivedAt", "from", "subject", "preview"],
    }
    return _request(["Email/query", {"accountId": ACCOUNT, **arguments}, "0"], ["Email/get", get, "1"])


def query_alone(arguments: dict[str, JSON]) -> bytes:
    """Return a request for the ids alone."""
    return _request(["Email/query", {"accountId": ACCOUNT, **arguments}, "0"])


def echo() -> bytes:
    """Return the request that asks for nothing (RFC 8620 §4)."""
    return _request(["Core/echo", {"hello": True}, "0"])


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Served]:
    """Run the server over a store while the block runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.bench.query_served", str(folder), stdin=PIPE, stdout=PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        said = json.loads(await process.stdout.readline())
        yield Served(said["port"], tuple(said["tokens"]))
    finally:
        process.stdin.close()
        await process.wait()


async def beside_raw(served: Served, body: bytes) -> tuple[float, list[float]]:
    """Return our answers a second at the median turn, and by turn the share of what the raw endpoint gives."""
    rates, shares = [], []
    for _ in range(_TURNS):
        ours = await _rate(served, "/jmap/api", body)
        raw = await _rate(served, "/raw", body)
        rates.append(ours)
        shares.append(ours / raw)
    return median(rates), shares


async def seconds_of(served: Served, bodies: list[bytes], rounds: int) -> list[float]:
    """Return the median seconds of each of these requests, one at a time, after subtracting that of Core/echo."""
    asking = await _Connection.open(served, served.tokens[0])
    taken: list[list[float]] = [[] for _ in bodies]
    for _ in range(rounds):
        for number, body in enumerate(bodies):
            empty = await asking.timed("/jmap/api", echo())
            taken[number].append(await asking.timed("/jmap/api", body) - empty)
    asking.close()
    return [median(each) for each in taken]


async def many_agents(served: Served, body: bytes) -> Concurrent:
    """Have a hundred agents, each with a token and a connection, ask over and over."""
    until = time.monotonic() + _AGENT_TURN_SECONDS
    found = await asyncio.gather(*(_ask_on(served, token, "/jmap/api", body, until) for token in served.tokens))
    taken = sorted(seconds for each, _ in found for seconds in each)
    errors = sum(each for _, each in found)
    return Concurrent(len(taken), errors, taken[len(taken) // 2], taken[len(taken) * 99 // 100])


async def _rate(served: Served, path: str, body: bytes) -> float:
    started = time.monotonic()
    until = started + _TURN_SECONDS
    # Two connections an agent: what one agent may have at once is no part of this.
    asking = (_ask_on(served, served.tokens[each // 2], path, body, until) for each in range(CONNECTIONS))
    found = await asyncio.gather(*asking)
    assert not any(errors for _, errors in found), "an answer was an error"
    return sum(len(taken) for taken, _ in found) / (time.monotonic() - started)


async def _ask_on(served: Served, token: str, path: str, body: bytes, until: float) -> tuple[list[float], int]:
    connection = await _Connection.open(served, token)
    taken, errors = [], 0
    try:
        while time.monotonic() < until:
            taken.append(await connection.timed(path, body))
            errors += connection.failed
    finally:
        connection.close()
    return taken, errors


class _Connection:
    """One kept-alive connection, in as few steps as can be: a client must cost less than what it measures."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
        self._reader, self._writer, self._token = reader, writer, token
        self.failed = 0

    @classmethod
    async def open(cls, served: Served, token: str) -> "_Connection":
        return cls(*await asyncio.open_connection("127.0.0.1", served.port, limit=1 << 22), token)

    async def timed(self, path: str, body: bytes) -> float:
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        started = time.perf_counter()
        self._writer.write(head.encode() + body)
        fields = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = int(fields.partition(b"content-length:")[2].partition(b"\r\n")[0])
        answer = await self._reader.readexactly(length)
        taken = time.perf_counter() - started
        self.failed = int(not fields.startswith(b"http/1.1 200") or b'["error"' in answer)
        return taken

    def close(self) -> None:
        self._writer.close()


def _request(*method_calls: JSON) -> bytes:
    return json.dumps({"using": [CORE, MAIL], "methodCalls": list(method_calls)}).encode()


class _BesideRaw:
    """The reader's app, and an endpoint that gives its last answer again."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._responses: Any = None

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == "/raw":
            await self._answer(receive, send)
            return
        body = bytearray()

        async def seen(message: MutableMapping[str, Any]) -> None:
            body.extend(message.get("body", b""))
            await send(message)

        if self._responses is not None or scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        await self._app(scope, receive, seen)
        self._responses = msgspec.json.decode(bytes(body))

    async def _answer(self, receive: Receive, send: Send) -> None:
        untrusted_body = b""
        more = True
        while more:
            message = await receive()
            untrusted_body += message.get("body", b"")
            more = message.get("more_body", False)
        msgspec.json.decode(untrusted_body)
        answer = msgspec.json.encode(self._responses)
        length = str(len(answer)).encode()
        fields = [(b"content-type", b"application/json"), (b"content-length", length)]
        await send({"type": "http.response.start", "status": 200, "headers": fields})
        await send({"type": "http.response.body", "body": answer})


def _serve(folder: Path) -> None:
    """Serve until standard input ends. Tokens see everything: scopes have a bench of their own."""
    store = Store(folder, lambda: LAST)
    store.account(ACCOUNT)
    listening = socket.create_server(("127.0.0.1", 0), backlog=256)
    with TemporaryDirectory() as aside, Access(Path(aside), lambda: datetime.now(UTC), token_bytes) as access:
        tokens = [access.create_token(f"agent-{number}").text for number in range(AGENTS)]
        cache = BlobCache(Path(aside) / "blobs", _CACHE_OCTETS)
        app = make_app(
            store,
            access,
            (ServedAccount(ACCOUNT, "Bench"),),
            blobs=BlobReader({}, cache, _CACHE_OCTETS),
            watch=StateWatch(),
            log=structlog.wrap_logger(structlog.PrintLogger(sys.stderr)),
            random_octets=token_bytes,
        )
        server = uvicorn.Server(
            uvicorn.Config(_BesideRaw(app), http=BoundedProtocol, log_level="error", access_log=False, lifespan="off")
        )
        # As the daemon does once it serves.
        gc.collect()
        gc.freeze()
        sys.stdout.write(json.dumps({"port": listening.getsockname()[1], "tokens": tokens}) + "\n")
        sys.stdout.flush()
        asyncio.run(_until_told(server, listening))
        cache.close()
    store.close()


async def _until_told(server: uvicorn.Server, listening: socket.socket) -> None:
    running = asyncio.create_task(server.serve(sockets=[listening]))
    await asyncio.to_thread(sys.stdin.read)
    server.should_exit = True
    await running


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))

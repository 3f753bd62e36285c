"""Email/get of 50 messages with their texts: ours beside that of Cyrus, the same messages, over HTTP on loopback.

`python -m tests.bench.email_get [ROUNDS]` asks both in turn, each on a connection that is kept. First looks: each round
asks for 50 messages that nobody has asked either server for since it started. Looks again: for those of the last first
look, over and over. Both for some properties, and for the default ones (RFC 8621 §4.2). It prints
how long each takes and how many times faster ours is. Needs what `deploy/test_servers` brings.
"""

import asyncio
import base64
import json
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any, Final

from agent_reader.jmap.capabilities import CORE, MAIL
from tests.agent_reader.mirrored import ACCOUNT, Mirrored, fetched
from tests.bench.query_served import serving
from tests.servers.cyrus import Cyrus

MESSAGES: Final = 50
# Rounds of first looks, each at messages of its own, and of looks again.
FIRST_LOOKS: Final = 10
ROUNDS: Final = 60
_MAILBOX: Final = "Archive"
_MOST_OCTETS: Final = 1 << 20
_SOME: Final = ["id", "threadId", "mailboxIds", "receivedAt", "from", "to", "subject", "preview", "bodyValues"]
_ASKED: Final[dict[str, dict[str, Any]]] = {
    "some properties": {"properties": _SOME, "fetchTextBodyValues": True},
    "the RFC's default": {"fetchTextBodyValues": True},
}
_ALL: Final = MESSAGES * FIRST_LOOKS * len(_ASKED)
_TEXT: Final = (
    "order teapot invoice the a and to of we you please thank delivery Tuesday broken lid refund kettle porcelain "
    "address number receipt attached regards shop question when could send again Grüße"
)
_WORDS: Final = tuple(_TEXT.split())


@dataclass(slots=True)
class Server:
    """One of the two: where it is asked, as whom, and how long its answers took, in seconds."""

    name: str
    port: int
    path: str
    authorization: str
    account_id: str
    bodies: list[bytes] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    connection: socket.socket | None = None

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Return the answer to one call."""
        return self.send(_request(name, {"accountId": self.account_id} | arguments))

    def send(self, body: bytes) -> Any:
        """Return the answer to a request, and note how long it took until its last octet was here."""
        if self.connection is None:
            self.connection = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        head = (
            f"POST {self.path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {self.authorization}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        # In as few steps as can be: what the client costs is added to both.
        started = time.perf_counter()
        self.connection.sendall(head.encode() + body)
        answer = self._answer()
        self.seconds.append(time.perf_counter() - started)
        ((_, found, _),) = json.loads(answer)["methodResponses"]
        return found

    def _answer(self) -> bytes:
        assert self.connection is not None
        received = self.connection.recv(_MOST_OCTETS)
        while b"\r\n\r\n" not in received:
            received += self.connection.recv(_MOST_OCTETS)
        head, _, answer = received.partition(b"\r\n\r\n")
        assert b" 200 " in head.splitlines()[0], head
        length = int(head.lower().partition(b"content-length:")[2].split()[0])
        pieces, left = [answer], length - len(answer)
        while left:
            pieces.append(self.connection.recv(_MOST_OCTETS))
            assert pieces[-1], f"{self.name} closed the connection"
            left -= len(pieces[-1])
        return b"".join(pieces)


def letters() -> list[bytes]:
    """Return messages of some kilobytes, every second one with HTML beside its text."""
    random = Random(20261130)
    return [_letter(random, number) for number in range(_ALL)]


def _letter(random: Random, number: int) -> bytes:
    lines = [" ".join(random.choices(_WORDS, k=12)) for _ in range(random.randint(10, 60))]
    text = "\r\n".join(lines)
    head = (
        f"From: Person {number} <person{number}@example.org>\r\nTo: Shop <shop@example.com>\r\n"
        f"Subject: {' '.join(random.choices(_WORDS[:-1], k=5))}\r\nMessage-ID: <{number}@bench.example>\r\n"
        f"Date: Mon, 30 Nov 2026 {number % 24:02}:00:00 +0000\r\nMIME-Version: 1.0\r\n"
    )
    plain = f"Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n{text}\r\n"
    if number % 2:
        return (head + plain).encode()
    html = "".join(f"<p>{line}</p>\r\n" for line in lines)
    return (
        f'{head}Content-Type: multipart/alternative; boundary="b"\r\n\r\n--b\r\n{plain}\r\n--b\r\n'
        f"Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n{html}\r\n--b--\r\n"
    ).encode()


async def measured(rounds: int) -> None:
    """Ask both, in turn, so that whatever else the machine does falls on both, and print how long each took."""
    messages = letters()
    with TemporaryDirectory() as folder, Cyrus() as cyrus:
        mine = Mirrored(Path(folder))
        mine.begin("INBOX")
        mine.add("INBOX", *(fetched(uid, octets) for uid, octets in enumerate(messages, 1)))
        mine.end_round()
        mine.store.close()
        for octets in messages:
            cyrus.deliver(_MAILBOX, octets)
        secret = base64.b64encode(f"owner:{cyrus.passwords['owner']}".encode()).decode()
        async with serving(Path(folder)) as served:
            servers = [
                Server("ours", served.port, "/jmap/api", f"Bearer {served.tokens[0]}", ACCOUNT),
                Server("Cyrus", cyrus.jmap_port, "/jmap/", f"Basic {secret}", "owner"),
            ]
            await asyncio.to_thread(_ask_in_turn, servers, rounds)


def _ask_in_turn(servers: list[Server], rounds: int) -> None:
    pages = [_pages(server) for server in servers]
    texts: list[set[str]] = [set() for _ in servers]
    for number, (name, arguments) in enumerate(_ASKED.items()):
        for server, all_ids in zip(servers, pages, strict=True):
            server.bodies = [
                _request("Email/get", {"accountId": server.account_id, "ids": ids} | arguments)
                for ids in all_ids[number * FIRST_LOOKS : (number + 1) * FIRST_LOOKS]
            ]
        _look(servers, name, rounds, texts)
    # Of all messages: those of one moment have an order of each server's own.
    assert texts[0] == texts[1], "the two answer with other texts"
    for server in servers:
        assert server.connection is not None
        server.connection.close()


def _look(servers: list[Server], name: str, rounds: int, texts: list[set[str]]) -> None:
    _begin(servers)
    for number in range(FIRST_LOOKS):
        for server, seen in zip(servers, texts, strict=True):
            seen |= {_text(email) for email in server.send(server.bodies[number])["list"]}
    _say(f"{name}, first look", servers)
    _begin(servers)
    for _ in range(rounds):
        for server in servers:
            server.send(server.bodies[-1])
    _say(f"{name}, look again", servers)


def _pages(server: Server) -> list[list[str]]:
    """All messages, as pages of ids; of these alone nothing is read but what searching reads."""
    ids: list[str] = []
    for position in range(0, _ALL, MESSAGES):
        ids += server.call("Email/query", {"position": position, "limit": MESSAGES})["ids"]
    assert len(set(ids)) == _ALL, f"{server.name} has {len(set(ids))} messages"
    return [ids[start : start + MESSAGES] for start in range(0, len(ids), MESSAGES)]


def _begin(servers: list[Server]) -> None:
    for server in servers:
        # So the connection is open.
        server.call("Email/query", {"limit": 1})
        server.seconds.clear()


def _say(what: str, servers: list[Server]) -> None:
    for server in servers:
        slow = quantiles(server.seconds, n=20)[-1]
        best, middle = min(server.seconds), median(server.seconds)
        figures = f"best {best * 1000:6.2f} ms  p50 {middle * 1000:6.2f} ms  p95 {slow * 1000:6.2f} ms"
        sys.stdout.write(f"{what}: {server.name:6} {figures}\n")
    for name, measure in (("p50", median), ("best", min)):
        ours, theirs = (measure(server.seconds) for server in servers)
        sys.stdout.write(
            f"{what}: Email/get of {MESSAGES} with text, {name}: {theirs / ours:.1f} times as fast as Cyrus\n"
        )


def _text(email: dict[str, Any]) -> str:
    return "".join(value["value"] for value in email["bodyValues"].values())


def _request(name: str, arguments: dict[str, Any]) -> bytes:
    return json.dumps({"using": [CORE, MAIL], "methodCalls": [[name, arguments, "0"]]}).encode()


def main() -> None:
    """Measure, and print what was found."""
    asyncio.run(measured(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS))


if __name__ == "__main__":
    main()

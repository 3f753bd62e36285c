"""The edges, over a real server on loopback: bodies that lie, trickle or are too long, and clients that go away."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from agent_reader.door.limits import Limits
from agent_reader.jmap.capabilities import CORE, MAIL
from agent_reader.jmap.methods import METHODS, Read
from tests.agent_reader.served import ACCOUNT, House, house

SECONDS = 20
LIMITS = Limits(max_size_request=65_536, max_concurrent_requests=2, max_body_seconds=SECONDS)


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Signals are pytest's.
        yield


@dataclass
class Gate:
    """Holds Mailbox/get calls until it is opened, and counts those that wait."""

    waiting: threading.Semaphore
    opened: threading.Event

    def function(self, *_arguments: object) -> dict[str, Any]:
        self.waiting.release()
        assert self.opened.wait(SECONDS)
        return {"list": []}


@dataclass
class Listening:
    served: House
    port: int
    gate: Gate

    def connect(self) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS)
        client.settimeout(SECONDS)
        return client

    def head(self, **fields: str) -> bytes:
        lines = {
            "Host": f"localhost:{self.port}",
            "Authorization": f"Bearer {self.served.token}",
            "Content-Type": "application/json",
        } | fields
        text = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items())
        return f"POST /jmap/api HTTP/1.1\r\n{text}\r\n".encode()

    def post(self, body: Any) -> httpx.Response:
        return httpx.post(
            f"http://localhost:{self.port}/jmap/api",
            json=body,
            headers={"Authorization": f"Bearer {self.served.token}"},
            timeout=SECONDS,
        )

    def held(self) -> bytes:
        """A request that the gate holds."""
        body = {"using": [CORE, MAIL], "methodCalls": [["Mailbox/get", {"accountId": ACCOUNT, "ids": []}, "0"]]}
        encoded = json.dumps(body).encode()
        return self.head(Content_Length=str(len(encoded))) + encoded

    def until_there_is_room(self) -> None:
        """Ask until an answer comes that is not about too many requests."""
        pause = threading.Event()
        for _ in range(SECONDS * 50):
            if self.post({"using": [CORE], "methodCalls": []}).status_code != 429:
                return
            pause.wait(0.02)
        raise AssertionError("no place became free")


@pytest.fixture
def limits() -> Limits:
    return LIMITS


@pytest.fixture
def listening(tmp_path: Path, limits: Limits) -> Iterator[Listening]:
    gate = Gate(threading.Semaphore(0), threading.Event())
    read = METHODS["Mailbox/get"]
    assert isinstance(read, Read)
    methods = {**METHODS, "Mailbox/get": replace(read, function=gate.function)}
    with house(tmp_path, limits=limits, methods=methods) as served:
        listener = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(
            served.app, http="h11", lifespan="off", log_config=None, access_log=False, ws="none", proxy_headers=False
        )
        server = _Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
        thread.start()
        try:
            pause = threading.Event()
            for _ in range(SECONDS * 100):
                if server.started:
                    break
                pause.wait(0.01)
            yield Listening(served, listener.getsockname()[1], gate)
        finally:
            gate.opened.set()
            server.should_exit = True
            thread.join(SECONDS)
            listener.close()


def _answer(client: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """The status, fields and body of one answer; the connection may stay open."""
    received = b""
    while b"\r\n\r\n" not in received:
        piece = client.recv(65_536)
        assert piece, received
        received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(fields["content-length"]):
        piece = client.recv(65_536)
        assert piece, received
        body += piece
    return int(status.split(" ")[1]), fields, body


@pytest.mark.statement("22")
def test_a_declared_length_over_the_limit_is_refused_before_the_body_is_sent(listening: Listening) -> None:
    with listening.connect() as client:
        client.sendall(listening.head(Content_Length="65537"))
        status, fields, body = _answer(client)
    assert (413, "application/problem+json", "close") == (status, fields["content-type"], fields["connection"])
    assert "maxSizeRequest" == json.loads(body)["limit"]


@pytest.mark.statement("22")
def test_a_body_that_grows_over_the_limit_is_cut_off(listening: Listening) -> None:
    with listening.connect() as client:
        client.sendall(listening.head(Transfer_Encoding="chunked"))
        chunk = b"1000\r\n" + b" " * 4096 + b"\r\n"
        for _ in range(17):
            client.sendall(chunk)
        status, _, body = _answer(client)
        assert (413, "maxSizeRequest") == (status, json.loads(body)["limit"])
        client.sendall(b"0\r\n\r\n")
        assert b"" == client.recv(1)


def test_a_client_that_sends_everything_first_still_reads_the_refusal(listening: Listening) -> None:
    """Closing at once would reset the connection, and the refusal could be lost on its way."""
    response = httpx.post(
        f"http://localhost:{listening.port}/jmap/api",
        content=b" " * 5_000_000,
        headers={"Authorization": f"Bearer {listening.served.token}", "Content-Type": "application/json"},
        timeout=SECONDS,
    )
    assert (413, "request_too_large") == (response.status_code, response.json()["code"])


@pytest.mark.parametrize("length", ["-1", "1e3", "0x10", "abc", "9" * 30])
def test_a_length_that_is_none_is_refused(listening: Listening, length: str) -> None:
    with listening.connect() as client:
        client.sendall(listening.head(Content_Length=length) + b"{}")
        received = client.recv(100)
    assert received.startswith((b"HTTP/1.1 400", b"HTTP/1.1 413")), received


def test_a_body_shorter_than_declared_gets_no_answer_and_keeps_no_place(listening: Listening) -> None:
    for _ in range(2 * LIMITS.max_concurrent_requests):
        with listening.connect() as client:
            client.sendall(listening.head(Content_Length="100") + b'{"using"')
    listening.until_there_is_room()


@pytest.mark.parametrize("limits", [replace(LIMITS, max_body_seconds=0.5)], ids=[""])
def test_a_body_that_trickles_is_ended(listening: Listening) -> None:
    with listening.connect() as client:
        client.sendall(listening.head(Content_Length="100") + b"{")
        status, _, body = _answer(client)
    assert (408, "body_too_slow") == (status, json.loads(body)["code"])
    listening.until_there_is_room()


@pytest.mark.statement("24")
def test_more_parallel_requests_than_the_limit_are_refused_and_others_agents_are_not(listening: Listening) -> None:
    with listening.connect() as first, listening.connect() as second:
        for client in (first, second):
            client.sendall(listening.held())
            assert listening.gate.waiting.acquire(timeout=SECONDS)
        response = listening.post({"using": [CORE], "methodCalls": []})
        assert (429, "maxConcurrentRequests", True) == (
            response.status_code,
            response.json()["limit"],
            response.json()["retryable"],
        )
        other = listening.served.access.create_token("other")
        listening.served.token, token = other.text, listening.served.token
        assert 200 == listening.post({"using": [CORE], "methodCalls": []}).status_code
        listening.served.token = token
        listening.gate.opened.set()
        assert [200, 200] == [_answer(client)[0] for client in (first, second)]
    assert 200 == listening.post({"using": [CORE], "methodCalls": []}).status_code


@pytest.mark.statement("24")
def test_clients_that_go_away_while_they_are_answered_give_their_places_back(listening: Listening) -> None:
    for _ in range(LIMITS.max_concurrent_requests):
        with listening.connect() as client:
            client.sendall(listening.held())
            assert listening.gate.waiting.acquire(timeout=SECONDS)
    listening.gate.opened.set()
    listening.until_there_is_room()


def test_two_requests_in_one_piece_get_two_answers(listening: Listening) -> None:
    body = b'{"using":["urn:ietf:params:jmap:core"],"methodCalls":[["Core/echo",{"n":1},"0"]]}'
    request = listening.head(Content_Length=str(len(body))) + body
    with listening.connect() as client:
        client.sendall(request + request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
        received = b""
        while piece := client.recv(65_536):
            received += piece
    assert 2 == received.count(b"HTTP/1.1 200")
    assert 2 == received.count(b'["Core/echo",{"n":1},"0"]')


@pytest.mark.parametrize("hosts", [[], ["localhost", "localhost"], ["evil.example"]])
def test_no_host_two_hosts_or_another_host_open_nothing(listening: Listening, hosts: list[str]) -> None:
    fields = "".join(f"Host: {host}\r\n" for host in hosts)
    with listening.connect() as client:
        client.sendall(
            f"GET /jmap/session HTTP/1.1\r\n{fields}Authorization: Bearer {listening.served.token}\r\n\r\n".encode()
        )
        received = client.recv(65_536)
    assert received.startswith((b"HTTP/1.1 400", b"HTTP/1.1 421")), received
    assert b"accounts" not in received


def test_an_answer_is_on_record_before_its_first_octet(listening: Listening) -> None:
    """The commit is made while the answer is held: when the client reads it, another process finds the line."""
    response = listening.post({"using": [CORE, MAIL], "methodCalls": [["Email/query", {"accountId": ACCOUNT}, "0"]]})
    assert 200 == response.status_code
    lines = [line for _, line in listening.served.access.reads("clerk")]
    assert [response.json()["methodResponses"][0][1]["ids"]] == [line.email_ids for line in lines]

"""A listener keeps few connections, and none for ever that asks nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import pytest
import uvicorn

from shared.bounded_http import BoundedProtocol, Peer, peer_of
from tests.servers.bounded import NEVER_SECONDS, let_head_seconds_pass

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send
    from uvicorn.protocols.http.h11_impl import RequestResponseCycle

# Seconds; what is waited for takes a tenth of one.
PATIENCE = 30.0
LONG_ANSWER = b"x" * 8_000_000


async def answering(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer without a look at the body."""
    if scope["path"] == "/pieces":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(len(LONG_ANSWER) // 65_536):
            await send({"type": "http.response.body", "body": bytes(65_536), "more_body": True})
    body = LONG_ANSWER if scope["path"] == "/long" else b"ok"
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Serving:
    """A real uvicorn on a thread of the test, with bounds of the test's own."""

    def __init__(self, *, most: int = 300, head_seconds: float = NEVER_SECONDS) -> None:
        class Bounded(BoundedProtocol):
            max_connections = most

        Bounded.head_seconds = head_seconds
        self._listener = socket.create_server(("127.0.0.1", 0))
        # Small, so that an answer leaves the process as its client takes it, and not for the kernel's memory.
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
        config = uvicorn.Config(answering, http=Bounded, ws="none", lifespan="off", log_config=None, access_log=False)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._server.serve(sockets=[self._listener])))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=PATIENCE)
        self._listener.close()

    def let_head_seconds_pass(self) -> None:
        """See there."""
        let_head_seconds_pass(self._server)

    def await_answered(self) -> None:
        """Wait until the answer of the only connection is in its buffer."""
        pause = threading.Event()
        for _ in range(int(PATIENCE * 100)):
            requests: list[RequestResponseCycle | None] = [each.cycle for each in self.connections]
            if any(each is not None and each.response_complete for each in requests):
                return
            pause.wait(0.01)
        raise AssertionError("it was not answered")

    def unsent(self) -> int:
        """How much of the answer of the only connection its client has not taken."""
        (connection,) = self.connections
        return connection.transport.get_write_buffer_size()

    @property
    def connections(self) -> list[BoundedProtocol]:
        return [each for each in self._server.server_state.connections if isinstance(each, BoundedProtocol)]

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def connect(self, receive_octets: int | None = None) -> socket.socket:
        client = socket.socket()
        client.settimeout(PATIENCE)
        if receive_octets is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_octets)
        client.connect(self._listener.getsockname())
        return client


def is_closed(connection: socket.socket) -> bool:
    """Wait for the other side to end it."""
    with contextlib.suppress(ConnectionResetError):
        return connection.recv(1) == b""
    return True


def ask(connection: socket.socket, path: str = "/", fields: str = "") -> None:
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n".encode())


def answer(connection: socket.socket) -> bytes:
    received = b""
    while not received.endswith(b"\r\n\r\nok"):
        piece = connection.recv(4096)
        assert piece, received
        received += piece
    return received


def test_what_is_too_many_is_dropped_and_a_place_that_is_given_back_is_taken_again() -> None:
    # Of five this one peer may have three.
    with Serving(most=5) as serving, contextlib.ExitStack() as open_sockets:
        kept = [open_sockets.enter_context(serving.connect()) for _ in range(3)]
        for connection in kept:
            ask(connection)
            assert b" 200 " in answer(connection)
        too_many = [open_sockets.enter_context(serving.connect()) for _ in range(40)]
        assert all(is_closed(connection) for connection in too_many)
        ask(kept[0], fields="Connection: close\r\n")
        answer(kept[0])
        assert is_closed(kept[0])
        again = open_sockets.enter_context(serving.connect())
        ask(again)
        assert b" 200 " in answer(again)


@pytest.mark.parametrize("line", ["G(T / HTTP/1.1", "nothing", "GET / HTTP/1.1\r\nHost : a"])
def test_what_is_no_request_is_told_so_by_a_problem_document_and_ends(line: str) -> None:
    with Serving() as serving, serving.connect() as connection:
        connection.sendall(f"{line}\r\n\r\n".encode())
        received = b""
        while piece := connection.recv(4096):
            received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert f"content-length: {len(body)}".encode() in head.lower()
    assert b"content-type: application/problem+json" in head.lower()
    assert {"code": "malformed_http", "retryable": False}.items() <= json.loads(body).items()


def test_a_body_whose_end_is_told_in_two_ways_is_refused_and_nothing_after_it_is_a_request() -> None:
    smuggled = "GET /long HTTP/1.1\r\nHost: a\r\n\r\n"
    lengths = f"Content-Length: {len(smuggled) + 5}\r\nTransfer-Encoding: chunked\r\n"
    with Serving() as serving, serving.connect() as connection:
        connection.sendall(f"POST / HTTP/1.1\r\nHost: a\r\n{lengths}\r\n0\r\n\r\n{smuggled}".encode())
        received = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := connection.recv(4096):
                received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert "malformed_http" == json.loads(body)["code"]


def test_what_is_no_request_any_more_ends_an_answer_that_has_begun(caplog: pytest.LogCaptureFixture) -> None:
    # Less than the answer, so that it is on its way until it is read.
    with Serving() as serving, serving.connect(receive_octets=65_536) as connection:
        connection.sendall(b"POST /pieces HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        # The body is not looked at, so the answer begins before it.
        assert connection.recv(15).startswith(b"HTTP/1.1 200")
        connection.sendall(b"no length\r\n")
        # Not before the server has seen it: it sends as fast as is read.
        pause = threading.Event()
        for _ in range(int(PATIENCE * 100)):
            if all(each.transport.is_closing() for each in serving.connections):
                break
            pause.wait(0.01)
        # A reset where the server had not read all of it.
        with contextlib.suppress(ConnectionResetError):
            while connection.recv(1 << 20):
                pass
        with serving.connect() as another:
            ask(another)
            assert b" 200 " in answer(another)
    # Nor is it taken for a mistake of ours.
    assert [] == [record for record in caplog.records if record.name == "asyncio"]


def status_for(uid: int, port: int) -> str:
    """What another user's process is answered; 000 where it is not."""
    become = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    asking = ["curl", "--silent", "--max-time", "30", "--output", "/dev/null", "--write-out", "%{http_code}"]
    done = subprocess.run(
        [*become, *asking, f"http://127.0.0.1:{port}/"], capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can have another user connect")
def test_a_thousand_half_sent_requests_of_one_user_keep_no_other_user_out() -> None:
    with Serving(most=30) as serving, contextlib.ExitStack() as open_sockets:
        held = 0
        for number in range(1_000):
            half = open_sockets.enter_context(serving.connect())
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                half.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n")
            # Two thirds of the places, and not one more.
            if number >= 20:
                assert is_closed(half)
                half.close()
            held += number < 20
        assert 20 == held == len(serving.connections)
        assert "200" == status_for(65_534, serving.port)
        assert "200" == status_for(65_533, serving.port)
        # The other user may not take the rest either: a third one still finds a place.
        many = f"for n in $(seq 30); do exec {{fd}}<>/dev/tcp/127.0.0.1/{serving.port}; done; echo; read"
        others = subprocess.Popen(
            ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "bash", "-c", many],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with others:
            assert others.stdout is not None
            assert b"\n" == others.stdout.readline()
            assert "200" == status_for(65_533, serving.port)
            assert 20 < len(serving.connections) < 30


@dataclass
class Accepted:
    """An accepted connection, as far as it is asked whose it is."""

    peer: str
    family: int = socket.AF_INET6

    def getpeername(self) -> tuple[str, int]:
        return self.peer, 50_000

    def getsockname(self) -> tuple[str, int]:
        return "2001:db8::1", 8620


def test_a_peer_is_an_address_a_subscriber_of_ipv6_or_a_user_of_this_machine() -> None:
    def network(address: str) -> str:
        return peer_of(Accepted(address)).network

    assert network("192.0.2.1") == network("::ffff:192.0.2.1") != network("192.0.2.2")
    assert network("2001:db8:0:1::1") == network("2001:db8:0:1:ffff::2") != network("2001:db8:0:2::1")
    assert "fe80::/64" == network("fe80::1%eth0")
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        accepted, _ = listener.accept()
        with accepted:
            assert Peer("loopback", os.geteuid()) == peer_of(accepted)
            client.close()
    left, right = socket.socketpair()
    with left, right:
        assert Peer("unix", os.geteuid()) == peer_of(left)
    with socket.socket() as never_connected:
        assert Peer("gone", None) == peer_of(never_connected)


def test_what_follows_the_head_of_an_answer_does_not_wait_for_the_clients_word() -> None:
    with Serving() as serving, serving.connect() as connection:
        ask(connection)
        answer(connection)
        (bounded,) = serving.connections
        transport = bounded.transport.get_extra_info("socket")
        assert 1 == transport.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("sent", [b"", b"G", b"GET / HTTP/1.1\r\nHost: a\r\n"])
def test_a_head_that_never_ends_is_waited_for_no_longer_than_that(sent: bytes) -> None:
    with Serving(head_seconds=0.2) as serving, serving.connect() as connection:
        connection.sendall(sent)
        assert is_closed(connection)


def test_a_body_that_nobody_reads_does_not_keep_its_connection_by_trickling() -> None:
    with Serving() as serving, serving.connect() as connection:
        ask(connection, fields="Content-Length: 1000000\r\n")
        assert b" 200 " in answer(connection)
        ended, pause = False, threading.Event()
        connection.settimeout(0.02)
        # Each octet resets the time that uvicorn itself keeps an idle connection.
        for _ in range(1_000):
            with contextlib.suppress(TimeoutError):
                try:
                    connection.sendall(b"x")
                    serving.let_head_seconds_pass()
                    ended = connection.recv(1) == b""
                except (ConnectionResetError, BrokenPipeError):
                    ended = True
            if ended:
                break
            pause.wait(0.02)
        assert ended


def test_a_long_answer_is_not_cut_off_while_it_is_being_read() -> None:
    with Serving() as serving, serving.connect(receive_octets=65_536) as connection:
        ask(connection, "/long")
        serving.await_answered()
        received, looks, unsent = 0, 0, serving.unsent()
        while received < len(LONG_ANSWER):
            piece = connection.recv(262_144)
            assert piece, received
            received += len(piece)
            # Each time that more was taken since: several times what the next request would be waited for.
            if 0 < serving.unsent() < unsent:
                serving.let_head_seconds_pass()
                looks, unsent = looks + 1, serving.unsent()
        assert looks > 3
        serving.let_head_seconds_pass()
        assert is_closed(connection)


@pytest.mark.parametrize("path", ["/long", "/pieces"])
def test_an_answer_that_nobody_reads_is_given_up(path: str) -> None:
    with Serving(most=1) as serving, serving.connect(receive_octets=65_536) as connection:
        ask(connection, path)
        assert connection.recv(1)
        pause = threading.Event()
        for _ in range(500):
            serving.let_head_seconds_pass()
            with serving.connect() as other, contextlib.suppress(ConnectionResetError, BrokenPipeError):
                ask(other)
                if other.recv(1):
                    return
            pause.wait(0.02)
        raise AssertionError("the place was never given back")

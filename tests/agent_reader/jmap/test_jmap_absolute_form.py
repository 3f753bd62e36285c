"""A target that is a whole address opens what its path opens, and no more; over real sockets."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.agent_reader.on_loopback import SECONDS, Served, on_loopback
from tests.agent_reader.served import House, house

OURS = "http://localhost:8620"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house(tmp_path_factory.mktemp("absolute"), public_url="https://mail.example.com") as open_house:
        yield open_house


@pytest.fixture(scope="module")
def listening(served: House) -> Iterator[Served]:
    with on_loopback(served.app) as open_listener:
        yield open_listener


def asked(
    listening: Served, served: House, target: str, *, hosts: tuple[str, ...] = ("localhost",), version: str = "1.1"
) -> tuple[int, Any]:
    """The status and the body of what is at a target."""
    fields = "".join(f"Host: {host}\r\n" for host in hosts)
    request = (
        f"GET {target} HTTP/{version}\r\n{fields}Authorization: Bearer {served.token}\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", listening.port), timeout=SECONDS) as client:
        client.sendall(request.encode())
        answered = b""
        while piece := client.recv(65_536):
            answered += piece
    head, _, body = answered.partition(b"\r\n\r\n")
    # Whoever answers: it is kept nowhere and taken for nothing else.
    assert b"no-store" in head
    assert b"nosniff" in head
    return int(head.split(b" ")[1]), json.loads(body)


def test_a_whole_address_is_a_target(listening: Served, served: House) -> None:
    """RFC 9112 §3.2.2: a server has to take it, and what it names counts for the Host field."""
    for target in (f"{OURS}/jmap/session", "HTTP://localhost:8620/jmap/%73ession", f"{OURS}/jmap/session?a=//b/c"):
        status, session = asked(listening, served, target, hosts=("127.0.0.1:1",))
        assert (200, "https://mail.example.com/jmap/api") == (status, session["apiUrl"]), target
    # HTTP/1.0 has no Host field; the target has all that it would say.
    assert 200 == asked(listening, served, f"{OURS}/jmap/session", hosts=(), version="1.0")[0]
    assert 404 == asked(listening, served, OURS)[0]
    assert 404 == asked(listening, served, f"{OURS}?/jmap/session")[0]


@pytest.mark.parametrize(
    "authority",
    [
        "evil.example",
        "localhost.evil.example",
        "localhost@evil.example",
        "evil.example@localhost",
        "localhost#",
        "localhost\\.evil.example",
        "%6cocalhost",
        "",
    ],
)
def test_another_authority_opens_nothing_whatever_the_host_field_says(
    listening: Served, served: House, authority: str
) -> None:
    status, refused = asked(listening, served, f"http://{authority}/jmap/session", hosts=("localhost",))
    assert (421, "unknown_host") == (status, refused["code"])


def test_a_host_of_another_name_counts_for_nothing_beside_a_whole_address(listening: Served, served: House) -> None:
    assert 200 == asked(listening, served, f"{OURS}/jmap/session", hosts=("evil.example",))[0]
    assert 421 == asked(listening, served, "/jmap/session", hosts=("evil.example",))[0]
    for hosts in ((), ("localhost", "localhost")):
        assert 400 == asked(listening, served, f"{OURS}/jmap/session", hosts=hosts)[0], hosts


@pytest.mark.parametrize("target", ["https://mail.example.com/jmap/session", "ftp://localhost/jmap/session"])
def test_an_address_of_another_scheme_was_not_meant_to_come_this_way(
    listening: Served, served: House, target: str
) -> None:
    """RFC 9110 §7.4."""
    status, refused = asked(listening, served, target)
    assert (421, "misdirected") == (status, refused["code"])


@pytest.mark.parametrize(
    "target", ["*", "localhost:8620", "jmap/session", "http:/jmap/session", "//localhost/jmap/session"]
)
def test_what_is_no_address_opens_nothing(listening: Served, served: House, target: str) -> None:
    assert asked(listening, served, target)[0] in {400, 404}

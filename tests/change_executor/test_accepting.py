"""Connections that never become requests do not stay, there are never too many, and strangers take no place."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import TYPE_CHECKING

import pytest

from change_executor.accepting import ListenerProtocol
from tests.change_executor.gated_server import Serving
from tests.servers.bounded import NEVER_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

# Seconds; what is waited for takes a tenth of one.
PATIENCE = 30.0


def connect(listener: socket.socket) -> socket.socket:
    return socket.create_connection(listener.getsockname(), timeout=PATIENCE)


def is_closed(connection: socket.socket) -> bool:
    """Wait for the other side to end it."""
    with contextlib.suppress(ConnectionResetError):
        return connection.recv(1) == b""
    return True


def answer(connection: socket.socket) -> bytes:
    connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    return connection.recv(4096).split(b"\r\n")[0]


@pytest.mark.parametrize("sent", [b"", b"G", b"GET / HTTP/1.1\r\nHost: a\r\n"])
def test_a_connection_without_a_whole_request_head_is_closed(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(ListenerProtocol, "head_seconds", 0.2)
    listener = socket.create_server(("127.0.0.1", 0))
    with Serving(listener, frozenset({os.geteuid()})) as serving, connect(listener) as connection:
        connection.sendall(sent)
        assert is_closed(connection)
        assert serving.inner.requests == 0


def test_a_head_that_never_ends_after_a_first_request_is_closed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ListenerProtocol, "head_seconds", NEVER_SECONDS)
    listener = socket.create_server(("127.0.0.1", 0))
    with Serving(listener, frozenset({os.geteuid()})) as serving, connect(listener) as connection:
        assert b"204" in answer(connection)
        connection.sendall(b"GET /")
        serving.let_head_seconds_pass()
        assert is_closed(connection)


def test_one_connection_too_many_is_dropped_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    # The last place is never that of a peer who has one already.
    monkeypatch.setattr(ListenerProtocol, "max_connections", 3)
    listener = socket.create_server(("127.0.0.1", 0))
    with Serving(listener, frozenset({os.geteuid()})), connect(listener) as first, connect(listener) as second:
        assert b"204" in answer(first)
        assert b"204" in answer(second)
        with connect(listener) as third:
            assert is_closed(third)
        assert b"204" in answer(first)


class Neighbours:
    """Connections of this process that the lookup takes for those of other users."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, listener: socket.socket) -> None:
        self.lookups = 0
        self._address = listener.getsockname()
        self._uids: dict[int, int] = {}
        monkeypatch.setattr("change_executor.peers.uid_of_socket", self._uid_of)
        monkeypatch.setattr("shared.bounded_http.uid_of_tcp_peer", lambda peer, _: self._uids[peer[1]])

    def _uid_of(self, connection: socket.socket) -> int:
        self.lookups += 1
        return self._uids[connection.getpeername()[1]]

    @contextlib.contextmanager
    def connections_of(self, uid: int, number: int) -> Iterator[list[socket.socket]]:
        with contextlib.ExitStack() as open_sockets:
            made = []
            for _ in range(number):
                client = open_sockets.enter_context(socket.socket())
                client.settimeout(PATIENCE)
                client.bind(("127.0.0.1", 0))
                self._uids[client.getsockname()[1]] = uid
                client.connect(self._address)
                made.append(client)
            yield made


PERSON, STRANGER, OTHER_PERSON = 1000, 1001, 1002


def test_strangers_who_send_nothing_take_no_place_from_the_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ListenerProtocol, "max_connections", 7)
    monkeypatch.setattr(ListenerProtocol, "max_refused", 2)
    monkeypatch.setattr(ListenerProtocol, "refused_seconds", 3_600.0)
    monkeypatch.setattr(ListenerProtocol, "head_seconds", 3_600.0)
    listener = socket.create_server(("127.0.0.1", 0))
    with Serving(listener, frozenset({PERSON})) as serving:
        neighbours = Neighbours(monkeypatch, listener)
        with neighbours.connections_of(STRANGER, 20) as strangers:
            # The first two may ask why; all others are gone.
            assert all(is_closed(stranger) for stranger in strangers[2:])
            with neighbours.connections_of(PERSON, 3) as of_the_person:
                assert all(b"204" in answer(connection) for connection in of_the_person)
            assert b"403" in answer(strangers[0])
            assert (3, 1) == (serving.inner.requests, serving.gate.refused)


def test_a_stranger_who_makes_much_of_it_is_cut_off_long_before_a_head_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ListenerProtocol, "refused_seconds", 0.2)
    monkeypatch.setattr(ListenerProtocol, "head_seconds", 3_600.0)
    listener = socket.create_server(("127.0.0.1", 0))
    with Serving(listener, frozenset({PERSON})) as serving:
        neighbours = Neighbours(monkeypatch, listener)
        with neighbours.connections_of(STRANGER, 1) as (stranger,):
            stranger.sendall(b"GET / HT")
            assert is_closed(stranger)
            assert (0, 0) == (serving.inner.requests, serving.gate.refused)


def test_one_uid_leaves_room_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ListenerProtocol, "max_connections", 5)
    monkeypatch.setattr(ListenerProtocol, "max_of_one_uid", 2)
    listener = socket.create_server(("127.0.0.1", 0))
    with Serving(listener, frozenset({PERSON, OTHER_PERSON})):
        neighbours = Neighbours(monkeypatch, listener)
        with neighbours.connections_of(PERSON, 2) as kept, neighbours.connections_of(PERSON, 5) as dropped:
            assert all(is_closed(connection) for connection in dropped)
            with neighbours.connections_of(OTHER_PERSON, 1) as others:
                assert all(b"204" in answer(connection) for connection in kept + others)


def test_what_is_one_too_many_costs_no_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ListenerProtocol, "max_connections", 1)
    listener = socket.create_server(("127.0.0.1", 0))
    with Serving(listener, frozenset({PERSON})):
        neighbours = Neighbours(monkeypatch, listener)
        with neighbours.connections_of(PERSON, 1) as kept, neighbours.connections_of(PERSON, 4) as dropped:
            assert all(is_closed(connection) for connection in dropped)
            assert b"204" in answer(kept[0])
        assert neighbours.lookups == 1

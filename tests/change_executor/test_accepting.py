"""Connections that never become requests do not stay, and there are never too many."""

from __future__ import annotations

import contextlib
import os
import socket

import pytest

from tests.change_executor.gated_server import Serving

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
    monkeypatch.setattr("change_executor.accepting.HEAD_SECONDS", 0.2)
    listener = socket.create_server(("127.0.0.1", 0))
    with Serving(listener, frozenset({os.geteuid()})) as serving, connect(listener) as connection:
        connection.sendall(sent)
        assert is_closed(connection)
        assert serving.inner.requests == 0


def test_a_head_that_never_ends_after_a_first_request_is_closed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("change_executor.accepting.HEAD_SECONDS", 0.2)
    listener = socket.create_server(("127.0.0.1", 0))
    with Serving(listener, frozenset({os.geteuid()})), connect(listener) as connection:
        assert b"204" in answer(connection)
        connection.sendall(b"GET /")
        assert is_closed(connection)


def test_one_connection_too_many_is_dropped_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("change_executor.accepting.MAX_CONNECTIONS", 2)
    listener = socket.create_server(("127.0.0.1", 0))
    with Serving(listener, frozenset({os.geteuid()})), connect(listener) as first, connect(listener) as second:
        assert b"204" in answer(first)
        assert b"204" in answer(second)
        with connect(listener) as third:
            assert is_closed(third)
        assert b"204" in answer(first)

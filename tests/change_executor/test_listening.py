"""Sockets are ours on every name that the page answers to, or nothing starts."""

from __future__ import annotations

import socket
import stat
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from change_executor.listening import listeners
from shared.settings import ConfigurationError
from tests.servers.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def bound(address: str, *, both: bool = False) -> Iterator[set[str]]:
    sockets = listeners(address, "[review] listen", both=both)
    try:
        yield {listener.getsockname()[0] for listener in sockets}
    finally:
        for listener in sockets:
            listener.close()


def test_localhost_and_both_are_either_loopback_address_and_a_plain_address_is_itself() -> None:
    port = free_port()
    with bound(f"localhost:{port}") as names:
        assert {"127.0.0.1", "::1"} == names
    with bound(f"127.0.0.1:{port}", both=True) as names:
        assert {"127.0.0.1", "::1"} == names
    with bound(f"127.0.0.1:{port}") as names:
        assert {"127.0.0.1"} == names
    with bound(f"[::1]:{port}") as names:
        assert {"::1"} == names


@pytest.mark.parametrize("held", ["127.0.0.1", "::1"])
def test_where_another_program_holds_one_of_the_two_nothing_starts(held: str) -> None:
    port = free_port()
    family = socket.AF_INET6 if ":" in held else socket.AF_INET
    with closing(socket.create_server((held, port), family=family)):
        with pytest.raises(ConfigurationError, match="in use") as caught:
            listeners(f"localhost:{port}", "[review] listen", both=True)
        assert caught.value.where == "[review] listen"
    # The other one was given back.
    with bound(f"localhost:{port}"):
        pass


@pytest.mark.parametrize("port", ["0", "65536", "99999"])
def test_a_port_that_does_not_exist_is_named(port: str) -> None:
    with pytest.raises(ConfigurationError, match="no TCP port"):
        listeners(f"localhost:{port}", "[intake] listen", both=False)


def test_a_unix_socket_is_for_its_owner_and_group_and_replaces_a_dead_one(tmp_path: Path) -> None:
    path = tmp_path / "s"
    for _ in range(2):
        (listener,) = listeners(f"unix:{path}", "[review] listen", both=True)
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        listener.close()


def test_a_unix_socket_that_somebody_listens_on_and_a_plain_file_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s"
    (listener,) = listeners(f"unix:{path}", "[review] listen", both=True)
    with closing(listener), pytest.raises(ConfigurationError, match="another program listens"):
        listeners(f"unix:{path}", "[review] listen", both=True)
    file = tmp_path / "file"
    file.write_text("kept")
    with pytest.raises(ConfigurationError, match="no socket"):
        listeners(f"unix:{file}", "[review] listen", both=True)
    assert file.read_text() == "kept"
    with pytest.raises(ConfigurationError, match="cannot be listened on"):
        listeners(f"unix:{tmp_path}/missing/s", "[review] listen", both=True)

"""Sockets that a service manager hands over, and what it is told: by real descriptors in a real process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from shared.service_manager import ServiceManager, handed_over

if TYPE_CHECKING:
    from pathlib import Path

CHILD = """
import os, sys
os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4)
os.environ["LISTEN_PID"] = str(os.getpid())
from shared.service_manager import handed_over
from shared.settings import ConfigurationError
try:
    found = handed_over()
except ConfigurationError as error:
    print(error); sys.exit(2)
print({name: [listener.getsockname()[1] for listener in listeners] for name, listeners in found.items()})
print([os.get_inheritable(each.fileno()) for each in sum(found.values(), [])])
"""


def child(first: socket.socket, second: socket.socket, names: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", CHILD, str(first.fileno()), str(second.fileno())],
        pass_fds=(first.fileno(), second.fileno()),
        env={**os.environ, "LISTEN_FDS": "2", "LISTEN_FDNAMES": names},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_sockets_come_by_name_and_go_to_no_child() -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        done = child(one, other, "review:review")
        assert f"{{'review': [{one.getsockname()[1]}, {other.getsockname()[1]}]}}\n[False, False]\n" == done.stdout
        apart = child(one, other, "intake:review")
        assert f"'intake': [{one.getsockname()[1]}], 'review': [{other.getsockname()[1]}]" in apart.stdout


@pytest.mark.parametrize("kind", ["every address", "no listener"])
def test_a_socket_that_others_could_reach_is_refused(kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as right, socket.socket() as wrong:
        wrong.bind(("" if kind == "every address" else "127.0.0.1", 0))
        if kind == "every address":
            wrong.listen()
        done = child(right, wrong, "intake:review")
    assert 2 == done.returncode
    assert "the socket `review`" in done.stdout
    assert "ListenStream=" in done.stdout


def test_nothing_is_taken_that_was_handed_to_another_process() -> None:
    assert {} == handed_over({})
    assert {} == handed_over({"LISTEN_PID": "1", "LISTEN_FDS": "2"})


@pytest.mark.parametrize("abstract", [False, True])
def test_the_manager_is_told(tmp_path: Path, abstract: bool) -> None:
    name = f"@mailwarrant-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + name[1:] if abstract else name)
        manager.settimeout(20)
        to = ServiceManager({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())})
        to.ready("listening")
        to.alive()
        to.stopping()
        assert [b"READY=1\nSTATUS=listening", b"WATCHDOG=1", b"STOPPING=1"] == [manager.recv(200) for _ in range(3)]
    assert 30.0 == to.watchdog_seconds
    to.alive()  # the manager is gone


def test_by_hand_nothing_is_told_and_no_watchdog_waits() -> None:
    by_hand = ServiceManager({})
    by_hand.ready("listening")
    assert by_hand.watchdog_seconds is None
    assert ServiceManager({"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}).watchdog_seconds is None

"""What the child cannot do once confined, each with the same act done before, to show that it would have worked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from shared.landlock import landlock_version

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import ctypes, json, os, resource, signal, socket, sys
from change_executor.evidence.confine import confine

ARGUMENTS = json.loads(sys.argv[1])

def reads(): open(ARGUMENTS["secret"]).read()
def writes(): open(ARGUMENTS["scratch"], "w").write("x")
def lists(): os.listdir(ARGUMENTS["folder"])
def connects(): socket.create_connection(("127.0.0.1", ARGUMENTS["port"])).close()
def makes_a_unix_socket(): socket.socket(socket.AF_UNIX).close()
def runs(): os.posix_spawn("/bin/true", ["/bin/true"], {}) and os.wait()
def forks():
    if (pid := os.fork()) == 0:
        os._exit(0)
    os.waitpid(pid, 0)
def makes_a_pipe(): [os.close(each) for each in os.pipe()]
def grows_a_file(): os.write(ARGUMENTS["open"], b"x")
def takes_memory(): bytearray(600 * 1024 * 1024)

ACTS = [reads, writes, lists, connects, makes_a_unix_socket, makes_a_pipe, grows_a_file, takes_memory, forks, runs]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

def tried():
    done = {}
    for act in ACTS:
        try:
            act()
            done[act.__name__] = "done"
        except BaseException as error:
            done[act.__name__] = type(error).__name__
    return done

before = tried()
held = confine()
print(json.dumps([before, tried(), held.no_new_privs, held.landlock]))
"""

# Root is exempt from the limit of processes; as an ordinary user nothing can be forked either.
ROOT_MAY = {"forks"} if os.geteuid() == 0 else set()


@pytest.fixture
def tries(tmp_path: Path) -> tuple[dict[str, str], dict[str, str], bool, int]:
    import socket  # noqa: PLC0415 - the fixture's own

    (tmp_path / "secret").write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as listener, (tmp_path / "open").open("wb") as held:
        arguments = {
            "secret": str(tmp_path / "secret"),
            "scratch": str(tmp_path / "scratch"),
            "folder": str(tmp_path),
            "port": listener.getsockname()[1],
            "open": held.fileno(),
        }
        done = subprocess.run(
            [sys.executable, "-I", "-c", PROGRAM, json.dumps(arguments)],
            capture_output=True,
            check=True,
            pass_fds=[held.fileno()],
            timeout=60,
        )
    before, after, no_new_privs, landlock = json.loads(done.stdout)
    return before, after, no_new_privs, landlock


def test_everything_that_worked_before_is_refused_after(
    tries: tuple[dict[str, str], dict[str, str], bool, int],
) -> None:
    before, after, no_new_privs, landlock = tries
    assert {"done"} == set(before.values()), before
    assert ROOT_MAY == {act for act, outcome in after.items() if outcome == "done"}, after
    assert no_new_privs
    assert landlock_version() == landlock


def test_landlock_alone_refuses_files_and_connections(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    program = """
import ctypes, sys
from change_executor.evidence import confine
assert open(sys.argv[1]).read() == "secret"
held = confine._confine_on_linux()
try:
    open(sys.argv[1]).read()
except PermissionError:
    print("refused")
"""
    command = [sys.executable, "-I", "-c", program, str(tmp_path / "secret")]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    # On a kernel without it nothing is refused by it, and the doctor says so.
    assert done.stdout == (b"refused\n" if landlock_version() > 0 else b"")

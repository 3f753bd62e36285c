"""Processes of a server of the tests: whom they run as, whether one answers, and how exactly one is ended."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import select
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

HOST: Final = "127.0.0.1"
# Mail servers will not run mail processes as root, so root hands everything to this account.
OS_USER: Final = "mailwarrant-test"
# Of whom nothing is: the kernel's own overflow uid.
NOBODY: Final = 65_534
# Seconds; room for a machine that is busy with other tests.
_GREETING_DEADLINE: Final = 20.0
_END_DEADLINE: Final = 10.0
# Dovecot waited up to 207 seconds for a lock whose holder had been killed before it was told apart from a living one.
_LOCK_DEADLINE: Final = 300.0


def unprivileged_account() -> tuple[int, int]:
    """Who servers run as, uid and gid: the caller, or for root an account without anything of its own."""
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    # Another worker may be making it: for some hundredths of a second there is a user whose group is not there yet.
    with alone_with(OS_USER):
        try:
            account = pwd.getpwnam(OS_USER)
        except KeyError:
            command = ["useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
            subprocess.run([*command, "--shell", "/usr/sbin/nologin", OS_USER], capture_output=True, check=True)
            account = pwd.getpwnam(OS_USER)
    return account.pw_uid, account.pw_gid


@contextlib.contextmanager
def alone_with(users: str) -> Iterator[None]:
    """Wait until no other process of the tests makes or changes these users, and keep them to oneself; as root."""
    with Path(f"/run/{users}.lock").open("w") as lock:
        # The kernel lets it go when its holder ends, however that ends.
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Be somebody who may do no more than everybody, where the caller may do all: the whole process is, meanwhile."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


def greets(port: int) -> bool:
    """Whether an IMAP server greets there (RFC 9051 §7.1.1)."""
    try:
        with socket.create_connection((HOST, port), timeout=_GREETING_DEADLINE) as client:
            return client.recv(4) == b"* OK"
    except OSError:
        return False


def await_greeting(process: subprocess.Popen[bytes], port: int) -> bool:
    """Wait until a server of this process greets there; False where it ended or never did."""
    deadline = time.monotonic() + _GREETING_DEADLINE
    while time.monotonic() < deadline and process.poll() is None:
        if greets(port):
            return True
        # The pause between two tries ends early when the process does.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
    return False


@contextlib.contextmanager
def children(parent: int) -> Iterator[dict[int, int]]:
    """Handles (pidfd, so that no reused pid is taken for it) of a process's living children, by pid."""
    with contextlib.ExitStack() as held:
        handles: dict[int, int] = {}
        # Not task/*/children of /proc: that list skips some when others end while it is read.
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal() and _lives_under(folder, parent):
                with contextlib.suppress(ProcessLookupError):
                    handles[int(folder.name)] = held.enter_context(handle(int(folder.name)))
        yield handles


def _lives_under(folder: Path, parent: int) -> bool:
    try:
        # After the name in parentheses, which may hold anything: the state, and the parent's pid (proc(5)).
        state, its_parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return int(its_parent) == parent and state != "Z"


def began_at(pid: int) -> float:
    """When a process began (Unix time, to some hundredths of a second); now where it has ended."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        # After the name in parentheses, field 22 of all: ticks since the machine started (proc(5)).
        ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
        up = float(Path("/proc/uptime").read_text().split()[0])
        return time.time() - (up - ticks / os.sysconf("SC_CLK_TCK"))
    return time.time()


@contextlib.contextmanager
def handle(pid: int) -> Iterator[int]:
    """A pidfd. Raises ProcessLookupError where no such process is."""
    held = os.pidfd_open(pid)
    try:
        yield held
    finally:
        os.close(held)


def send(pid: int, number: signal.Signals) -> None:
    """A signal to a process that may be gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def ended(of_process: int, seconds: float) -> bool:
    """Whether the process of this handle ends within so many seconds."""
    return bool(select.select([of_process], [], [], seconds)[0])


def end_with_children(master: subprocess.Popen[bytes]) -> None:
    """Tell a master and its children, frozen ones too, to end; kill what has not after ten seconds."""
    with children(master.pid) as of_master:
        master.terminate()
        for pid in of_master:
            send(pid, signal.SIGCONT)
            send(pid, signal.SIGTERM)
        try:
            master.wait(_END_DEADLINE)
        except subprocess.TimeoutExpired:
            master.kill()
            master.wait()
        for pid, held in of_master.items():
            if not ended(held, _END_DEADLINE):
                send(pid, signal.SIGKILL)


def await_end(pids: Iterable[int]) -> None:
    """Wait until each of these has ended of itself; one that waits for the lock of a killed one takes minutes."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError), handle(pid) as held:
            assert ended(held, _LOCK_DEADLINE), f"process {pid} has not ended"


def kill(pids: Iterable[int]) -> None:
    """SIGKILL these, and wait for their end."""
    with contextlib.ExitStack() as held:
        handles = []
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                handles.append(held.enter_context(handle(pid)))
                send(pid, signal.SIGKILL)
        assert all(ended(of_process, _END_DEADLINE) for of_process in handles)

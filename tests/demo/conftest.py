"""The demo's server as a process of its own, and what its tests look at it with."""

from __future__ import annotations

import imaplib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from deploy.demo.roles import Role

NOW = datetime(2026, 11, 29, 10, 0, tzinfo=UTC)
REPOSITORY = Path(__file__).resolve().parents[2]

# A start takes about a second; a busy machine may need far longer.
DEADLINE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Copy:
    """One message as the owner finds it: UID, sorted flags, INTERNALDATE, octets."""

    uid: int
    flags: tuple[str, ...]
    received: str
    octets: bytes


@dataclass(frozen=True, slots=True)
class DemoProcess:
    port: int
    process: subprocess.Popen[bytes]

    def login(self, role: Role) -> imaplib.IMAP4:
        client = imaplib.IMAP4("127.0.0.1", self.port, timeout=DEADLINE_SECONDS)
        client.login(role.value, password(role))
        return client

    def mailbox(self, name: str) -> list[Copy]:
        """All messages of a mailbox, by the owner's EXAMINE."""
        with self.login(Role.OWNER) as owner:
            return _copies(owner, name)

    def state(self) -> dict[str, list[Copy]]:
        """Every mailbox and all that is in it, as the owner sees it."""
        with self.login(Role.OWNER) as owner:
            _, listed = owner.list()
            names = [line.decode().rpartition(" ")[2] for line in listed if isinstance(line, bytes)]
            return {name: _copies(owner, name) for name in names}

    def subscribed(self) -> list[bytes]:
        with self.login(Role.OWNER) as owner:
            return [line for line in owner.lsub()[1] if isinstance(line, bytes)]


def password(role: Role) -> str:
    return f"{role.value} has a pass-phrase"


def _copies(owner: imaplib.IMAP4, name: str) -> list[Copy]:
    owner.select(name, readonly=True)
    _, lines = owner.uid("FETCH", "1:*", "(UID FLAGS INTERNALDATE BODY.PEEK[])")
    return [_copy(line) for line in lines if isinstance(line, tuple)]


def _copy(line: tuple[bytes, bytes]) -> Copy:
    head = line[0].decode()
    uid = re.search(r"UID (\d+)", head)
    flags = re.search(r"FLAGS \(([^)]*)\)", head)
    received = re.search(r'INTERNALDATE "([^"]+)"', head)
    assert uid, head
    assert flags, head
    assert received, head
    kept = sorted(flag for flag in flags[1].split() if flag != r"\Recent")
    return Copy(int(uid[1]), tuple(kept), received[1], line[1])


def write_secrets(folder: Path) -> Path:
    for role in Role:
        (folder / role.value).write_text(password(role) + "\n")
    return folder


def started(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "deploy.demo.server", "--secrets", str(folder), *arguments],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def running(folder: Path) -> Iterator[DemoProcess]:
    process = started(write_secrets(folder), "--now", NOW.isoformat())
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        line = process.stdout.readline()
        assert line, process.stderr.read().decode()
        yield DemoProcess(json.loads(line)["port"], process)
    finally:
        process.terminate()
        process.wait(DEADLINE_SECONDS)
        process.stdout.close()
        process.stderr.close()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoProcess]:
    """One server for the tests of a module."""
    yield from running(tmp_path_factory.mktemp("secrets"))

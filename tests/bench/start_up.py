"""How long a client waits for `initialize` and for the session resource while a first sync runs.

Run as `python -m tests.bench.start_up 100000`: a Dovecot with so many messages, a reader whose index is empty, and one
client after the other until the first sync is done or a minute is over. Each must be answered within two seconds, and
be told that the first sync is running.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from tests.agent_reader.mcp.served import client
from tests.agent_reader.served import octets
from tests.fakes.reader_process import ReaderFolder, ReaderProcess
from tests.servers.dovecot import Dovecot

MAX_SECONDS: Final = 2.0
_WATCHED_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Answered:
    """How long the two took, and whether the client was told that the first sync is running."""

    initialize_seconds: float
    session_seconds: float
    says_so: bool


def letters(count: int) -> Iterator[bytes]:
    """Messages of a few kilobytes."""
    return (octets(number, f"Message {number}", f"Line {number} of many words.\r\n" * 60) for number in range(count))


async def ask(address: str, token: str) -> Answered:
    """Connect as a new client does, and ask for the session resource."""
    began = time.perf_counter()
    async with client(address, token, "legacy") as opened:
        initialized = time.perf_counter()
        says_so = "first sync is running" in str(opened.instructions)
    asked = time.perf_counter()
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        session = await http.get(f"{address}/jmap/session", headers={"Authorization": f"Bearer {token}"})
    assert session.status_code == 200, session.text
    return Answered(initialized - began, time.perf_counter() - asked, says_so)


async def during_first_sync(reader: ReaderProcess, token: str) -> list[Answered]:
    """One client after the other from the moment at which the door opens, until the sync is done or a minute over."""
    address = await asyncio.to_thread(reader.address)
    found: list[Answered] = []
    until = time.monotonic() + _WATCHED_SECONDS
    while time.monotonic() < until:
        answered = await ask(address, token)
        if not answered.says_so:
            break
        found.append(answered)
    return found


def main(count: int) -> int:
    """Measure, and say whether every client was answered in time."""
    with Dovecot() as dovecot, tempfile.TemporaryDirectory() as name:
        dovecot.fill("INBOX", letters(count))
        folder = ReaderFolder(Path(name), dovecot)
        token = folder.token()
        with folder.serve() as reader:
            found = asyncio.run(during_first_sync(reader, token))
    initialize, session = (
        max(times) for times in zip(*((each.initialize_seconds, each.session_seconds) for each in found), strict=True)
    )
    slowest = max(initialize, session)
    sys.stdout.write(
        f"first sync of {count:,} messages: {len(found)} clients, all told that it is running; at most "
        f"{initialize:.2f} s for initialize, {session:.2f} s for the session (allowed: {MAX_SECONDS:.0f} s)\n"
    )
    return 0 if slowest <= MAX_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))

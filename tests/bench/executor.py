"""The executor's journal, its door and its hand, each beside what the machine can do at all, in the same run.

`python -m tests.bench.executor [PROPOSALS]`, 100,000 by default for the pages; `--shares` and `--commit-ms` are for the
journal alone. Wall clock, medians of several rounds; figures are printed with their targets and decide nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import imaplib
import re
import resource
import secrets
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from change_executor.alarms import alarms
from change_executor.journal.group import MAX_GROUP
from change_executor.journal.journal import NewProposal
from change_executor.journal.open import open_journal
from change_executor.lifecycle import Event
from shared.handing_in import HandedIn
from tests.bench.executor_door import Door, constant, proposals
from tests.bench.slow_commits import run_with
from tests.change_executor.breaking.rig import Rig
from tests.change_executor.breaking.street import letter
from tests.servers.desk import ReviewPage, reading
from tests.servers.dovecot import Dovecot
from tests.servers.rawlog import client_logs

if TYPE_CHECKING:
    from collections.abc import Callable

    from change_executor.journal.journal import Journal, Writing

_SECONDS: Final = 3.0
_ROUNDS: Final = 3
_WRITERS: Final = 16
_MOVES: Final = 30
_PROPOSALS: Final = 100_000
_TARGETS: Final = {
    "journal, one writer": "at least 50 % of bare commits",
    "journal, sixteen writers that hand in": "at least 200 % of bare commits",
    "proposals over HTTP, sixteen connections": "at least 25 % of bare commits",
}
_PAGES: Final = ("/", "/?state=all", "/log", "/status", "/agents")


def bare_commits(folder: Path) -> float:
    """Commits a second of the driver alone: one row each, write-ahead log, a wait for the disk."""
    with contextlib.closing(sqlite3.connect(folder / "bare.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS events (seq INTEGER PRIMARY KEY, details TEXT, hash TEXT UNIQUE)"
        )

        def one() -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO events (details, hash) VALUES (?, ?)", ("{}" * 60, secrets.token_hex(32)))
            connection.execute("COMMIT")

        return _a_second(one)


def appends(journal: Journal) -> float:
    """Appends a second by one writer on the held connection."""
    return _a_second(lambda: _append(journal))


def handed_in_appends(journal: Journal) -> float:
    """Appends a second by sixteen tasks that hand them in, as the intake does; each waits for its own commit."""
    handed_in: HandedIn[Callable[[Writing], None]] = HandedIn(journal, "journal", MAX_GROUP)
    counts, end = [0] * _WRITERS, time.monotonic() + _SECONDS

    async def run(number: int) -> None:
        while time.monotonic() < end:
            await handed_in.write(_tick)
            counts[number] += 1

    async def together() -> None:
        await asyncio.gather(*(run(number) for number in range(_WRITERS)))

    asyncio.run(together())
    return sum(counts) / _SECONDS


def grouped_appends(journal: Journal) -> float:
    """Appends a second by sixteen threads that take turns."""
    counts, end = [0] * _WRITERS, time.monotonic() + _SECONDS

    def run(number: int) -> None:
        while time.monotonic() < end:
            _append(journal)
            counts[number] += 1

    threads = [threading.Thread(target=run, args=(number,)) for number in range(_WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / _SECONDS


def approve_to_moved(folder: Path) -> tuple[float, float]:
    """Milliseconds from an approval to its move, and of a script with the same exchanges and three bare commits."""
    with Dovecot("wide") as server:
        rig = Rig(server, folder)
        said = _what_is_said(rig, server)
        ours, theirs = [], []
        # In turns: the machine is not the same from one second to the next.
        for number in range(_MOVES):
            ours.append(_one_move(rig, f"ours {number}"))
            theirs.append(_one_script(server, folder, said, f"theirs {number}"))
        rig.close()
        return statistics.median(ours) * 1000, statistics.median(theirs) * 1000


def _one_move(rig: Rig, name: str) -> float:
    proposal_id = _approved(rig, name)
    began = time.perf_counter()
    rig.worker.pass_once()
    took = time.perf_counter() - began
    assert rig.proposal(proposal_id).state.value == "applied"
    return took


def _approved(rig: Rig, name: str) -> str:
    octets = letter(name)
    uid = rig.server.deliver("Incoming", octets)
    uidvalidity = rig.server.snapshot()["Incoming"].uidvalidity
    proposal_id = rig.propose(octets)
    rig.reader.places[rig.proposal(proposal_id).email_id] = [(uidvalidity, uid)]
    rig.work()
    rig.desk().approve(rig.looked_at(proposal_id))
    return proposal_id


def _what_is_said(rig: Rig, server: Dovecot) -> list[bytes]:
    """The lines of one move after signing in, by the server's own log, without their tags."""
    octets = letter("listened to")
    _approved(rig, "listened to")
    uid = str(max(server.snapshot()["Incoming"].messages)).encode()
    rig.worker.pass_once()
    server.await_no_session("executor")
    lines = client_logs(server.layout.rawlog("executor"))[-1].lines
    assert any(b"UID MOVE" in line for line in lines), octets
    said = [line.split(b" ", 1)[1] for line in lines]
    # The copy's UID differs each time; that of the source is the script's own.
    return [re.sub(rb"^(UID \w+) " + uid + rb"\b", rb"\1 SOURCE", line) for line in said]


def _one_script(server: Dovecot, folder: Path, said: list[bytes], name: str) -> float:
    source = str(server.deliver("Incoming", letter(name))).encode()
    with contextlib.closing(sqlite3.connect(folder / "script.db", isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        database.execute("CREATE TABLE IF NOT EXISTS steps (id INTEGER PRIMARY KEY, what TEXT)")
        began = time.perf_counter()
        client = imaplib.IMAP4(server.host, server.port)
        client.login("executor", server.passwords["executor"])
        client.state, target = "SELECTED", b"1"
        for number, line in enumerate(said):
            if number in (0, len(said) // 2, len(said) - 1):
                database.execute("INSERT INTO steps (what) VALUES (?)", (name,))
            moved = line.startswith(b"UID MOVE")
            # After the MOVE, what is fetched by another UID is the moved message.
            own = re.sub(rb"^(UID FETCH) \d+", rb"\1 " + target, line).replace(b"SOURCE", source)
            answer = _exchange(client, own)
            if moved and (found := re.search(rb"COPYUID \d+ \d+ (\d+)", answer)):
                target = found[1]
        client.shutdown()
        return time.perf_counter() - began


def _exchange(client: imaplib.IMAP4, line: bytes) -> bytes:
    tag = client._new_tag()
    client.send(tag + b" " + line + b"\r\n")
    answer = b""
    while True:
        got = client.readline()
        answer += got
        if literal := re.search(rb"\{(\d+)\}\r\n$", got):
            answer += client.read(int(literal[1]))
        if got.startswith(tag):
            assert b" OK" in got, got
            return answer


def pages(folder: Path, ended: int) -> dict[str, float]:
    """Milliseconds of pages, of the worker's idle pass and of the alarms, with so many proposals that have ended."""
    page = ReviewPage(folder)
    try:
        page.rows.person()
        _fill(page.journal, ended)
        for number in range(20):
            page.rows.proposal(reading(f"Subject {number}"), "because")
        client = page.signed_in()
        found = {path: _median(partial(client.get, path)) for path in _PAGES}

        def wrong() -> None:
            with page.journal.reading() as connection:
                alarms(connection, page.settings, page.clock())

        found["alarms"] = _median(wrong)
        return found
    finally:
        page.close()


def _fill(journal: Journal, ended: int) -> None:
    """Each at a minute of its own, the last one now: within the ninety days that agents are told by, at 100,000."""
    end = journal.now()
    for first in range(0, ended, 1000):
        with journal.writing() as writing:
            for number in range(first, min(first + 1000, ended)):
                writing.now = end - timedelta(minutes=ended - number)
                new = NewProposal(
                    id=f"Q{number:020d}",
                    agent="mailbot",
                    queue="support",
                    email_id=f"M{10**12 + number:032d}",
                    from_role="incoming",
                    to_role="processed",
                    expires_at=writing.now + timedelta(days=5),
                    predecessor=None,
                )
                writing.create(new, {"reason": "a receipt"})
                writing.advance(new.id, Event.REJECT, "person:rosa", decided_by="rosa", decided_at=writing.now)


def memory(folder: Path) -> tuple[float, float]:
    """MiB of this process after 500 proposals were made and rejected, and after 5,000 more."""
    journal = open_journal(f"sqlite:///{folder / 'memory.db'}", lambda: datetime.now(UTC))
    try:
        before = _made(journal, 0, 500)
        return before, _made(journal, 500, 5_500)
    finally:
        journal.close()


def _made(journal: Journal, first: int, end: int) -> float:
    for number in range(first, end):
        new = NewProposal(
            id=f"R{number:020d}",
            agent="mailbot",
            queue="support",
            email_id=f"M{number:032d}",
            from_role="incoming",
            to_role="processed",
            expires_at=journal.now() + timedelta(days=5),
            predecessor=None,
        )
        with journal.writing() as writing:
            writing.create(new, {"reason": "a receipt"})
        with journal.writing() as writing:
            writing.advance(new.id, Event.REJECT, "person:rosa")
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def _append(journal: Journal) -> None:
    with journal.writing() as writing:
        _tick(writing)


def _tick(writing: Writing) -> None:
    writing.append("bench:tick", "bench", "operator", {"code": "a code of the length of most", "number": 7})


def _a_second(act: Callable[[], None]) -> float:
    count, began = 0, time.monotonic()
    while (took := time.monotonic() - began) < _SECONDS:
        act()
        count += 1
    return count / took


def _median(act: Callable[[], object]) -> float:
    act()
    times = []
    for _ in range(9):
        began = time.perf_counter()
        act()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def _say(what: str, figure: str, target: str = "") -> None:
    sys.stdout.write(f"{what:52} {figure:>28}  {target}\n")
    sys.stdout.flush()


def _shares(folder: Path) -> None:
    journal = open_journal(f"sqlite:///{folder / 'journal.db'}", lambda: datetime.now(UTC))
    shares: dict[str, list[float]] = {}
    # In turns, each with bare commits of its own: the machine is not the same from one second to the next.
    for number in range(_ROUNDS):
        rounds = folder / f"http-{number}"
        rounds.mkdir()
        acts: dict[str, Callable[[], float]] = {
            "journal, one writer": partial(appends, journal),
            "journal, sixteen writers that hand in": partial(handed_in_appends, journal),
            "journal, sixteen threads in turns": partial(grouped_appends, journal),
            "proposals over HTTP, sixteen connections": lambda at=rounds: _door(proposals(at, _SECONDS)),  # type: ignore[misc]  # of this round
            "over HTTP, an endpoint that does nothing": lambda: _door(constant(_SECONDS)),
        }
        for what, act in acts.items():
            bare, ours = bare_commits(folder), act()
            shares.setdefault(what, []).append(ours / bare)
            _say(f"  {what}", f"{ours:7.0f}/s of {bare:7.0f}/s bare")
    journal.close()
    for what, found in shares.items():
        _say(what, f"{statistics.median(found) * 100:.0f} %", _TARGETS.get(what, ""))


def _door(found: Door) -> float:
    _say("  processor time each", f"{found.server_ms:.2f} ms, client {found.client_ms:.2f} ms")
    return found.a_second


def main() -> None:
    """Measure; `--commit-ms` adds so much to each wait for the disk, the peer's too, and measures the shares alone."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.executor")
    parser.add_argument("proposals", type=int, nargs="?", default=_PROPOSALS, help="that have ended, for the pages")
    parser.add_argument("--commit-ms", type=float, default=0.0, help="what a wait for the disk takes longer")
    parser.add_argument("--shares", action="store_true", help="measure the shares of bare commits alone")
    asked = parser.parse_args()
    if asked.commit_ms:
        _say(f"each fsync and fdatasync {asked.commit_ms:g} ms longer, the peer's too", "")
        sys.exit(run_with(asked.commit_ms, "-m", "tests.bench.executor", "--shares"))
    with tempfile.TemporaryDirectory() as folder:
        _shares(Path(folder))
    if not asked.shares:
        _all_else(asked.proposals)


def _all_else(ended: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ours, script = approve_to_moved(Path(folder))
        _say("approve to moved", f"{ours:.1f} ms, script {script:.1f} ms", "at most 1.5 times the script")
        _say("", f"x {ours / script:.2f}")
    with tempfile.TemporaryDirectory() as folder:
        before, after = memory(Path(folder))
        _say("memory after 500 and 5,500 proposals", f"{before:.1f}, {after:.1f} MiB", "flat")
    with tempfile.TemporaryDirectory() as few, tempfile.TemporaryDirectory() as many:
        with_few, with_many = pages(Path(few), 100), pages(Path(many), ended)
        for what, figure in with_many.items():
            _say(f"{what} with 100 and with {ended} ended", f"{with_few[what]:.1f}, {figure:.1f} ms", "no slower")


if __name__ == "__main__":
    main()

"""The executor's journal, its door and its hand, each beside what the machine can do at all, in the same run.

`python -m tests.bench.executor [PROPOSALS]`, 100,000 by default for the pages. Wall clock, medians of several rounds;
figures are printed with their targets and decide nothing.
"""

from __future__ import annotations

import contextlib
import gc
import imaplib
import re
import resource
import secrets
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from change_executor.alarms import alarms
from change_executor.intake.app import make_app
from change_executor.intake.proposer_tokens import create_token
from change_executor.journal.journal import NewProposal
from change_executor.journal.open import open_journal
from change_executor.lifecycle import Event
from tests.change_executor.breaking.rig import Rig
from tests.change_executor.breaking.street import letter
from tests.change_executor.moving.workshop import settings_for
from tests.servers.desk import ReviewPage, reading
from tests.servers.dovecot import Dovecot
from tests.servers.page import Served
from tests.servers.rawlog import client_logs

if TYPE_CHECKING:
    from collections.abc import Callable

    from change_executor.journal.journal import Journal

_SECONDS: Final = 3.0
_ROUNDS: Final = 3
_WRITERS: Final = 16
_MOVES: Final = 30
_PROPOSALS: Final = 100_000
_PAGES: Final = ("/", "/?state=all", "/log", "/status", "/agents")

# A client that sends proposals on one connection until it is told to end, and says how many were taken.
_CLIENT: Final = """
import http.client, json, sys, threading, time
port, token, seconds = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
first, clients = int(sys.argv[4]), int(sys.argv[5])
headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
counts = [0] * clients
def run(number):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    base, end = (first + number) * 10**7, time.monotonic() + seconds
    while time.monotonic() < end:
        email = "M%032d" % (base + counts[number])
        body = {"emailId": email, "from": "incoming", "to": "processed", "reason": "a receipt"}
        connection.request("POST", "/v1/proposals", json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status == 201, text
        counts[number] += 1
threads = [threading.Thread(target=run, args=(number,)) for number in range(clients)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(sum(counts))
"""


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


def grouped_appends(journal: Journal) -> float:
    """Appends a second by sixteen writers."""
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


def proposals_over_http(folder: Path) -> float:
    """Proposals a second that the intake's door takes from sixteen connections of other processes."""
    most = {"max_pending_per_agent": 10_000, "max_proposals_per_hour": 10_000, "max_proposals_per_day": 100_000}
    settings = settings_for(folder, 143, "x", queue=most)
    journal = open_journal(settings.journal.url, lambda: datetime.now(UTC))
    # One token each, as sixteen agents have: caps are per agent.
    tokens = [
        create_token(journal, agent=f"agent-{number}", queue="support", days=1, random_octets=secrets.token_bytes)
        for number in range(_WRITERS)
    ]
    served = Served()
    served.serve(make_app(journal, settings, secrets.token_bytes))
    try:
        port = int(served.url.rpartition(":")[2])
        clients = [
            subprocess.Popen(  # one process for each four connections, so that the server has a core
                [sys.executable, "-c", _CLIENT, str(port), tokens[number].text, str(_SECONDS), str(number * 4), "4"],
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(_WRITERS // 4)
        ]
        taken = [int(client.communicate(timeout=120)[0]) for client in clients]
        return sum(taken) / _SECONDS
    finally:
        served.close()
        journal.close()


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
    kinds: dict[str, list[float]] = {"one writer": [], "sixteen writers": [], "over HTTP, sixteen clients": []}
    # In turns, each round with bare commits of its own: the machine is not the same from one minute to the next.
    for number in range(_ROUNDS):
        rounds = folder / f"http-{number}"
        rounds.mkdir()
        acts: dict[str, Callable[[], float]] = {
            "one writer": partial(appends, journal),
            "sixteen writers": partial(grouped_appends, journal),
            "over HTTP, sixteen clients": partial(proposals_over_http, rounds),
        }
        for what, act in acts.items():
            bare, ours = bare_commits(folder), act()
            kinds[what].append(ours / bare)
            _say(f"  {what}", f"{ours:7.0f}/s of {bare:7.0f}/s bare")
    journal.close()
    for (what, found), target in zip(kinds.items(), ("50 %", "200 %", "25 %"), strict=True):
        _say(f"journal, {what}", f"{statistics.median(found) * 100:.0f} %", f"at least {target} of bare commits")


def main() -> None:
    ended = int(sys.argv[1]) if len(sys.argv) > 1 else _PROPOSALS
    with tempfile.TemporaryDirectory() as folder:
        _shares(Path(folder))
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

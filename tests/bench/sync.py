"""The mirror beside mbsync, imapclient alone and a bare socket: a first sync, a resync, and one new message.

`python -m tests.bench.sync [MESSAGES] [--quick]`, 20,000 by default; `--quick` leaves out mbsync with fsync, which
takes minutes. Needs Dovecot, and mbsync (Debian package isync) where it is to be measured. One run is one machine at
one time: figures of different runs do not compare.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from tests.bench.large_mailbox import LargeMailbox
from tests.bench.sync_again import measure_new_message, measure_resync
from tests.bench.sync_rivals import mbsync_config
from tests.fakes.reader_process import ReaderFolder, ReaderProcess, ask
from tests.servers.dovecot import Dovecot
from tests.servers.dovecot_config import MAIL_USER

_DEFAULT_MESSAGES: Final = 20_000
# Seconds between two looks at a reader that syncs; each costs it a few milliseconds.
_LOOK_SECONDS: Final = 0.5
# How often the memory is told on the way.
_TELLINGS: Final = 5
_MOST_SECONDS: Final = 3_600.0
_WEEK: Final = timedelta(days=7)
_TICKS: Final = os.sysconf("SC_CLK_TCK")
# What any searchable mirror in this language and with this index has to do, alone.
_FLOORS: Final = {"email, headers and texts": "email", "the same, older policy": "email-legacy", "FTS5 alone": "fts5"}


@dataclass(frozen=True, slots=True)
class Cost:
    """What one way of taking everything in took: seconds, seconds of CPU of the client, MB at most."""

    seconds: float
    cpu_seconds: float
    most_megabytes: float


def main() -> None:
    """Measure; prints a line for each figure."""
    arguments = [each for each in sys.argv[1:] if not each.startswith("--")]
    messages = int(arguments[0]) if arguments else _DEFAULT_MESSAGES
    mailbox = LargeMailbox(messages, datetime.now(UTC))
    with _served(mailbox) as (server, octets), tempfile.TemporaryDirectory(prefix="mw-bench-") as base:
        folder = Path(base)
        _line(
            f"{messages} messages, {octets / 1e6:.0f} MB, Dovecot {'.'.join(map(str, server.version()))}, "
            f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
        )
        _say("bare socket", messages, _run_alone("bare", server))
        _first_sync(mailbox, server, folder)
        _say("imapclient, fetch alone", messages, _run_alone("imapclient", server))
        if shutil.which("mbsync"):
            _say("mbsync, fsync off", messages, _run_mbsync(server, folder / "unsynced", fsync=False))
            if "--quick" not in sys.argv:
                _say("mbsync, as installed", messages, _run_mbsync(server, folder / "synced", fsync=True))
        for what, kind in _FLOORS.items():
            _say_floor(what, kind, messages)
        _line(f"load at the end {os.getloadavg()[0]:.1f}")


@contextmanager
def _served(mailbox: LargeMailbox) -> Iterator[tuple[Dovecot, int]]:
    with Dovecot() as server:
        # Its logs of every octet would be measured too; without the folder there are none.
        shutil.rmtree(server.layout.rawlog("reader"))
        shutil.rmtree(server.layout.rawlog("owner"))
        with server.connect() as owner:
            owner.select("INBOX", readonly=True)
        octets = mailbox.write(server.layout.mail / MAIL_USER / "Maildir", server.mail_owner)
        with server.connect() as owner:
            # The server's index is made before anybody is measured.
            owner.select("INBOX", readonly=True)
            owner.uid("FETCH", "1:*", "(RFC822.SIZE INTERNALDATE)")
        yield server, octets


def _first_sync(mailbox: LargeMailbox, server: Dovecot, folder: Path) -> None:
    house = folder / "reader"
    house.mkdir()
    plain = {"port": server.port, "tls": "none", "mailboxes": ["INBOX"]}
    reader = ReaderFolder(house, server, plain)
    token = reader.token()
    began = time.monotonic()
    with reader.serve() as process:
        address = process.address()
        _line(f"{'reader: session answers':28} {time.monotonic() - began:8.2f} s after the start")
        most = _await(mailbox, process, address, token, began)
        _say("reader, searchable", mailbox.messages, _cost_of(process, time.monotonic() - began, most))
        own, beside = _cpu_seconds(process)
        _line(
            f"{'reader: CPU':28} {own:8.1f} s itself, {beside:.1f} s the processes that read for it; a message "
            f"{1000 * own / mailbox.messages:.2f} and {1000 * beside / mailbox.messages:.2f} ms"
        )
        _line(f"{'reader: memory of itself':28} {_megabytes(process.process.pid, 'VmHWM'):8.0f} MB at most")
        _line(f"{'reader: memory afterwards':28} {_status_megabytes(process, 'VmRSS'):8.0f} MB")
        measure_new_message(server, address, token)
        process.end(by_signal=15)
    size = sum(path.stat().st_size for path in (house / "store").rglob("*") if path.is_file())
    _line(f"{'reader: files':28} {size / 1e6:8.0f} MB")
    measure_resync(server, reader)


def _await(mailbox: LargeMailbox, process: ReaderProcess, address: str, token: str, began: float) -> float:
    """Ask until everything is searchable; return the most memory, in MB, of the reader and those that read for it.

    Says when the last week was there, what memory it has on the way, and how long the slowest answer took.
    """
    since = mailbox.newest - _WEEK
    of_week = sum(
        mailbox.received_at(number) >= since for number in range(max(0, mailbox.messages - 1_000), mailbox.messages)
    )
    week = {"inMailbox": _inbox(address, token), "after": since.strftime("%Y-%m-%dT%H:%M:%SZ")}
    slowest = most = 0.0
    is_week_there = False
    told_at = mailbox.messages // _TELLINGS
    while time.monotonic() - began < _MOST_SECONDS:
        asked = time.monotonic()
        counted, listed = ask(
            address,
            token,
            ["Email/query", {"accountId": "shop", "filter": week, "calculateTotal": True, "limit": 1}, "q"],
            ["Mailbox/get", {"accountId": "shop", "ids": [week["inMailbox"]], "properties": ["totalEmails"]}, "m"],
        )
        slowest = max(slowest, time.monotonic() - asked)
        if not is_week_there and counted[1]["total"] >= of_week:
            is_week_there = True
            _line(f"{'reader: the last week':28} {time.monotonic() - began:8.2f} s after the start")
        held = listed[1]["list"][0]["totalEmails"]
        resident = _status_megabytes(process, "VmRSS")
        most = max(most, resident)
        if held >= told_at:
            told_at += mailbox.messages // _TELLINGS
            _line(f"{f'reader: {held} there':28} {time.monotonic() - began:8.1f} s, {resident:.0f} MB")
        if held >= mailbox.messages:
            _line(f"{'reader: slowest answer':28} {slowest:8.2f} s meanwhile")
            return most
        time.sleep(_LOOK_SECONDS)
    raise TimeoutError(f"not all came in within {_MOST_SECONDS:.0f} s")


def _inbox(address: str, token: str) -> str:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        ((_, found, _),) = ask(address, token, ["Mailbox/get", {"accountId": "shop", "ids": None}, "m"])
        for mailbox in found["list"]:
            if mailbox["name"] == "INBOX" or mailbox["role"] == "inbox":
                return str(mailbox["id"])
        time.sleep(0.05)
    raise TimeoutError("no INBOX within a minute")


def _run_alone(kind: str, server: Dovecot) -> Cost:
    command = [sys.executable, "-m", "tests.bench.sync_rivals", kind, str(server.port)]
    return _run(command, server.passwords["reader"])


def _run_mbsync(server: Dovecot, folder: Path, *, fsync: bool) -> Cost:
    folder.mkdir()
    secret = folder.with_suffix(".secret")
    secret.write_text(server.passwords["reader"])
    config = folder.with_suffix(".rc")
    config.write_text(mbsync_config(folder, server.port, secret, fsync=fsync))
    return _run(["mbsync", "-q", "-c", str(config), "bench"], "")


def _run(command: list[str], given: str) -> Cost:
    began = time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stdin is not None
        process.stdin.write(given + "\n")
        process.stdin.close()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}")
    return Cost(time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def _say_floor(what: str, kind: str, messages: int) -> None:
    command = [sys.executable, "-m", "tests.bench.sync_floor", kind, str(messages)]
    count, seconds = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    _line(f"{what:28} {1000 * seconds / count:8.2f} ms of CPU a message, of {count}")


def _cost_of(process: ReaderProcess, seconds: float, most_megabytes: float) -> Cost:
    """What a reader and the processes that it started, those that ended too, have used so far."""
    own, beside = _cpu_seconds(process)
    return Cost(seconds, own + beside, most_megabytes)


def _cpu_seconds(process: ReaderProcess) -> tuple[float, float]:
    """Of the reader itself, and of the processes beside it."""
    pid = process.process.pid
    own, beside = _ticks(pid, 11), _ticks(pid, 13) + sum(_ticks(child, 11) for child in _children(pid))
    return own / _TICKS, beside / _TICKS


def _ticks(pid: int, field: int) -> int:
    """User and system time: field 11 of a process, 13 of its children that ended (proc(5), from the state on)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:  # it ended just now, and counts among those
        return 0
    return int(fields[field]) + int(fields[field + 1])


def _children(pid: int) -> list[int]:
    """A process is the child of the thread that started it."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):
            found += map(int, (task / "children").read_text().split())
    return found


def _status_megabytes(process: ReaderProcess, name: str) -> float:
    pid = process.process.pid
    return sum(_megabytes(each, name) for each in (pid, *_children(pid)))


def _megabytes(pid: int, name: str) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return 0.0
    for line in status.splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _say(what: str, messages: int, cost: Cost) -> None:
    _line(
        f"{what:28} {cost.seconds:8.1f} s {messages / cost.seconds:8.0f} messages/s {cost.cpu_seconds:8.1f} s of CPU "
        f"{cost.most_megabytes:6.0f} MB at most"
    )


def _line(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

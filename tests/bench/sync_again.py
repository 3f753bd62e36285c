"""What it costs to be up to date: a look at a mailbox without news, and one new message."""

import sqlite3
import statistics
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from typing import Final

import httpx
import structlog

from agent_reader.config import ReaderSettings
from agent_reader.imap.session import ReadOnlySession
from agent_reader.store.store import Store
from agent_reader.sync.run import Sync
from shared.settings import load_settings
from tests.bench.sync_rivals import BareReader
from tests.fakes.reader_process import ReaderFolder
from tests.servers.dovecot import Dovecot

_ROUNDS: Final = 15
_USING: Final = ["urn:ietf:params:jmap:core", "urn:ietf:params:jmap:mail"]


def measure_resync(server: Dovecot, reader: ReaderFolder) -> None:
    """Look at a mirror that is complete, on a new connection as a reader that was just started, and as one that runs.

    Beside each the bare exchange, on a new connection. A round lists all mailboxes too.
    """
    (account,) = load_settings(reader.config, ReaderSettings).accounts
    with closing(Store(reader.folder / "store", lambda: datetime.now(UTC))) as store:
        mirror = store.account(account.id)
        (inbox,) = [mailbox for mailbox in mirror.mailboxes() if mailbox.name == "INBOX"]
        bare, started, running, told_of = [], [], [], []
        for _ in range(_ROUNDS):
            socket = BareReader(server.port, server.passwords["reader"])
            socket.ask("ENABLE QRESYNC")
            question = f"EXAMINE INBOX (QRESYNC ({inbox.uidvalidity} {inbox.highestmodseq}))"
            bare.append(_seconds(partial(socket.ask, question)))
            socket.close()
            session = ReadOnlySession.open(account)
            sync = Sync(mirror, ["INBOX"], structlog.get_logger())
            started.append(_seconds(partial(sync.round, session)))
            # Dovecot reads all UIDs once, now that mailboxes were listed.
            sync.round(session)
            running.append(_seconds(partial(sync.round, session)))
            told_of.append(_seconds(partial(sync.look_at, session, ["INBOX"])))
            session.close()
    _say("nothing new: first round", started, bare, "a bare QRESYNC exchange")
    _say("nothing new: later round", running, bare, "a bare QRESYNC exchange")
    _say("told of nothing new in INBOX", told_of, bare, "a bare QRESYNC exchange")


def measure_new_message(server: Dovecot, address: str, token: str) -> None:
    """From the end of APPEND until Email/changes tells of it; beside IDLE, one fetch and one commit."""
    _say(
        "new message: in Email/changes",
        [_until_in_changes(server, address, token, number) for number in range(_ROUNDS)],
        [_until_committed(server, number) for number in range(_ROUNDS)],
        "a bare IDLE, fetch and commit",
    )


def _until_in_changes(server: Dovecot, address: str, token: str, number: int) -> float:
    with httpx.Client(headers={"Authorization": f"Bearer {token}"}, base_url=address, timeout=60) as client:

        def call(name: str, **arguments: object) -> dict[str, object]:
            body = {"using": _USING, "methodCalls": [[name, {"accountId": "shop"} | arguments, "c"]]}
            answered: dict[str, object] = client.post("/jmap/api", json=body).json()["methodResponses"][0][1]
            return answered

        state = call("Email/get", ids=[])["state"]
        began = _delivered(server, f"for the reader {number}")
        while not call("Email/changes", sinceState=state)["created"]:
            time.sleep(0.002)
        return time.monotonic() - began


def _until_committed(server: Dovecot, number: int) -> float:
    idling = BareReader(server.port, server.passwords["reader"])
    idling.ask("EXAMINE INBOX")
    idling.send(b"i IDLE\r\n")
    idling.line()
    ended: list[float] = []
    folder = server.layout.base / "bare.db"

    def listen() -> None:
        while not (line := idling.line()).endswith(b"EXISTS\r\n"):
            pass
        idling.send(b"DONE\r\n")
        while not idling.line().startswith(b"i OK"):
            pass
        _, (octets,) = idling.ask(f"FETCH {line.split()[1].decode()} (UID FLAGS INTERNALDATE BODY.PEEK[])")
        with closing(sqlite3.connect(folder)) as database:
            database.execute("PRAGMA journal_mode = wal")
            database.execute("PRAGMA synchronous = normal")
            database.execute("CREATE TABLE IF NOT EXISTS messages (octets BLOB)")
            database.execute("INSERT INTO messages VALUES (?)", (octets,))
            database.commit()
        ended.append(time.monotonic())

    thread = threading.Thread(target=listen)
    thread.start()
    began = _delivered(server, f"for nobody {number}")
    thread.join()
    idling.close()
    return ended[0] - began


def _delivered(server: Dovecot, subject: str) -> float:
    server.deliver("INBOX", f"From: a@example.org\r\nSubject: {subject}\r\n\r\n{subject}\r\n".encode())
    return time.monotonic()


def _seconds(act: Callable[[], object]) -> float:
    began = time.monotonic()
    act()
    return time.monotonic() - began


def _say(what: str, ours: list[float], bare: list[float], beside: str) -> None:
    own, other = statistics.median(ours), statistics.median(bare)
    sys.stdout.write(f"{what:28} {own * 1000:8.1f} ms, {own / other:.1f} times {beside} ({other * 1000:.1f} ms)\n")
    sys.stdout.flush()

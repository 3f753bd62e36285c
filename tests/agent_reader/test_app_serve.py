"""The reader as a process: it starts, answers, refuses a wrong start with status 2, and ends when told."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import sqlite3
import threading
from pathlib import Path

import httpx
import pytest
import structlog

from agent_reader.app import serve
from agent_reader.config import ReaderSettings
from agent_reader.store.reader import LONG_BACKLOG
from shared.bounded_http import BoundedProtocol
from shared.settings import ConfigurationError, load_settings
from tests.agent_reader.on_loopback import await_true
from tests.fakes.reader_process import DEADLINE, ReaderFolder, ReaderProcess, subjects
from tests.servers.dovecot import Dovecot
from tests.servers.proxy import BreakingProxy, BreakPoint


@pytest.fixture
def folder(dovecot: Dovecot, tmp_path: Path) -> ReaderFolder:
    return ReaderFolder(tmp_path, dovecot)


def mail(subject: str) -> bytes:
    return f"From: a@example.org\r\nSubject: {subject}\r\nMessage-ID: <{subject}@x>\r\n\r\nbody of it\r\n".encode()


def test_an_agent_finds_mail_and_the_read_is_on_record(folder: ReaderFolder) -> None:
    folder.dovecot.deliver("INBOX", mail("hello"))
    token = folder.token()
    before = folder.dovecot.snapshot()
    with folder.serve() as reader:
        address = reader.address()
        reader.await_event("sync:round", whole=True)
        assert {"hello"} == subjects(address, token)
        folder.dovecot.deliver("Incoming", mail("and another"))
        reader.await_event("sync:round", taken_in=1)
        assert {"hello", "and another"} == subjects(address, token)
        assert "fresh, 2 messages" in folder.command("status").stdout
        assert 0 == reader.end(by_signal=signal.SIGTERM)
    reads = folder.command("reads", "--agent", "bot").stdout
    assert re.search(r" bot \S+ 127\.0\.0\.1 shop Email/get \d+ .*M[a-v0-9]{32}", reads), reads
    assert before["INBOX"] == folder.dovecot.snapshot()["INBOX"]
    # Neither mail nor secret in the log.
    for secret in ("hello", "body of it", folder.dovecot.passwords["reader"], token):
        assert secret not in reader.text
    assert not folder.socket.exists()


def test_the_private_socket_answers_its_own_user(folder: ReaderFolder) -> None:
    folder.dovecot.deliver("INBOX", mail("one"))
    with folder.serve() as reader:
        reader.address()
        reader.await_event("sync:round", whole=True)
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(folder.socket)), timeout=DEADLINE) as executor:
            (account,) = executor.get("http://reader/status").json()["accounts"]
        assert ("shop", True, 1, None) == (account["account"], account["fresh"], account["messages"], account["error"])
        # Another reader of the same folder is told so.
        second = folder.command("serve")
        assert 2 == second.returncode
        assert "another agent-reader" in second.stderr
        assert 0 == reader.end(by_signal=signal.SIGINT)


def is_closed(connection: socket.socket) -> bool:
    """Whether the other side ends it at once or within the time that it gives a request."""
    with contextlib.suppress(ConnectionResetError):
        return connection.recv(1) == b""
    return True


def test_connections_without_a_request_are_few_and_stop_neither_door(folder: ReaderFolder) -> None:
    folder.dovecot.deliver("INBOX", mail("one"))
    token = folder.token()
    with folder.serve() as reader:
        address = reader.address()
        reader.await_event("sync:round", whole=True)
        host, port = httpx.URL(address).host, httpx.URL(address).port
        # What one user may have; the rest is for others (`tests/shared/test_bounded_http.py`).
        share = BoundedProtocol.max_connections * 2 // 3
        for family, name in ((socket.AF_INET, (host, port)), (socket.AF_UNIX, str(folder.socket))):
            with contextlib.ExitStack() as open_sockets:
                for number in range(share + 5):
                    client = open_sockets.enter_context(socket.socket(family))
                    # Blocking: a full queue is waited for.
                    client.connect(name)
                    client.settimeout(DEADLINE)
                    assert number < share or is_closed(client), (family, number)
        assert {"one"} == subjects(address, token)
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(folder.socket)), timeout=DEADLINE) as executor:
            assert 200 == executor.get("http://reader/status").status_code
        assert 0 == reader.end(by_signal=signal.SIGTERM)
    assert "library:warning" not in reader.text


def wrong_start(folder: ReaderFolder) -> str:
    done = folder.command("serve")
    assert 2 == done.returncode, done.stderr
    # One message for a person, and before it at most lines of the log.
    message = done.stderr[done.stderr.index("agent-reader: ") :]
    assert len(message.splitlines()) == 2
    assert "Traceback" not in done.stderr
    return message


def test_a_first_start_with_a_wrong_password_ends_with_status_2_and_names_the_mend(folder: ReaderFolder) -> None:
    (folder.folder / "secret").write_text("not the password")
    message = wrong_start(folder)
    for text in ("`shop`", "reader at 127.0.0.1", "refused the login", "Mend `user` or the secret"):
        assert text in message
    assert "not the password" not in message
    assert not folder.socket.exists()


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"host": "nowhere.invalid"}, ["nowhere.invalid", "`host`"]),
        ({"port": 1}, ["no connection", "`port`"]),
        ({"ca_file": "/etc/ssl/certs/ca-certificates.crt"}, ["certificate", "`ca_file`"]),
        ({"mailboxes": ["INBOX", "Incomming"]}, ["`mailboxes`", "`Incomming`"]),
        ({"secret_file": "/nowhere/secret"}, ["/nowhere/secret"]),
    ],
)
def test_a_first_start_names_the_wrong_setting(
    folder: ReaderFolder, settings: dict[str, object], named: list[str]
) -> None:
    folder.settings = settings
    with pytest.raises(ConfigurationError) as error:
        serve(load_settings(folder.config, ReaderSettings), structlog.get_logger())
    assert [] == [text for text in named if text not in str(error.value)], error.value
    assert not folder.socket.exists()


def test_a_wrong_file_ends_with_status_2_before_anything_is_opened(folder: ReaderFolder) -> None:
    folder.settings = {"colour": "red"}
    assert "accounts.0.colour" in wrong_start(folder)
    assert not (folder.folder / "store").exists()


def test_a_later_start_serves_what_is_there_while_the_server_is_down_and_ends_where_it_refuses_the_login(
    folder: ReaderFolder,
) -> None:
    folder.dovecot.deliver("INBOX", mail("kept"))
    token = folder.token()
    with folder.serve() as reader:
        reader.await_event("sync:round", whole=True)
        assert 0 == reader.end(by_signal=signal.SIGTERM)
    folder.dovecot.stop()
    with folder.serve() as reader:
        address = reader.address()
        failed = reader.await_event("sync:failed")
        assert "unreachable" == failed["code"]
        assert {"kept"} == subjects(address, token)
        status = folder.command("status").stdout
        assert "stale" in status
        assert "unreachable" in status
        folder.dovecot.start()
        folder.dovecot.deliver("INBOX", mail("came later"))
        reader.await_event("sync:round", taken_in=1)
        assert {"kept", "came later"} == subjects(address, token)
        assert 0 == reader.end(by_signal=signal.SIGTERM)
    (folder.folder / "secret").write_text("changed meanwhile")
    assert "refused the login" in wrong_start(folder)


def test_it_ends_while_the_mail_server_does_not_answer(folder: ReaderFolder) -> None:
    with folder.serve() as reader:
        reader.address()
        folder.dovecot.freeze("reader")
        try:
            # Its own promise is five seconds, of a machine that does nothing else; the mail server gets ninety.
            assert 0 == reader.end(by_signal=signal.SIGTERM)
        finally:
            folder.dovecot.thaw("reader")


def test_it_ends_while_its_first_login_hangs(folder: ReaderFolder) -> None:
    with BreakingProxy(folder.dovecot.port, b"", BreakPoint.BLACKHOLE) as proxy:
        folder.settings = {"port": proxy.port, "tls": "none"}
        with folder.serve() as reader:
            # It was never greeted, and does not serve before its login was tried.
            assert proxy.broken.wait(30)
            assert 0 == reader.end(by_signal=signal.SIGTERM)
    assert "reader:ready" not in reader.text


# What a reading process writes before it says anything: that the kernel may take it first.
FIRST_TO_GO = "1000"


def octets_said(pid: int) -> int:
    """How much a reading process has said so far; 0 where it has ended."""
    with contextlib.suppress(OSError):
        written = re.search(r"^wchar: (\d+)$", Path(f"/proc/{pid}/io").read_text(), re.MULTILINE)
        return 0 if written is None else max(0, int(written[1]) - len(FIRST_TO_GO))
    return 0


def reading_processes(reader: ReaderProcess) -> list[int]:
    """Those of a reader that have said that they are ready. One that ends before has the reader read by itself."""
    found: list[int] = []
    for children in Path(f"/proc/{reader.process.pid}/task").glob("*/children"):
        # Some end while they are looked at, and so do threads.
        with contextlib.suppress(OSError):
            found += [pid for pid in map(int, children.read_text().split()) if octets_said(pid) and not is_over(pid)]
    return found


def one_reading_process(reader: ReaderProcess) -> int:
    if not any(line.get("event") == "sync:connected" for line in reader.log):
        reader.await_event("sync:connected")
    await_true(lambda: bool(reading_processes(reader)))
    return reading_processes(reader)[0]


def is_over(pid: int) -> bool:
    """Whether a process has ended; whoever inherited it may not have buried it yet."""
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


def stored(folder: ReaderFolder) -> int:
    with contextlib.closing(sqlite3.connect(folder.folder / "store" / "mail-shop.db")) as index:
        return int(index.execute("SELECT count(*) FROM copies").fetchone()[0])


def test_a_reader_ended_or_killed_while_processes_read_for_it_leaves_none_and_goes_on_where_it_was(
    folder: ReaderFolder,
) -> None:
    # Below some hundred there is no process for them; some come in before each is ended.
    many = 3 * LONG_BACKLOG
    folder.dovecot.fill("INBOX", (mail(f"number {number}") for number in range(many)))
    token = folder.token()
    # Stopped in the middle of a batch, they would not see that their input ended.
    with folder.serve() as reader:
        child = one_reading_process(reader)
        os.kill(child, signal.SIGSTOP)
        assert 0 == reader.end(by_signal=signal.SIGTERM)
        assert is_over(child)
    with folder.serve() as reader:
        # As the kernel does where memory runs out: of all processes first to this one.
        killed = one_reading_process(reader)
        assert FIRST_TO_GO == Path(f"/proc/{killed}/oom_score_adj").read_text().strip()
        os.kill(killed, signal.SIGKILL)
        await_true(lambda: killed not in reading_processes(reader))
        child = one_reading_process(reader)
        pause = threading.Event()

        def has_gone_on_a_little() -> bool:
            before = octets_said(child)
            os.kill(child, signal.SIGCONT)
            # A busy machine may not let it do anything at first; nor does it while the reader stores.
            for _ in range(50):
                pause.wait(0.005)
                if octets_said(child) > before:
                    break
            os.kill(child, signal.SIGSTOP)
            return stored(folder) > 0

        await_true(has_gone_on_a_little)
        reader.process.kill()
        reader.process.wait()
        await_true(lambda: is_over(child))
    with contextlib.closing(sqlite3.connect(folder.folder / "store" / "mail-shop.db")) as index:
        assert [("ok",)] == index.execute("PRAGMA quick_check").fetchall()
    left = many - stored(folder)
    assert 0 < left < many
    with folder.serve() as reader:
        address = reader.address()
        reader.await_event("sync:round", whole=True)
        # On a slow machine it takes more than one round.
        assert left == sum(line["taken_in"] for line in reader.log if line.get("event") == "sync:round")
        assert {f"number {number}" for number in range(many)} == subjects(address, token)
        assert [] == reading_processes(reader)
        assert 0 == reader.end(by_signal=signal.SIGTERM)
    assert not any(line.get("set_aside") for line in reader.log)


def test_tokens_are_made_listed_and_revoked_from_the_command_line(folder: ReaderFolder) -> None:
    made = folder.command("token", "create", "--agent", "night-shift")
    token = made.stdout.strip()
    assert token.startswith("mwr_"), made.stderr
    listed = folder.command("token", "list").stdout
    token_id = token.split("_")[1]
    assert f"{token_id} night-shift created " in listed
    assert token not in listed
    assert 0 == folder.command("token", "revoke", token_id).returncode
    assert "revoked" in folder.command("token", "list").stdout
    again = folder.command("token", "revoke", token_id)
    assert 2 == again.returncode
    assert token_id in again.stderr
    bad = folder.command("token", "create", "--agent", "Bad Name")
    assert 2 == bad.returncode
    assert "shop: never synced" in folder.command("status").stdout

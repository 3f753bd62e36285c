"""The executor as a process: it starts when everything is right, says what is not, and ends when told."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.end_to_end.houses import House, MailServer, eventually, write_executor
from tests.fakes.reader import FakeReader
from tests.servers.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.servers.dovecot import Dovecot


class Executor:
    """An executor in front of a real mail server, and no reader: its own behaviour alone."""

    def __init__(self, folder: Path, server: MailServer) -> None:
        folder.mkdir(mode=0o700)
        self.house = House("change_executor", folder, free_port())
        self.server = server
        self.review_port = free_port()
        self.configure()

    def configure(self, change: Callable[[str], str] = str) -> None:
        with contextlib.suppress(FileNotFoundError):
            (self.house.folder / "secret").unlink()
        write_executor(self.house, self.review_port, self.server, self.house.folder / "no-reader.sock", [os.geteuid()])
        self.house.config.write_text(change(self.house.config.read_text()))

    def refuses_to_start(self) -> str:
        """What it says as it ends with status 2."""
        self.house.start_unready()
        assert self.house.wait_for_end() == 2, self.house.log
        return self.house.log

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.house.log.splitlines() if line.startswith("{")]

    def said_event(self, name: str) -> dict[str, Any] | None:
        return next((event for event in reversed(self.events()) if event["event"] == name), None)


@pytest.fixture
def executor(dovecot: Dovecot, tmp_path: Path) -> Iterator[Executor]:
    server = MailServer(dovecot.port, dovecot.passwords["reader"], dovecot.passwords["executor"])
    made = Executor(tmp_path / "executor", server)
    yield made
    made.house.close()


def health(port: int) -> object:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/health", timeout=20) as answer:
        return json.load(answer)


def test_it_says_that_it_is_ready_and_publishes_the_head_and_ends_at_sigterm(executor: Executor) -> None:
    executor.house.start()
    ready = eventually(lambda: executor.said_event("executor:ready"), "the line that says ready")
    assert f"127.0.0.1:{executor.house.port}" == ready["intake"]
    assert {"status": "ok", "codes": []} == health(executor.house.port)
    with urllib.request.urlopen(f"http://localhost:{executor.review_port}/sign-in", timeout=20) as page:
        assert page.status == 200
    assert executor.house.stop() == 0
    closed = executor.said_event("journal:close")
    assert closed is not None
    verified = executor.house.said("audit", "verify")
    assert f"{closed['events']} events, head {closed['head']}\n" == verified


def test_an_open_page_and_a_slow_request_do_not_hold_its_end(executor: Executor) -> None:
    executor.house.start()
    eventually(lambda: executor.said_event("executor:ready"), "the line that says ready")
    with socket.create_connection(("127.0.0.1", executor.house.port)) as slow:
        slow.sendall(b"POST /v1/proposals HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{")
        with socket.create_connection(("127.0.0.1", executor.review_port)):
            assert executor.house.stop() == 0


def test_killed_at_any_time_it_starts_again(executor: Executor) -> None:
    heads = executor.house.folder / "heads"
    heads.touch()
    executor.configure(lambda text: text.replace("[journal]\n", f'[journal]\nheads_file = "{heads}"\n'))
    executor.house.start()
    assert executor.house.stop(signal.SIGKILL) == -signal.SIGKILL
    executor.house.start()
    assert executor.house.stop() == 0
    assert executor.house.run("audit", "verify").returncode == 0
    assert executor.said_event("journal:behind") is None
    # The journal of an earlier day, as the heads that were told since show.
    with heads.open("a") as told:
        told.write(json.dumps({"events": 999, "head": "f" * 64}) + "\n")
    executor.house.start()
    behind = eventually(lambda: executor.said_event("journal:behind"), "what the journal lacks")
    assert 999 == behind["events"]
    assert "stopped already" in executor.house.said("stop")
    assert executor.house.stop() == 0


def test_a_second_executor_on_the_same_journal_is_refused_and_the_first_goes_on(executor: Executor) -> None:
    executor.house.start()
    second = House("change_executor", executor.house.folder, executor.house.port)
    text = executor.house.config.read_text()
    other = executor.house.folder / "other.toml"
    other.write_text(
        text.replace(str(executor.house.port), str(free_port())).replace(str(executor.review_port), str(free_port()))
    )
    done = _run_serve(second, other)
    assert (2, True) == (done[0], "another change-executor" in done[1])
    assert {"status": "ok", "codes": []} == health(executor.house.port)
    # It wrote nothing: the last word of the journal is the first one's.
    assert executor.house.stop() == 0
    started, closed = executor.said_event("journal:open"), executor.said_event("journal:close")
    assert started is not None
    assert closed is not None
    assert started["events"] + 1 == closed["events"]


def test_a_reader_that_does_not_answer_or_has_other_accounts_is_told_at_the_start_and_stops_nothing(
    executor: Executor,
) -> None:
    executor.house.start()
    failed = executor.said_event("reader:failed")
    assert failed is not None
    assert ("reader_unreachable", "warning") == (failed["code"], failed["level"])
    assert executor.house.stop() == 0
    account = {"account": "another", "fresh": True, "messages": 0, "lastSyncAt": None, "error": None}
    with FakeReader(executor.house.folder / "no-reader.sock") as reader:
        reader.answers["/status"] = {"accounts": [account]}
        executor.house.start()
        unknown = executor.said_event("reader:account_unknown")
        assert unknown is not None
        assert "support" == unknown["queue"]
        assert executor.house.stop() == 0


def _run_serve(house: House, config: Path) -> tuple[int, str]:
    class Other(House):
        @property
        def config(self) -> Path:
            return config

    done = Other(house.module, house.folder, house.port).run("serve")
    return done.returncode, done.stderr


def test_a_port_that_is_taken_on_either_loopback_name_keeps_it_from_starting(executor: Executor) -> None:
    with contextlib.closing(socket.create_server(("::1", executor.review_port), family=socket.AF_INET6)):
        assert "[review] listen" in executor.refuses_to_start()


def test_a_mail_server_that_was_never_seen_must_answer_first_and_one_that_was_may_be_down(
    executor: Executor, dovecot: Dovecot
) -> None:
    dovecot.stop()
    assert "no connection" in executor.refuses_to_start()
    dovecot.start()
    executor.house.start()
    eventually(lambda: executor.said_event("executor:ready"), "the line that says ready")
    assert executor.house.stop() == 0
    dovecot.stop()
    executor.house.start()
    assert executor.said_event("mail_server:unreachable") is not None
    assert {"status": "ok", "codes": []} == health(executor.house.port)
    assert executor.house.stop() == 0
    # Other settings were never seen to be right.
    executor.configure(lambda text: text.replace('mailbox = "Processed"', 'mailbox = "Elsewhere"'))
    assert "no connection" in executor.refuses_to_start()


def test_the_stop_button_on_the_machine_outlives_every_process(executor: Executor) -> None:
    house = executor.house
    token = house.said("token", "create", "--agent", "triage", "--queue", "support").strip()
    assert "Stopped." in house.said("stop")
    house.start()
    request = urllib.request.Request(
        f"http://127.0.0.1:{house.port}/v1/proposals",
        json.dumps({"emailId": "M" + "0" * 32, "from": "incoming", "to": "processed"}).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {token}"},
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=20)
    with refused.value as answer:
        assert (503, "stopped") == (answer.code, json.load(answer)["code"])
    for secret in ("mwr_" + token[4:], token[:-1] + "x"):
        with contextlib.suppress(urllib.error.HTTPError):
            urllib.request.urlopen(
                urllib.request.Request(request.full_url, headers={"Authorization": f"Bearer {secret}"}), timeout=20
            ).close()
    # Another process releases it while the executor runs.
    assert "Released." in house.said("resume")
    with urllib.request.urlopen(request, timeout=20) as answer:
        assert answer.status == 201
    assert house.stop() == 0
    assert house.run("audit", "verify").returncode == 0
    assert token[5:40] not in house.log


def test_a_command_that_resumes_is_heard_at_once_and_a_file_stops(executor: Executor) -> None:
    """The worker's own look comes each fifteen seconds; the log shows that it need not wait for it."""
    file = executor.house.folder / "stop-everything"
    executor.configure(lambda text: f'stop_file = "{file}"\n{text}')
    executor.house.start()
    eventually(lambda: executor.said_event("executor:ready"), "the line that says ready")
    file.touch()
    eventually(lambda: executor.said_event("stop:file"), "the stop by the file")
    assert "already" in executor.house.said("stop")
    file.unlink()
    assert "Released." in executor.house.said("resume")
    assert (executor.house.folder / "journal.db.wake").is_socket()
    assert executor.house.stop() == 0
    assert not (executor.house.folder / "journal.db.wake").exists()
    head = executor.said_event("journal:close")
    assert head is not None
    log = executor.house.folder / "log"
    log.write_text(executor.house.log)
    assert f"{head['events']} events" in executor.house.said("audit", "verify", "--heads", str(log))

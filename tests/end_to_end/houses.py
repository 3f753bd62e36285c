"""Both houses as real processes with their own folders, secrets and ports, in front of a real mail server."""

import json
import os
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import httpx

import deploy.demo.person
from change_executor.journal.open import open_journal
from change_executor.review.links import new_link
from tests.servers.ports import free_port

BIN: Final = Path(sys.executable).parent
QUEUE: Final = "support"
AGENT: Final = "triage"
PERSON: Final = "ada"
PASSWORD: Final = "correct horse battery"
# Seconds. Two cores are shared by many processes; what is waited for takes one or two.
PATIENCE: Final = 40.0

Found = TypeVar("Found")


def eventually(look: Callable[[], Found | None], what: str, patience: float = PATIENCE) -> Found:
    """Look until something is found; a bounded wait, for what another process does in its own time."""
    deadline = time.monotonic() + patience
    pause, pause_over = 0.02, threading.Event()
    while True:
        found = look()
        if found is not None and found is not False:
            return found
        assert time.monotonic() < deadline, f"waited {patience:.0f} s for: {what}"
        pause_over.wait(pause)
        pause = min(pause * 1.5, 0.3)


@dataclass
class House:
    """One program: its folder, its configuration, and its process while it runs."""

    module: str
    folder: Path
    port: int
    run_as: Sequence[str] = ()
    entry: Sequence[str] = ()
    environment: dict[str, str] = field(default_factory=dict)
    working_folder: Path = Path(__file__).parents[2]
    process: subprocess.Popen[bytes] | None = None

    @property
    def config(self) -> Path:
        return self.folder / "house.toml"

    @property
    def log(self) -> str:
        path = self.folder / "log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def _command(self, *arguments: str) -> list[str]:
        entry = self.entry or (sys.executable, "-m", self.module)
        return [*self.run_as, *entry, *arguments, "--config", str(self.config)]

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
        return kept | self.environment

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of this house to its end."""
        return subprocess.run(
            self._command(*arguments),
            cwd=self.working_folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def said(self, *arguments: str) -> str:
        """What a command printed; it must succeed."""
        done = self.run(*arguments)
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    def start(self) -> Self:
        """Start the daemon and wait until its port answers."""
        self.start_unready()
        eventually(self._answers, f"{self.module} to listen on {self.port}")
        return self

    def start_unready(self) -> None:
        assert self.process is None
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self._command("serve"),
                cwd=self.working_folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"{self.module} ended: {self.log}"
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5):
                return True
        except OSError:
            return False

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End the daemon; its exit status."""
        assert self.process is not None
        process, self.process = self.process, None
        process.send_signal(number)
        try:
            return process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def wait_for_end(self) -> int:
        """Wait for the daemon to end by itself."""
        assert self.process is not None
        process, self.process = self.process, None
        return process.wait(PATIENCE)

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@dataclass(frozen=True)
class MailServer:
    """Where the houses sign in, and with which passwords."""

    port: int
    reader_password: str
    executor_password: str
    executor_port: int | None = None


@dataclass
class Houses:
    """The reader and the executor of one test, and what the agent and the person use."""

    reader: House
    executor: House
    review_port: int
    reader_token: str = ""
    proposer_token: str = ""

    @property
    def review_url(self) -> str:
        return f"http://localhost:{self.review_port}"

    def jmap(self, *calls: list[Any], token: str | None = None) -> list[Any]:
        """Make JMAP method calls as the agent; the method responses."""
        answer = httpx.post(
            f"http://127.0.0.1:{self.reader.port}/jmap/api",
            json={"using": ["urn:ietf:params:jmap:core", "urn:ietf:params:jmap:mail"], "methodCalls": list(calls)},
            headers={"Authorization": f"Bearer {token or self.reader_token}"},
            timeout=30,
            # plain http; loading the roots would take some hundredths of a second each time
            verify=False,
        )
        assert answer.status_code == 200, answer.text
        responses = answer.json()["methodResponses"]
        assert isinstance(responses, list)
        return responses

    def find(self, subject: str) -> str | None:
        """The Email id of the one message with this subject, once the reader has it."""
        name, result, _ = self.jmap(["Email/query", {"accountId": "shop", "filter": {"subject": f'"{subject}"'}}, "q"])[
            0
        ]
        assert name == "Email/query", result
        ids = result["ids"]
        return ids[0] if ids else None

    def found(self, subject: str) -> str:
        return eventually(lambda: self.find(subject), f"the reader to have {subject!r}")

    def intake(self, method: str, path: str, token: str | None = None, **more: Any) -> httpx.Response:
        return httpx.request(
            method,
            f"http://127.0.0.1:{self.executor.port}{path}",
            headers={"Authorization": f"Bearer {token or self.proposer_token}"},
            timeout=30,
            verify=False,
            **more,
        )

    def propose(self, email_id: str, to: str = "processed", reason: str = "It is done") -> str:
        body = {"emailId": email_id, "from": "incoming", "to": to, "reason": reason, "queue": QUEUE}
        answer = self.intake("POST", "/v1/proposals", json=body)
        # 200: the agent's own, which is open still
        assert answer.status_code in (200, 201), answer.text
        proposal_id = answer.json()["id"]
        assert isinstance(proposal_id, str)
        return proposal_id

    def proposal(self, proposal_id: str) -> dict[str, Any]:
        answer = self.intake("GET", f"/v1/proposals/{proposal_id}")
        assert answer.status_code == 200, answer.text
        view = answer.json()
        assert isinstance(view, dict)
        return view

    def reaches(self, proposal_id: str, *states: str) -> dict[str, Any]:
        """Wait until the proposal is in one of these states."""
        return eventually(
            lambda: view if (view := self.proposal(proposal_id))["state"] in states else None,
            f"{proposal_id} to be {' or '.join(states)}, it is {self.proposal(proposal_id)}",
        )

    def looked_at(self, proposal_id: str) -> None:
        """Wait until the executor has its own reading of the message, so that a person can decide."""
        database = f"file:{self.executor.folder / 'journal.db'}?mode=ro"

        def evidence() -> bool:
            with closing(sqlite3.connect(database, uri=True)) as journal:
                return (
                    journal.execute("SELECT evidence FROM proposals WHERE id = ?", [proposal_id]).fetchone()[0]
                    is not None
                )

        eventually(evidence, f"the executor to look at {self.proposal(proposal_id)}")

    def close(self) -> None:
        self.reader.close()
        self.executor.close()


class Person(deploy.demo.person.Person):
    """The person of a test: waits for what the page will offer."""

    def __init__(self, houses: Houses) -> None:
        super().__init__(houses.review_url)
        self._houses = houses

    def sign_in_first_time(self) -> None:
        """Spend a link made on the machine, and set a password."""
        self.sign_in_by_link(self._houses.executor.said("user", "link", PERSON).strip().splitlines()[-1], PASSWORD)

    def come_in(self) -> None:
        """Come in by a link that this process made, as the command makes it; the first time, set a password."""
        url = f"sqlite:///{self._houses.executor.folder / 'journal.db'}"
        with closing(open_journal(url, lambda: datetime.now(UTC), may_create=False)) as journal:
            secret = new_link(journal, PERSON, secrets.token_bytes)
        page = self.submit(self.browser.get("/link"), "/link", {"secret": secret})
        if 'action="/password"' in page.text:
            self.submit(page, "/password", {"password": PASSWORD, "again": PASSWORD})

    def can_decide(self, proposal_id: str, action: str = "approve") -> httpx.Response:
        """Wait until the page offers this action."""
        return eventually(
            lambda: self.offers(proposal_id, action),
            f"the page to offer {action} for {self._houses.proposal(proposal_id)}\n{self._houses.executor.log[-3000:]}",
        )

    def decide(self, proposal_id: str, action: str, **fields: str) -> httpx.Response:
        """Press a button on the item's page as it stands now."""
        return self.submit(self.can_decide(proposal_id, action), f"/p/{proposal_id}/{action}", fields)


def _toml(value: object) -> str:
    return json.dumps(value)


def write_reader(
    house: House, server: MailServer, socket_path: Path, sync_seconds: int = 1, executor_uid: int | None = None
) -> None:
    secret = house.folder / "secret"
    secret.write_text(server.reader_password)
    secret.chmod(0o400)
    house.config.write_text(
        f"""
[server]
listen = "127.0.0.1:{house.port}"
socket = {_toml(str(socket_path))}
{f"executor_uid = {executor_uid}" if executor_uid is not None else ""}
[store]
url = {_toml("sqlite:///" + str(house.folder / "index"))}
[[accounts]]
id = "shop"
host = "127.0.0.1"
port = {server.port}
tls = "none"
user = "reader"
secret_file = {_toml(str(secret))}
sync_seconds = {sync_seconds}
"""
    )


def write_executor(
    house: House, review_port: int, server: MailServer, socket_path: Path, uids: Sequence[int], quiet_seconds: int = 2
) -> None:
    secret = house.folder / "secret"
    secret.write_text(server.executor_password)
    secret.chmod(0o400)
    house.config.write_text(
        f"""
quiet_seconds = {quiet_seconds}
[intake]
listen = "127.0.0.1:{house.port}"
[review]
listen = "localhost:{review_port}"
allow_uids = {_toml(list(uids))}
[reader]
socket = {_toml(str(socket_path))}
[journal]
url = {_toml("sqlite:///" + str(house.folder / "journal.db"))}
[[credentials]]
id = "move"
host = "127.0.0.1"
port = {server.executor_port or server.port}
tls = "none"
user = "executor"
secret_file = {_toml(str(secret))}
[[queues]]
id = "{QUEUE}"
credential = "move"
account = "shop"
incoming = "Incoming"
[queues.to.processed]
mailbox = "Processed"
[queues.to.escalate]
mailbox = "Escalate"
"""
    )


@contextmanager
def houses_in(folder: Path, server: MailServer, **executor_options: Any) -> Iterator[Houses]:
    """Both houses, configured and not yet started; ended and cleaned up afterwards."""
    for name in ("reader", "executor"):
        (folder / name).mkdir(mode=0o700)
    (folder / "reader" / "index").mkdir(mode=0o700)
    reader = House("agent_reader", folder / "reader", free_port())
    executor = House("change_executor", folder / "executor", free_port())
    houses = Houses(reader, executor, free_port())
    socket_path = folder / "reader" / "link" / "reader.sock"
    socket_path.parent.mkdir(mode=0o750)
    write_reader(reader, server, socket_path)
    write_executor(executor, houses.review_port, server, socket_path, [os.geteuid()], **executor_options)
    try:
        yield houses
    finally:
        houses.close()


def furnish(houses: Houses) -> None:
    """Make the tokens and the person."""
    houses.reader_token = houses.reader.said("token", "create", "--agent", AGENT).strip().splitlines()[-1]
    houses.proposer_token = (
        houses.executor.said("token", "create", "--agent", AGENT, "--queue", QUEUE).strip().splitlines()[-1]
    )
    houses.executor.said("user", "add", PERSON)

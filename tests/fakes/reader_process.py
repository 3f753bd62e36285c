"""The reader as a process of its own, with a configuration in a folder of its own."""

from __future__ import annotations

import json
import queue
import secrets
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, Self

import httpx

from agent_reader.access import Access
from tests.servers.dovecot import Dovecot


class MailServer(Protocol):
    """A server of the tests."""

    host: str
    port: int
    passwords: dict[str, str]


REPOSITORY = Path(__file__).resolve().parents[2]
# Seconds; a start takes one, and thirty times as long where a machine does the work of twenty. Nothing waits for it to
# pass.
DEADLINE = 60.0

_USING = ["urn:ietf:params:jmap:core", "urn:ietf:params:jmap:mail"]


@dataclass
class ReaderFolder:
    """A configuration for the reader's login on a server; `settings` are lines of `[[accounts]]` that differ."""

    folder: Path
    server: MailServer
    settings: dict[str, object] = field(default_factory=dict)

    @property
    def dovecot(self) -> Dovecot:
        """The server, where it is one."""
        assert isinstance(self.server, Dovecot)
        return self.server

    @property
    def socket(self) -> Path:
        return self.folder / "reader.sock"

    @property
    def config(self) -> Path:
        """Write the file anew and return its path."""
        secret = self.folder / "secret"
        if not secret.exists():
            secret.write_text(self.server.passwords["reader"])
        secret.chmod(0o600)
        account = {
            "id": "shop",
            "host": self.server.host,
            "user": "reader",
            "secret_file": str(secret),
            "sync_seconds": 1,
        }
        if isinstance(self.server, Dovecot):
            account |= {"port": self.server.tls_port, "ca_file": str(self.server.ca_file)}
        else:
            account |= {"port": self.server.port, "tls": "none"}
        account |= self.settings
        lines = [
            "[server]",
            'listen = "127.0.0.1:0"',
            f'socket = "{self.socket}"',
            "[store]",
            f'url = "sqlite:///{self.folder}/store"',
            "[[accounts]]",
            *(f"{key} = {json.dumps(value)}" for key, value in account.items()),
        ]
        path = self.folder / "reader.toml"
        path.write_text("\n".join(lines) + "\n")
        return path

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        whole = [sys.executable, "-m", "agent_reader", *arguments, "--config", str(self.config)]
        return subprocess.run(whole, capture_output=True, text=True, check=False, cwd=REPOSITORY, timeout=DEADLINE)

    def token(self, agent: str = "bot") -> str:
        """A token made without a process of its own: the command line has a test of its own."""
        with Access(self.folder / "store", lambda: datetime.now(UTC), secrets.token_bytes) as access:
            return access.create_token(agent).text

    def serve(self) -> ReaderProcess:
        return ReaderProcess([sys.executable, "-m", "agent_reader", "serve", "--config", str(self.config)])


class ReaderProcess:
    """`agent-reader serve`; killed at the end of the with block if it still runs. `log` holds its lines so far."""

    def __init__(self, command: list[str]) -> None:
        self.log: list[dict[str, Any]] = []
        self.text = ""
        self._lines: queue.Queue[str | None] = queue.Queue()
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY)
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._reading.join()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._lines.put(line)
        self._lines.put(None)

    def await_event(self, event: str, **fields: object) -> dict[str, Any]:
        """Wait for a line of the log of this event with these fields; what came before it is in `log`."""
        while True:
            line = self._lines.get(timeout=DEADLINE)
            assert line is not None, f"it ended before {event}:\n{self.text}"
            found = self._take(line)
            if found.get("event") == event and fields.items() <= found.items():
                return found

    def _take(self, line: str) -> dict[str, Any]:
        self.text += line
        try:
            found = json.loads(line)
        except ValueError:
            return {}
        self.log.append(found)
        return dict(found)

    def address(self) -> str:
        """Wait until it listens, and return where."""
        return str(self.await_event("reader:ready")["address"])

    def end(self, *, by_signal: int | None = None) -> int:
        """Send a signal if one is given, wait for the end, and return the exit status."""
        if by_signal is not None:
            self.process.send_signal(by_signal)
        status = self.process.wait(DEADLINE)
        self._reading.join()
        while (line := self._lines.get(timeout=DEADLINE)) is not None:
            self._take(line)
        return status


def ask(address: str, token: str, *calls: list[Any]) -> list[Any]:
    """One JMAP request; gives the method responses."""
    body = {"using": _USING, "methodCalls": list(calls)}
    # Plain HTTP: the roots of TLS, which take some hundredths of a second, are not loaded.
    answer = httpx.post(
        f"{address}/jmap/api",
        json=body,
        headers={"Authorization": f"Bearer {token}"},
        timeout=DEADLINE,
        verify=False,
    )
    assert answer.status_code == 200, answer.text
    responses = answer.json()["methodResponses"]
    assert isinstance(responses, list)
    return responses


def subjects(address: str, token: str) -> set[str]:
    """Every subject that an agent finds, page by page."""
    found: set[str] = set()
    position = 0
    while True:
        query = ["Email/query", {"accountId": "shop", "position": position, "limit": 200}, "q"]
        reference = {"resultOf": "q", "name": "Email/query", "path": "/ids"}
        get = ["Email/get", {"accountId": "shop", "#ids": reference, "properties": ["subject"]}, "g"]
        emails = ask(address, token, query, get)[1][1]["list"]
        if not emails:
            return found
        found |= {email["subject"] for email in emails}
        position += len(emails)

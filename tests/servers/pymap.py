"""The demo's mail server (pymap, in a process of its own) as a server of a test; it has no CONDSTORE."""

from __future__ import annotations

import imaplib
import json
import re
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from tests.servers.dovecot import quoted
from tests.servers.dovecot_config import LOGINS
from tests.servers.snapshot import Snapshot, take_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable

_REPOSITORY: Final = Path(__file__).resolve().parents[2]
_CLIENT_TIMEOUT: Final = 30.0


class Pymap:
    """A running demo server with its sample mail; every login calls every mailbox by the same name."""

    def __init__(self) -> None:
        self.host = "127.0.0.1"
        self.passwords = {login: secrets.token_hex(16) for login in LOGINS}

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory()
        for login, password in self.passwords.items():
            secret = Path(self._folder.name) / login
            secret.touch(0o600)
            secret.write_text(password)
        command = [sys.executable, "-m", "deploy.demo.server", "--secrets", self._folder.name]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=_REPOSITORY)
        assert self._process.stdout is not None
        self.port = int(json.loads(self._process.stdout.readline())["port"])
        return self

    def __exit__(self, *_: object) -> None:
        with self._process as process:
            process.terminate()
        self._folder.cleanup()

    def named(self, login: str, mailbox: str) -> str:  # noqa: ARG002 - as the other servers have it
        """What a login calls a mailbox of the owner."""
        return mailbox

    def connect(self, login: str = "owner") -> imaplib.IMAP4:
        """A logged-in plain connection; use as a context manager."""
        client = imaplib.IMAP4(self.host, self.port, timeout=_CLIENT_TIMEOUT)
        client.login(login, self.passwords[login])
        return client

    def deliver(self, mailbox: str, octets: bytes, flags: Iterable[str] = ()) -> int:
        """APPEND as the owner; gives the new uid (RFC 4315 §3)."""
        with self.connect() as owner:
            status, answer = owner.append(quoted(mailbox), f"({' '.join(flags)})", "", octets)
        found = re.search(rb"APPENDUID \d+ (\d+)", answer[0])
        assert status == "OK", answer
        assert found, answer
        return int(found[1])

    def snapshot(self, login: str = "owner") -> Snapshot:
        """Everything in every mailbox as a login sees it, without changing any of it."""
        return take_snapshot(self.host, self.port, login, self.passwords[login])

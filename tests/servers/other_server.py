"""What Cyrus and Courier have in common here: an owner with mailboxes, and two more logins with rights on them."""

from __future__ import annotations

import abc
import imaplib
import os
import re
import secrets
import shutil
import subprocess
from typing import TYPE_CHECKING, Final, Self

from tests.servers.dovecot import quoted
from tests.servers.dovecot_config import LOGINS, ExecutorRights
from tests.servers.ports import free_port
from tests.servers.processes import (
    HOST,
    await_end,
    await_greeting,
    end_with_children,
    kill,
    unprivileged_account,
)
from tests.servers.snapshot import Snapshot, take_snapshot
from tests.servers.unpacked import ServerUnusableError, Unpacked, started_as

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from pathlib import Path

MAILBOXES: Final = ("INBOX", "Incoming", "Processed", "Escalate", "Archive", "Sent")
_CLIENT_TIMEOUT: Final = 30.0


class OtherServer(abc.ABC):
    """A running server. Mailboxes are named as the owner's list above; `named` gives a login's own name for one.

    Attributes: `host`, `port` (plain), `passwords` by login (`owner`, `reader`, `executor`), `process` (the master).
    The executor has the narrow rights on incoming and the destinations, or the wide ones; the reader has `lr` on all.
    Raises ServerUnusableError.
    """

    def __init__(self, executor_rights: ExecutorRights | str = ExecutorRights.WIDE) -> None:
        self.executor_rights = ExecutorRights(executor_rights)
        self.host, self.port = HOST, free_port()
        self.passwords = {login: secrets.token_hex(16) for login in LOGINS}
        self.process: subprocess.Popen[bytes] | None = None
        self.packages = Unpacked()
        self.account = unprivileged_account()
        self.base = self._new_folder()

    @abc.abstractmethod
    def _new_folder(self) -> Path:
        """An empty folder for everything that this server keeps."""

    @abc.abstractmethod
    def _write_files(self) -> None:
        """The configuration, before the first start."""

    @abc.abstractmethod
    def _command(self) -> tuple[list[str], dict[str, str]]:
        """The master's command line and environment."""

    @abc.abstractmethod
    def _provision(self) -> None:
        """Make mailboxes and rights, once, on the running server."""

    @abc.abstractmethod
    def named(self, login: str, mailbox: str) -> str:
        """What a login calls a mailbox of the owner."""

    @abc.abstractmethod
    def commands(self, login: str) -> list[bytes]:
        """Every line that connections of this login sent once logged in; connections by their beginning."""

    @abc.abstractmethod
    def session_pids(self, login: str) -> list[int]:
        """The server's processes that serve this login now; each serves one connection."""

    def __enter__(self) -> Self:
        try:
            self._write_files()
            self._hand_over()
            self.start()
            self._provision()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the server and remove its folder."""
        try:
            self.stop()
        finally:
            shutil.rmtree(self.base)

    def start(self) -> None:
        """Start, or start again, on the same port with the same mail; returns once it answers."""
        assert self.process is None
        command, environment = self._command()
        with (self.base / "stderr").open("ab") as output:
            self.process = started_as(self.account, command, environment, output, self.base)
        if not await_greeting(self.process, self.port):
            raise ServerUnusableError(f"{command[0]} did not start:\n{self.log()}")

    def stop(self) -> None:
        """End the master and every process of it; the mail and the port are kept."""
        if self.process is not None:
            end_with_children(self.process)
            self.process = None

    def log(self) -> str:
        """What the server wrote about itself."""
        return (self.base / "stderr").read_text(errors="replace")

    def connect(self, login: str = "owner", *, port: int | None = None) -> imaplib.IMAP4:
        """A logged-in plain connection; use as a context manager. `port` leads through a proxy."""
        client = imaplib.IMAP4(HOST, port or self.port, timeout=_CLIENT_TIMEOUT)
        client.login(login, self.passwords[login])
        return client

    def deliver(
        self, mailbox: str, octets: bytes, flags: Iterable[str] = (), internaldate: datetime | None = None
    ) -> int:
        """APPEND as the owner; gives the new uid (RFC 4315 §3). `internaldate` has a time zone; None means now."""
        date = imaplib.Time2Internaldate(internaldate) if internaldate else ""
        with self.connect() as owner:
            status, answer = owner.append(quoted(self.named("owner", mailbox)), f"({' '.join(flags)})", date, octets)
        found = re.search(rb"APPENDUID \d+ (\d+)", answer[0])
        assert status == "OK", answer
        assert found, answer
        return int(found[1])

    def snapshot(self, login: str = "owner") -> Snapshot:
        """Everything in every mailbox of the owner as a login sees it, by its own names, without changing any of it."""
        root = "*" if login == "owner" else self.named(login, "INBOX") + "*"
        return take_snapshot(HOST, self.port, login, self.passwords[login], root)

    def await_no_session(self, login: str) -> None:
        """Wait until every process that serves this login has ended, and with it what a lost client had begun."""
        await_end(self.session_pids(login))

    def kill_session(self, login: str) -> list[int]:
        """SIGKILL the processes that serve this login, and wait for their end; gives their pids."""
        pids = self.session_pids(login)
        kill(pids)
        return pids

    def _hand_over(self) -> None:
        if os.geteuid() == 0:
            for path in (self.base, *self.base.rglob("*")):
                os.chown(path, *self.account, follow_symlinks=False)

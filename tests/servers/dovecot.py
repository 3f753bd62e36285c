"""A real Dovecot for the tests: loopback only, one ordinary user, throw-away mail, three logins on one mailbox."""

from __future__ import annotations

import contextlib
import grp
import imaplib
import os
import pwd
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from imapclient import imap_utf7

from tests.servers.dovecot_config import (
    LOGINS,
    MAIL_USER,
    ExecutorRights,
    Layout,
    Server,
    acl_file,
    config_2_3,
    config_2_4,
    oauth_file,
    users_file,
)
from tests.servers.ports import free_port
from tests.servers.processes import (
    HOST,
    await_end,
    await_greeting,
    began_at,
    children,
    end_with_children,
    kill,
    send,
    unprivileged_account,
)
from tests.servers.rawlog import client_logs, processes
from tests.servers.snapshot import Snapshot, take_snapshot
from tests.servers.throw_away_ca import make_certificates

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

INSTALL: Final = "apt-get install -y dovecot-imapd"
_CLIENT_TIMEOUT: Final = 30.0


class DovecotUnusableError(RuntimeError):
    """The server of the tests is not installed or did not start; the text says what to do."""


class Dovecot:
    """A running server. `executor_rights` says whether the executor may also move back (`wide`) or not.

    With `introspection_url` the login `reader` may also show a token that the provider there calls active.

    Attributes: `host`, `port` (plain, with STARTTLS), `tls_port`, `ca_file`, `passwords` by login
    (`owner`, `reader`, `executor`), `process` (the master). Raises DovecotUnusableError.
    """

    def __init__(
        self, executor_rights: ExecutorRights | str = ExecutorRights.WIDE, introspection_url: str = ""
    ) -> None:
        self._introspection_url = introspection_url
        self.executor_rights = ExecutorRights(executor_rights)
        self.host = HOST
        self.passwords = {login: secrets.token_hex(16) for login in LOGINS}
        self.process: subprocess.Popen[bytes] | None = None
        self._binary = _dovecot_binary()
        self._account = unprivileged_account()
        self.port, self.tls_port = free_port(), free_port()
        self.layout = Layout(Path(tempfile.mkdtemp(prefix="mw-imap-", dir="/tmp")))

    @property
    def ca_file(self) -> Path:
        """The throw-away authority that signed the server's certificate (for localhost and 127.0.0.1)."""
        return self.layout.tls / "ca.crt"

    @property
    def mail_owner(self) -> tuple[int, int] | None:
        """The uid and gid that mail written beside the server has to belong to; None where they are this process's."""
        return self._account if os.geteuid() == 0 else None

    def __enter__(self) -> Self:
        try:
            self._write_files()
            self.start()
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
            shutil.rmtree(self.layout.base)

    def start(self) -> None:
        """Start, or start again, on the same ports with the same mail; returns once it answers."""
        assert self.process is None
        as_root = os.geteuid() == 0
        with (self.layout.base / "stderr").open("ab") as output:
            self.process = subprocess.Popen(
                [self._binary, "-F", "-c", str(self.layout.config)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.layout.base,
                start_new_session=True,
                user=self._account[0] if as_root else None,
                group=self._account[1] if as_root else None,
                extra_groups=[] if as_root else None,
            )
        self._await_greeting()

    def stop(self) -> None:
        """End the master and every process of it; the mail and the ports are kept."""
        if self.process is None:
            return
        # Told by its master alone, an idle process lingers for a second; told in person it goes at once.
        end_with_children(self.process)
        self.process = None

    # What a test does as the owner.

    def connect(self, login: str = "owner", *, port: int | None = None) -> imaplib.IMAP4:
        """A logged-in plain connection; use as a context manager. `port` leads through a proxy."""
        client = imaplib.IMAP4(HOST, port or self.port, timeout=_CLIENT_TIMEOUT)
        client.login(login, self.passwords[login])
        return client

    @contextlib.contextmanager
    def rearranging(self) -> Iterator[imaplib.IMAP4]:
        """The owner's connection for making, renaming and deleting mailboxes; afterwards the other logins see it."""
        with self.connect() as owner:
            yield owner
        # 2.4 keeps which mailboxes others may see in a file, and makes it anew only now and then; 2.3 does not.
        (self.layout.mail / MAIL_USER / "Maildir" / "dovecot-acl-list").unlink(missing_ok=True)

    def deliver(
        self, mailbox: str, octets: bytes, flags: Iterable[str] = (), internaldate: datetime | None = None
    ) -> int:
        """APPEND as the owner; gives the new uid (RFC 4315 §3). `internaldate` has a time zone; None means now."""
        date = imaplib.Time2Internaldate(internaldate) if internaldate else ""
        with self.connect() as owner:
            status, answer = owner.append(quoted(mailbox), f"({' '.join(flags)})", date, octets)
        found = re.search(rb"APPENDUID \d+ (\d+)", answer[0])
        assert status == "OK", answer
        assert found, answer
        return int(found[1])

    def fill(self, mailbox: str, messages: Iterable[bytes]) -> None:
        """Put many messages (of an ASCII mailbox name) where Dovecot finds them, as a delivery agent does."""
        with self.connect() as owner:
            # The folder is there once it was opened.
            owner.select(quoted(mailbox), readonly=True)
        folder = self.layout.mail / MAIL_USER / "Maildir" / ("" if mailbox == "INBOX" else f".{mailbox}") / "new"
        for number, octets in enumerate(messages):
            # Made elsewhere and moved when it is whole: the server may be listened to, and looks at once.
            path = folder.parent / "tmp" / f"{number:07}.{secrets.token_hex(4)}.test"
            path.write_bytes(octets)
            if os.geteuid() == 0:
                os.chown(path, *self._account)
            path.rename(folder / path.name)

    def snapshot(self, login: str = "owner") -> Snapshot:
        """Everything in every mailbox as a login sees it, without changing any of it."""
        return take_snapshot(HOST, self.port, login, self.passwords[login])

    def named(self, login: str, mailbox: str) -> str:  # noqa: ARG002 - as the other servers have it
        """What a login calls a mailbox of the owner."""
        return mailbox

    # What the server saw.

    def commands(self, login: str) -> list[bytes]:
        """Every line that connections of this login sent, the ones before and including the log-in first.

        A connection's lines are together; connections are in order of their beginning.
        """
        pre_login = [log for log in client_logs(self.layout.pre_login) if log.login == login]
        before = [line for log in pre_login for line in log.lines]
        after = [line for log in client_logs(self.layout.rawlog(login)) for line in log.lines]
        return before + after

    # Accidents.

    def session_pids(self, login: str) -> list[int]:
        """The server's processes that serve this login now, oldest first; each serves one connection."""
        assert self.process is not None
        with children(self.process.pid) as alive:
            # In thousands of rounds pids come round: a log from before the process began is another one's.
            began = {pid: began_at(pid) for pid in alive}
            return [
                pid
                for pid, written in processes(self.layout.rawlog(login))
                if pid in alive and written >= began[pid] - 1.0
            ]

    def await_no_session(self, login: str) -> None:
        """Wait until every process that serves this login has ended, and with it what a lost client had begun."""
        await_end(self.session_pids(login))

    def kill_session(self, login: str) -> list[int]:
        """SIGKILL the processes that serve this login, and wait for their end; gives their pids."""
        pids = self.session_pids(login)
        kill(pids)
        return pids

    def override_stale_locks(self) -> None:
        """What Dovecot does after minutes: a lock file that a killed process left is nobody's. None may be in use."""
        for lock in self.layout.mail.rglob("*.lock"):
            lock.unlink(missing_ok=True)

    def freeze(self, login: str) -> list[int]:
        """SIGSTOP the processes that serve this login: a command sent now stays behind, orphaned; gives their pids."""
        pids = self.session_pids(login)
        for pid in pids:
            send(pid, signal.SIGSTOP)
        return pids

    def thaw(self, login: str) -> None:
        """SIGCONT the processes that serve this login."""
        for pid in self.session_pids(login):
            send(pid, signal.SIGCONT)

    def _write_files(self) -> None:
        at = self.layout
        user, group = pwd.getpwuid(self._account[0]).pw_name, grp.getgrgid(self._account[1]).gr_name
        server = Server(at, user, group, self.port, self.tls_port, self.executor_rights, self.passwords)
        server = replace(server, introspection_url=self._introspection_url)
        for folder in at.folders():
            folder.mkdir(parents=True)
        make_certificates(at.tls)
        at.users.write_text(users_file(server))
        at.acl.write_text(acl_file(server))
        at.oauth.write_text(oauth_file(server))
        generate = config_2_4 if self.version() >= (2, 4) else config_2_3
        at.config.write_text(generate(server), encoding="utf-8")
        if os.geteuid() == 0:
            for path in (at.base, *at.base.rglob("*")):
                os.chown(path, *self._account)
        # A client under another user must reach the authority's certificate; no password, log or mail.
        at.base.chmod(0o711)
        for folder in at.base.iterdir():
            folder.chmod(0o700 if folder.is_dir() else 0o600)
        at.tls.chmod(0o711)
        self.ca_file.chmod(0o644)

    def version(self) -> tuple[int, ...]:
        """The version of the installed server, as numbers."""
        said = subprocess.run([self._binary, "--version"], capture_output=True, text=True, check=True).stdout
        return tuple(int(part) for part in said.split()[0].split("-")[0].split("."))

    def _await_greeting(self) -> None:
        assert self.process is not None
        if not await_greeting(self.process, self.port):
            raise DovecotUnusableError(f"dovecot did not start:\n{self.log()}")

    def log(self) -> str:
        """What the server wrote about itself."""
        files = (self.layout.base / "stderr", self.layout.log)
        return "".join(file.read_text(errors="replace") for file in files if file.exists())


def quoted(mailbox: str) -> str:
    """A mailbox name as imaplib wants it: modified UTF-7 in quotes (RFC 3501 §5.1.3)."""
    wire: bytes = imap_utf7.encode(mailbox)
    return '"' + wire.decode("ascii").replace("\\", "\\\\").replace('"', '\\"') + '"'


def _dovecot_binary() -> str:
    # An ordinary user's PATH has no sbin.
    binary = shutil.which("dovecot", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if binary is None or not Path("/usr/lib/dovecot/imap").exists():
        raise DovecotUnusableError(f"Dovecot's IMAP server is not installed; as root: {INSTALL}")
    return binary

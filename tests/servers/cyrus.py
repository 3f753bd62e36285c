"""A real Cyrus for the tests, JMAP included: loopback only, one ordinary user, throw-away mail, three accounts."""

from __future__ import annotations

import re
import secrets
import tempfile
from pathlib import Path
from pwd import getpwuid
from typing import TYPE_CHECKING, Final

from tests.servers.dovecot import quoted
from tests.servers.dovecot_config import READER_RIGHTS, ExecutorRights
from tests.servers.other_server import MAILBOXES, OtherServer
from tests.servers.ports import free_port
from tests.servers.processes import children
from tests.servers.unpacked import run_as

if TYPE_CHECKING:
    import imaplib

ADMIN: Final = "cyrus"
_BIN: Final = "/usr/lib/cyrus/bin"
_OTHER_USERS: Final = "Other Users/owner"
# A line of telemetry: what the client sent comes after `<epoch seconds<`, what the server said after `>epoch seconds>`.
_TURN: Final = re.compile(rb"([<>])\d+\1")


class Cyrus(OtherServer):
    """Cyrus IMAP and its JMAP. The reader and the executor are accounts of their own, with rights by SETACL (RFC 4314).

    `jmap_port` is plain HTTP with Basic authentication. The `\\Seen` flag is each account's own, as Cyrus has it.
    """

    def __init__(self, executor_rights: ExecutorRights | str = ExecutorRights.WIDE) -> None:
        super().__init__(executor_rights)
        self.jmap_port = free_port()
        self.passwords[ADMIN] = secrets.token_hex(16)

    def _new_folder(self) -> Path:
        # Short, since a Unix socket's path ends at 107 bytes.
        return Path(tempfile.mkdtemp(prefix="mw-cyrus-", dir="/tmp"))

    def _write_files(self) -> None:
        for folder in ("conf", "spool", "run/lock", "run/proc", "run/socket", "sieve"):
            (self.base / folder).mkdir(parents=True)
        for folder in (
            "db",
            "msg",
            "ptclient",
            "quota",
            "socket",
            "user",
            *(f"log/{login}" for login in self.passwords),
        ):
            (self.base / "conf" / folder).mkdir(parents=True)
        (self.base / "imapd.conf").write_text(self._imapd_conf())
        (self.base / "cyrus.conf").write_text(self._cyrus_conf())
        self._hand_over()
        for login, password in self.passwords.items():
            make = [str(self.packages.file("/usr/sbin/saslpasswd2")), "-p", "-c", "-f", str(self.base / "sasldb2")]
            run_as(self.account, [*make, "-u", "localhost", login], self.packages.environment(), password.encode())

    def _imapd_conf(self) -> str:
        at = self.base
        return f"""\
configdirectory: {at}/conf
defaultpartition: default
partition-default: {at}/spool
sievedir: {at}/sieve
proc_path: {at}/run/proc
mboxname_lockpath: {at}/run/lock
lmtpsocket: {at}/run/socket/lmtp
idlesocket: {at}/run/socket/idle
notifysocket: {at}/run/socket/notify
servername: localhost
cyrus_user: {getpwuid(self.account[0]).pw_name}
admins: {ADMIN}
unixhierarchysep: yes
altnamespace: yes
virtdomains: off
conversations: yes
expunge_mode: delayed
delete_mode: delayed
allowplaintext: yes
sasl_pwcheck_method: auxprop
sasl_auxprop_plugin: sasldb
sasl_sasldb_path: {at}/sasldb2
sasl_mech_list: PLAIN LOGIN
defaultacl: anyone
munge8bit: no
httpmodules: jmap
httpallowcompress: no
"""

    def _cyrus_conf(self) -> str:
        def command(name: str) -> str:
            return f"{self.packages.file(f'{_BIN}/{name}')} -C {self.base}/imapd.conf"

        # -U 1: a process serves one connection, so that killing a login's process hits nobody else.
        return f"""\
START {{
  recover cmd="{command("ctl_cyrusdb")} -r"
  idled cmd="{command("idled")}"
}}
SERVICES {{
  imap cmd="{command("imapd")} -U 1" listen="{self.host}:{self.port}" prefork=1
  http cmd="{command("httpd")}" listen="{self.host}:{self.jmap_port}" prefork=0
}}
EVENTS {{
}}
"""

    def _command(self) -> tuple[list[str], dict[str, str]]:
        master, at = str(self.packages.file(f"{_BIN}/master")), self.base
        options = ["-C", f"{at}/imapd.conf", "-M", f"{at}/cyrus.conf", "-p", f"{at}/master.pid", "-D"]
        return [master, *options], self.packages.environment()

    def _provision(self) -> None:
        with self.connect(ADMIN) as admin:
            for mailbox in MAILBOXES:
                name = quoted("user/owner" if mailbox == "INBOX" else f"user/owner/{mailbox}")
                _ok(admin.create(name))
                _ok(admin.setacl(name, "reader", READER_RIGHTS))
                if rights := self.executor_rights.on(mailbox):
                    _ok(admin.setacl(name, "executor", rights))

    def named(self, login: str, mailbox: str) -> str:
        if login == "owner":
            return mailbox
        return _OTHER_USERS if mailbox == "INBOX" else f"{_OTHER_USERS}/{mailbox}"

    def commands(self, login: str) -> list[bytes]:
        logs = sorted((self.base / "conf" / "log" / login).iterdir(), key=lambda log: log.stat().st_ctime_ns)
        return [line for log in logs if "imap" in log.name for line in _sent(log.read_bytes())]

    def session_pids(self, login: str) -> list[int]:
        assert self.process is not None
        names = [log.name for log in (self.base / "conf" / "log" / login).iterdir()]
        with children(self.process.pid) as alive:
            return sorted(pid for pid in alive if any(name.endswith(f"-{pid}") or name == str(pid) for name in names))


def _sent(telemetry: bytes) -> list[bytes]:
    parts = _TURN.split(telemetry)
    sent = b"".join(text for side, text in zip(parts[1::2], parts[2::2], strict=True) if side == b"<")
    return [line.rstrip(b"\r") for line in sent.split(b"\n") if line.strip()]


def _ok(answer: tuple[str, list[imaplib._AnyResponseData]]) -> None:
    status, said = answer
    assert status == "OK", said

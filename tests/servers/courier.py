"""A real Courier, which has neither MOVE nor CONDSTORE, for the tests: loopback only, one ordinary user."""

from __future__ import annotations

import contextlib
import re
import secrets
import subprocess
import time
from pathlib import Path
from typing import Final

from tests.servers.dovecot import quoted
from tests.servers.dovecot_config import LOGINS, READER_RIGHTS, ExecutorRights
from tests.servers.other_server import MAILBOXES, OtherServer
from tests.servers.processes import children, end_with_children
from tests.servers.unpacked import ServerUnusableError, run_as, started_as

# Its folders are compiled in. A copy of its programs has other ones in their place, of the same length,
# so that neither root nor a mount is needed and nothing outside the server's folder is read or written.
_COMPILED_IN: Final = (b"/etc/courier", b"/run/courier")
_COMPILED_IN_MODULES: Final = b"/usr/lib/courier-authlib"
_FOLDER_LENGTH: Final = len("/etc/courier")
_PROGRAMS: Final = (
    "/usr/lib/courier/courier-authlib/authdaemond",
    "/usr/lib/courier/courier-authlib/makedatprog",
    "/usr/lib/courier/courier/imaplogin",
    "/usr/bin/imapd",
    "/usr/bin/maildiracl",
    "/usr/bin/maildirmake.courier",
    "/usr/sbin/couriertcpd",
)
_AUTHDAEMONRC: Final = """\
authmodulelist="authuserdb"
authmodulelistorig="authuserdb"
daemons=2
authdaemonvar={folder}/authdaemon
DEBUG_LOGIN=0
DEFAULTOPTIONS=""
LOGGEROPTS=""
"""
# The environment that the package's own start script makes of /etc/courier/imapd, loopback and plain only.
_IMAPD: Final = {
    "IMAP_CAPABILITY": "IMAP4rev1 UIDPLUS CHILDREN NAMESPACE THREAD=ORDEREDSUBJECT THREAD=REFERENCES SORT QUOTA IDLE",
    "IMAP_KEYWORDS": "1",
    "IMAP_ACL": "1",
    "IMAP_PROXY": "0",
    # Seconds. The package's 60 would let a test wait that long for new mail.
    "IMAP_IDLE_TIMEOUT": "1",
    "IMAP_MAILBOX_SANITY_CHECK": "1",
    "IMAP_DISABLETHREADSORT": "0",
    "IMAP_CHECK_ALL_FOLDERS": "0",
    "IMAP_OBSOLETE_CLIENT": "0",
    "IMAP_UMASK": "022",
    "IMAP_USELOCKS": "1",
    "IMAP_ENHANCEDIDLE": "0",
    "IMAP_TRASHFOLDERNAME": "Trash",
    "IMAP_MOVE_EXPUNGE_TO_TRASH": "0",
    "IMAP_TLS_REQUIRED": "0",
    "IMAP_STARTTLS": "NO",
    "IMAPDEBUGFILE": "imaplog.dat",
}
# Debian 12's Courier is told of changes by this one; Debian 13's asks the kernel.
_WATCHER: Final = "usr/libexec/gam_server"
_OWNER_RIGHTS: Final = "aceilrstwx"
# The log has each word that was read on a line of its own; after some commands no end of line.
_LOGGED: Final = re.compile(rb"^(READ: EOL|READ: [A-Z_]+: |WRITE: (?!\+))([^\n]*)$", re.MULTILINE)


# Seconds; it takes 0.1 on an idle machine.
_SOCKET_DEADLINE: Final = 20.0


class Courier(OtherServer):
    """Courier IMAP. Reader and executor have accounts of their own; the owner's maildir is shared with them."""

    def __init__(self, executor_rights: ExecutorRights | str = ExecutorRights.WIDE) -> None:
        super().__init__(executor_rights)
        self._beside: list[subprocess.Popen[bytes]] = []

    def _new_folder(self) -> Path:
        while True:
            name = f"/tmp/mw{secrets.token_hex(8)}"[:_FOLDER_LENGTH]
            with contextlib.suppress(FileExistsError):
                Path(name).mkdir(mode=0o700)
                return Path(name)

    def _write_files(self) -> None:
        for folder in ("bin", "lib", "authdaemon", "shared", "mail"):
            (self.base / folder).mkdir()
        self._copy_with_own_folders()
        uid, gid = self.account
        (self.base / "authdaemonrc").write_text(_AUTHDAEMONRC.format(folder=self.base))
        (self.base / "shared" / "index").write_text(f"owner\t{uid}\t{gid}\t{self.base}/mail/owner\tMaildir\n")
        self._hand_over()
        self._write_users()
        self._make_maildirs()

    def _copy_with_own_folders(self) -> None:
        modules = self.packages.file(_COMPILED_IN_MODULES.decode())
        libraries = [*modules.parent.glob("libcourierauth*.so.0"), *modules.glob("libauthuserdb.so*")]
        for path in (*map(self.packages.file, _PROGRAMS), *libraries):
            own = bytes(self.base)
            octets = path.read_bytes()
            for compiled_in in _COMPILED_IN:
                octets = octets.replace(compiled_in, own)
            modules_of_own = own + b"/lib".rjust(len(_COMPILED_IN_MODULES) - len(own), b"/")
            octets = octets.replace(_COMPILED_IN_MODULES, modules_of_own)
            copy = self.base / ("lib" if ".so" in path.name else "bin") / path.name
            copy.write_bytes(octets)
            copy.chmod(0o700)

    def _write_users(self) -> None:
        # What the package's makeuserdb writes; that is Perl with modules, and this the one program which it calls.
        uid, gid = self.account
        public, secret = [], []
        for login, password in self.passwords.items():
            home = self.base / "mail" / login
            public.append(f"{login}\tuid={uid}|gid={gid}|home={home}|mail={home}/Maildir|_=\n")
            secret.append(f"{login}\tsystempw={_crypted(password)}\n")
        for name, lines in (("userdb", public), ("userdbshadow", secret)):
            files = [f"{self.base}/{name}.tmp", f"{self.base}/{name}.dat"]
            self._run("makedatprog", "-", *files, said="".join(lines) + "\n.\n")

    def _make_maildirs(self) -> None:
        for login in LOGINS:
            (self.base / "mail" / login).mkdir()
        self._hand_over()
        for login in LOGINS:
            maildir = f"{self.base}/mail/{login}/Maildir"
            self._run("maildirmake.courier", maildir)
            # The log of commands is kept for whoever has such a file.
            (Path(maildir) / _IMAPD["IMAPDEBUGFILE"]).touch()
        owner = f"{self.base}/mail/owner/Maildir"
        for mailbox in MAILBOXES:
            name = self.named("owner", mailbox)
            if mailbox != "INBOX":
                self._run("maildirmake.courier", "-f", mailbox, owner)
                self._run("maildiracl", "-set", owner, name, "owner", _OWNER_RIGHTS)
            self._run("maildiracl", "-set", owner, name, "user=reader", READER_RIGHTS)
            if rights := self.executor_rights.on(mailbox):
                self._run("maildiracl", "-set", owner, name, "user=executor", rights)
        self._hand_over()

    def _provision(self) -> None:
        # All is made in files before the start; but a mailbox that nobody opened has another UIDVALIDITY each second.
        with self.connect() as owner:
            for mailbox in MAILBOXES:
                owner.select(quoted(self.named("owner", mailbox)))

    def _run(self, program: str, *arguments: str, said: str = "") -> None:
        run_as(self.account, [f"{self.base}/bin/{program}", *arguments], self._environment(), said.encode())

    def _environment(self) -> dict[str, str]:
        return self.packages.environment([self.base / "lib"]) | {"GAM_CLIENT_ID": self.base.name}

    def _command(self) -> tuple[list[str], dict[str, str]]:
        at = f"{self.base}/bin"
        # Debian 12's asks who is there unless told not to; Debian 13's knows no such option.
        options = re.search(r'^TCPDOPTS="([^"]*)"', self.packages.file("/etc/courier/imapd").read_text(), re.MULTILINE)
        listen = [f"-address={self.host}", "-maxprocs=40", "-maxperip=40", *(options[1].split() if options else ())]
        command = [f"{at}/couriertcpd", *listen, str(self.port), f"{at}/imaplogin", f"{at}/imapd", "Maildir"]
        shared = {"IMAP_SHAREDINDEXFILE": f"{self.base}/shared/index"}
        return command, self._environment() | _IMAPD | shared

    def start(self) -> None:
        """Start, or start again, on the same port with the same mail; returns once it answers."""
        beside = [[f"{self.base}/bin/authdaemond"]]
        watcher = self.packages.root / _WATCHER
        if watcher.exists():
            # Left to itself, each session would try to start one that lives on.
            beside.append([str(watcher), "--notimeout", self.base.name])
        with (self.base / "beside.log").open("ab") as output:
            for command in beside:
                self._beside.append(started_as(self.account, command, self._environment(), output, self.base))
        self._await_socket(self._beside[0])
        super().start()

    def _await_socket(self, authdaemond: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _SOCKET_DEADLINE
        while not (self.base / "authdaemon" / "socket").exists():
            with contextlib.suppress(subprocess.TimeoutExpired):
                authdaemond.wait(0.02)
            if authdaemond.poll() is not None or time.monotonic() > deadline:
                raise ServerUnusableError(f"authdaemond did not start:\n{(self.base / 'beside.log').read_text()}")

    def stop(self) -> None:
        """End every process; the mail and the port are kept."""
        super().stop()
        while self._beside:
            end_with_children(self._beside.pop())
        (self.base / "authdaemon" / "socket").unlink(missing_ok=True)

    def log(self) -> str:
        """What the server wrote about itself."""
        return super().log() + (self.base / "beside.log").read_text(errors="replace")

    def named(self, login: str, mailbox: str) -> str:
        """What a login calls a mailbox of the owner."""
        root = "INBOX" if login == "owner" else "#shared.owner"
        return root if mailbox == "INBOX" else f"{root}.{mailbox}"

    def commands(self, login: str) -> list[bytes]:
        """Every line that connections of this login sent once logged in, its words one space apart and unquoted.

        Lines of connections that spoke at the same moment are in the order of their ends.
        """
        log = self.base / "mail" / login / "Maildir" / _IMAPD["IMAPDEBUGFILE"]
        lines: list[bytes] = []
        words: list[bytes] = []
        for kind, word in _LOGGED.findall(log.read_bytes()):
            if kind == b"READ: EOL" or kind.startswith(b"WRITE"):
                lines += [b" ".join(words)] if words else []
                words.clear()
            else:
                words.append(word)
        return lines

    def session_pids(self, login: str) -> list[int]:
        """The server's processes that serve this login now."""
        assert self.process is not None
        with children(self.process.pid) as alive:
            return sorted(pid for pid in alive if f"AUTHENTICATED={login}".encode() in _environment_of(pid))


def _environment_of(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def _crypted(password: str) -> str:
    made = subprocess.run(
        ["openssl", "passwd", "-6", "-stdin"], input=password, capture_output=True, text=True, check=False
    )
    if made.returncode:
        raise ServerUnusableError(made.stderr)
    return made.stdout.strip()

"""The demo's three processes and their private folders: the mail server, the reader, the executor."""

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from deploy.demo.agent import ACCOUNT, QUEUE

CHECKOUT: Final = Path(__file__).parents[2]
AGENT: Final = "helper"
PERSON: Final = "you"
# Seconds; each program is ready within three on an idle machine.
_READY_SECONDS: Final = 60.0
_END_SECONDS: Final = 8.0
# A Unix socket's path has 107 octets at most, and mailwarrant-demo-XXXXXXXX/link/reader.sock follows. Where the folder
# for temporary files is deeper, /tmp takes its place.
_DEEPEST_OCTETS: Final = 107 - 43
# The ports of the documentation where they are free, so that what is printed looks as it does there.
_USUAL_PORTS: Final = (8620, 8621, 8622)


Found = TypeVar("Found")


class DemoFailed(Exception):  # noqa: N818 - the demo's one way to end badly
    """A step of the demo did not work out; the message says which, and where the log lies."""


class Street:
    """Both houses and the mail server, each a process of its own with a folder of its own; `open_street` makes one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._processes: list[tuple[str, subprocess.Popen[bytes]]] = []
        self.reader_port, self.intake_port, self.review_port = _ports()
        self.mail_port = 0

    @property
    def reader_url(self) -> str:
        """Where the agent reads."""
        return f"http://127.0.0.1:{self.reader_port}"

    @property
    def intake_url(self) -> str:
        """Where the agent proposes."""
        return f"http://127.0.0.1:{self.intake_port}"

    @property
    def review_url(self) -> str:
        """Where the person decides."""
        return f"http://localhost:{self.review_port}"

    @property
    def executor_config(self) -> Path:
        """The executor's configuration file."""
        return self.folder / "executor" / "executor.toml"

    @property
    def reader_config(self) -> Path:
        """The reader's configuration file."""
        return self.folder / "reader" / "reader.toml"

    def password(self, login: str) -> str:
        """Return the mail password of a login."""
        return (self.folder / "mail" / login).read_text(encoding="ascii")

    def start_mail_server(self) -> int:
        """Start the mail server and return how many messages it holds."""
        folder = _private(self.folder / "mail")
        for login in ("owner", "reader", "executor"):
            _secret(folder / login, secrets.token_urlsafe(24))
        command = ["-m", "deploy.demo.server", "--port", "0", "--secrets", str(folder)]
        process = self._start("mail server", command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise self._failure("mail server")
        said = json.loads(line)
        self.mail_port = int(said["port"])
        return int(said["messages"])

    def start_reader(self) -> None:
        """Configure and start the reader."""
        folder = _private(self.folder / "reader")
        _private(folder / "index")
        _secret(folder / "secret", self.password("reader"))
        self.reader_config.write_text(
            f'[server]\nlisten = "127.0.0.1:{self.reader_port}"\n'
            f"socket = {_quoted(self.folder / 'link' / 'reader.sock')}\n"
            f"[store]\nurl = {_quoted('sqlite:///' + str(folder / 'index'))}\n"
            f'[[accounts]]\nid = "{ACCOUNT}"\nhost = "127.0.0.1"\nport = {self.mail_port}\ntls = "none"\n'
            f'user = "reader"\nsecret_file = {_quoted(folder / "secret")}\nsync_seconds = 1\n',
            encoding="utf-8",
        )
        _private(self.folder / "link")
        self._start("reader", ["-m", "agent_reader", "serve", "--config", str(self.reader_config)])
        self._await_port("reader", self.reader_port)

    def start_executor(self) -> None:
        """Configure and start the executor."""
        folder = _private(self.folder / "executor")
        _secret(folder / "secret", self.password("executor"))
        self.executor_config.write_text(
            f'[intake]\nlisten = "127.0.0.1:{self.intake_port}"\n'
            f'[review]\nlisten = "localhost:{self.review_port}"\nallow_uids = [{os.getuid()}]\n'
            f"[reader]\nsocket = {_quoted(self.folder / 'link' / 'reader.sock')}\n"
            f"[journal]\nurl = {_quoted('sqlite:///' + str(folder / 'journal.db'))}\n"
            f'[[credentials]]\nid = "move"\nhost = "127.0.0.1"\nport = {self.mail_port}\ntls = "none"\n'
            f'user = "executor"\nsecret_file = {_quoted(folder / "secret")}\n'
            f'[[queues]]\nid = "{QUEUE}"\ncredential = "move"\naccount = "{ACCOUNT}"\nincoming = "Incoming"\n'
            f'[queues.to.processed]\nmailbox = "Processed"\n[queues.to.escalate]\nmailbox = "Escalate"\n',
            encoding="utf-8",
        )
        self._start("executor", ["-m", "change_executor", "serve", "--config", str(self.executor_config)])
        self._await_port("executor", self.intake_port)
        self._await_port("executor", self.review_port)

    def reader_command(self, *arguments: str) -> str:
        """Run `agent-reader ...` and return what it printed."""
        return self._command("agent_reader", *arguments, "--config", str(self.reader_config))

    def executor_command(self, *arguments: str) -> str:
        """Run `change-executor ...` and return what it printed."""
        return self._command("change_executor", *arguments, "--config", str(self.executor_config))

    def check_alive(self) -> None:
        """Raise `DemoFailed` where one of the processes has ended."""
        for name, process in self._processes:
            if process.poll() is not None:
                raise self._failure(name)

    def stop(self) -> None:
        """End every process that was started, the newest first."""
        for _, process in reversed(self._processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for _, process in reversed(self._processes):
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self._processes.clear()

    def _start(self, name: str, arguments: list[str], stdout: int | None = None) -> subprocess.Popen[bytes]:
        with self._log(name).open("ab") as log:
            # A session of its own: Ctrl-C reaches the demo alone, which then ends the others in order.
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and modules
                [sys.executable, *arguments],
                cwd=CHECKOUT,
                stdin=subprocess.DEVNULL,
                stdout=log if stdout is None else stdout,
                stderr=log,
                start_new_session=True,
            )
        self._processes.append((name, process))
        return process

    def _await_port(self, name: str, port: int) -> None:
        def answers() -> bool:
            self.check_alive()
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=2):
                    return True
            except OSError:
                return False

        wait_for(answers, f"the {name} to listen on port {port}", _READY_SECONDS)

    def _command(self, *arguments: str) -> str:
        done = subprocess.run(  # noqa: S603 - our own interpreter and modules
            [sys.executable, "-m", *arguments], cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False
        )
        if done.returncode != 0:
            raise DemoFailed(f"{' '.join(arguments[:3])} failed: {done.stdout}{done.stderr}")
        return done.stdout

    def _log(self, name: str) -> Path:
        return self.folder / f"{name.replace(' ', '-')}.log"

    def _failure(self, name: str) -> DemoFailed:
        last = "\n".join(self._log(name).read_text(encoding="utf-8", errors="replace").splitlines()[-8:])
        return DemoFailed(f"the {name} ended:\n{last}")


@contextmanager
def open_street() -> Iterator[Street]:
    """Make a street in a folder of its own; at the end every process is ended and the folder removed."""
    is_deep = len(os.fsencode(tempfile.gettempdir())) > _DEEPEST_OCTETS
    # S108: mkdtemp makes a folder that nobody else can enter, wherever it is.
    folder = Path(tempfile.mkdtemp(prefix="mailwarrant-demo-", dir="/tmp" if is_deep else None))  # noqa: S108
    street = Street(folder)
    try:
        yield street
    finally:
        street.stop()
        shutil.rmtree(folder, ignore_errors=True)


def wait_for(look: Callable[[], Found | None], what: str, seconds: float) -> Found:
    """Look until something is found, or raise `DemoFailed` after so many seconds."""
    deadline, pause = time.monotonic() + seconds, threading.Event()
    while not (found := look()):
        if time.monotonic() > deadline:
            raise DemoFailed(f"waited {seconds:.0f} s for {what}")
        pause.wait(0.1)
    return found


def _ports() -> list[int]:
    ports = []
    for usual in _USUAL_PORTS:
        for port in (usual, 0):
            try:
                with socket.create_server(("127.0.0.1", port)) as server:
                    ports.append(server.getsockname()[1])
                    break
            except OSError:
                continue
    return ports


def _private(folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    return folder


def _secret(path: Path, text: str) -> None:
    path.write_text(text, encoding="ascii")
    path.chmod(0o400)


def _quoted(value: object) -> str:
    return json.dumps(str(value))

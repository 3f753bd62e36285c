"""A watch as a real process with its files, and the mail server and the reader that it stands in front of."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.agent_reader.mcp.desk import id_of, inside
from tests.agent_reader.served import octets
from tests.end_to_end.houses import House, MailServer, eventually, write_reader
from tests.servers.dovecot import Dovecot
from tests.servers.ports import free_port

REPOSITORY = Path(__file__).resolve().parents[3]
# Writes what it was given, whole or not at all, then does as the files beside it say.
COMMAND = """
import json, os, sys
folder = sys.argv[1]
given = {"text": sys.stdin.buffer.read().decode(), "env": dict(os.environ), "argv": sys.argv[2:]}
number = len([each for each in os.listdir(folder) if each.startswith("batch")])
with open(f"{folder}/new", "w") as file:
    json.dump(given, file)
os.rename(f"{folder}/new", f"{folder}/batch{number}")
if os.path.exists(f"{folder}/stay"):
    open(f"{folder}/stay").read()
sys.exit(3 if os.path.exists(f"{folder}/fail") else 0)
"""


@dataclass
class Watcher:
    """A watch, its command's folder, and the files that it keeps.

    `program` is what `agent-reader watch` becomes: its start is in one of the tests, and costs as much as all the rest.
    """

    folder: Path
    address: str
    token_file: Path
    options: Sequence[str] = ()
    process: subprocess.Popen[bytes] | None = None
    environment: dict[str, str] = field(default_factory=dict)
    program: Sequence[str] = ("agent_reader.relay.watch_command",)

    def command(self, *options: str) -> list[str]:
        return [
            *(sys.executable, "-m", *self.program, "--reader-url", self.address),
            *("--token-file", str(self.token_file), "--state-file", str(self.folder / "state.json")),
            *("--interval", "0", "--retry", "0.05", *self.options, *options),
            *("--run", sys.executable, "-c", COMMAND, str(self.folder), "--interval", "$HOME; `id`"),
        ]

    def start(self) -> None:
        with (self.folder / "stderr").open("ab") as errors:
            self.process = subprocess.Popen(
                self.command(), cwd=REPOSITORY, env=os.environ | self.environment, stderr=errors
            )

    def once(self, *options: str) -> subprocess.CompletedProcess[str]:
        command = self.command("--once", *options)
        return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=60)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        assert self.process is not None
        process, self.process = self.process, None
        process.send_signal(number)
        return process.wait(30)

    @property
    def errors(self) -> str:
        return (self.folder / "stderr").read_text()

    @property
    def state(self) -> dict[str, Any]:
        path = self.folder / "state.json"
        found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return found

    def status(self) -> str:
        command = [sys.executable, "-m", *self.program, "--state-file", str(self.folder / "state.json")]
        done = subprocess.run([*command, "--status"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
        return done.stdout

    def batches(self) -> list[dict[str, Any]]:
        paths = sorted(self.folder.glob("batch*"), key=lambda path: int(path.name[5:]))
        return [json.loads(path.read_text()) for path in paths]

    def told(self) -> list[str]:
        """Every id that was given, in order; an id given twice stands twice."""
        lines = [line for batch in self.batches() for line in inside(batch["text"]).split("\n") if line]
        return [line.split(" ")[0] for line in lines]

    def tells(self, *messages: bytes) -> None:
        """Wait until these have been given and crossed off."""
        wanted = {id_of(message) for message in messages}
        eventually(lambda: wanted <= set(self.told()) and not self.state["waiting"], f"the batches: {self.told()}")

    def takes_baseline(self) -> None:
        eventually(lambda: self.state.get("email_state"), "the baseline")


@dataclass
class World:
    """A mail server, a reader in front of it, and its token."""

    folder: Path
    dovecot: Dovecot
    reader: House
    token_file: Path

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.reader.port}"

    @contextmanager
    def watcher(self, name: str, *options: str) -> Iterator[Watcher]:
        folder = self.folder / name
        folder.mkdir()
        watcher = Watcher(folder, self.address, self.token_file, options)
        try:
            yield watcher
        finally:
            if watcher.process is not None:
                watcher.process.kill()
                watcher.process.wait()


@contextmanager
def watched_world(folder: Path) -> Iterator[World]:
    """A mailbox with one message, and a reader that is serving it."""
    with Dovecot() as dovecot:
        home = folder / "reader"
        (home / "index").mkdir(parents=True, mode=0o700)
        reader = House("agent_reader", home, free_port())
        write_reader(reader, MailServer(dovecot.port, dovecot.passwords["reader"], ""), home / "reader.sock")
        token_file = folder / "token"
        token_file.touch(0o600)
        made = reader.said("token", "create", "--agent", "watcher").strip().splitlines()[-1]
        token_file.write_text(made)
        dovecot.deliver("INBOX", octets(1, "From before", "x"))
        try:
            yield World(folder, dovecot, reader.start(), token_file)
        finally:
            reader.close()

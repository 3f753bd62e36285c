"""Published JMAP clients against the reader over plain http on loopback.

`make jmap-clients` makes an environment for each (none is a dependency of this project, whatever its licence), runs its
steps and writes docs/jmap-clients.md. Ends with 1 where a step fails that is not known to.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.agent_reader import synced
from tests.agent_reader.on_loopback import on_loopback
from tests.agent_reader.served import ACCOUNT, House, fetched, house, octets

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY: Final = Path(__file__).resolve().parents[2]
DOCUMENT: Final = REPOSITORY / "docs/jmap-clients.md"
PROGRAMS: Final = Path(__file__).parent / "programs"
# Seconds, for one client's whole program.
_DEADLINE: Final = 120


@dataclass(frozen=True, slots=True)
class JmapClient:
    """A published client: where it is from, its pinned version, its licence, and the program here that uses it."""

    registry: str
    name: str
    version: str
    licence: str
    program: str


CLIENTS: Final = (
    JmapClient("PyPI", "jmapc", "0.4.0", "GPL-3.0", "jmapc_steps.py"),
    JmapClient("PyPI", "jmaplib", "3.0.1", "AGPL-3.0", "jmaplib_steps.py"),
    JmapClient("PyPI", "agent-jmap-mcp", "0.2.0", "MIT", "agent_jmap_steps.py"),
    JmapClient("PyPI", "jmax", "0.2.0", "MIT", "jmax_steps.py"),
    JmapClient("npm", "jmap-jam", "0.13.1", "MIT", "jmap_jam_steps.mjs"),
    JmapClient("npm", "jmap-client-ts", "1.0.0", "MIT", "jmap_client_ts_steps.mjs"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one step."""

    client: JmapClient
    step: str
    passed: bool
    note: str


def main() -> int:
    """Run every client and write the document; 0 when every step passed."""
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as folder, house(Path(folder) / "house") as reader:
        since = _state_before_something_new(reader)
        with on_loopback(reader.app) as listening:
            environment = os.environ | {
                "READER": f"http://localhost:{listening.port}",
                "TOKEN": reader.token,
                "SINCE": since,
                "FIRST_ACCOUNT": ACCOUNT,
            }
            for client in CLIENTS:
                outcomes += _outcomes(client, Path(folder), environment)
    DOCUMENT.write_text(_document(outcomes), "utf-8")
    for failed in (each for each in outcomes if not each.passed):
        sys.stderr.write(f"{failed.client.name}: {failed.step}: {failed.note}\n")
    return int(not all(each.passed for each in outcomes))


def _state_before_something_new(reader: House) -> str:
    _, got = asyncio.run(reader.one("Email/get", ids=[]))
    mirror = reader.store.account(ACCOUNT)
    inbox = next(mailbox for mailbox in mirror.mailboxes() if mailbox.name == "INBOX")
    synced.add(mirror, inbox.id, [fetched(50, octets(50, "Something new", "It came meanwhile."), reader.clock())])
    return str(got["state"])


def _outcomes(client: JmapClient, folder: Path, environment: dict[str, str]) -> Iterator[Outcome]:
    try:
        command = _installed(client, folder / client.name)
    except (subprocess.CalledProcessError, OSError) as failure:
        said = getattr(failure, "stderr", None) or str(failure)
        yield Outcome(client, "installing", passed=False, note=said.strip().splitlines()[-1][:300])
        return
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=_DEADLINE)
    sys.stderr.write(done.stderr)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode or not told:
        yield Outcome(client, "starting", passed=False, note=done.stderr.strip().splitlines()[-1][:300])
    for step in told:
        yield Outcome(client, step["step"], passed=step["ok"], note=step["note"])


def _installed(client: JmapClient, folder: Path) -> list[str]:
    """Make its environment and give the command that runs its program there."""
    if client.registry == "npm":
        folder.mkdir()
        for program in PROGRAMS.glob("*.mjs"):
            shutil.copy(program, folder)
        npm = ["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", str(folder)]
        subprocess.run([*npm, f"{client.name}@{client.version}"], check=True, capture_output=True, text=True)
        return ["node", str(folder / client.program)]
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"{client.name}=={client.version}"], check=True, capture_output=True, text=True)
    return [python, str(PROGRAMS / client.program)]


def _document(outcomes: list[Outcome]) -> str:
    lines = [
        "# Published JMAP clients",
        "",
        "Written by `make jmap-clients`: each client in an environment of its own, the reader over plain http on",
        "loopback. None of them is a dependency of this project. *Search by reference* is one request in which",
        "Email/get takes its ids from Email/query; *Email/changes* starts at a state from before a message came.",
        "",
        "| client | from | licence | step | outcome |",
        "|---|---|---|---|---|",
    ]
    for each in outcomes:
        client = each.client
        outcome = ("passes" if each.passed else "fails") + (f"; {each.note}" if each.note else "")
        outcome = outcome.replace("|", "\\|").replace("\n", " ")
        lines.append(
            f"| {client.name} {client.version} | {client.registry} | {client.licence} | {each.step} | {outcome} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())

"""The examples of docs/jmap.md are run as they stand, by bash and curl, against a server on loopback."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.agent_reader import synced
from tests.agent_reader.jmap.matrix import DOCUMENT
from tests.agent_reader.on_loopback import Served, on_loopback
from tests.agent_reader.served import ACCOUNT, NOW, House, fetched, house, octets

SECONDS = 30


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[House, Served]]:
    with house(tmp_path_factory.mktemp("served")) as served, on_loopback(served.app) as listening:
        yield served, listening


def _example(title: str) -> str:
    blocks: list[str] = re.findall(r"```bash\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    (block,) = [block for block in blocks if block.startswith(f"# {title}\n")]
    return block


def _run(script: str, running: tuple[House, Served]) -> list[Any]:
    """Run a script as a person would; the JSON values that it prints one after the other."""
    with _begun(script, running) as shell:
        stdout, stderr = shell.communicate(timeout=SECONDS)
    assert 0 == shell.returncode, stderr
    decoder, rest, values = json.JSONDecoder(), stdout.strip(), []
    while rest:
        value, end = decoder.raw_decode(rest)
        values.append(value)
        rest = rest[end:].strip()
    return values


@contextmanager
def _begun(script: str, running: tuple[House, Served], folder: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    served, listening = running
    environment = {"READER": f"http://localhost:{listening.port}", "TOKEN": served.token, "ACCOUNT": ACCOUNT}
    with subprocess.Popen(
        # Of one command alone, bash becomes that command, and can be ended in its place.
        ["bash", "-euo", "pipefail", "-c", script],
        env={"PATH": os.environ["PATH"], "no_proxy": "*", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
    ) as shell:
        try:
            yield shell
        finally:
            shell.kill()


def test_the_search_flow_finds_and_reads_a_message(running: tuple[House, Served]) -> None:
    session, answer = _run(_example("search flow"), running)
    assert ACCOUNT in session["accounts"]
    assert ["Email/query", "Email/get", "SearchSnippet/get"] == [name for name, _, _ in answer["methodResponses"]]
    (email,) = answer["methodResponses"][1][1]["list"]
    assert "teapot" in str(email["bodyValues"])
    (snippet,) = answer["methodResponses"][2][1]["list"]
    assert "I would like a <mark>teapot</mark>, please." == snippet["preview"]


def test_the_change_discovery_flow_tells_of_a_message_that_came_meanwhile(running: tuple[House, Served]) -> None:
    before, later = _example("change-discovery flow").split("# ... later:\n")
    define, keep = before.split("\n\n", 1)
    (state,) = _run(f'{before}\nprintf \'"%s"\' "$STATE"', running)
    mirror = running[0].store.account(ACCOUNT)
    inbox = next(mailbox.id for mailbox in mirror.mailboxes() if mailbox.name == "INBOX")
    synced.add(mirror, inbox, [fetched(50, octets(50, "Came meanwhile", "New."), NOW)])
    (answer,) = _run(f"{define}\nSTATE='{state}'\n{later}", running)
    assert "STATE=" in keep
    (_, changes, _), (_, got, _) = answer["methodResponses"]
    assert (1, [], []) == (len(changes["created"]), changes["updated"], changes["destroyed"])
    assert "Came meanwhile" == got["list"][0]["subject"]


def test_the_push_flow_ends_with_the_first_change(running: tuple[House, Served]) -> None:
    mirror = running[0].store.account(ACCOUNT)
    inbox = next(mailbox.id for mailbox in mirror.mailboxes() if mailbox.name == "INBOX")
    with _begun(_example("push flow"), running) as shell:
        assert shell.stdout is not None
        # It is there from its first line on, and hears of whatever comes after.
        assert shell.stdout.readline()
        synced.add(mirror, inbox, [fetched(60, octets(60, "Pushed", "New."), NOW)])
        told, stderr = shell.communicate(timeout=SECONDS)
    assert 0 == shell.returncode, stderr
    (data,) = [line.removeprefix("data: ") for line in told.splitlines() if line.startswith("data: ")]
    assert {"Email", "Mailbox"} == json.loads(data)["changed"][ACCOUNT].keys()


def test_the_download_flow_gives_the_octets_and_a_part_of_them(running: tuple[House, Served], tmp_path: Path) -> None:
    with _begun(_example("download flow"), running, tmp_path) as shell:
        _, stderr = shell.communicate(timeout=SECONDS)
    assert 0 == shell.returncode, stderr
    message = (tmp_path / "message.eml").read_bytes()
    assert b"teapot" in message
    assert message[:10] == (tmp_path / "beginning").read_bytes()

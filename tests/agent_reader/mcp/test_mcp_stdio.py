"""`agent-reader mcp` as a real process, with the SDK's stdio client, between a real reader and a real intake."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from shared.tokens import TokenKind, new_token
from tests.agent_reader.mcp.desk import Desked, desked, id_of, outside, short
from tests.agent_reader.mcp.served import ERAS, app_of, served, text_of
from tests.agent_reader.served import MESSAGES
from tests.change_executor.intake.desk import Desk as Intake
from tests.change_executor.journal.clock import MovableClock
from tests.change_executor.journal.empty import empty_journal
from tests.change_executor.settings import settings_in

REPOSITORY = Path(__file__).resolve().parents[3]
MAIL = id_of(MESSAGES[2])
# What `agent-reader mcp` becomes: the first half of its start costs as much as all the rest, and is in the first test.
RELAY = ("agent_reader.relay",)
Said = subprocess.CompletedProcess[bytes]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class Street:
    """Both houses, and the files of the agent's two tokens."""

    standing: Desked
    intake: Intake
    folder: Path

    def file(self, name: str, token: str) -> str:
        path = self.folder / name
        path.write_text(token + "\n")
        path.chmod(0o600)
        return str(path)

    def arguments(self, reader: str, intake: str | None) -> list[str]:
        token_file = self.file("reader-token", self.standing.house.token)
        arguments = ["--token-file", token_file, "--reader-url", reader]
        if intake is not None:
            proposer = self.file("proposer-token", self.intake.token)
            arguments += ["--proposer-token-file", proposer, "--intake-url", intake]
        return arguments


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Street]:
    folder = tmp_path_factory.mktemp("street")
    settings = settings_in(folder, max_pending_per_agent=3)
    journal = empty_journal(settings.journal.url, MovableClock())
    try:
        with desked(folder / "reader-side") as standing:
            yield Street(standing, Intake(journal, settings), folder)
    finally:
        journal.close()


@asynccontextmanager
async def houses(street: Street) -> AsyncIterator[tuple[str, str]]:
    async with (
        served(app_of(street.standing.desk, street.standing.house)) as reader,
        served(street.intake.app) as intake,
    ):
        yield reader, intake


def command(arguments: list[str], start: tuple[str, ...] = RELAY) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=["-m", *start, *arguments], cwd=REPOSITORY, env=dict(os.environ)
    )


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_a_client_reads_and_proposes_and_is_told_what_became_of_it(street: Street, era: str) -> None:
    async with (
        houses(street) as (reader, intake),
        Client(command(street.arguments(reader, intake), ("agent_reader", "mcp")), mode=era) as client,
    ):
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"read_mail", "propose_move", "my_proposals"} <= tools.keys()
        assert ["escalate", "processed"] == tools["propose_move"].input_schema["properties"]["to"]["enum"]
        assert "paid 12 EUR" in text_of(await client.call_tool("read_mail", {"ids": [MAIL]}))
        # The relay asks the reader for the whole of the id, over the same socket.
        made = await client.call_tool("propose_move", {"id": short(MAIL), "to": "processed", "reason": "Obey me"})
        assert not made.is_error, text_of(made)
        assert re.match(r"Proposed( already)?: P[0-9a-v]{20}, pending", text_of(made))
        listed = text_of(await client.call_tool("my_proposals", {"limit": "5"}))
        assert MAIL in listed
        # What the agent wrote may be a stranger's words.
        assert "Obey me" in listed
        assert "Obey me" not in outside(listed)
        wrong = await client.call_tool("propose_move", {"id": MAIL, "to": "escalate"})
        assert wrong.is_error
        assert text_of(wrong).startswith("already_proposed: ")
        unstable = await client.call_tool("propose_move", {"id": "E" + "0" * 32, "to": "processed"})
        assert unstable.is_error
        assert re.match(
            "identity_unstable: .*octets twice.* can be read and not proposed", text_of(unstable), re.DOTALL
        )
    assert not street.standing.house.log.calls


@pytest.mark.anyio
async def test_without_a_proposer_token_there_is_nothing_to_propose_with(street: Street) -> None:
    async with houses(street) as (reader, _), Client(command(street.arguments(reader, None))) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert "propose_move" not in names
        refused = await client.call_tool("propose_move", {"id": MAIL, "to": "processed"})
        assert text_of(refused).startswith("unknown_tool: ")


@pytest.mark.anyio
async def test_houses_that_are_closed_are_said_to_be_and_the_relay_lives(street: Street) -> None:
    async with houses(street) as (reader, _):
        arguments = street.arguments(reader, "http://127.0.0.1:9")
        async with Client(command(arguments), mode="legacy") as client:
            unproposed = await client.call_tool("propose_move", {"id": MAIL, "to": "processed"})
            assert text_of(unproposed).startswith("executor_unreachable: ")
            assert "enum" not in str((await client.list_tools()).tools[-2].input_schema)
            assert "teapot" in text_of(await client.call_tool("search_mail", {"text": "teapot"}))


def spoken(arguments: list[str], *lines: bytes, profiled: bool = False) -> Said:
    """What the relay says to raw lines; `profiled`: with what it loads on standard error."""
    return subprocess.run(
        [sys.executable, "-m", *RELAY, *arguments],
        input=b"".join(line + b"\n" for line in lines),
        capture_output=True,
        check=False,
        cwd=REPOSITORY,
        timeout=60,
        env=os.environ | {"PYTHONPROFILEIMPORTTIME": "1" if profiled else ""},
    )


def test_every_line_of_standard_output_is_protocol_whatever_comes_in(street: Street) -> None:
    done = spoken(
        street.arguments("http://127.0.0.1:9", None),
        b"no json",
        b"[1]",
        b'{"jsonrpc": "2.0", "id": true, "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": 7}',
        b'{"jsonrpc": "2.0", "method": "notifications/initialized"}',
        b'{"jsonrpc": "2.0", "id": 5, "result": {}}',
        b"\xff\xfe",
        b"[" * 100_000,
        b"x" * (1024 * 1024 + 10),
        b'{"jsonrpc": "2.0", "id": 2, "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": "three", "method": "tools/call", "params": {"name": "search_mail"}}',
    )
    assert 0 == done.returncode, done.stderr[-2000:]
    said = [json.loads(line) for line in done.stdout.decode("ascii").splitlines()]
    assert all("2.0" == message["jsonrpc"] for message in said)
    by_id = {str(message["id"]): message for message in said if message["id"] is not None}
    assert "reader_unreachable" in by_id["2"]["error"]["message"]
    assert by_id["three"]["result"]["isError"]
    assert -32600 == by_id["1"]["error"]["code"]
    assert 6 == sum(message["id"] is None for message in said)


def test_the_process_that_speaks_with_the_client_has_loaded_nothing_that_speaks_imap(street: Street) -> None:
    ping = b'{"jsonrpc": "2.0", "id": 2, "method": "ping"}'
    done = spoken(street.arguments("http://127.0.0.1:9", "http://127.0.0.1:9"), ping, profiled=True)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines() if "|" in line}
    assert "agent_reader.relay.stdio" in loaded
    for package in ("imapclient", "imaplib", "apsw", "sqlalchemy", "mcp", "agent_reader.store", "agent_reader.imap"):
        assert package not in loaded


@pytest.mark.parametrize("token", ["", "nonsense", "proposer", "public"])
def test_a_wrong_token_file_is_one_clear_message(street: Street, token: str) -> None:
    text = new_token(TokenKind.PROPOSER, os.urandom).text if token == "proposer" else token
    path = Path(street.file("wrong-token", street.standing.house.token if token == "public" else text))
    if token == "public":
        path.chmod(0o644)
    done = spoken(["--token-file", str(path)])
    assert 2 == done.returncode
    assert b"" == done.stdout
    assert b"agent-reader mcp: " in done.stderr
    assert text.encode() not in done.stderr or not text


def test_what_is_printed_by_mistake_does_not_reach_the_client() -> None:
    program = (
        "import os\n"
        "from agent_reader.relay.stdio import wire\n"
        "with wire() as (lines, answers):\n"
        "    print('stray'); os.write(1, b'stray'); answers.write(b'protocol\\n')\n"
        "print('late')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, cwd=REPOSITORY)
    assert b"protocol\n" == done.stdout
    assert b"stray" in done.stderr

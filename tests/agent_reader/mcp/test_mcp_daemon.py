"""The whole way with real processes: a client, the relay, the reader's daemon, a real mail server and its own log."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from agent_reader.__main__ import main
from agent_reader.relay.client_config import ClientKind, RelayCommand, client_config
from agent_reader.relay.http_config import http_config
from tests.agent_reader.mcp.desk import id_of
from tests.agent_reader.mcp.mails import CANARY, HOSTILE, attached
from tests.agent_reader.mcp.served import ERAS, SECONDS, client, text_of
from tests.agent_reader.mcp.test_mcp_sequences import ALPHABET
from tests.bench.start_up import ask, letters
from tests.fakes.reader_process import ReaderFolder
from tests.servers.dovecot import Dovecot
from tests.servers.proxy import BreakingProxy, BreakPoint

REPOSITORY = Path(__file__).resolve().parents[3]
# What changes a mailbox, or marks a message as seen.
CHANGING = (b"STORE", b"MOVE", b"COPY", b"APPEND", b"EXPUNGE", b"DELETE", b"CREATE", b"RENAME", b"SELECT", b"CLOSE")

FETCHED = attached(90, "See", "notes.txt", "application/octet-stream", b"These words are only on the server.\n")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def folder(dovecot: Dovecot, tmp_path: Path) -> ReaderFolder:
    return ReaderFolder(tmp_path, dovecot)


@pytest.mark.anyio
async def test_a_client_behind_the_relay_reads_mail_and_the_server_saw_only_looks(folder: ReaderFolder) -> None:
    for message in (*HOSTILE, FETCHED):
        folder.dovecot.deliver("INBOX", message)
    token_file = folder.folder / "token"
    token_file.touch(0o600)
    token_file.write_text(folder.token())
    before = folder.dovecot.snapshot()
    with folder.serve() as reader:
        address = await asyncio.to_thread(reader.address)
        await asyncio.to_thread(reader.await_event, "sync:round", whole=True)
        relay = StdioServerParameters(
            command=sys.executable,
            args=["-m", "agent_reader", "mcp"],
            env=os.environ | {"MAILWARRANT_TOKEN_FILE": str(token_file), "MAILWARRANT_READER_URL": address},
            cwd=REPOSITORY,
        )
        async with Client(relay) as opened:
            assert "first sync" not in str(opened.instructions)
            for name, arguments in ALPHABET:
                await opened.call_tool(name, arguments)
            assert CANARY in text_of(await opened.call_tool("search_mail", {"text": CANARY}))
            # An attachment that the index does not keep is fetched, and without a mark upon the message.
            assert "only on the server" in text_of(await opened.call_tool("read_attachment", {"id": id_of(FETCHED)}))
        assert 0 == await asyncio.to_thread(reader.end, by_signal=signal.SIGTERM)
    assert before == folder.dovecot.snapshot()
    for line in folder.dovecot.commands("reader"):
        words = line.upper().split()
        assert not set(words) & set(CHANGING), line
        assert b"BODY[" not in line.upper()
    assert CANARY not in reader.text
    assert token_file.read_text() not in reader.text


@pytest.mark.anyio
async def test_the_door_answers_while_the_first_sync_runs_and_says_so(folder: ReaderFolder) -> None:
    folder.dovecot.deliver("INBOX", HOSTILE[0])
    token = folder.token()
    # A first sync that goes on for as long as anybody looks: the mail server never answers the fetch.
    with BreakingProxy(folder.dovecot.port, b"FETCH", BreakPoint.BLACKHOLE) as proxy:
        folder.settings = {"port": proxy.port, "tls": "none"}
        with folder.serve() as reader:
            address = await asyncio.to_thread(reader.address)
            assert await asyncio.to_thread(proxy.broken.wait, 30)
            for era in ERAS:
                async with client(address, token, era) as opened:
                    assert "first sync is running" in str(opened.instructions)
                    assert "first sync is running" in text_of(await opened.call_tool("search_mail", {}))
            session = await asyncio.to_thread(
                httpx.get,
                f"{address}/jmap/session",
                headers={"Authorization": f"Bearer {token}"},
                trust_env=False,
                timeout=SECONDS,
            )
            assert 200 == session.status_code
            assert 0 == await asyncio.to_thread(reader.end, by_signal=signal.SIGTERM)


@pytest.mark.anyio
async def test_clients_are_answered_while_thousands_of_messages_are_taken_in_and_told_that_it_is_so(
    folder: ReaderFolder,
) -> None:
    # How long each waits is measured by tests/bench/start_up.py.
    folder.dovecot.fill("INBOX", letters(3_000))
    token = folder.token()
    with folder.serve() as reader:
        answered = await ask(await asyncio.to_thread(reader.address), token)
        assert answered.says_so
        assert not any(line.get("event") == "sync:round" and line.get("whole") for line in reader.log)
        assert 0 == await asyncio.to_thread(reader.end, by_signal=signal.SIGTERM)


def test_the_configuration_of_every_client_starts_the_relay_and_holds_no_token() -> None:
    command = RelayCommand(Path("/opt/m w/agent-reader"), Path("/home/a/reader token"), Path("/home/a/proposer"))
    for kind in ClientKind:
        where, form = client_config(kind, command)
        assert where.endswith(".")
        for piece in ("/opt/m w/agent-reader", "mcp", "--token-file", "/home/a/reader token", "--proposer-token-file"):
            assert piece in form, kind
        assert "mwr_" not in form
        if kind is ClientKind.CODEX:
            # It waits for the tools before it asks its model.
            entry = tomllib.loads(form)["mcp_servers"]["mailwarrant"]
            assert ["mcp", "--token-file", "/home/a/reader token"] == entry["args"][:3]
            assert entry["required"]


# Where each client's documentation has the address, and what it puts in place of the variable.
HTTP_FORMS = {
    ClientKind.CODEX: (tomllib.loads, "mcp_servers", "url", None),
    ClientKind.VS_CODE: (json.loads, "servers", "url", "${input:mailwarrant}"),
    ClientKind.CURSOR: (json.loads, "mcpServers", "url", "${env:MAILWARRANT_TOKEN}"),
    ClientKind.GEMINI_CLI: (json.loads, "mcpServers", "httpUrl", "$MAILWARRANT_TOKEN"),
    ClientKind.JSON: (json.loads, None, "url", "${MAILWARRANT_TOKEN}"),
}


def test_every_client_that_speaks_http_is_told_the_daemons_address_and_no_token() -> None:
    for kind in ClientKind:
        found = http_config(kind, "http://127.0.0.1:8620/")
        if kind is ClientKind.CLAUDE_DESKTOP:
            assert found is None
            continue
        assert found is not None
        where, form = found
        assert where.endswith(".")
        if kind is ClientKind.CLAUDE_CODE:
            *line, header = shlex.split(form)
            added = "claude mcp add --scope user --transport http mailwarrant http://127.0.0.1:8620/mcp --header"
            assert added == shlex.join(line)
            assert "Authorization: Bearer ${MAILWARRANT_TOKEN}" == header
            continue
        load, under, address, variable = HTTP_FORMS[kind]
        read = load(form)
        entry = (read[under] if under else read)["mailwarrant"]
        assert "http://127.0.0.1:8620/mcp" == entry[address]
        if variable is None:
            assert "MAILWARRANT_TOKEN" == entry["bearer_token_env_var"]
        else:
            assert f"Bearer {variable}" == entry["headers"]["Authorization"]
        if kind is ClientKind.VS_CODE:
            # Asked for as a secret is: not shown while it is typed.
            assert [("mailwarrant", True)] == [(each["id"], each["password"]) for each in read["inputs"]]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["codex", "--http", "--reader-url", "https://mail.example"], 0, 'url = "https://mail.example/mcp"'),
        (["claude-desktop", "--http"], 2, "starts programs only"),
        (["codex", "--http", "--proposer-token-file", "x"], 2, "never takes a proposer token"),
    ],
)
def test_the_command_gives_the_http_form_where_there_is_one(
    arguments: list[str], code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["agent-reader", "client-config", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert code == (ended.value.code or 0)
    printed = capsys.readouterr()
    assert said in printed.out + printed.err


def test_the_command_prints_a_form_that_goes_into_a_file_as_it_is(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "agent_reader", "client-config", "claude-desktop", "--token-file", str(tmp_path / "t")],
        capture_output=True,
        text=True,
        check=True,
        cwd=REPOSITORY,
    )
    assert str(tmp_path / "t") in done.stdout
    assert done.stdout.startswith("{")
    assert "claude_desktop_config.json" in done.stderr


def test_a_daemon_starts_without_the_sdk() -> None:
    loaded = (
        "import agent_reader.app, sys; print({'mcp', 'mcp_types'} & {name.partition('.')[0] for name in sys.modules})"
    )
    found = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True, timeout=60)
    assert "set()" == found.stdout.strip()

"""What `agent-reader reads` and `agent-reader token` tell of a line and of a token, whole and under its name."""

from __future__ import annotations

import csv
import io
import json
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent_reader.access import Access, Agent, Shown
from tests.agent_reader.empty import empty_access
from tests.agent_reader.test_access_commands import Reader


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    made = Reader(tmp_path)
    empty_access(made.folder)
    return made


def test_every_member_and_column_of_a_line_is_told_under_its_name(reader: Reader) -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    ids = ("M" + "1" * 32, "E" + "2" * 32, "X" + "3" * 32)
    with Access(reader.folder, lambda: at, secrets.token_bytes) as access:
        parts = ((ids[0], ("header", "preview")),)
        access.record(Agent("clerk", "aaaaaaaa", peer="uid 7"), [Shown("Email/get", "main", ids, (), 1234, parts)])
        access.record(Agent("other", "bbbbbbbb"), [Shown("Mailbox/get", "main", octets=9)])
    first, second = (json.loads(line) for line in reader.said("reads", "--json").splitlines())
    whole = {
        "row": 1,
        "at": "2026-01-02T03:04:05.000006+00:00",
        "agent": "clerk",
        "token": "aaaaaaaa",
        "from": "uid 7",
        "account": "main",
        "method": "Email/get",
        "octets": 1234,
    }
    messages = [{"emailId": each, "parts": ["header", "preview"] if each == ids[0] else []} for each in ids]
    assert whole | {"hasBodies": False, "messages": messages} == first
    assert (2, []) == (second["row"], second["messages"])
    rows = list(csv.DictReader(io.StringIO(reader.said("reads", "--csv"))))
    assert [
        *({**whole, "emailId": each, "parts": "header;preview" if each == ids[0] else ""} for each in ids),
        # One that names no message is a line too.
        {**whole, "row": 2, "agent": "other", "token": "bbbbbbbb", "from": "", "method": "Mailbox/get", "octets": 9}
        | {"emailId": "", "parts": ""},
    ] == [{**row, "row": int(row["row"]), "octets": int(row["octets"])} for row in rows]
    # Ids of all kinds are asked for.
    for each in ids:
        (asked,) = csv.DictReader(io.StringIO(reader.said("reads", "--csv", "--message", each)))
        assert each == asked["emailId"]


def test_a_token_past_its_time_is_said_to_be_so(reader: Reader) -> None:
    past = datetime.now(UTC) - timedelta(days=2)
    with Access(reader.folder, lambda: past, secrets.token_bytes) as access:
        token = access.create_token("clerk", timedelta(days=1))
    assert f"{token.id} clerk" in reader.said("token", "list")
    assert " expired " in reader.said("token", "list")
    assert "expired" in reader.run("token", "preview", token.id).stderr

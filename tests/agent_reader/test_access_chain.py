"""The read log as a chain: canonical, kept through pruning, and made of what an older version left."""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine

from agent_reader.access import Access, Agent, Shown, migrations
from agent_reader.access.chain import Link
from agent_reader.scope import Depth, Scope
from shared.link import OpenedState
from shared.settings import ConfigurationError
from shared.tokens import TokenKind, new_token
from tests.agent_reader.mirrored import START, Moment

CLERK = Agent("clerk", "aaaaaaaa", peer="127.0.0.1")


def _rows(folder: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / "access.db")) as connection:
        return connection.execute(
            "SELECT key, at, agent, token_id, method, account, email_ids, parts, octets, peer, bodies, digest "
            "FROM reads ORDER BY key"
        ).fetchall()


def test_the_digest_is_the_one_that_the_document_says(tmp_path: Path) -> None:
    with Access(tmp_path, Moment(), secrets.token_bytes) as access:
        parts = (("M1", ("header", "text/1")), ("M2", ("header",)))
        shown = Shown("Email/get", "bücher", ("M2", "M1"), ("M1",), 12, parts)
        access.record(
            CLERK, [shown, Shown("Thread/get", "x"), replace(shown, account="x"), Shown("Thread/get", "\x7f")]
        )
    previous = bytes(32)
    for key, at, agent, token, method, account, email_ids, parts_text, octets, peer, bodies, digest in _rows(tmp_path):
        content = [key, at, agent, token, method, account, json.loads(str(email_ids)), json.loads(str(parts_text))]
        text = json.dumps([*content, octets, peer, bodies], separators=(",", ":"), sort_keys=True)
        assert text.isascii()
        previous = hashlib.sha256(previous + text.encode()).digest()
        assert previous == digest


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("at", 1), ("agent", "'x'"), ("token_id", "'x'"), ("method", "'x'"), ("account", "'x'"), ("email_ids", "'[]'"),
        ("parts", "'{}'"), ("octets", 1), ("peer", "'x'"), ("bodies", 0), ("digest", "x'00'"),
        ("email_ids", "'no JSON'"), ("email_ids", "'3'"), ("email_ids", "x'ff'"), ("parts", "'[1]'"),
        ("parts", "'{\"M1\": 3}'"), pytest.param("parts", f"'{'[' * 100_000}'", id="nested"), ("digest", "'x'"),
        ("at", "'x'"), ("octets", "x'00'"),
    ],
)  # fmt: skip
def test_a_change_of_any_column_is_found(tmp_path: Path, column: str, value: str | int) -> None:
    with Access(tmp_path, Moment(), secrets.token_bytes) as access:
        shown = Shown("Email/get", "shop", ("M1",), ("M1",), 12, (("M1", ("header",)),))
        access.record(CLERK, [shown] * 3)
        assert ("", 3) == (access.verify().wrong, access.verify().rows)
        access._writer.execute(f"UPDATE reads SET {column} = {value} WHERE key = 2")
        assert "row 2" in access.verify().wrong


def test_an_anchor_that_is_none_is_found(tmp_path: Path) -> None:
    with Access(tmp_path, Moment(), secrets.token_bytes) as access:
        access.record(CLERK, [Shown("Email/get", "shop", ("M1",))])
        access._writer.execute("INSERT INTO anchor (row, key, digest, last_at, pruned_at) VALUES (1, 'q', x'00', 0, 0)")
        assert "anchor" in access.verify().wrong


@pytest.mark.parametrize(("column", "value"), [("email_ids", "'3'"), ("parts", "'7'"), ("at", "'x'"), ("at", 2**62)])
def test_a_line_that_is_none_is_named_to_whoever_lists_it(tmp_path: Path, column: str, value: str | int) -> None:
    with Access(tmp_path, Moment(), secrets.token_bytes) as access:
        access.record(CLERK, [Shown("Email/get", "shop", ("M1",))] * 3)
        access._writer.execute(f"UPDATE reads SET {column} = {value} WHERE key = 2")
        with pytest.raises(ConfigurationError, match="row 2 of the read log"):
            access.lines(agent=None, since=None, email_id=None, limit=10)
        (line,) = access.lines(agent=None, since=None, email_id=None, limit=1)
        assert 3 == line.key


def test_what_is_old_is_let_go_and_the_rest_is_verified_from_the_anchor(tmp_path: Path) -> None:
    clock = Moment()
    keep = timedelta(days=30)
    with Access(tmp_path, clock, secrets.token_bytes, keep=keep) as access:
        access.create_token("clerk")
        for number in range(250):
            access.record(CLERK, [Shown("Email/get", "shop", (f"M{number}",), (f"M{number}",))])
            clock.now += timedelta(seconds=1)
        head = access.verify().head
        clock.now += keep
        for number in range(5):
            access.record(CLERK, [Shown("Email/get", "shop", (f"N{number}",), (f"N{number}",))])
        found = access.verify()
        assert ("", 5, 250) == (found.wrong, found.rows, found.anchor.key)
        assert head == found.anchor
        # A head from before the anchor cannot be looked up any more; the anchor itself can.
        assert "" == access.verify(head).wrong
        assert "not in this chain" in access.verify(Link(252, bytes(32))).wrong
        assert ["N0"] == access.reads("clerk")[0][1].email_ids
        # Whether something older was opened is not known any more, and not denied.
        assert OpenedState.OPENED is access.opened("clerk", "shop", "N1").state
        assert OpenedState.UNKNOWN is access.opened("clerk", "shop", "M1").state
        # Nor by who has another token since.
        access.create_token("clerk")
        assert OpenedState.UNKNOWN is access.opened("clerk", "shop", "M1").state
        access.create_token("newcomer")
        assert OpenedState.NOT_OPENED is access.opened("newcomer", "shop", "M1").state
        assert 5 == access._writer.execute("SELECT count(*) FROM opened").get
        access._writer.execute("DELETE FROM reads WHERE key = 251")
        assert "between row 250 and row 252" in access.verify().wrong


def test_a_line_is_kept_for_as_long_as_lines_are_kept_and_let_go_then(tmp_path: Path) -> None:
    clock, keep = Moment(), timedelta(days=30)
    with Access(tmp_path, clock, secrets.token_bytes, keep=keep) as access:
        access.record(CLERK, [Shown("Email/get", "shop", ("M1",))])
        for later, kept in ((keep, 2), (timedelta(microseconds=1), 2)):
            clock.now += later
            access.record(CLERK, [Shown("Email/get", "shop", ("M2",))])
            assert kept == access.verify().rows
        assert 1 == access.verify().anchor.key


def _version(path: Path, revision: str) -> None:
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        config = Config()
        config.set_main_option("script_location", str(Path(migrations.__file__).parent))
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    engine.dispose()


def test_tokens_and_lines_of_the_version_before_come_into_the_chain_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "access.db"
    _version(path, "0001")
    token = new_token(TokenKind.READER, secrets.token_bytes)
    ends = int((START + timedelta(days=90)).timestamp()) * 1_000_000
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO tokens VALUES (?, 'clerk', ?, 5, ?, NULL)", (token.id, token.digest(), ends))
        connection.executemany(
            "INSERT INTO reads (at, agent, token_id, method, account, email_ids, bodies) VALUES (?, 'clerk', ?, "
            "'Email/get', 'shop', ?, 1)",
            [(number, token.id, json.dumps([f"M{number}"])) for number in range(20)],
        )
        connection.execute("INSERT INTO opened VALUES ('clerk', 'shop', 'M3', 3)")
        connection.commit()
    with Access(tmp_path, Moment(), secrets.token_bytes, keep=timedelta(days=30_000)) as access:
        # What it could read it still can, but for what lets somebody in.
        assert Agent("clerk", token.id, Scope()) == access.authenticate(f"Bearer {token.text}")
        assert ("", 20) == (access.verify().wrong, access.verify().rows)
        access.record(CLERK, [Shown("Email/get", "shop", ("M99",))])
        assert ("", 21) == (access.verify().wrong, access.verify().rows)
        assert OpenedState.OPENED is access.opened("clerk", "shop", "M3").state
        assert [["M0"], ["M1"]] == [line.email_ids for _, line in access.reads("clerk", limit=2)]


@pytest.mark.parametrize(
    "scope",
    [
        Scope(),
        Scope(sign_in_mail=True),
        # A limit that lets nothing through is no limit that is not there.
        Scope((), (), None, (), Depth.TEXT),
        Scope(("a",), ("INBOX", "Büro\n"), START, ("ann@example.org", "example.net"), Depth.HEADERS, sign_in_mail=True),
    ],
)
def test_a_scope_comes_back_as_it_was_given(tmp_path: Path, scope: Scope) -> None:
    with Access(tmp_path, Moment(), secrets.token_bytes) as access:
        token = access.create_token("clerk", scope=scope, budget=5, note="why")
        found = access.authenticate(f"Bearer {token.text}")
        assert Agent("clerk", token.id, scope, 5) == found
        # A limit of a newer version must not be lost: the token opens nothing then.
        access._writer.execute("UPDATE tokens SET scope = '{\"onlyOnSundays\": true}'")
        with pytest.raises(ValueError, match="onlyOnSundays"):
            access.authenticate(f"Bearer {token.text}")

"""Reader tokens: made, shown once, looked up, refused by name, and gone when they are revoked or too old."""

from __future__ import annotations

import base64
import secrets
import sqlite3
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent_reader.access import Access, Agent, Shown
from agent_reader.access.access import MAX_LIFETIME
from agent_reader.access.migrations import HEAD
from agent_reader.access.schema import metadata
from agent_reader.errors import AccessUnavailable
from shared.problem import Problem
from shared.settings import ConfigurationError
from shared.tokens import TokenKind, new_token
from tests.agent_reader.empty import empty_access

START = datetime(2026, 11, 29, 12, tzinfo=UTC)


class Clock:
    now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def access(tmp_path: Path, clock: Clock) -> Iterator[Access]:
    empty_access(tmp_path)
    with Access(tmp_path, clock, secrets.token_bytes) as opened:
        yield opened


def _code(access: Access, authorization: str | None) -> str:
    found = access.authenticate(authorization)
    assert isinstance(found, Problem), found
    assert 401 == found.status
    return found.code


def test_a_token_opens_as_bearer_and_as_the_password_of_basic(access: Access) -> None:
    token = access.create_token("clerk")
    expected = Agent("clerk", token.id)
    basic = base64.b64encode(f"anybody:{token.text}".encode()).decode()
    for authorization in (f"Bearer {token.text}", f"bearer  {token.text}", f"Basic {basic}"):
        assert expected == access.authenticate(authorization)


@pytest.mark.parametrize("authorization", [None, "", "Bearer", "Bearer ", "Basic", "Basic !!", "Digest x", "mwr_"])
def test_no_credentials_are_no_token(access: Access, authorization: str | None) -> None:
    assert "no_token" == _code(access, authorization)


def test_a_wrong_secret_and_an_unknown_id_get_the_same_answer(access: Access) -> None:
    token = access.create_token("clerk")
    stranger = new_token(TokenKind.READER, secrets.token_bytes)
    numbers = iter((base64.b32decode(token.id.upper()), bytes(20)))
    same_id = new_token(TokenKind.READER, lambda _length: next(numbers))
    assert (token.id, False) == (same_id.id, same_id.text == token.text)
    for text in (stranger.text, same_id.text, token.text[:-1], token.text.upper(), "mwr_"):
        assert "unknown_token" == _code(access, f"Bearer {text}")


def test_a_proposer_token_is_told_that_it_is_at_the_wrong_house(access: Access) -> None:
    proposer = new_token(TokenKind.PROPOSER, secrets.token_bytes)
    assert "wrong_token_kind" == _code(access, f"Bearer {proposer.text}")


def test_a_token_ends_by_itself_after_ninety_days(access: Access, clock: Clock) -> None:
    token = access.create_token("clerk")
    clock.now = START + timedelta(days=90) - timedelta(microseconds=1)
    assert isinstance(access.authenticate(f"Bearer {token.text}"), Agent)
    clock.now = START + timedelta(days=90)
    assert "expired_token" == _code(access, f"Bearer {token.text}")
    assert [] == access.agents()


def test_a_revoked_token_opens_nothing_from_then_on_in_every_process(
    access: Access, tmp_path: Path, clock: Clock
) -> None:
    token, other = access.create_token("clerk"), access.create_token("clerk")
    assert isinstance(access.authenticate(f"Bearer {token.text}"), Agent)
    with Access(tmp_path, clock, secrets.token_bytes) as command:
        assert command.revoke(token.id)
        assert not command.revoke(token.id)
        assert not command.revoke("aaaaaaaa")
    assert "revoked_token" == _code(access, f"Bearer {token.text}")
    assert isinstance(access.authenticate(f"Bearer {other.text}"), Agent)
    assert [(token.id, START), (other.id, None)] == sorted(
        ((known.id, known.revoked_at) for known in access.tokens()), key=lambda row: row[1] is None
    )


@pytest.mark.parametrize("end", ["revoked_token", "expired_token"])
def test_what_was_asked_for_before_a_token_ended_does_not_leave_after_it(
    access: Access, tmp_path: Path, clock: Clock, end: str
) -> None:
    token = access.create_token("clerk", budget=1_000)
    asking = access.authenticate(f"Bearer {token.text}")
    assert isinstance(asking, Agent)
    if end == "revoked_token":
        with Access(tmp_path, clock, secrets.token_bytes) as command:
            command.revoke(token.id)
    else:
        clock.now += timedelta(days=90)
    with pytest.raises(Problem) as refused:
        access.record(asking, [Shown("Email/get", "shop", ("M1",), ("M1",), 10)], 10)
    assert (end, 401) == (refused.value.code, refused.value.status)
    assert [] == access.reads("clerk")
    assert 0 == asking.meter.charged


def test_only_the_holder_learns_that_a_token_is_revoked_or_too_old(access: Access, clock: Clock) -> None:
    token = access.create_token("clerk", timedelta(seconds=1))
    clock.now = START + timedelta(days=1)
    numbers = iter((base64.b32decode(token.id.upper()), bytes(20)))
    guessed = new_token(TokenKind.READER, lambda _length: next(numbers))
    assert "unknown_token" == _code(access, f"Bearer {guessed.text}")
    assert "expired_token" == _code(access, f"Bearer {token.text}")


@pytest.mark.parametrize("name", ["", "Clerk", "a b", "a" * 41, "é", "clerk\n", "../x"])
def test_a_name_that_is_none_is_refused(access: Access, name: str) -> None:
    with pytest.raises(ConfigurationError):
        access.create_token(name)
    assert [] == access.tokens()


@pytest.mark.parametrize("lifetime", [timedelta(0), timedelta(days=-1), MAX_LIFETIME + timedelta(seconds=1)])
def test_no_token_lives_for_ever_or_not_at_all(access: Access, lifetime: timedelta) -> None:
    with pytest.raises(ConfigurationError):
        access.create_token("clerk", lifetime)


def test_the_file_holds_no_secret_and_is_its_owners_alone(access: Access, tmp_path: Path) -> None:
    token = access.create_token("clerk")
    assert "mwr_" not in repr(token)
    for path in tmp_path.iterdir():
        assert token.text.encode() not in path.read_bytes()
        assert token.text.split("_")[2].encode() not in path.read_bytes()
        assert 0 == stat.S_IMODE(path.stat().st_mode) & 0o077, path


def test_a_file_that_was_open_to_others_is_closed_to_them(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "access.db"
    path.touch(mode=0o644)
    path.chmod(0o644)
    with Access(tmp_path, clock, secrets.token_bytes):
        assert 0o600 == stat.S_IMODE(path.stat().st_mode)


def test_what_was_made_is_there_after_a_restart(tmp_path: Path, clock: Clock) -> None:
    with Access(tmp_path, clock, secrets.token_bytes) as first:
        token = first.create_token("clerk")
    with Access(tmp_path, clock, secrets.token_bytes) as second:
        assert Agent("clerk", token.id) == second.authenticate(f"Bearer {token.text}")


def test_a_file_that_is_none_is_named_with_its_mend(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "access.db").write_bytes(b"no database" * 1000)
    with pytest.raises(ConfigurationError, match=r"access\.db"):
        Access(tmp_path, clock, secrets.token_bytes)


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path, clock: Clock) -> None:
    Access(tmp_path, clock, secrets.token_bytes).close()
    connection = sqlite3.connect(tmp_path / "access.db")
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    connection.close()
    with pytest.raises(ConfigurationError, match="another version"):
        Access(tmp_path, clock, secrets.token_bytes)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError):
        Access(tmp_path / "file" / "folder", clock, secrets.token_bytes)


def test_the_migrations_make_just_the_tables_of_the_schema(tmp_path: Path, clock: Clock) -> None:
    Access(tmp_path, clock, secrets.token_bytes).close()
    connection = sqlite3.connect(tmp_path / "access.db")
    made = {
        table: {
            row[1]: (row[2], bool(row[3] or row[5]), bool(row[5]))
            for row in connection.execute(f"PRAGMA table_info({table})")
        }
        for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        if table not in {"alembic_version", "sqlite_sequence"}
    }
    connection.close()
    kinds = {"INTEGER": "INTEGER", "VARCHAR": "VARCHAR", "TEXT": "TEXT", "BLOB": "BLOB"}
    described = {
        table.name: {
            column.name: (kinds[str(column.type)], not column.nullable, column.primary_key) for column in table.columns
        }
        for table in metadata.sorted_tables
    }
    assert described == made
    versions = Path(__file__).parents[2] / "agent_reader" / "access" / "migrations" / "versions"
    assert max(path.name for path in versions.glob("v*.py")).startswith(f"v{HEAD}_")


def test_a_broken_file_is_an_unavailable_access_and_no_wrong_answer(access: Access, tmp_path: Path) -> None:
    token = access.create_token("clerk")
    access._writer.execute("DROP TABLE tokens")
    with pytest.raises(AccessUnavailable):
        access.authenticate(f"Bearer {token.text}")
    with pytest.raises(AccessUnavailable):
        access.create_token("clerk")

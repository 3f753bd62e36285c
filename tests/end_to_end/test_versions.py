"""The three databases through their versions: every older one is taken along with its data, no newer one is touched.

The way back is in `tests/change_executor/journal/test_downgrade.py` and `tests/agent_reader/test_downgrading.py`.
"""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from agent_reader.access import Access
from agent_reader.access import migrations as access_migrations
from agent_reader.store import Store
from agent_reader.store import migrations as store_migrations
from change_executor.audit import verify
from change_executor.journal import migrations as journal_migrations
from change_executor.journal.open import open_journal
from shared.settings import ConfigurationError

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Database:
    """One of the three: its migrations, its file, how its program opens it, and a row that was there from the start."""

    migrations: ModuleType
    name: str
    open: Callable[[Path], None]
    row: str
    kept: str
    # What the newer program is told to do, by a program that it has left behind.
    way_back: str

    @property
    def versions(self) -> list[str]:
        folder = Path(str(self.migrations.__file__)).parent / "versions"
        return sorted(path.name[1:5] for path in folder.glob("v*.py"))

    def at(self, folder: Path, version: str) -> Path:
        """A file of a version, with a row in it."""
        path = folder / self.name
        self.run(path, lambda config: command.upgrade(config, version))
        with contextlib.closing(sqlite3.connect(path)) as raw, raw:
            raw.execute(self.row)
        path.chmod(0o600)
        return path

    def run(self, path: Path, what: Callable[[Config], None]) -> None:
        engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
        try:
            with engine.begin() as connection:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                config = Config()
                config.set_main_option("script_location", str(Path(str(self.migrations.__file__)).parent))
                config.attributes |= {"connection": connection, "now": NOW}
                what(config)
        finally:
            engine.dispose()

    def asked(self, path: Path, question: str) -> list[tuple[object, ...]]:
        with contextlib.closing(sqlite3.connect(path)) as raw:
            return raw.execute(question).fetchall()


def _open_journal(path: Path) -> None:
    opened = open_journal(f"sqlite:///{path}", lambda: NOW)
    with contextlib.closing(opened) as journal, journal.reading() as connection:
        assert () == verify(connection).findings


def _open_access(path: Path) -> None:
    with Access(path.parent, lambda: NOW, secrets.token_bytes) as access:
        assert ["bot"] == [token.agent for token in access.tokens()]


def _open_index(path: Path) -> None:
    with contextlib.closing(Store(path.parent, lambda: NOW)) as store:
        store.status("shop")


DATABASES = [
    Database(
        journal_migrations,
        "journal.db",
        _open_journal,
        "INSERT INTO sessions (digest, person, created_at, seen_at) VALUES ('d', 'ada', 1, 2)",
        "SELECT digest, person FROM sessions",
        "change-executor downgrade --to ",
    ),
    Database(
        access_migrations,
        "access.db",
        _open_access,
        "INSERT INTO tokens (id, agent, digest, created_at, expires_at) VALUES ('aaaaaaaa', 'bot', x'00', 1, 2)",
        "SELECT id, agent FROM tokens",
        "agent-reader downgrade --to access:",
    ),
    Database(
        store_migrations,
        "mail-shop.db",
        _open_index,
        "INSERT INTO threads VALUES (1, 'T1')",
        "SELECT * FROM threads",
        "agent-reader downgrade --to index:",
    ),
]
BY_NAME = pytest.mark.parametrize("database", DATABASES, ids=lambda database: database.name)


@BY_NAME
def test_every_version_is_taken_to_the_newest_with_what_it_holds(database: Database, tmp_path: Path) -> None:
    assert database.migrations.HEAD == database.versions[-1]
    for version in database.versions:
        folder = tmp_path / version
        folder.mkdir(mode=0o700)
        path = database.at(folder, version)
        before = database.asked(path, database.kept)
        assert len(before) == 1
        database.open(path)
        # Opened again nothing more happens.
        database.open(path)
        assert [(database.migrations.HEAD,)] == database.asked(path, "SELECT version_num FROM alembic_version")
        assert before == database.asked(path, database.kept)


@BY_NAME
def test_a_file_of_a_newer_version_is_refused_with_the_way_out_and_left_as_it_is(
    database: Database, tmp_path: Path
) -> None:
    path = database.at(tmp_path, "head")
    with contextlib.closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(ConfigurationError, match=r"Run the newer version") as refused:
        database.open(path)
    assert f"{database.way_back}{database.migrations.HEAD}" in refused.value.fix
    assert [("9999",)] == database.asked(path, "SELECT version_num FROM alembic_version")
    assert 1 == len(database.asked(path, database.kept))

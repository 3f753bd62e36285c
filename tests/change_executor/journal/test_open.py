"""Opening: tables as the schema says, a private file, one at a time, and every mistake named."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, func, select

from change_executor.audit import verify
from change_executor.journal import migrations, schema
from change_executor.journal.open import open_journal
from shared.settings import ConfigurationError
from tests.change_executor.journal.clock import MovableClock, new_proposal
from tests.change_executor.journal.first_version import first_version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from change_executor.journal.journal import Journal

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


def test_the_migrated_database_is_what_the_schema_says(journal: Journal) -> None:
    with journal.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": False})
        assert [] == compare_metadata(context, schema.metadata)


def test_every_column_is_migrated_with_the_affinity_and_the_null_of_the_schema(
    journal: Journal, tmp_path: Path
) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'at_once.db'}")
    schema.metadata.create_all(engine)
    engine.dispose()
    made_at_once = sqlite3.connect(tmp_path / "at_once.db")
    try:
        expected = _columns(made_at_once)
    finally:
        made_at_once.close()
    migrated = sqlite3.connect(tmp_path / "journal.db")
    try:
        found = _columns(migrated)
    finally:
        migrated.close()
    del found["alembic_version"]
    assert expected == found


def _columns(connection: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return {
        name: [tuple(row) for row in connection.execute("SELECT * FROM pragma_table_info(?)", (name,))]
        + sorted(tuple(row[2:]) for row in connection.execute("SELECT * FROM pragma_foreign_key_list(?)", (name,)))
        for name in names
    }


def test_the_version_that_the_code_names_is_the_last_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    assert migrations.HEAD == ScriptDirectory.from_config(config).get_current_head()


def test_the_files_of_a_journal_are_its_owners_alone(journal: Journal, tmp_path: Path) -> None:
    with journal.writing() as writing:
        writing.append("test:event", "x", "operator")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert {"journal.db": 0o600, "journal.db-wal": 0o600, "journal.db-shm": 0o600} == modes


def test_a_journal_that_others_may_read_is_made_private(tmp_path: Path, url: str, clock: MovableClock) -> None:
    open_journal(url, clock).close()
    (tmp_path / "journal.db").chmod(0o644)
    open_journal(url, clock).close()
    assert stat.S_IMODE((tmp_path / "journal.db").stat().st_mode) == 0o600


def test_opening_again_keeps_what_was_written(url: str, clock: MovableClock) -> None:
    first = open_journal(url, clock)
    with first.writing() as writing:
        writing.create(new_proposal())
    first.close()
    second = open_journal(url, clock)
    with second.reading() as connection:
        assert connection.execute(select(func.count()).select_from(schema.proposals)).scalar_one() == 1
    second.close()


def test_processes_that_open_a_new_journal_at_once_all_succeed(url: str) -> None:
    program = (
        "import sys\n"
        "from datetime import UTC, datetime\n"
        "from change_executor.journal.open import open_journal\n"
        "sys.stdin.readline()\n"
        "journal = open_journal(sys.argv[1], lambda: datetime.now(UTC))\n"
        "with journal.writing() as writing:\n"
        "    writing.append('test:event', 'x', 'operator')\n"
        "journal.close()\n"
    )
    starters = [
        subprocess.Popen([sys.executable, "-c", program, url], stdin=subprocess.PIPE, text=True) for _ in range(4)
    ]
    for starter in starters:
        assert starter.stdin is not None
        starter.stdin.write("go\n")
        starter.stdin.flush()
    for starter in starters:
        starter.communicate(timeout=60)
    assert [0, 0, 0, 0] == [starter.returncode for starter in starters]
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    assert connection.execute("SELECT count(*), max(seq) FROM events").fetchone() == (4, 4)
    connection.close()


def refused(url: str) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        open_journal(url, MovableClock())
    return caught.value


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    error = refused(f"sqlite:///{tmp_path}/missing/journal.db")
    assert f"{tmp_path}/missing" in error.what
    assert "folder" in error.fix


def test_a_url_without_a_file_is_refused() -> None:
    assert "names no file" in refused("sqlite:///:memory:").what
    assert "names no file" in refused("sqlite://").what


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "journal.db").write_bytes(b"this is not a database, " * 100)
    assert "not a database" in refused(f"sqlite:///{tmp_path}/journal.db").what


def test_a_journal_of_a_newer_version_is_refused_and_left_alone(url: str, clock: MovableClock) -> None:
    open_journal(url, clock).close()
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    with connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    assert "another version" in refused(url).what
    assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == ("9999",)
    connection.close()


@pytest.fixture
def open_ground() -> Iterator[Path]:
    """A folder that every user can pass through; pytest's own are closed."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@needs_root
@pytest.mark.parametrize("mode", [0o500, 0o000])
def test_a_folder_of_another_user_is_refused(open_ground: Path, mode: int) -> None:
    folder = open_ground / "folder"
    folder.mkdir()
    os.chown(folder, 64999, 64999)
    folder.chmod(mode)
    program = (
        "import os, sys\n"
        "from datetime import UTC, datetime\n"
        "from change_executor.journal.open import open_journal\n"
        "from shared.settings import ConfigurationError\n"
        "os.setgroups([]); os.setgid(64999); os.setuid(64999)\n"
        "try:\n"
        "    open_journal(sys.argv[1], lambda: datetime.now(UTC))\n"
        "except ConfigurationError as error:\n"
        "    print(error.what)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, f"sqlite:///{folder}/journal.db"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Permission denied" in done.stdout
    assert str(folder) in done.stdout


@needs_root
def test_root_makes_no_files_in_a_folder_that_belongs_to_another(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    os.chown(folder, 64999, 64999)
    error = refused(f"sqlite:///{folder}/journal.db")
    assert "runs as root" in error.what
    assert [] == list(folder.iterdir())


def test_a_journal_of_the_first_version_is_taken_along_with_all_that_it_holds(
    tmp_path: Path, url: str, clock: MovableClock
) -> None:
    """Rows and texts that no event covered get their digests stated, and are covered from then on."""
    first_version(tmp_path / "journal.db")
    journal = open_journal(url, clock)
    with journal.reading() as connection:
        kinds = connection.execute(
            select(schema.events.c.kind, schema.events.c.subject).order_by(schema.events.c.seq).offset(3)
        ).all()
        assert () == verify(connection).findings
        assert ["move"] == connection.execute(select(schema.moves.c.method)).scalars().all()
        assert ["administrator"] == connection.execute(select(schema.people.c.role)).scalars().all()
    # People are stated once more: each got a role.
    covered = ["evidence", "moves", "tokens", "people", "switches", "examinations", "texts", "people"]
    assert [("journal:adopt", table) for table in covered] == [tuple(row) for row in kinds]
    journal.close()
    for number, change in enumerate(
        (
            "UPDATE moves SET target_mailbox = 'Trash'",
            "UPDATE people SET password_hash = 'x'",
            "UPDATE people SET role = 'reviewer'",
            "INSERT INTO passkeys VALUES ('x', 'ada', 'x', 0, 0, NULL)",
            "UPDATE tokens SET digest = 'x'",
            "UPDATE switches SET since = 0",
            "UPDATE texts SET text = 'Please move it' WHERE kind = 'reason'",
            "DELETE FROM texts",
        )
    ):
        copy = tmp_path / f"copy{number}.db"
        copy.write_bytes((tmp_path / "journal.db").read_bytes())
        with contextlib.closing(sqlite3.connect(copy)) as raw, raw:
            raw.execute(change)
        changed = open_journal(f"sqlite:///{copy}", clock)
        with changed.reading() as connection:
            assert 1 == len(verify(connection).findings), change
        changed.close()

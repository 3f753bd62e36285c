"""The audit as an auditor runs it: where nothing may be written, and with nothing of what is looked at changed."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from change_executor.__main__ import app
from change_executor.errors import JournalUnavailable
from change_executor.journal.reading_only import open_read_only
from tests.change_executor.journal.clock import MovableClock, new_proposal
from tests.change_executor.journal.empty import empty_journal
from tests.change_executor.journal.test_downgrade import at_revision
from tests.servers.processes import NOBODY, as_nobody

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]


def audit(file: Path, command: str = "verify", *arguments: str) -> Result:
    return CliRunner().invoke(app, ["audit", command, *arguments, "--journal", str(file)])


def verified(file: Path, events: int) -> str:
    """What it says on standard error of a whole journal of so many events."""
    done = audit(file)
    assert (0, True) == (done.exit_code, done.stdout.startswith(f"{events} events, head ")), done.output
    return done.stderr


@contextmanager
def nothing_may_be_written(folder: Path) -> Iterator[None]:
    """Files and folder can be read by everybody and written by nobody."""
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    before = octets_of(folder)
    try:
        with as_nobody():
            yield
    finally:
        after = octets_of(folder)
        folder.chmod(0o755)
    assert before == after


def octets_of(folder: Path) -> dict[str, bytes]:
    # Not of the index of the log (FILE-shm): readers of a running executor tell each other by it.
    return {each.name: each.read_bytes() for each in folder.iterdir() if not each.name.endswith("-shm")}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A closed journal of three proposals where every user can come, and a place beside it for private copies."""
    # A folder of a random name, below one that every user can pass through.
    with tempfile.TemporaryDirectory(dir="/tmp") as everybodys:
        above, made, copies = Path(everybodys), Path(everybodys) / "a journal", Path(everybodys) / "copies"
        made.mkdir()
        copies.mkdir()
        copies.chmod(0o1777)
        above.chmod(0o755)
        monkeypatch.setattr(tempfile, "tempdir", str(copies))
        journal = empty_journal(f"sqlite:///{tmp_path / 'journal.db'}", MovableClock())
        for number in range(3):
            with journal.writing() as writing:
                writing.create(new_proposal(number))
        journal.close()
        shutil.copy(tmp_path / "journal.db", made / "journal.db")
        # Whatever they import is imported: somebody else may not be able to read the checkout.
        for command in (("verify",), ("export",), ("show", "M0")):
            audit(tmp_path / "journal.db", *command)
        yield made
        assert [] == list(copies.iterdir())


def test_a_file_and_a_folder_that_nobody_may_write_are_verified_exported_and_shown(folder: Path) -> None:
    shutil.copy(folder / "journal.db", folder / "100% of #1?.db")
    with nothing_may_be_written(folder):
        file = folder / "journal.db"
        assert "Read from the file alone" in verified(file, 3)
        assert "Read from the file alone" in verified(folder / "100% of #1?.db", 3)
        exported = audit(file, "export")
        assert (0, 3) == (exported.exit_code, len(exported.stdout.splitlines()))
        assert "pending" in audit(file, "show", new_proposal(1).id).stdout
        assert 2 == audit(file, "show", "P" + "9" * 20).exit_code


def test_what_was_changed_is_found_there_too(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "journal.db")) as connection, connection:
        connection.execute("DROP TRIGGER events_refuse_update")
        connection.execute("UPDATE events SET actor = 'somebody' WHERE seq = 1")
    with nothing_may_be_written(folder):
        found = audit(folder / "journal.db")
    assert (1, True) == (found.exit_code, "wrong_hash: event 1" in found.stdout)


_KILLED = textwrap.dedent("""
    import os, signal, sys
    from change_executor.journal.open import open_journal
    from tests.change_executor.journal.clock import MovableClock, new_proposal
    journal = open_journal(sys.argv[1], MovableClock())
    for number in range(10, 15):
        with journal.writing() as writing:
            writing.create(new_proposal(number))
    os.kill(os.getpid(), signal.SIGKILL)
""")


def test_what_a_killed_process_left_in_its_log_is_verified_and_the_log_stays_as_it_is(folder: Path) -> None:
    file = folder / "journal.db"
    done = subprocess.run([sys.executable, "-c", _KILLED, f"sqlite:///{file}"], check=False, cwd=ROOT)
    assert -signal.SIGKILL == done.returncode
    # Who may write there, and is the last to have it open, leaves it too as it is.
    left = octets_of(folder)
    assert "" == verified(file, 8).partition("Compared")[0]
    assert left == octets_of(folder)
    (folder / "journal.db-shm").unlink()
    assert (folder / "journal.db-wal").stat().st_size
    assert "private copy" in verified(file, 8)
    assert not (folder / "journal.db-shm").exists()
    with nothing_may_be_written(folder):
        assert "private copy" in verified(file, 8)
    # Without the log nobody can know of the last five, and that is said.
    (folder / "journal.db-wal").unlink()
    with nothing_may_be_written(folder):
        assert "its last events would be missing" in verified(file, 3)


def test_a_log_that_this_user_cannot_read_is_named(folder: Path) -> None:
    log = folder / "journal.db-wal"
    log.write_bytes(b"\x37\x7f\x06\x82" + bytes(100))
    if os.geteuid() != 0:
        pytest.skip("only who may do all can become somebody else")
    with nothing_may_be_written(folder):
        os.seteuid(0)
        log.chmod(0o400)
        os.seteuid(NOBODY)
        done = audit(folder / "journal.db")
    assert (2, "") == (done.exit_code, done.stdout)
    assert f"{log}: cannot be read" in done.stderr
    assert "what was written last lies there" in done.stderr


def test_where_it_may_write_it_makes_no_file_that_the_executor_could_not_use(folder: Path) -> None:
    verified(folder / "journal.db", 3)
    assert ["journal.db"] == [each.name for each in folder.iterdir()]


def test_an_executor_that_begins_meanwhile_makes_the_look_worth_nothing(folder: Path) -> None:
    file = folder / "journal.db"
    look = open_read_only(file)
    look.__enter__()
    journal = empty_journal(f"sqlite:///{file}", MovableClock())
    with journal.writing() as writing:
        writing.create(new_proposal(20))
    with pytest.raises(JournalUnavailable, match="look again"):
        look.__exit__(None, None, None)
    journal.close()


def test_beside_a_running_executor_another_user_reads_what_was_committed_a_moment_ago(folder: Path) -> None:
    journal = empty_journal(f"sqlite:///{folder / 'journal.db'}", MovableClock())
    with journal.writing() as writing:
        writing.create(new_proposal(20))
    with nothing_may_be_written(folder):
        assert "Read from" not in verified(folder / "journal.db", 4)
    journal.close()


@pytest.mark.parametrize("revision", ["0002", "0003", "0004", "0005"])
def test_a_journal_of_an_older_release_is_verified_as_it_is(tmp_path: Path, revision: str) -> None:
    file = tmp_path / "journal.db"
    at_revision(file, revision, MovableClock())
    before = octets_of(tmp_path)
    verified(file, 0)
    assert before == octets_of(tmp_path)


def test_a_journal_of_another_release_and_a_file_that_is_none_are_refused_and_left_as_they_are(folder: Path) -> None:
    file = folder / "journal.db"
    for revision in ("9999", "0001"):
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
        before = file.read_bytes()
        refused = audit(file)
        assert (2, True) == (refused.exit_code, f"is of revision {revision}" in refused.stderr)
        assert before == file.read_bytes()
    file.write_bytes(b"no database at all" * 100)
    refused = audit(file)
    assert (2, True) == (refused.exit_code, "cannot be read as a journal" in refused.stderr)
    assert 2 == audit(folder / "nothing.db").exit_code

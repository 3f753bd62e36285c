"""A commit of another process wakes the executor, and a file that another user made stops it until a person resumes."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
import structlog
from sqlalchemy import select
from structlog.testing import capture_logs

from change_executor.errors import JournalUnavailable
from change_executor.journal import schema
from change_executor.journal.journal import is_stopped
from change_executor.journal.open import open_journal
from change_executor.switch import release_stop, stop_file_present
from change_executor.watch import Watch, poke
from shared.settings import ConfigurationError
from tests.change_executor.journal.clock import MovableClock
from tests.change_executor.journal.test_group import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from change_executor.journal.journal import Journal

PATIENCE = 20.0


@pytest.fixture(params=["short", "x" * 150])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A socket's address ends at 107 octets; a journal's path need not."""
    made = tmp_path / str(request.param)
    made.mkdir()
    return made


@pytest.fixture
def journal(folder: Path) -> Iterator[Journal]:
    opened = open_journal(f"sqlite:///{folder / 'journal.db'}", MovableClock())
    yield opened
    opened.close()


def stopped(journal: Journal) -> bool:
    with journal.reading() as connection:
        return is_stopped(connection)


def test_an_octet_wakes_it_and_one_to_nobody_is_lost(journal: Journal, folder: Path) -> None:
    woken = threading.Event()
    poke(folder / "journal.db")
    watch = Watch(journal, folder / "journal.db", None, woken.set, structlog.get_logger())
    watch.start()
    assert 0o600 == (folder / "journal.db.wake").stat().st_mode & 0o777
    for _ in range(3):
        poke(folder / "journal.db")
        assert woken.wait(PATIENCE)
        woken.clear()
    watch.stop()
    assert not (folder / "journal.db.wake").exists()
    poke(folder / "journal.db")


def test_a_file_stops_and_its_going_releases_nothing(journal: Journal, folder: Path) -> None:
    file = folder / "stop"
    file.touch()
    watch = Watch(journal, folder / "journal.db", file, lambda: None, structlog.get_logger())
    watch.start()
    # The first look comes before anything else is done.
    assert stopped(journal)
    assert release_stop(journal, "person:ada")
    until(lambda: stopped(journal))
    file.unlink()
    watch.stop()
    assert stopped(journal)
    again = Watch(journal, folder / "journal.db", file, lambda: None, structlog.get_logger())
    again.start()
    assert release_stop(journal, "person:ada")
    file.symlink_to("/nowhere")
    until(lambda: stopped(journal))
    again.stop()
    # Nobody who released it is taken for who pressed it.
    with journal.reading() as connection:
        pressed = select(schema.events.c.actor).where(schema.events.c.kind == "stop:press")
        assert ["stop_file"] * 3 == list(connection.execute(pressed).scalars())


def test_a_journal_that_fails_is_told_once_and_pressed_as_soon_as_it_works(journal: Journal, folder: Path) -> None:
    class Failing:
        """The journal on a disk that is full for the first looks."""

        looks = 0
        writing = journal.writing

        @contextmanager
        def reading(self) -> Iterator[Connection]:
            self.looks += 1
            if self.looks < 3:
                raise JournalUnavailable("the disk is full")
            with journal.reading() as connection:
                yield connection

    def pressed() -> bool:
        # It looks again at once.
        poke(folder / "journal.db")
        return stopped(journal)

    file = folder / "stop"
    file.touch()
    with capture_logs() as logged:
        watch = Watch(cast("Journal", Failing()), folder / "journal.db", file, lambda: None, structlog.get_logger())
        watch.start()
        until(pressed)
        watch.stop()
    assert ["journal:unavailable", "stop:file"] == [line["event"] for line in logged]


def test_a_folder_that_is_not_there_stops_the_start(journal: Journal, folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="nobody could stop"):
        Watch(journal, folder / "journal.db", folder / "nowhere" / "stop", lambda: None, structlog.get_logger())
    assert not (folder / "journal.db.wake").exists()


def test_what_cannot_be_told_counts_as_there(tmp_path: Path) -> None:
    assert not stop_file_present(None)
    assert not stop_file_present(tmp_path / "stop")
    assert not stop_file_present(tmp_path / "nowhere" / "stop")
    (tmp_path / "a file").touch()
    assert not stop_file_present(tmp_path / "a file" / "stop")
    # A name that the file system cannot even look up.
    assert stop_file_present(tmp_path / ("x" * (os.pathconf(tmp_path, "PC_NAME_MAX") + 1)))

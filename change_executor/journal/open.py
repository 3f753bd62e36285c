"""Opening the journal: its file made private, its tables brought up to date, and every mistake named.

Two processes that start at once take turns: whoever comes second finds the work done.
"""

import contextlib
import errno
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from change_executor.journal import migrating, migrations
from change_executor.journal.engine import writer_engine
from change_executor.journal.file import journal_path
from change_executor.journal.journal import Clock, Journal
from change_executor.journal.steady import Steady, since_boot
from shared.private_file import make_private
from shared.settings import ConfigurationError


def open_journal(url: str, clock: Clock, *, may_create: bool = True, steady: Steady = since_boot) -> Journal:
    """Open the journal at `sqlite:////PATH`, making or migrating it first.

    Raises `ConfigurationError`, also for one that is not there where it may not be made: whoever presses stop in an
    empty journal would stop nothing.
    """
    path = journal_path(url)
    if not may_create and not path.exists():
        raise ConfigurationError(
            f"[journal] url = {url}",
            f"there is no journal at {path}.",
            "Mend the path; `change-executor serve` makes a journal at its first start.",
        )
    try:
        with folder_locked(path):
            # It tells which agent asked for what, and holds the digests of tokens: its owner's alone.
            make_private(path)
            _migrate(url, path, clock)
    except OSError as error:
        raise ConfigurationError(
            f"[journal] url = {url}",
            f"{error.filename or path} cannot be used: {error.strerror}.",
            "Mount it writable."
            if error.errno == errno.EROFS
            else "Make the folder, and let the executor's user own it (mode 0700).",
        ) from None
    except (DBAPIError, sqlite3.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        raise ConfigurationError(
            f"[journal] url = {url}",
            f"{path} cannot be used as a journal: {cause}.",
            "Name another file, restore this one from a copy, or free space on its disk.",
        ) from None
    return Journal(url, clock, steady)


@contextlib.contextmanager
def folder_locked(path: Path) -> Iterator[None]:
    """Hold the folder of a journal, so that nobody migrates it meanwhile. Raises `ConfigurationError` for root."""
    # The folder itself is locked: no file of ours is left behind, and SQLite's own locks do not cover the change to
    # write-ahead logging.
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _refuse_root_in_anothers_folder(path, os.fstat(folder).st_uid)
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _refuse_root_in_anothers_folder(path: Path, owner: int) -> None:
    # Files that root makes there would shut their owner out.
    if os.geteuid() == 0 and owner != 0:
        raise ConfigurationError(
            str(path.parent),
            f"belongs to the uid {owner}, and this command runs as root.",
            f"Run it as that user: sudo -u '#{owner}' change-executor ...",
        )


def _migrate(url: str, path: Path, clock: Clock) -> None:
    engine = writer_engine(url)
    try:
        _migrate_with(engine, path, clock)
    finally:
        engine.dispose()


def _migrate_with(engine: Engine, path: Path, clock: Clock) -> None:
    with engine.begin() as connection:
        if migrating.revision_of(connection) == migrations.HEAD:
            return
        from alembic.util import CommandError  # noqa: PLC0415 - most starts have nothing to migrate

        try:
            migrating.upgrade(connection, clock())
        except CommandError as error:
            raise ConfigurationError(
                f"[journal] {path}",
                f"was made by another version of the executor ({error}).",
                "Run the newer version; or let that one take the journal back: "
                f"change-executor downgrade --to {migrations.HEAD}",
            ) from None

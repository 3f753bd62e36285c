"""A journal as an auditor has it: read where nothing may be written, and left as it is.

Beside a running executor SQLite reads the file with the files that it coordinates by. Where they are not there, or may
not be used, none is made: the file is read alone where it is whole by itself, and else from a private copy of it and of
its write-ahead log, in which a process that was killed left what it wrote last.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import NullPool

from change_executor.errors import JournalFault, JournalUnavailable
from change_executor.journal import coverage, migrating, migrations
from change_executor.journal.engine import BUSY_MILLISECONDS, machine_errors
from shared.settings import ConfigurationError

# Revision 0001 stated no digests of rows: its chain says too little to compare with.
_STATES_DIGESTS: Final = frozenset(revision.number for revision in migrations.REVISIONS) - {"0001"}


class How(StrEnum):
    """How a journal could be read."""

    LIVE = "live"
    ALONE = "alone"
    COPIED = "copied"


TOLD: Final[Mapping[How, str]] = MappingProxyType(
    {
        How.LIVE: "",
        How.ALONE: (
            "Read from the file alone: no write-ahead log (FILE-wal) lies beside it. Had it been copied without one, "
            "its last events would be missing, which only published heads show (--heads)."
        ),
        How.COPIED: (
            "Read from a private copy of the file and of its write-ahead log, since nothing can be written where they "
            "lie: all that was committed is in it, as far as the log is whole."
        ),
    }
)


@dataclass(frozen=True, slots=True)
class ReadOnlyJournal:
    """A journal that can be read and not written; `covered` are the tables that its revision's chain covers."""

    how: How
    covered: Mapping[str, str]
    _engine: Engine

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a read transaction: one consistent snapshot. Raises `JournalUnavailable`."""
        with machine_errors(), self._engine.begin() as connection:
            yield connection


@contextmanager
def open_read_only(file: Path) -> Iterator[ReadOnlyJournal]:
    """Open a journal's file for reading, whatever may be written where it lies.

    Raises `ConfigurationError` for what is none, or is of a revision that cannot be verified, and `JournalUnavailable`.
    """
    if not file.exists():
        raise ConfigurationError(str(file), "there is no journal.", "Mend the path.")
    with ExitStack() as stack:
        how, address = _way_in(file, stack)
        engine = _engine(address)
        stack.callback(engine.dispose)
        yield ReadOnlyJournal(how, _covered(engine, file), engine)
        if how is How.ALONE and _log_of(file).exists():
            raise JournalUnavailable("an executor began to use it meanwhile: look again", JournalFault.LOCKED)


def _way_in(file: Path, stack: ExitStack) -> tuple[How, str]:
    log, index = _log_of(file), file.with_name(file.name + "-shm")
    live = _address(file, "mode=ro")
    try:
        # Whoever has it open has both files. They are not made here: the executor could not use those of another user.
        if log.exists() and index.exists() and _cannot_read(live) is None:
            return How.LIVE, live
        if not log.exists() or not log.stat().st_size:
            alone = _address(file, "mode=ro&immutable=1")
            if (damage := _cannot_read(alone)) is not None:
                raise ConfigurationError(str(file), f"cannot be read as a journal: {damage}.", "Name another file.")
            return How.ALONE, alone
        copy = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="change-executor-audit-"))) / file.name
        shutil.copyfile(file, copy)
        shutil.copyfile(log, copy.with_name(log.name))
    except OSError as error:
        raise ConfigurationError(
            str(error.filename or file),
            f"cannot be read: {error.strerror}.",
            "Let this user read the file and, where there is one, FILE-wal: what was written last lies there.",
        ) from None
    address = _address(copy, "mode=rw")
    if (damage := _cannot_read(address)) is not None:
        raise ConfigurationError(str(file), f"cannot be read as a journal: {damage}.", "Name another file.")
    return How.COPIED, address


def _log_of(file: Path) -> Path:
    return file.with_name(file.name + "-wal")


def _cannot_read(address: str) -> str | None:
    engine = _engine(address)
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql("SELECT 1 FROM sqlite_schema").first()
    except Exception as error:  # noqa: BLE001 - whatever SQLite and its driver say, another way may lead in
        return str(getattr(error, "orig", error))
    finally:
        engine.dispose()
    return None


def _address(file: Path, how: str) -> str:
    # What stands in a path and would mean something in an address is escaped.
    return f"file:{quote(str(file))}?{how}"


def _engine(address: str) -> Engine:
    def connect() -> sqlite3.Connection:
        opened = sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None)
        for pragma in (f"busy_timeout={BUSY_MILLISECONDS}", "trusted_schema=OFF", "query_only=ON"):
            opened.execute(f"PRAGMA {pragma}")
        return opened

    # hide_parameters: as for the journal that is written.
    return create_engine("sqlite://", creator=connect, poolclass=NullPool, hide_parameters=True)


def _covered(engine: Engine, file: Path) -> Mapping[str, str]:
    with machine_errors(), engine.begin() as connection:
        revision = migrating.revision_of(connection)
        tables = {str(row[0]) for row in connection.exec_driver_sql("SELECT name FROM sqlite_schema")}
    if revision not in _STATES_DIGESTS:
        raise ConfigurationError(
            f"[journal] {file}",
            f"is of revision {revision}, and this release reads {', '.join(sorted(_STATES_DIGESTS))}.",
            "Use the release that made it; `change-executor downgrade --list` says which has which revision.",
        )
    return {table: key for table, key in coverage.COVERED.items() if table in tables}

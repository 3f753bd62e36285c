"""Connections to the journal's database: one that holds the write lock, and as many readers as are needed."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, NotSupportedError, ProgrammingError
from sqlalchemy.exc import TimeoutError as NoConnectionFree
from sqlalchemy.pool import ConnectionPoolEntry

from change_executor.errors import JournalFault, JournalUnavailable

# A writer of another process (a command) holds the lock for milliseconds; ten seconds means that something is stuck.
BUSY_MILLISECONDS: Final = 10_000

# Wrong statements and refused rows are our own mistakes, or answers that the caller asked for; all other errors are
# the machine's: full, locked, unreadable.
_OURS: Final = (IntegrityError, ProgrammingError, DataError, NotSupportedError)


def writer_engine(url: str) -> Engine:
    """Return an engine whose transactions hold the write lock from their beginning, across processes."""
    return _engine(url, "BEGIN IMMEDIATE")


def reader_engine(url: str) -> Engine:
    """Return an engine whose transactions are snapshots and can write nothing."""
    return _engine(url, "BEGIN")


@contextmanager
def machine_errors() -> Iterator[None]:
    """Turn what the machine did to the database into `JournalUnavailable`."""
    try:
        yield
    except _OURS:
        raise
    except DBAPIError as error:
        raise JournalUnavailable(str(error.orig), _fault(error.orig)) from error
    except (sqlite3.Error, NoConnectionFree) as error:
        raise JournalUnavailable(str(error), _fault(error)) from error


# SQLite's primary result codes; an extended one holds them in its lowest octet (sqlite.org/rescode.html).
_FAULTS: Final = {
    sqlite3.SQLITE_PERM: JournalFault.NOT_PERMITTED,
    sqlite3.SQLITE_READONLY: JournalFault.NOT_PERMITTED,
    sqlite3.SQLITE_CANTOPEN: JournalFault.NOT_PERMITTED,
    sqlite3.SQLITE_FULL: JournalFault.FULL,
    sqlite3.SQLITE_BUSY: JournalFault.LOCKED,
    sqlite3.SQLITE_LOCKED: JournalFault.LOCKED,
    sqlite3.SQLITE_CORRUPT: JournalFault.DAMAGED,
    sqlite3.SQLITE_NOTADB: JournalFault.DAMAGED,
}


def _fault(error: BaseException | None) -> JournalFault:
    # 0: an error of the driver's own has none.
    return _FAULTS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, JournalFault.UNREADABLE)


def driver_of(connection: Connection) -> sqlite3.Connection:
    """Return the driver's connection under one of SQLAlchemy's."""
    found = connection.connection.driver_connection
    if not isinstance(found, sqlite3.Connection):
        raise JournalUnavailable("the connection to the database is gone")
    return found


def still_in_transaction(driver: sqlite3.Connection) -> None:
    """Raise `JournalUnavailable` where SQLite ended the transaction by itself, as it may on a full disk.

    What was caught and went on would be written piecemeal otherwise.
    """
    if not driver.in_transaction:
        raise JournalUnavailable("the database ended the transaction by itself")


class Readers:
    """As many connections as there are readers; each that is opened is one snapshot. Thread-safe."""

    def __init__(self, url: str, check: Callable[[], None]) -> None:
        self.engine, self._check = reader_engine(url), check

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a read transaction."""
        self._check()
        try:
            with machine_errors(), self.engine.begin() as connection:
                yield connection
        except JournalUnavailable:
            # What was wrong may stand in their caches: the next ones look at the disk again, as writers do.
            self.engine.dispose()
            raise

    def close(self) -> None:
        """Close those that nobody reads by."""
        self.engine.dispose()


class Glance:
    """One held connection for questions of an event loop: it waits for no lock, and no thread is woken for an answer.

    Each question is a snapshot of its own; thread-safe.
    """

    def __init__(self, url: str, check: Callable[[], None]) -> None:
        self._url, self._check = url, check
        self._turn = threading.Lock()
        self._connection: Connection | None = None

    @contextmanager
    def asking(self) -> Iterator[Connection]:
        """Open it for one question.

        Raises `JournalUnavailable` also where the answer would have to be waited for; ask again in a thread then.
        """
        self._check()
        with self._turn, machine_errors():
            if self._connection is None:
                # Not one of the pool of readers, which may have none free and has patience.
                self._connection = reader_engine(self._url).connect()
                driver_of(self._connection).execute("PRAGMA busy_timeout=0")
            try:
                yield self._connection
            except BaseException:
                self._drop()
                raise

    def close(self) -> None:
        """Close the connection; the next question opens another."""
        with self._turn:
            self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()
            connection.engine.dispose()


def _engine(url: str, begin: str) -> Engine:
    # Errors are logged, and parameters hold what agents and people wrote.
    engine = create_engine(url, connect_args={"check_same_thread": False}, hide_parameters=True)
    read_only = begin == "BEGIN"

    @event.listens_for(engine, "connect")
    def _set_up(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
        # None: transactions are begun by us, in the mode that we choose.
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in (
            f"busy_timeout={BUSY_MILLISECONDS}",
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            "trusted_schema=OFF",
            # What is forgotten is overwritten too.
            "secure_delete=ON",
            f"query_only={'ON' if read_only else 'OFF'}",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine

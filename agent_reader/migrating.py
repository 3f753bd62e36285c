"""The tables of one of the reader's files brought to a revision, in one transaction: whole, or not at all.

alembic works through Python's own SQLite, a second library in this process beside apsw: neither sees the other's locks,
so both must never have a file open at once (sqlite.org/howtocorrupt.html §2.2.1). Whoever calls this has it closed.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy import Connection

# Another process (a status command) may hold a lock for milliseconds; ten seconds means that something is stuck.
_BUSY_MILLISECONDS: Final = 10_000

# alembic is imported where it runs: it costs a command line a third of a second, and most have nothing to migrate.


@contextmanager
def write_transaction(path: Path) -> "Iterator[Connection]":
    """Hold the write lock of a file; what was done is taken back where an exception leaves the block."""
    from sqlalchemy import create_engine, event  # noqa: PLC0415 - see above
    from sqlalchemy.pool import NullPool  # noqa: PLC0415 - see above

    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
    event.listen(engine, "connect", lambda raw, _record: _begin_by_ourselves(raw))
    try:
        with engine.begin() as connection:
            # Nobody else migrates until this transaction ends; whoever waited finds the work done.
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection
    finally:
        engine.dispose()


def told_revision(first_row: Callable[[str], Sequence[Any] | None]) -> str | None:
    """Return the revision that tables are of, None where there are none; `first_row` asks the file, by any library."""
    if first_row("SELECT 1 FROM sqlite_schema WHERE name = 'alembic_version'") is None:
        return None
    row = first_row("SELECT version_num FROM alembic_version")
    return None if row is None else str(row[0])


def revision_of(connection: "Connection") -> str | None:
    """Return the revision that the tables are of, None where there are none."""
    return told_revision(lambda asked: connection.exec_driver_sql(asked).first())


def revision_in(file: Path) -> str | None:
    """Return the revision of a file that may be in use. Raises `sqlite3.Error`."""
    # rw: never made, but what reads a write-ahead log may need to write beside it.
    address = f"{file.absolute().as_uri()}?mode=rw"
    with closing(sqlite3.connect(address, uri=True, timeout=_BUSY_MILLISECONDS / 1000)) as connection:
        return told_revision(lambda asked: connection.execute(asked).fetchone())


def upgrade(connection: "Connection", migrations: ModuleType, to: str = "head") -> None:
    """Bring the tables to a revision, this code's. Raises `alembic.util.CommandError` for those of a newer one."""
    from alembic import command  # noqa: PLC0415 - see above

    command.upgrade(_config(connection, migrations, []), to)


def downgrade(connection: "Connection", migrations: ModuleType, to: str) -> list[str]:
    """Take the tables back to an older revision, and return in words what was lost.

    Raises `shared.revisions.DowngradeRefused`; then the transaction must not be committed.
    """
    from alembic import command  # noqa: PLC0415 - see above

    lost: list[str] = []
    command.downgrade(_config(connection, migrations, lost), to)
    return lost


def _config(connection: "Connection", migrations: ModuleType, lost: list[str]) -> "Config":
    from alembic.config import Config  # noqa: PLC0415 - see above

    config = Config()
    # The option is expanded, so that a per cent sign in the path is written twice.
    config.set_main_option("script_location", str(Path(str(migrations.__file__)).parent).replace("%", "%%"))
    config.attributes |= {"connection": connection, "lost": lost}
    return config


def _begin_by_ourselves(connection: sqlite3.Connection) -> None:
    # Python's sqlite3 keeps out of transactions only where it is told to.
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
    # As its program keeps it; a copy that was put back comes without. Whoever reads then sees what is committed.
    connection.execute("PRAGMA journal_mode = wal")

"""The access file: made private, its tables brought up to date, connections with the settings they need.

It is migrated like the index, and unlike the index it cannot be made anew: tokens and the log exist nowhere else.
"""

from pathlib import Path
from typing import Final

import apsw

from agent_reader import migrating
from agent_reader.access import migrations
from shared.private_file import make_private
from shared.settings import ConfigurationError

FILE_NAME: Final = "access.db"

_FOLDER_MODE: Final = 0o700

# A command that makes or revokes a token holds the lock for milliseconds; five seconds means that something is stuck,
# and an agent waits for no longer.
_BUSY_MILLISECONDS: Final = 5_000


def open_file(folder: Path) -> Path:
    """Make or migrate the access file in a folder, and return its path. Raises `ConfigurationError`."""
    path = (folder / FILE_NAME).absolute()
    try:
        folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)
        make_private(path)
        connection = connect(path)
    except OSError as error:
        raise ConfigurationError(
            "[store]",
            f"{error.filename or path} cannot be used: {error.strerror}.",
            "Make the folder, and let the reader's user own it (mode 0700).",
        ) from None
    except apsw.Error as error:
        raise _unusable(path, error) from None
    try:
        connection.pragma("journal_mode", "wal")
        is_current = _version(connection) == migrations.HEAD
    except apsw.Error as error:
        raise _unusable(path, error) from None
    finally:
        connection.close()
    if not is_current:
        _migrate(path)
    return path


def connect(path: Path, *, read_only: bool = False) -> apsw.Connection:
    """Return a connection to a file that exists."""
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE
    connection = apsw.Connection(str(path), flags=flags)
    connection.set_busy_timeout(_BUSY_MILLISECONDS)
    # FULL: what was read is on record through a power cut too, or it was not answered.
    connection.pragma("synchronous", "full")
    connection.pragma("trusted_schema", "off")
    return connection


def begin(connection: apsw.Connection, *, waits: bool) -> None:
    """Begin to write; raises `apsw.BusyError` where another process does and one does not wait, or waited long."""
    if not waits:
        connection.set_busy_timeout(0)
    try:
        connection.execute("BEGIN IMMEDIATE")
    finally:
        if not waits:
            connection.set_busy_timeout(_BUSY_MILLISECONDS)


def _unusable(path: Path, error: Exception) -> ConfigurationError:
    return ConfigurationError(
        "[store]",
        f"{path} cannot be used for tokens and the read log: {error}.",
        "Restore it from a copy, or free space on its disk. Without it every token must be made anew.",
    )


def _migrate(path: Path) -> None:
    # Imported here: alembic costs a command line a third of a second, and most starts have nothing to migrate.
    from alembic.util import CommandError  # noqa: PLC0415 - see above
    from sqlalchemy.exc import DBAPIError  # noqa: PLC0415 - see above

    try:
        with migrating.write_transaction(path) as migrated:
            migrating.upgrade(migrated, migrations)
    except CommandError as error:
        raise ConfigurationError(
            f"[store] {path}",
            f"was made by another version of the reader ({error}).",
            "Run the newer version; or let that one take it back: agent-reader downgrade --to access:"
            f"{migrations.HEAD}",
        ) from None
    except DBAPIError as error:
        raise _unusable(path, error.orig if isinstance(error.orig, Exception) else error) from None


def _version(connection: apsw.Connection) -> str | None:
    return migrating.told_revision(lambda asked: connection.execute(asked).fetchone())

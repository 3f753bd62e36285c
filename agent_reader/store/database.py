"""The file of one account: made private, its tables brought up to date, connections with the settings they need.

One file for each account holds the mirror's tables and the search table. One transaction covers both, so they agree
after a crash and in every snapshot, without a protocol between two files: SQLite in WAL mode commits several attached
files one after the other, and a reader in between would see a message that the index lacks. The file is private to its
owner and holds mail as plain text.
"""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import apsw

from agent_reader import migrating
from agent_reader.damage import MessageDamaged
from agent_reader.errors import IndexDamaged, IndexFull
from agent_reader.store import blobs, header_search, mending, migrations, reading, search, set_aside
from shared.private_file import make_private
from shared.settings import ConfigurationError

_FOLDER_MODE: Final = 0o700

# The account id becomes part of a file's name.
_ACCOUNT_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")

# Another process (a status command) may hold a lock for milliseconds; ten seconds means that something is stuck.
_BUSY_MILLISECONDS: Final = 10_000

# What a batch touches stays at hand in so much, and the kernel keeps the file's other pages. No file is mapped: what is
# mapped counts as this process's memory, which would grow with the mailbox.
_WRITER_CACHE_KIBIBYTES: Final = 32 * 1024
# A few readers are kept, each with its own.
_READER_CACHE_KIBIBYTES: Final = 16 * 1024

# States that were given out and then lost with the machine's power must not be given out again for something else: so
# many are passed over after a start of the machine. A transaction takes some milliseconds, and what a power cut takes
# is seconds old.
_STATES_SKIPPED: Final = 1 << 20

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")

# What the write-ahead log may keep of the disk after a large batch.
_LOG_OCTETS: Final = 64 * 1024 * 1024


# The file cannot be come at, or not be written beside: nothing is wrong with it.
_OF_THE_FOLDER: Final = (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError)

# An account's file has its id in its name.
FILE_PREFIX: Final = "mail-"
FILE_PATTERN: Final = f"{FILE_PREFIX}*.db"


def account_file(folder: Path, account_id: str) -> Path:
    """Return the file of an account. Raises `ConfigurationError` where the id cannot name one."""
    if _ACCOUNT_ID.fullmatch(account_id) is None:
        raise ConfigurationError(
            "[[accounts]] id",
            f"{account_id!r} cannot be an account id.",
            "Use 1 to 64 letters, digits, - and _; the first a letter or digit.",
        )
    return folder / f"{FILE_PREFIX}{account_id}.db"


def boot_id() -> str | None:
    """Return the name of this run of the machine, None where it has none (every opening then counts as a new one)."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except OSError:
        return None


def open_file(path: Path, epoch: str, boot: str | None) -> apsw.Connection:
    """Return the writing connection of a file, made or migrated first. Raises `ConfigurationError`.

    `epoch` names this file's states if it is made now, `boot` this run of the machine.
    """
    try:
        path.parent.mkdir(mode=_FOLDER_MODE, exist_ok=True)
        make_private(path)
        _migrate(path)
        return _prepared(path, epoch, boot)
    except OSError as error:
        raise ConfigurationError(
            "[store]",
            f"{error.filename or path} cannot be used: {error.strerror}.",
            "Make the folder, and let the reader's user own it (mode 0700).",
        ) from None
    except (apsw.Error, MessageDamaged) as error:
        raise _unusable(path, error) from None


def _prepared(path: Path, epoch: str, boot: str | None) -> apsw.Connection:
    connection = connect(path)
    try:
        connection.pragma("journal_mode", "wal")
        # Asked first: a command that only looks must not wait for the daemon's transaction.
        known_boot = connection.execute("SELECT boot FROM account").get
        if connection.execute("SELECT 1 FROM account").get is None:
            connection.execute(
                "INSERT OR IGNORE INTO account (key, epoch, state, tick, changes_from, search_shape, boot) "
                "VALUES (1, ?, 0, 0, 0, 0, ?)",
                (epoch, boot),
            )
        elif boot is None or boot != known_boot:
            connection.execute("UPDATE account SET boot = ?, skip = ?", (boot, _STATES_SKIPPED))
        set_aside.forget_older_readings(connection)
        mending.mend_at_opening(connection, search.make(connection, reading.words_of))
        blobs.make(connection)
    except BaseException:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def faults_told() -> Iterator[None]:
    """Tell what is no question's fault: raises `IndexFull` and `IndexDamaged` where SQLite says so."""
    try:
        yield
    except apsw.FullError:
        raise IndexFull from None
    except (apsw.CorruptError, apsw.NotADBError):
        raise IndexDamaged from None


def connect(path: Path, *, read_only: bool = False) -> apsw.Connection:
    """Return a connection to a file that exists."""
    # A reader in WAL mode writes to the shared memory file, so it opens for writing too and is held back by a pragma.
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(_BUSY_MILLISECONDS)
    # Without it SQLite prepares a statement anew for each parameter, in case a plan could be better: four of five
    # parts of what a small question costs. There are no statistics here that a plan could go by.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    # In WAL mode NORMAL loses at most the last transactions in a power cut and never the file; sync fetches them again.
    for pragma, value in (
        ("synchronous", "normal"),
        ("trusted_schema", "off"),
        ("cache_size", -(_READER_CACHE_KIBIBYTES if read_only else _WRITER_CACHE_KIBIBYTES)),
        ("temp_store", "memory"),
        ("journal_size_limit", _LOG_OCTETS),
    ):
        connection.pragma(pragma, value)
    if read_only:
        connection.pragma("query_only", True)
        header_search.offer(connection)
    return connection


def _unusable(path: Path, error: BaseException) -> ConfigurationError:
    fix = "Delete the file: it is made anew from the mail server. Or free space on its disk."
    if isinstance(error, _OF_THE_FOLDER):
        fix = "Let the reader's user write to its folder, on a disk that is not read-only; the index is as it was."
    return ConfigurationError("[store]", f"{path} cannot be used as an index: {error}.", fix)


def _migrate(path: Path) -> None:
    """Bring the tables to this code's revision, with no connection of ours open."""
    with contextlib.closing(connect(path)) as connection:
        if _version(connection) == migrations.HEAD:
            return
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
            "Run the newer version; or let that one take it back: agent-reader downgrade --to index:"
            f"{migrations.HEAD}; or delete the file: it is made anew from the mail server.",
        ) from None
    except DBAPIError as error:
        raise _unusable(path, error.orig or error) from None


def _version(connection: apsw.Connection) -> str | None:
    return migrating.told_revision(lambda asked: connection.execute(asked).fetchone())

"""Where each agent stands in the news of each account: kept on disk, so that a restart tells nothing twice.

A file of its own beside the read log: it is made anew without loss but one repeated look, the log never.
"""

import threading
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import apsw

from agent_reader.access.read_log import microseconds, moment_of
from agent_reader.errors import AccessUnavailable
from shared.private_file import make_private
from shared.settings import ConfigurationError

FILE_NAME: Final = "cursors.db"

_BUSY_MILLISECONDS: Final = 5_000


@dataclass(frozen=True, slots=True)
class Cursor:
    """`state` is the Email state up to which all was told; mail received before `floor` is never news.

    `told_at` is when that was, None where it is not known.
    """

    state: str
    floor: datetime
    told_at: datetime | None = None


class Cursors:
    """The cursors of one reader; any thread may call. Raises `AccessUnavailable` where the file cannot be used."""

    def __init__(self, folder: Path) -> None:
        path = folder / FILE_NAME
        try:
            make_private(path)
            self._connection = apsw.Connection(str(path))
            self._connection.set_busy_timeout(_BUSY_MILLISECONDS)
            self._connection.pragma("journal_mode", "wal")
            self._connection.pragma("trusted_schema", "off")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS cursors (agent TEXT, account TEXT, state TEXT NOT NULL, "
                "floor INTEGER NOT NULL, told_at INTEGER, PRIMARY KEY (agent, account)) WITHOUT ROWID"
            )
            if "told_at" not in {column for _, column, *_ in self._connection.execute("PRAGMA table_info(cursors)")}:
                self._connection.execute("ALTER TABLE cursors ADD COLUMN told_at INTEGER")
        except (OSError, apsw.Error) as error:
            raise ConfigurationError(
                "[store]", f"{path} cannot be used: {error}.", "Remove it: each agent's next look is then its first."
            ) from None
        self._turn = threading.Lock()

    def read(self, agent: str, account: str) -> Cursor | None:
        """Return where an agent stands, None before its first look."""
        with self._turn:
            try:
                row = self._connection.execute(
                    "SELECT state, floor, told_at FROM cursors WHERE agent = ? AND account = ?", (agent, account)
                ).fetchone()
            except apsw.Error as error:
                raise AccessUnavailable(type(error).__name__) from error
        if row is None:
            return None
        state, floor, told_at = row
        return Cursor(str(state), moment_of(int(floor)), None if told_at is None else moment_of(int(told_at)))

    def write(self, agent: str, account: str, cursor: Cursor) -> None:
        """Keep where an agent stands; on disk once this returns."""
        with self._turn:
            try:
                self._connection.execute(
                    "INSERT INTO cursors (agent, account, state, floor, told_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT "
                    "DO UPDATE SET state = excluded.state, floor = excluded.floor, told_at = excluded.told_at",
                    (
                        agent,
                        account,
                        cursor.state,
                        microseconds(cursor.floor),
                        None if cursor.told_at is None else microseconds(cursor.told_at),
                    ),
                )
            except apsw.Error as error:
                raise AccessUnavailable(type(error).__name__) from error

    def close(self) -> None:
        """Close the file."""
        with self._turn:
            self._connection.close()

"""The reader's files copied while they are in use, and put back where none are: tokens, the read log, the index."""

import contextlib
import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Final

from agent_reader.access import migrations as access_migrations
from agent_reader.access.database import FILE_NAME as ACCESS_FILE
from agent_reader.listening import check_owner, sole_use_of
from agent_reader.store import migrations as store_migrations
from agent_reader.store.database import FILE_PATTERN as INDEX_FILES
from agent_reader.store.database import FILE_PREFIX as INDEX_PREFIX
from shared.backup import keep_newest, make_backup, put_back, read_backup
from shared.settings import ConfigurationError
from shared.time_and_chance import RandomOctets

PROGRAM: Final = "agent-reader"
# How the random names of states are made: as the store makes them.
_EPOCH_OCTETS: Final = 12


def backup_files(folder: Path, into: Path, now: datetime, *, keep: int | None = None, with_index: bool = True) -> Path:
    """Copy tokens, the read log, what probes found and, if asked, the indexes; return the new folder below `into`.

    With `keep` only the newest so many stay. Raises `ConfigurationError`.
    """
    check_owner(folder)
    files = [folder / ACCESS_FILE, *sorted(folder.glob("rights-*.json"))]
    if with_index:
        files += sorted(folder.glob(INDEX_FILES))
    if not files[0].exists():
        raise ConfigurationError("[store] url", f"there is nothing to copy in {folder}.", "Mend the path.")
    made = make_backup(into, PROGRAM, files, now)
    if keep is not None:
        keep_newest(into, PROGRAM, keep)
    return made


def restore_files(folder: Path, source: Path, random_octets: RandomOctets) -> list[str]:
    """Put a copy's files into a folder that has none of them, and return their names.

    An index gets other names for its states: those that were given out after the copy mean something else now, so
    whoever comes with one is told to look anew (RFC 8620 §5.2). Refused while a reader runs. Raises
    `ConfigurationError`.
    """
    newest = {ACCESS_FILE: access_migrations.HEAD, INDEX_PREFIX: store_migrations.HEAD}
    manifest = read_backup(source, PROGRAM, newest)
    check_owner(folder)
    with sole_use_of(folder):
        for file in manifest.files:
            for end in ("", "-wal"):
                if (found := folder / f"{file.name}{end}").exists():
                    raise ConfigurationError(
                        str(found), "is there already.", "Nothing is written over: move it away, and keep it."
                    )
        for file in manifest.files:
            put_back(source / file.name, folder / file.name)
            if file.name.startswith(INDEX_PREFIX):
                _name_states_anew(folder / file.name, random_octets(_EPOCH_OCTETS).hex())
    return [file.name for file in manifest.files]


def _name_states_anew(index: Path, epoch: str) -> None:
    with contextlib.closing(sqlite3.connect(index)) as connection, connection:
        connection.execute("UPDATE account SET epoch = ?", (epoch,))

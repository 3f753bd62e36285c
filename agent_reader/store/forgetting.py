"""Removing an account's index for good: its file and what SQLite keeps beside it, overwritten first."""

import os
from pathlib import Path
from typing import Final

from agent_reader.store.database import FILE_PATTERN, FILE_PREFIX, account_file
from shared.private_file import sync_folder

# SQLite's own: the write-ahead log and its index, and the journal that a migration uses.
_BESIDE: Final = ("", "-wal", "-shm", "-journal")
_ZEROS: Final = bytes(1024 * 1024)


def forget_files(folder: Path, account_id: str) -> int:
    """Overwrite and remove every file of an account's index; how many octets they had. Nothing may have them open.

    Raises `ConfigurationError` for an id that names no file, `OSError`. What a copying file system, a flash drive's own
    store or a backup keeps of them is out of reach: an encrypted volume is the remedy.
    """
    path = account_file(folder, account_id)
    octets = 0
    for suffix in _BESIDE:
        file = path.with_name(path.name + suffix)
        if file.exists():
            octets += _overwrite(file)
            file.unlink()
    # After this not even a power cut brings the names back.
    sync_folder(folder)
    return octets


def accounts_with_files(folder: Path) -> list[str]:
    """Return the ids of the accounts that have an index in a folder."""
    return sorted(path.stem.removeprefix(FILE_PREFIX) for path in folder.glob(FILE_PATTERN))


def _overwrite(file: Path) -> int:
    # Never through a link: what it points at is not the index.
    descriptor = os.open(file, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        left = size
        while left > 0:
            left -= os.write(descriptor, _ZEROS[: min(left, len(_ZEROS))])
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return size

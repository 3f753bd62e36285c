"""Files that only their owner may read: made narrow from the start, replaced whole or not at all."""

import os
from pathlib import Path
from typing import Final

PRIVATE_MODE: Final = 0o600


def replace_private(path: Path, octets: bytes) -> None:
    """Put octets in place of what a file holds; when this returns, not even a power cut takes them back.

    Before the end the old file is whole. One writer at a time is the caller's business. Raises `OSError`.
    """
    beside = path.with_name(f"{path.name}.new")
    # What a killed writer left. A link would lead what is written to wherever it points.
    beside.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(beside, flags, PRIVATE_MODE), "wb") as file:
        file.write(octets)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    sync_folder(path.parent)


def make_private(path: Path) -> None:
    """Make sure that a file exists and that only its owner may read it. Nobody reads it between making and narrowing.

    For a database before it is opened: SQLite gives its -wal and -shm files the mode of it. Raises `OSError`.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_MODE))
    except FileExistsError:
        # Not opened: closing it would drop the locks of every connection of this process to it (fcntl(2)).
        if path.stat().st_mode & 0o077:
            path.chmod(PRIVATE_MODE)


def sync_folder(folder: Path) -> None:
    """Have a folder's names on the disk: which files it has, and which no more. Raises `OSError`."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

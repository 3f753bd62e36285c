"""The lock of the apply worker: one executor moves, whatever else may read or append to the journal."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from shared.settings import ConfigurationError

_MODE: Final = 0o600


@contextlib.contextmanager
def worker_lock(journal: Path) -> Iterator[None]:
    """Hold the lock beside the journal's file for as long as the block runs; the kernel frees it with the process.

    Raises `ConfigurationError` where another executor holds it.
    """
    path = journal.with_name(f"{journal.name}.worker")
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
    except OSError as error:
        raise ConfigurationError(str(path), f"cannot be made: {error.strerror}.", "Mend the folder's owner.") from None
    try:
        _lock(descriptor, journal)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, journal: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigurationError(
            str(journal), "another executor works on this journal.", "End that one first; one writer moves mail."
        ) from None

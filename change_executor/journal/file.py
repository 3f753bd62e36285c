"""The file that a journal is: where it lies, and whether it is still the one that was opened.

SQLite goes on writing to a file that was removed or replaced under it, and nobody would ever find what it writes there.
"""

import os
from pathlib import Path
from typing import Final

from sqlalchemy import make_url

from change_executor.errors import JournalFault, JournalUnavailable
from shared.settings import ConfigurationError

# By the effective user, as opening goes; where the system cannot tell that, by the real one.
_BY_EFFECTIVE_USER: Final = os.access in os.supports_effective_ids


class JournalFile:
    """The file of a journal's address, as it was when this was made."""

    def __init__(self, url: str) -> None:
        self._path = str(journal_path(url))
        self._opened = self._identity()

    def check(self) -> None:
        """Raise `JournalUnavailable` where the file is not the one that was opened, or not ours to use."""
        if self._identity() != self._opened:
            raise JournalUnavailable(f"{self._path} is not the file that was opened", JournalFault.REPLACED)
        if not os.access(self._path, os.R_OK | os.W_OK, effective_ids=_BY_EFFECTIVE_USER):
            raise JournalUnavailable(f"{self._path} does not let this user read and write", JournalFault.NOT_PERMITTED)

    def _identity(self) -> tuple[int, int]:
        try:
            found = os.stat(self._path)  # noqa: PTH116 - each transaction pays for it
        except FileNotFoundError:
            raise JournalUnavailable(f"{self._path} is gone", JournalFault.GONE) from None
        except PermissionError:
            raise JournalUnavailable(
                f"{self._path} cannot be reached by this user", JournalFault.NOT_PERMITTED
            ) from None
        except OSError as error:
            raise JournalUnavailable(f"{self._path}: {error.strerror}", JournalFault.UNREADABLE) from None
        return found.st_dev, found.st_ino


def journal_path(url: str) -> Path:
    """Return the file of a `sqlite:///PATH` address, whatever links lead to it: locks lie beside the file itself.

    Raises `ConfigurationError` for an address without a file.
    """
    database = make_url(url).database
    if not database or database == ":memory:" or database.startswith("file:"):
        raise ConfigurationError(
            f"[journal] url = {url}",
            "names no file; a journal that ends with the process is none.",
            "Write it as sqlite:////var/lib/change-executor/journal.db",
        )
    # Not Path.resolve, to which a ring of links is a mistake of ours; opening it says what it is.
    return Path(os.path.realpath(database))

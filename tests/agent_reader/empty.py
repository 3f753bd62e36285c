"""The reader's files with nothing in them: made once and copied, since their migrations take longer than most tests.

That they make them, from nothing and from every older version, is shown in `test_store_migrations.py`,
`test_access_tokens.py` and `test_versions.py`.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from agent_reader.access import database as access_database
from agent_reader.store import database

if TYPE_CHECKING:
    from collections.abc import Callable


def empty_index(folder: Path, account: str) -> None:
    """Put an index of an account into a folder, unless it has one."""
    _put(database.account_file(folder, account), database._migrate)


def empty_access(folder: Path) -> None:
    """Put a file of tokens and the read log into a folder, unless it has one."""
    _put(folder / access_database.FILE_NAME, access_database._migrate)


def _put(path: Path, migrate: Callable[[Path], None]) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        path.touch(mode=0o600)
        path.write_bytes(_octets(migrate))


@cache
def _octets(migrate: Callable[[Path], None]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.db"
        path.touch()
        migrate(path)
        return path.read_bytes()

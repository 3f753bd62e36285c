"""A journal with nothing in it: made once and copied, since its migrations take longer than most of what is done to it.

That they make it, from nothing and from every older version, is shown in `test_open.py` and `test_versions.py`.
"""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from change_executor.journal.file import journal_path
from change_executor.journal.open import open_journal
from tests.change_executor.journal.clock import steady_by

if TYPE_CHECKING:
    from change_executor.journal.journal import Clock, Journal


def empty_journal(url: str, clock: Clock) -> Journal:
    """The journal at this address, open; a new one unless there is one."""
    path = journal_path(url)
    if not path.exists():
        path.touch(mode=0o600)
        path.write_bytes(_octets())
    return open_journal(url, clock, steady=steady_by(clock))


@cache
def _octets() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        open_journal(f"sqlite:///{path}", lambda: datetime(2026, 11, 29, tzinfo=UTC)).close()
        return path.read_bytes()

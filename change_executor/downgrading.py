"""The journal taken back to an older revision, with all that happened since: no copy of yesterday, and no gap.

The newer program does it, in one transaction: it holds everything back (`holding_back.py`), says so in the chain, takes
its tables back, and looks whether the older release will find the chain whole. A copy of what was is made before it
commits.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection

from change_executor.audit import verify
from change_executor.backing_up import PROGRAM, backup_journal
from change_executor.config import ExecutorSettings
from change_executor.holding_back import OPERATOR, HeldBack, hold_back, sign_everybody_out
from change_executor.journal import coverage, migrating, migrations
from change_executor.journal.engine import machine_errors, reader_engine, writer_engine
from change_executor.journal.file import journal_path
from change_executor.journal.journal import Clock, Writing
from change_executor.journal.open import folder_locked
from change_executor.worker import take_worker_lock
from shared.backup import make_backup
from shared.revisions import DowngradeRefused, way_back

COMMAND: Final = "change-executor downgrade --to REVISION"
_NOTHING_HELD: Final = HeldBack(asked_again=0, doubtful=0)


@dataclass(frozen=True, slots=True)
class Downgraded:
    """What was done, or would be: revisions, the copy made first, what is held back, and in words what is lost.

    Where `before` is `after`, nothing was to be done.
    """

    before: str
    after: str
    copy: Path | None = None
    held: HeldBack = _NOTHING_HELD
    lost: tuple[str, ...] = ()


def downgrade_journal(settings: ExecutorSettings, to: str, copies: Path, clock: Clock) -> Downgraded:
    """Take the journal back to a revision, after a copy into a new folder below `copies`.

    Raises `DowngradeRefused`, `ConfigurationError` (also where an executor runs) and `JournalUnavailable`; then the
    journal is as it was.
    """
    path = _existing(settings)
    with folder_locked(path), machine_errors():
        lock = take_worker_lock(settings.journal.url)
        try:
            with _transaction(settings.journal.url) as connection:
                found = migrating.revision_of(connection)
                if not way_back(found, to, migrations.REVISIONS, COMMAND):
                    return Downgraded(to, to)
                done = _take_back(connection, to, clock)
                # Nothing of it is committed: what another connection reads and copies is the journal as it was.
                return replace(done, copy=backup_journal(settings, copies, clock, None))
        finally:
            os.close(lock)


def preview_downgrade(settings: ExecutorSettings, to: str, clock: Clock) -> Downgraded:
    """Return what `downgrade_journal` would do now, tried on a copy that is removed; an executor may run meanwhile.

    Raises what that raises.
    """
    path = _existing(settings)
    with tempfile.TemporaryDirectory(prefix=".downgrade-", dir=path.parent) as folder:
        with folder_locked(path):
            copy = make_backup(Path(folder), PROGRAM, [path], clock())
        with machine_errors(), _transaction(f"sqlite:///{copy / path.name}") as connection:
            found = migrating.revision_of(connection)
            if not way_back(found, to, migrations.REVISIONS, COMMAND):
                return Downgraded(to, to)
            return _take_back(connection, to, clock)


def found_revision(settings: ExecutorSettings) -> str | None:
    """Return the revision of the journal's tables, None where there is none. Raises `JournalUnavailable`."""
    if not journal_path(settings.journal.url).exists():
        return None
    engine = reader_engine(settings.journal.url)
    try:
        with machine_errors(), engine.begin() as connection:
            return migrating.revision_of(connection)
    finally:
        engine.dispose()


def _existing(settings: ExecutorSettings) -> Path:
    path = journal_path(settings.journal.url)
    if not path.exists():
        raise DowngradeRefused("no_journal", f"There is no journal at {path}.", "Mend the path in the configuration.")
    return path


@contextmanager
def _transaction(url: str) -> Iterator[Connection]:
    engine = writer_engine(url)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def _take_back(connection: Connection, to: str, clock: Clock) -> Downgraded:
    found = migrating.revision_of(connection)
    assert found is not None, "there is a way back from it"
    now = clock()
    _refuse_dishonest(connection, "chain_broken", "Look with `audit verify`, or restore a copy that verifies.")
    writing = Writing(connection, now)
    held = hold_back(writing, {"downgraded": True})
    sign_everybody_out(writing)
    details: dict[str, Any] = {
        "from": found,
        "to": to,
        "askedAgain": held.asked_again,
        "doubtful": held.doubtful,
    }
    writing.append("journal:downgrade", "journal", OPERATOR, details)
    lost = migrating.downgrade(connection, to, now)
    _refuse_dishonest(
        connection, "chain_would_break", "Stay at this release, or restore a copy made before the upgrade."
    )
    return Downgraded(found, to, held=held, lost=tuple(lost))


def _refuse_dishonest(connection: Connection, code: str, fix: str) -> None:
    # An older revision has not all of the tables; what events say of one that is not there is found.
    there = set(connection.exec_driver_sql("SELECT name FROM sqlite_schema WHERE type = 'table'").scalars())
    found = verify(connection, covered={table: key for table, key in coverage.COVERED.items() if table in there})
    if found.findings:
        first = found.findings[0]
        raise DowngradeRefused(code, f"{first.fault.value}: {first.subject}: {first.detail}.", fix)

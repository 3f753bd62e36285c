"""The journal copied while it is in use, and put back so that nothing moves again unseen.

A copy is of yesterday: what was decided and moved since is not in it. Where a head that was told outside is ahead of
the copy, or none is there to compare with, the stop button is pressed, what was approved has to be decided again, and
what may have been under way is looked for at the mail server.
"""

import contextlib
import os
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from change_executor.audit import Fault, verify
from change_executor.config import ExecutorSettings
from change_executor.holding_back import OPERATOR, HeldBack, hold_back, sign_everybody_out
from change_executor.journal import migrations
from change_executor.journal.file import journal_path
from change_executor.journal.journal import Clock, Journal
from change_executor.journal.open import open_journal
from change_executor.worker import take_worker_lock
from shared.backup import keep_newest, make_backup, put_back, read_backup
from shared.settings import ConfigurationError

PROGRAM: Final = "change-executor"
# What comes after a file that is not whole yet.
_RESTORING: Final = ".restoring"


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore found: events in the copy, whether some are missing, and what was done about it."""

    events: int
    is_behind: bool
    asked_again: int
    doubtful: int


def backup_journal(settings: ExecutorSettings, into: Path, clock: Clock, keep: int | None) -> Path:
    """Copy the journal into a new folder below `into`, and return it; with `keep`, only the newest so many stay.

    Raises `ConfigurationError`.
    """
    path = journal_path(settings.journal.url)
    if not path.exists():
        raise ConfigurationError(f"[journal] url = {settings.journal.url}", "there is no journal.", "Mend the path.")
    made = make_backup(into, PROGRAM, [path], clock(), lambda folder: _head_of(folder / path.name))
    if keep is not None:
        keep_newest(into, PROGRAM, keep)
    return made


def restore_journal(settings: ExecutorSettings, source: Path, published: Mapping[int, str], clock: Clock) -> Restored:
    """Put a copy of the journal where none is, in a state in which nothing moves unseen.

    `published` holds the heads that were told outside. Raises `ConfigurationError`; then there is still no journal.
    """
    path = journal_path(settings.journal.url)
    manifest = read_backup(source, PROGRAM, {"": migrations.HEAD})
    if len(manifest.files) != 1:
        raise ConfigurationError(str(source), "holds more than a journal.", "Name the folder that `backup` printed.")
    for each in (path, path.with_name(path.name + "-wal")):
        if each.exists():
            raise ConfigurationError(
                str(each), "is there already.", "Nothing is written over: move it away, and keep it."
            )
    lock = take_worker_lock(settings.journal.url)
    working = path.with_name(path.name + _RESTORING)
    try:
        _remove(working)
        put_back(source / manifest.files[0].name, working)
        with contextlib.closing(open_journal(f"sqlite:///{working}", clock, may_create=False)) as journal:
            restored = _settled(journal, published, manifest.files[0].sha256)
        # Unlike a rename, a link fails where somebody made a journal meanwhile.
        os.link(working, path)
    except FileExistsError:
        raise ConfigurationError(str(path), "was made meanwhile.", "Stop the executor, and move it away.") from None
    finally:
        _remove(working)
        os.close(lock)
    return restored


def _head_of(copy: Path) -> dict[str, str | int]:
    with contextlib.closing(sqlite3.connect(copy)) as connection:
        row = connection.execute("SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1").fetchone()
    return {"events": 0} if row is None else {"events": int(row[0]), "head": str(row[1])}


def _remove(working: Path) -> None:
    for end in ("", "-wal", "-shm"):
        working.with_name(working.name + end).unlink(missing_ok=True)


def _settled(journal: Journal, published: Mapping[int, str], copied: str) -> Restored:
    with journal.reading() as connection:
        found = verify(connection, published)
    faults = {finding.fault for finding in found.findings}
    if faults - {Fault.HEAD_MISSING, Fault.HEAD_DIFFERS}:
        raise ConfigurationError(
            "the copy",
            f"is no honest journal: {found.findings[0].detail}.",
            "Use another copy: audit verify says more.",
        )
    # With nothing to compare, the copy may be older than the last move.
    is_behind = bool(faults) or not published
    with journal.writing() as writing:
        held = hold_back(writing, {"restored": True}) if is_behind else HeldBack(0, 0)
        sign_everybody_out(writing)
        details: dict[str, Any] = {
            "copy": copied,
            "events": found.events,
            "published": max(published, default=0),
            "behind": is_behind,
            "askedAgain": held.asked_again,
            "doubtful": held.doubtful,
        }
        writing.append("journal:restore", "journal", OPERATOR, details)
    return Restored(found.events, is_behind, held.asked_again, held.doubtful)

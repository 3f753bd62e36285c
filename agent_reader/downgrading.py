"""The reader's files taken back to an older release's tables: each in a transaction, and all of them or none.

The newer program does it, since only that knows what it added. What is a lock or evidence is not taken back (scopes,
the read log), and what costs more than a new mirror is not either.
"""

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Final

from agent_reader import migrating
from agent_reader.access import migrations as access_migrations
from agent_reader.access.database import FILE_NAME as ACCESS_FILE
from agent_reader.backing_up import backup_files
from agent_reader.listening import check_owner, sole_use_of
from agent_reader.store import migrations as store_migrations
from agent_reader.store.database import FILE_PATTERN as INDEX_FILES
from shared.revisions import DowngradeRefused, Revision, way_back
from shared.settings import ConfigurationError

if TYPE_CHECKING:
    from sqlalchemy import Connection

_COMMAND: Final = "agent-reader downgrade --to "


class Kind(StrEnum):
    """Which of the reader's files: tokens and read log, or the index of each account."""

    ACCESS = "access"
    INDEX = "index"


_MIGRATIONS: Final = MappingProxyType({Kind.ACCESS: access_migrations, Kind.INDEX: store_migrations})
_FILES: Final = MappingProxyType({Kind.ACCESS: ACCESS_FILE, Kind.INDEX: INDEX_FILES})


@dataclass(frozen=True, slots=True)
class Target:
    """A revision that files of a kind are to be taken back to; written `index:0008`."""

    kind: Kind
    revision: str


@dataclass(frozen=True, slots=True)
class Downgraded:
    """What was done with a file, or would be; `lost` in words, none where the file was of that revision already."""

    file: str
    before: str
    after: str
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Step:
    connection: "Connection"
    file: Path
    before: str
    target: Target


class _OnlyTried(Exception):  # noqa: N818 - leaves the block in which everything is taken back
    pass


def target_of(untrusted_text: str) -> Target:
    """Return a target as it is written. Raises `DowngradeRefused`."""
    kind, _, revision = untrusted_text.partition(":")
    try:
        return Target(Kind(kind), revision)
    except ValueError:
        raise DowngradeRefused(
            "unknown_target", f"There is no {untrusted_text!r}.", "Write index:REVISION or access:REVISION: see --list."
        ) from None


def revisions_of(kind: Kind) -> tuple[Revision, ...]:
    """Return the revisions of a kind of file, the oldest first."""
    revisions: tuple[Revision, ...] = _MIGRATIONS[kind].REVISIONS
    return revisions


def module_of(kind: Kind) -> Path:
    """Return the file that states this program's revision of a kind of file."""
    return Path(str(_MIGRATIONS[kind].__file__))


def found_revisions(folder: Path, kind: Kind) -> dict[str, str | None]:
    """Return the revision of each file of a kind, by name. Raises `ConfigurationError`."""
    check_owner(folder)
    with _mistakes_named(folder):
        return {file.name: migrating.revision_in(file) for file in sorted(folder.glob(_FILES[kind]))}


def downgrade_files(
    folder: Path, targets: Sequence[Target], copies: Path, now: datetime, *, with_index: bool = True
) -> tuple[Path | None, list[Downgraded]]:
    """Take files back after a copy into a new folder below `copies`; return that, and what was done with each file.

    `with_index` has the indexes copied too. Without anything to do no copy is made. Refused while a reader runs. Raises
    `DowngradeRefused`, `ConfigurationError`; then every file is as it was. Who is killed between two files gives the
    same command again.
    """
    check_owner(folder)
    with sole_use_of(folder), _mistakes_named(folder), contextlib.ExitStack() as transactions:
        done = [_taken_back(step) for step in _steps(folder, targets, transactions)]
        if all(each.before == each.after for each in done):
            return None, done
        # Nothing of it is committed: what another connection reads and copies is each file as it was.
        return backup_files(folder, copies, now, with_index=with_index), done


def preview_downgrade(folder: Path, targets: Sequence[Target]) -> list[Downgraded]:
    """Return what `downgrade_files` would do, tried and taken back again. Raises what that raises."""
    check_owner(folder)
    found: list[Downgraded] = []
    with (
        sole_use_of(folder),
        _mistakes_named(folder),
        contextlib.suppress(_OnlyTried),
        contextlib.ExitStack() as transactions,
    ):
        found += [_taken_back(step) for step in _steps(folder, targets, transactions)]
        raise _OnlyTried
    return found


@contextlib.contextmanager
def _mistakes_named(folder: Path) -> Iterator[None]:
    from sqlalchemy.exc import DBAPIError  # noqa: PLC0415 - heavy

    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        raise ConfigurationError(
            f"[store] {folder}", f"cannot be used: {cause}. Nothing was changed.", "Mend it, or free space on its disk."
        ) from None


def _steps(folder: Path, targets: Sequence[Target], transactions: contextlib.ExitStack) -> list[_Step]:
    if len({target.kind for target in targets}) < len(targets):
        raise DowngradeRefused("named_twice", "A kind of file goes to one revision.", "Give each kind once.")
    steps = []
    for target in targets:
        files = sorted(folder.glob(_FILES[target.kind]))
        if not files:
            raise ConfigurationError("[store] url", f"there is no {_FILES[target.kind]} in {folder}.", "Mend the path.")
        for file in files:
            connection = transactions.enter_context(migrating.write_transaction(file))
            found = migrating.revision_of(connection)
            way_back(found, target.revision, revisions_of(target.kind), f"{_COMMAND}{target.kind}:{target.revision}")
            assert found is not None, "there is a way back from it"
            steps.append(_Step(connection, file, found, target))
    return steps


def _taken_back(step: _Step) -> Downgraded:
    lost: list[str] = []
    if step.before != step.target.revision:
        module: ModuleType = _MIGRATIONS[step.target.kind]
        lost = migrating.downgrade(step.connection, module, step.target.revision)
    return Downgraded(step.file.name, step.before, step.target.revision, tuple(lost))

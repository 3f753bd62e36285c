"""Copies of SQLite files, consistent while they are written to, with a manifest of digests; and putting them back.

A copy is a folder of its own, made under another name and named when it is whole. Nothing is ever written over.
"""

import contextlib
import hashlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints, ValidationError

from shared.private_file import sync_folder
from shared.settings import ConfigurationError, Section

_MANIFEST: Final = "manifest.json"
_FOLDER_MODE: Final = 0o700
_FILE_MODE: Final = 0o600
_CHUNK_OCTETS: Final = 1024 * 1024
# A manifest of ours has some hundred octets for each file.
_MANIFEST_OCTETS: Final = 1024 * 1024
_NAMED: Final = "%Y-%m-%dT%H-%M-%SZ"
# A writer holds the file for milliseconds; a minute means that something is stuck.
_BUSY_SECONDS: Final = 60.0


class CopiedFile(Section):
    """One file: its name without a folder, its octets, and the version of its tables where it has one."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,120}$")]
    octets: Annotated[int, Field(ge=0)]
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    version: str | None = None


class Manifest(Section):
    """What a copy holds, of which program and from when; `facts` are the program's own."""

    format: Literal[1] = 1
    program: str
    made_at: datetime
    files: tuple[CopiedFile, ...]
    facts: dict[str, str | int] = Field(default_factory=dict)


def make_backup(
    into: Path,
    program: str,
    files: Iterable[Path],
    now: datetime,
    facts: Callable[[Path], Mapping[str, str | int]] = lambda _: {},
) -> Path:
    """Copy files into a new folder below `into`, named by the time, and return it.

    `files` that end with .db are SQLite's and may be in use. `facts` is asked about the folder of the copies. Raises
    `ConfigurationError`; then nothing is left behind.
    """
    target = into / now.strftime(_NAMED)
    making = into / f".{target.name}.{os.getpid()}"
    try:
        into.mkdir(mode=_FOLDER_MODE, exist_ok=True)
        _refuse_existing(target)
        making.mkdir(mode=_FOLDER_MODE)
    except OSError as error:
        raise _unusable(into, error) from None
    try:
        copied = tuple(_copy(each, making / each.name) for each in files)
        manifest = Manifest(program=program, made_at=now, files=copied, facts=dict(facts(making)))
        _write(making / _MANIFEST, manifest.model_dump_json(indent=1).encode())
        sync_folder(making)
        # Onto a folder that is there a rename fails, unless that is empty.
        making.rename(target)
        sync_folder(into)
    except (OSError, sqlite3.Error) as error:
        raise _unusable(into, error) from None
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return target


def keep_newest(into: Path, program: str, count: int) -> list[Path]:
    """Remove all but the newest `count` copies of a program from a folder, and return what was removed."""
    named = sorted(each for each in into.iterdir() if each.is_dir() and not each.name.startswith("."))
    ours = [each for each in named if _is_of(each, program)]
    gone = ours[: max(0, len(ours) - count)]
    for each in gone:
        shutil.rmtree(each)
    return gone


def read_backup(source: Path, program: str, newest: Mapping[str, str]) -> Manifest:
    """Return the manifest of a copy, each of whose files was compared with it.

    `newest` holds the version of tables that this program knows, by how a file's name begins. Raises
    `ConfigurationError` where a file is missing, changed, another program's, or of a newer version.
    """
    try:
        manifest = _manifest(source)
    except (OSError, ValidationError) as error:
        what = error.strerror if isinstance(error, OSError) else "it is not a manifest of this program's"
        raise ConfigurationError(
            str(source), f"is no copy: {what}.", "Name the folder that `backup` printed, with its manifest.json."
        ) from None
    if manifest.program != program:
        raise ConfigurationError(str(source), f"is a copy of {manifest.program}.", f"Name one of {program}.")
    for file in manifest.files:
        try:
            found = _digest(source / file.name)
        except OSError as error:
            raise _unusable(source / file.name, error) from None
        if found != (file.sha256, file.octets):
            raise ConfigurationError(
                str(source / file.name), "is not what was copied: its digest differs.", "Use another copy."
            )
        known = next((version for start, version in newest.items() if file.name.startswith(start)), None)
        if file.version is not None and known is not None and file.version > known:
            raise ConfigurationError(
                str(source / file.name),
                f"has tables of version {file.version}; this program knows {known}.",
                "Install the version that made the copy, or a newer one.",
            )
    return manifest


def put_back(source: Path, to: Path) -> None:
    """Copy a file to a place where none is. Raises `ConfigurationError`."""
    for each in (to, to.with_name(to.name + "-wal")):
        _refuse_existing(each)
    try:
        descriptor = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE)
        with os.fdopen(descriptor, "wb") as into, source.open("rb") as octets:
            shutil.copyfileobj(octets, into, _CHUNK_OCTETS)
            into.flush()
            os.fsync(into.fileno())
    except OSError as error:
        raise _unusable(to, error) from None


def _copy(file: Path, to: Path) -> CopiedFile:
    version = _copy_database(file, to) if file.suffix == ".db" else None
    if file.suffix != ".db":
        _write(to, file.read_bytes())
    digest, octets = _digest(to)
    return CopiedFile(name=to.name, octets=octets, sha256=digest, version=version)


def _copy_database(file: Path, to: Path) -> str | None:
    os.close(os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE))
    with (
        # rw: never made, but what reads a write-ahead log may need to write beside it.
        contextlib.closing(
            sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True, timeout=_BUSY_SECONDS)
        ) as of,
        contextlib.closing(sqlite3.connect(to)) as copy,
    ):
        # In one step: one snapshot, which holds up no writer.
        of.backup(copy, pages=-1)
        # A copy is one file: without this its first reader would make two more.
        copy.execute("PRAGMA journal_mode = DELETE")
        if copy.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise sqlite3.DatabaseError(f"{file} is damaged")
        if copy.execute("SELECT 1 FROM sqlite_schema WHERE name = 'alembic_version'").fetchone() is None:
            return None
        row = copy.execute("SELECT version_num FROM alembic_version").fetchone()
        return None if row is None else str(row[0])


def _manifest(folder: Path) -> Manifest:
    with (folder / _MANIFEST).open("rb") as file:
        return Manifest.model_validate_json(file.read(_MANIFEST_OCTETS))


def _is_of(folder: Path, program: str) -> bool:
    try:
        return _manifest(folder).program == program
    except (OSError, ValidationError):
        return False


def _digest(path: Path) -> tuple[str, int]:
    digest, octets = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_OCTETS):
            digest.update(chunk)
            octets += len(chunk)
        os.fsync(file.fileno())
    return digest.hexdigest(), octets


def _write(path: Path, octets: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE), "wb") as file:
        file.write(octets)
        file.flush()
        os.fsync(file.fileno())


def _refuse_existing(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise ConfigurationError(str(path), "is there already.", "Nothing is written over: move it away, and keep it.")


def _unusable(path: Path, error: Exception) -> ConfigurationError:
    cause = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return ConfigurationError(
        str(path), f"cannot be used: {cause}.", "Mend its owner or mode, or free space on its disk; then try again."
    )

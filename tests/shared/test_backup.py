"""Copies of SQLite files: private, whole or not at all, only what they say, and never over what is there."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from shared.backup import keep_newest, make_backup, put_back, read_backup
from shared.settings import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
NEWEST = {"journal.db": "0003"}


def database(path: Path, version: str | None = "0002") -> Path:
    """In the way of a program that runs: what was written last lies in the write-ahead log."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (x)")
        if version is not None:
            connection.execute("CREATE TABLE alembic_version (version_num)")
            connection.execute("INSERT INTO alembic_version VALUES (?)", (version,))
        connection.executemany("INSERT INTO t VALUES (?)", [("x" * 2000,)] * 50)
        connection.commit()
    return path


def copied(tmp_path: Path, version: str | None = "0002") -> Path:
    return make_backup(tmp_path / "copies", "ours", [database(tmp_path / "journal.db", version)], NOW)


def test_a_copy_and_its_folder_are_its_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    other = tmp_path / "rights.json"
    other.write_text("{}")
    before = os.umask(0)
    try:
        copy = make_backup(tmp_path / "copies", "ours", [database(tmp_path / "journal.db"), other], NOW)
        put_back(copy / "journal.db", tmp_path / "back.db")
    finally:
        os.umask(before)
    for path in (copy.parent, copy, *copy.iterdir(), tmp_path / "back.db"):
        assert not path.stat().st_mode & 0o077, path
    # One file, without a log beside it, that a reader needs not write to.
    assert {"journal.db", "rights.json", "manifest.json"} == {each.name for each in copy.iterdir()}
    with contextlib.closing(sqlite3.connect(f"file:{copy}/journal.db?mode=ro&immutable=1", uri=True)) as connection:
        assert ("delete",) == connection.execute("PRAGMA journal_mode").fetchone()
        assert (50,) == connection.execute("SELECT count(*) FROM t").fetchone()


def test_what_cannot_be_copied_leaves_nothing_behind(tmp_path: Path) -> None:
    damaged = database(tmp_path / "journal.db")
    with damaged.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(b"\xff" * 4096 * 4)
    for files in ([damaged], [database(tmp_path / "good.db"), tmp_path / "missing.db"]):
        with pytest.raises(ConfigurationError, match="cannot be used"):
            make_backup(tmp_path / "copies", "ours", files, NOW)
    assert [] == list((tmp_path / "copies").iterdir())


def test_a_copy_of_the_same_second_is_not_written_over(tmp_path: Path) -> None:
    copy = copied(tmp_path)
    manifest = (copy / "manifest.json").read_bytes()
    with pytest.raises(ConfigurationError, match="is there already"):
        make_backup(tmp_path / "copies", "ours", [tmp_path / "journal.db"], NOW)
    assert [copy] == list((tmp_path / "copies").iterdir())
    assert manifest == (copy / "manifest.json").read_bytes()


def test_only_copies_of_the_same_program_are_removed(tmp_path: Path) -> None:
    file, copies = database(tmp_path / "journal.db"), tmp_path / "copies"
    ours = [make_backup(copies, "ours", [file], NOW + timedelta(days=day)) for day in range(4)]
    theirs = make_backup(copies, "theirs", [file], NOW - timedelta(days=9))
    (copies / "0-notes").mkdir()
    assert ours[:2] == keep_newest(copies, "ours", 2)
    assert [] == keep_newest(copies, "ours", 2)
    assert {*ours[2:], theirs, copies / "0-notes"} == set(copies.iterdir())


@pytest.mark.parametrize("octet", [0, -1])
def test_a_file_of_the_same_size_with_another_octet_is_not_put_back(tmp_path: Path, octet: int) -> None:
    copy = copied(tmp_path)
    assert "ours" == read_backup(copy, "ours", NEWEST).program
    octets = bytearray((copy / "journal.db").read_bytes())
    octets[octet] ^= 1
    (copy / "journal.db").write_bytes(octets)
    with pytest.raises(ConfigurationError, match="digest differs"):
        read_backup(copy, "ours", NEWEST)


def test_a_copy_of_another_program_of_a_newer_version_or_without_its_file_is_refused(tmp_path: Path) -> None:
    copy = copied(tmp_path, "0004")
    with pytest.raises(ConfigurationError, match="copy of ours"):
        read_backup(copy, "theirs", NEWEST)
    with pytest.raises(ConfigurationError, match="version 0004; this program knows 0003"):
        read_backup(copy, "ours", NEWEST)
    assert "0004" == read_backup(copy, "ours", {"journal.db": "0004"}).files[0].version
    (copy / "journal.db").unlink()
    with pytest.raises(ConfigurationError, match="cannot be used"):
        read_backup(copy, "ours", {"journal.db": "0004"})
    with pytest.raises(ConfigurationError, match="is no copy"):
        read_backup(tmp_path, "ours", NEWEST)


def test_a_manifest_names_no_file_outside_its_folder(tmp_path: Path) -> None:
    copy = copied(tmp_path)
    for name in ("../journal.db", "/etc/passwd", ".hidden"):
        told = json.loads((copy / "manifest.json").read_text())
        told["files"][0]["name"] = name
        (copy / "manifest.json").write_text(json.dumps(told))
        with pytest.raises(ConfigurationError, match="is no copy"):
            read_backup(copy, "ours", NEWEST)


@pytest.mark.parametrize("end", ["", "-wal"])
def test_a_file_is_put_back_only_where_neither_it_nor_its_log_is(tmp_path: Path, end: str) -> None:
    copy = copied(tmp_path)
    there = tmp_path / f"back.db{end}"
    there.symlink_to(tmp_path / "nowhere")
    with pytest.raises(ConfigurationError, match="is there already"):
        put_back(copy / "journal.db", tmp_path / "back.db")
    assert not (tmp_path / "nowhere").exists()

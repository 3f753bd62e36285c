"""Private files: narrow from the first moment, whole at every moment, and never through a link."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.private_file import make_private, replace_private


@pytest.fixture(autouse=True)
def generous_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_replaced_whole_and_nobody_else_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_text("old and longer")
    path.chmod(0o644)
    replace_private(path, b"new")
    assert path.read_bytes() == b"new"
    assert mode(path) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]


@pytest.mark.parametrize("fails", ["fsync", "fdopen"])
def test_a_write_that_fails_leaves_the_old_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    path = tmp_path / "kept"
    path.write_text("old")

    def full(descriptor: int, *_: object) -> None:
        if fails == "fdopen":
            os.close(descriptor)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, fails, full)
        with pytest.raises(OSError, match="No space"):
            replace_private(path, b"new")
    assert path.read_text() == "old"
    # What the failure left beside it is in nobody's way.
    replace_private(path, b"newer")
    assert path.read_bytes() == b"newer"


def test_what_lies_beside_it_is_not_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    (tmp_path / "kept.new").symlink_to(victim)
    replace_private(tmp_path / "kept", b"secret")
    assert victim.read_text() == "untouched"
    assert not (tmp_path / "kept").is_symlink()


def test_names_are_on_the_disk_before_it_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    replace_private(tmp_path / "kept", b"new")
    assert synced == ["kept.new", tmp_path.name]


def test_a_database_is_made_private_and_one_that_is_there_is_narrowed_not_emptied(tmp_path: Path) -> None:
    made, wide = tmp_path / "made", tmp_path / "wide"
    wide.write_text("rows")
    wide.chmod(0o664)
    make_private(made)
    make_private(wide)
    assert (mode(made), mode(wide), wide.read_text()) == (0o600, 0o600, "rows")


def test_a_database_that_is_open_here_keeps_its_locks(tmp_path: Path) -> None:
    # fcntl(2): whoever closes any descriptor of a file drops every lock that the process has on it.
    path = tmp_path / "open"
    make_private(path)
    with path.open("r+b") as opened:
        fcntl.lockf(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        make_private(path)
        asked = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+b'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        other = subprocess.run([sys.executable, "-I", "-c", asked, path], capture_output=True, timeout=60, check=False)
    assert b"BlockingIOError" in other.stderr

"""A file system of its own that is soon full; making one is root's."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def small_disk(folder: Path, kibibytes: int) -> Iterator[Path]:
    """Mount one at a new folder while the block runs."""
    folder.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kibibytes}k,mode=0700", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small file system takes root")
    try:
        yield folder
    finally:
        # A file of it may be open still where the test has failed.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)

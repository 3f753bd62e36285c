"""The folder that the demo lives in."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

import pytest

from deploy.demo.street import open_street

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def no_usual_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """None that a demo of another worker may be about to listen on."""
    monkeypatch.setattr("deploy.demo.street._USUAL_PORTS", (0, 0, 0))


@pytest.mark.parametrize("deep", ["x" * 90, "x/" * 45], ids=["long", "deep"])
def test_a_deep_folder_for_temporary_files_leaves_room_for_a_sockets_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deep: str
) -> None:
    (tmp_path / deep).mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / deep))
    with open_street() as street:
        assert 107 >= len(os.fsencode(street.folder / "link" / "reader.sock"))
    assert not street.folder.exists()


def test_the_folder_for_temporary_files_is_used_as_long_as_it_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deploy.demo.street._DEEPEST_OCTETS", len(os.fsencode(tmp_path)))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with open_street() as street:
        assert tmp_path == street.folder.parent

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.change_executor.moving.office import Office
from tests.change_executor.moving.workshop import Workshop
from tests.fakes.reader import FakeReader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers.dovecot import Dovecot


@pytest.fixture
def workshop(dovecot: Dovecot, tmp_path: Path) -> Iterator[Workshop]:
    """The executor's login may move there and back."""
    opened = Workshop(dovecot, tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def narrow_workshop(narrow_dovecot: Dovecot, tmp_path: Path) -> Iterator[Workshop]:
    """The executor's login may move there only."""
    opened = Workshop(narrow_dovecot, tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[FakeReader]:
    with FakeReader(tmp_path / "reader.sock") as running:
        yield running


@pytest.fixture
def office(dovecot: Dovecot, tmp_path: Path, reader: FakeReader) -> Iterator[Office]:
    opened = Office(dovecot, tmp_path, reader)
    yield opened
    opened.close()

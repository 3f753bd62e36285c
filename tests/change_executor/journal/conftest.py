"""A journal of one's own, on a clock that the test moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.change_executor.journal.clock import MovableClock
from tests.change_executor.journal.empty import empty_journal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from change_executor.journal.journal import Journal


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'journal.db'}"


@pytest.fixture
def journal(url: str, clock: MovableClock) -> Iterator[Journal]:
    opened = empty_journal(url, clock)
    yield opened
    opened.close()

"""The intake's fixtures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.change_executor.intake.desk import Desk
from tests.change_executor.journal.clock import MovableClock
from tests.change_executor.journal.empty import empty_journal
from tests.change_executor.settings import settings_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from change_executor.config import ExecutorSettings
    from change_executor.journal.journal import Journal


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def settings(tmp_path: Path) -> ExecutorSettings:
    return settings_in(tmp_path, max_pending_per_agent=3)


@pytest.fixture
def journal(settings: ExecutorSettings, clock: MovableClock) -> Iterator[Journal]:
    opened = empty_journal(settings.journal.url, clock)
    yield opened
    opened.close()


@pytest.fixture
def desk(journal: Journal, settings: ExecutorSettings) -> Desk:
    return Desk(journal, settings)

"""A review page of one's own per test, with one person who may decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fakes.reader import FakeReader
from tests.servers.desk import ReviewPage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def review_page(tmp_path: Path) -> Iterator[ReviewPage]:
    page = ReviewPage(tmp_path)
    try:
        page.rows.person()
        page.rows.examined()
        yield page
    finally:
        page.close()


@pytest.fixture
def review_reader(review_page: ReviewPage) -> Iterator[FakeReader]:
    """A reader that the page can ask, of one agent which has read nothing."""
    with FakeReader(review_page.settings.reader.socket) as running:
        running.answers |= {"/agents": {"agents": ["mailbot"]}, "/reads": {"reads": [], "cursor": None}}
        yield running

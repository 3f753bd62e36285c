"""A review page of one's own per test, with one person who may decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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

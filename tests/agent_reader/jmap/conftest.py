"""The server under test, in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.agent_reader.jmap.downloading import ALL
from tests.agent_reader.served import House, house


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """One for all tests of a file: they ask, and what they ask changes nothing but the read log."""
    with house(tmp_path_factory.mktemp("served")) as open_house:
        yield open_house


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """What is downloaded from, one for all tests of a file that look neither at the read log nor at the fetching."""
    with house(tmp_path_factory.mktemp("downloads"), ALL) as open_house:
        yield open_house

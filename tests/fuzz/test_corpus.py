"""Everything that the fuzzer starts from, and everything that it ever found, is read again on each run."""

from pathlib import Path
from typing import Final

import pytest

from tests.fuzz.message_reading import check_reading

CORPUS: Final = sorted((Path(__file__).parent / "corpus" / "message").iterdir())


def test_the_corpus_is_there() -> None:
    assert len(CORPUS) >= 36


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_a_seed_is_read_in_every_way(path: Path) -> None:
    check_reading(path.read_bytes())


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_a_seed_that_breaks_off_is_read_in_every_way(path: Path) -> None:
    octets = path.read_bytes()
    for end in range(0, len(octets), max(1, len(octets) // 6)):
        check_reading(octets[:end])

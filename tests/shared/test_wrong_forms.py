"""Every way in which a value of our files can be wrong is said in words of ours."""

from __future__ import annotations

import contextlib
import copy
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_reader.config import ReaderSettings
from change_executor.config import ExecutorSettings
from shared.settings import ConfigurationError, Section, settings_from

EXAMPLES = Path(__file__).parents[2] / "deploy/examples"
WRONG: tuple[Any, ...] = (True, -1, 10**15, 1.5, float("nan"), "", "zanzibar \x00", "zanzibar" * 9_000)
WRONG += ([], ["zanzibar"], [[1]] * 2_000, {}, {"surplus": 1})
OTHER = "is of another form"
# How pydantic speaks.
ITS_WORDS = ("hould", "nput", "alid ", "Value error", "unable", "rror")


def places(value: Any, *before: Any) -> Iterator[tuple[Any, ...]]:
    """Where the values of a file are."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield (*before, key)
        yield from places(inner, *before, key)


@pytest.mark.parametrize(("file", "kind"), [("reader.toml", ReaderSettings), ("executor.toml", ExecutorSettings)])
def test_whatever_is_wrong_with_a_value_is_said_in_our_words(file: str, kind: type[Section]) -> None:
    right = tomllib.loads((EXAMPLES / file).read_text(encoding="utf-8"))
    said = dict[str, object]()
    for place in places(right):
        for wrong in WRONG:
            raw = table = copy.deepcopy(right)
            for key in place[:-1]:
                table = table[key]
            table[place[-1]] = wrong
            with contextlib.suppress(NoMistake):
                said[mistake(raw, kind, file)] = place
    assert len(said) > 50
    assert {} == {text: place for text, place in said.items() if any(word in text for word in (*ITS_WORDS, OTHER))}


class NoMistake(Exception):  # noqa: N818 - names what happened
    pass


def mistake(raw: dict[str, Any], kind: type[Section], file: str) -> str:
    try:
        settings_from(raw, kind, file)
    except ConfigurationError as error:
        return str(error)
    raise NoMistake

"""The examples of docs/jmap-extension.md: each request is answered as the document says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_reader.jmap.agent_extension import ACCOUNT_LIMITS
from shared.fence import InvisibleKind
from shared.message import AttachmentForm, AttachmentOutcome, BodyChoice, Fact, HidingTrick
from tests.agent_reader.served import House, house

DOCUMENT = Path(__file__).parents[3] / "docs/jmap-extension.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")
# A message on the wire has CRLF; a document has not.
MESSAGES = tuple(block.replace("\n", "\r\n").encode() for block in re.findall(r"```eml\n(.*?)```", TEXT, re.DOTALL))
BLOCKS: list[Any] = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)]
EXAMPLES = list(zip(BLOCKS[::2], BLOCKS[1::2], strict=True))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house(tmp_path_factory.mktemp("document"), MESSAGES) as open_house:
        yield open_house


def _is_shown_by(said: Any, answered: Any) -> bool:
    """Whether the document leaves things out at most: states, which nobody knows before, and what is not its point."""
    match said, answered:
        case dict(), dict():
            return all(name in answered and _is_shown_by(value, answered[name]) for name, value in said.items())
        case list(), list():
            return len(said) == len(answered) and all(map(_is_shown_by, said, answered))
        case _:
            return bool(said == answered)


@pytest.mark.anyio
@pytest.mark.parametrize(("request_", "response"), EXAMPLES)
async def test_each_example_is_answered_as_the_document_says(served: House, request_: Any, response: Any) -> None:
    answered = (await served.post(request_)).json()["methodResponses"]
    assert _is_shown_by(response, answered), json.dumps(answered, indent=2, ensure_ascii=False)


def test_there_are_examples_of_every_part() -> None:
    assert 5 == len(EXAMPLES)
    said = json.dumps(BLOCKS)
    members = ("leftOut", "coverage", "hidden")
    for name in (*ACCOUNT_LIMITS["emailProperties"], *ACCOUNT_LIMITS["emailGetArguments"], *members):
        assert f'"{name}"' in said, name


def test_every_word_that_an_answer_can_hold_is_explained() -> None:
    closed = (*Fact, *HidingTrick, *AttachmentOutcome, *AttachmentForm, *InvisibleKind, *BodyChoice)
    for word in (*(each.value for each in closed), *ACCOUNT_LIMITS, "notGranted", "notFetched", "unavailable"):
        assert f"`{word}`" in TEXT, word

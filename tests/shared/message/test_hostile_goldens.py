"""Hostile messages by RFC section; what must come out was taken from the RFC, never from this parser.

`tests/golden/hostile/*.toml`: each case names its `rule`, what it `says`, the message's `octets` (one character from
U+0000 to U+00FF for each octet) and what to `expect`, a line for each fact: `path = JSON`, or `path in [JSON, ...]`
where two readings are possible, the `reason` beside it. Objects hold the keys to compare. Paths are those of the
Email, and the views below.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from shared.message import Message, Part, body_lists, body_value, parse, preview, readable_text
from tests.shared.message.test_golden import agree, at, email_of

HOSTILE: Final = Path(__file__).parents[2] / "golden" / "hostile"

_FACT: Final = re.compile(r"(\S+) (=|in) (.+)")
_RULE: Final = re.compile(r"RFC [0-9]{4} §[A-Z]?[0-9.]*[0-9A-Z]")


@dataclass(frozen=True)
class Case:
    rule: str
    says: str
    octets: bytes
    facts: tuple[tuple[str, bool, Any], ...]  # path, whether it is a choice, the value or the choices

    def __str__(self) -> str:
        return f"{self.rule}: {self.says}"


def _cases() -> Iterator[Case]:
    for path in sorted(HOSTILE.glob("*.toml")):
        for entry in tomllib.loads(path.read_text("utf-8"))["case"]:
            assert {"rule", "says", "octets", "expect"} <= set(entry) <= {"rule", "says", "octets", "expect", "reason"}
            facts = [_FACT.fullmatch(line) for line in entry["expect"].strip().split("\n")]
            assert all(facts), (path.name, entry["expect"])
            yield Case(
                entry["rule"],
                entry["says"],
                entry["octets"].encode("latin-1"),
                tuple((found[1], found[2] == "in", json.loads(found[3])) for found in facts if found),
            )


CASES: Final = tuple(_cases())


def _tree(part: Part) -> str:
    return part.type + (f"({', '.join(map(_tree, part.subparts))})" if part.is_multipart else "")


def _leaves(message: Message) -> list[Part]:
    return [part for part in message.root.walk() if not part.is_multipart]


def _texts(parts: tuple[Part, ...]) -> list[str]:
    return [body_value(part).value for part in parts]


def _twins(message: Message) -> list[int]:
    """For each leaf the number of its blob, counted as they first come."""
    numbers: dict[str | None, int] = {}
    return [numbers.setdefault(part.blob_id, len(numbers)) for part in _leaves(message)]


VIEWS: Final[Mapping[str, Callable[[Message], Any]]] = {
    "tree": lambda message: _tree(message.root),
    "leaves": lambda message: [part.content().decode("latin-1") for part in _leaves(message)],
    "text": lambda message: _texts(body_lists(message).text_body),
    "html": lambda message: _texts(body_lists(message).html_body),
    "attached": lambda message: _texts(body_lists(message).attachments),
    "readable": lambda message: readable_text(message).text,
    "previewLength": lambda message: len(preview(message)),
    "defects": lambda message: sorted({defect.code.value for defect in message.defects}),
    "fieldNames": lambda message: [field.name for field in message.fields],
    "twins": _twins,
    "nullPartIds": lambda message: sum(part.part_id is None for part in message.root.walk()),
    "distinctPartIds": lambda message: len({part.part_id for part in _leaves(message)}),
    "valueCount": lambda message: len([key for key in email_of(message)["bodyValues"] if key.isdigit()]),
}


def test_there_are_a_hundred_and_fifty_and_no_two_are_alike() -> None:
    assert len(CASES) >= 150
    assert len({case.octets for case in CASES}) == len(CASES)
    assert all(_RULE.fullmatch(case.rule) for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_the_rfc_says_comes_out(case: Case) -> None:
    message = parse(case.octets)
    email = email_of(message, [path for path, _, _ in case.facts])
    for path, is_choice, value in case.facts:
        found = VIEWS[path](message) if path in VIEWS else at(email, path)
        allowed = value if is_choice else [value]
        assert any(agree(reading, found) for reading in allowed), (path, found)

"""What the documents say of numbers and alarms: each is one that a program tells, and says what to do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import agent_reader.metrics
import change_executor.metrics
from change_executor.alarms import AlarmCode
from shared.doctor.finding import Fault

DOCS: Final = Path(__file__).parents[2] / "docs"
NUMBERS: Final = {*agent_reader.metrics.HELPS, *change_executor.metrics.HELPS}


def rows(document: str, head: str) -> list[list[str]]:
    """The cells of the table whose first line begins so."""
    table = (DOCS / document).read_text(encoding="utf-8").partition(f"\n{head}")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_the_page_of_numbers_names_each_and_no_other() -> None:
    text = (DOCS / "metrics.md").read_text(encoding="utf-8")
    assert NUMBERS == set(re.findall(r"`((?:mailwarrant|process)_[a-z_]+)[`{]", text))


def test_no_document_names_a_number_that_there_is_not() -> None:
    for document in DOCS.rglob("*.md"):
        assert set(re.findall(r"`(mailwarrant_[a-z_]+)[`{]", document.read_text(encoding="utf-8"))) <= NUMBERS, document


def test_each_alarm_says_what_is_wrong_from_when_on_and_what_to_do() -> None:
    listed = rows("alarms.md", "| code |")
    assert sorted(f"`{code}`" for code in AlarmCode) == sorted(each[0] for each in listed)
    assert all(len(each) == 4 and all(each) for each in listed)


def test_each_row_of_what_is_worth_an_alarm_says_what_to_do_about_what_there_is() -> None:
    listed = rows("operate.md", "| when |")
    assert all(len(each) == 3 and all(each) for each in listed)
    logged = {"sync:failed", "gate:refused", "journal:behind", "reading:in_reader", "index:mended"}
    codes = {"no_reading_process", "message_damaged"}
    known = {*NUMBERS, *AlarmCode, *Fault, *logged, *codes, "audit verify"}
    for when, _, _ in listed:
        assert {each.partition("{")[0] for each in re.findall(r"`([^`]+)`", when)} <= known, when

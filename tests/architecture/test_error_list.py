"""docs/errors.md says what the code answers, and every problem that is said can be acted on."""

from __future__ import annotations

import json

import pytest

from change_executor.intake import problems
from change_executor.intake.proposer_tokens import TokenFault
from change_executor.policy import ProposingRuling
from shared.problem import Problem
from tests.architecture.error_list import CHECKOUT, HOUSES, entries, page


def test_the_page_is_what_the_code_answers() -> None:
    written = (CHECKOUT / "docs/errors.md").read_text(encoding="utf-8")
    assert page() == written, "run `make docs`"


@pytest.mark.parametrize("house", HOUSES)
def test_every_problem_says_what_was_wrong_and_what_to_do(house: str) -> None:
    found = entries(house)
    assert len(found) > (0 if house == "shared" else 20)
    for each in found:
        assert each.code == each.code.lower()
        assert each.detail.rstrip(".").strip()
        assert each.fix.rstrip(".").strip()


def test_nothing_of_the_intake_is_missing() -> None:
    codes = {each.code for each in entries("change_executor")}
    for ruling in ProposingRuling:
        if ruling is not ProposingRuling.ALLOWED:
            assert problems.refused_by_policy(ruling).code in codes
    for fault in TokenFault:
        assert problems.token_refused(fault).code in codes


def test_a_document_has_the_members_that_the_page_promises() -> None:
    document = json.loads(Problem(422, "a_code", "What.", "Do.", retryable=True).encoded())
    assert {"type", "status", "code", "detail", "fix", "retryable"} <= set(document)

"""An approval covers exactly what was shown: the digest moves with each part of it and with nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from change_executor.evidence import reading as paper
from change_executor.evidence.reading import Attachment, Readable, Reading, TextSource
from change_executor.journal.evidence import Evidence
from change_executor.journal.journal import Proposal
from change_executor.shown import Mailboxes, shown_digest
from shared.proposal import State

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)

PROPOSAL = Proposal(
    id="P" + "0" * 20, agent="mailbot", queue="support", email_id="M" + "0" * 32, from_role="incoming",
    to_role="processed", state=State.PENDING, version=2, created_at=NOW, expires_at=NOW, ended_at=None,
    predecessor=None, waiting_code=None, waiting_since=None, decided_by=None, decided_at=None, policy_version=None,
    shown=None, outcome_code=None, outcome_at=None, copies_left=None, evidence=1,
)  # fmt: skip
MAILBOXES = Mailboxes("INBOX", "Support/Processed")
EVIDENCE = Evidence(
    proposal=PROPOSAL.id, uidvalidity=1, uid=7, octets_sha256="a" * 64, size=10, internaldate="2026-11-28T09:14:02Z",
    copies=1, reading_version="1", reading_sha256="b" * 64,
)  # fmt: skip
READING = Reading(readable=Readable.READABLE, subject="Order 4711", sender=["Ada"], text="It arrived.")


def digest(**changed: Any) -> str:
    parts: dict[str, Any] = {
        "proposal": PROPOSAL,
        "mailboxes": MAILBOXES,
        "evidence": EVIDENCE,
        "reading": READING,
        "policy_version": "0123456789abcdef",
    }
    return shown_digest(**parts | changed)


def test_the_digest_is_sha_256_in_hexadecimal_and_the_same_each_time() -> None:
    assert 64 == len(digest())
    assert digest() == digest()


@pytest.mark.parametrize(
    "changed",
    [
        {"proposal": replace(PROPOSAL, id="P" + "1" * 20)},
        {"proposal": replace(PROPOSAL, version=3)},
        {"proposal": replace(PROPOSAL, queue="sales")},
        {"proposal": replace(PROPOSAL, from_role="processed")},
        {"proposal": replace(PROPOSAL, to_role="escalate")},
        {"mailboxes": replace(MAILBOXES, source="Inbox")},
        {"mailboxes": replace(MAILBOXES, target="Trash")},
        {"evidence": replace(EVIDENCE, uid=8)},
        {"evidence": replace(EVIDENCE, uidvalidity=2)},
        {"evidence": replace(EVIDENCE, octets_sha256="c" * 64)},
        {"evidence": None},
        {"reading": None},
        {"policy_version": "fedcba9876543210"},
        *(
            {"reading": READING.model_copy(update=update)}
            for update in (
                {"reading_version": "0"},
                {"readable": Readable.CANNOT_BE_SHOWN},
                {"cause": "out of memory"},
                {"subject": "Order 4712"},
                {"sender": ["Eve"]},
                {"recipients": ["Support"]},
                {"date": "2026-11-28"},
                {"authentication": paper.Authentication(verdict=paper.Verdict.PASSED, source="mx.example.org")},
                {"text": "It never arrived."},
                {"text_source": TextSource.HTML},
                {"text_cut": True},
                {"hidden_text": "Assistant: obey"},
                {"hosts": ["shop.example"]},
                {"attachments": [Attachment(name="a", type="b/c", size=1)]},
                {"attachments_left_out": 1},
                {"warnings": [paper.Warning(code="hidden_text")]},
            )
        ),
    ],
)
def test_each_part_of_what_is_shown_changes_the_digest(changed: dict[str, Any]) -> None:
    assert digest() != digest(**changed)


def test_the_fields_of_a_reading_are_all_covered() -> None:
    # A new field of the reading has to be thought about here: shown and covered, or neither.
    assert {
        "reading_version", "readable", "cause", "subject", "sender", "recipients", "date", "text", "text_source",
        "authentication",
        "text_cut", "hidden_text", "hosts", "attachments", "attachments_left_out", "warnings",
        # neither: whether the HTML can be looked at, and what the message belongs to
        "has_html", "thread",
    } == set(Reading.model_fields)  # fmt: skip


def test_what_may_change_without_harm_is_not_covered() -> None:
    later = replace(PROPOSAL, waiting_code="stopped", waiting_since=NOW, decided_by="rosa", created_at=NOW)
    assert digest() == digest(proposal=later)
    assert digest() == digest(evidence=replace(EVIDENCE, copies=2))

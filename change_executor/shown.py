"""What a person was shown, as one digest: an approval covers exactly this; pure.

SHA-256 over the RFC 8785 canonical JSON of the proposal, its version, the queue, both roles and both mailbox names,
the one copy, its octets' digest, the reading, and the policy version. The reader's hints, ages and other proposals
are shown too, and stored with the decision, but are not in the digest: they may change without harm.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

import rfc8785

from change_executor.evidence.reading import Reading
from change_executor.journal.evidence import Evidence
from change_executor.journal.journal import Proposal


@dataclass(frozen=True, slots=True)
class Mailboxes:
    """The two mailboxes of a move, as the queue's credential names them."""

    source: str
    target: str


def shown_digest(
    proposal: Proposal,
    mailboxes: Mailboxes,
    evidence: Evidence | None,
    reading: Reading | None,
    policy_version: str,
) -> str:
    """Return the digest (lower-case hexadecimal) of what a page about this proposal shows.

    Evidence and reading are None while there are none: such a page can be used to reject, not to approve.
    """
    content: dict[str, Any] = {
        "proposal": proposal.id,
        "version": proposal.version,
        "queue": proposal.queue,
        "from": proposal.from_role,
        "to": proposal.to_role,
        "mailboxes": {"source": mailboxes.source, "target": mailboxes.target},
        "copy": None if evidence is None else {"uidvalidity": evidence.uidvalidity, "uid": evidence.uid},
        "octets": None if evidence is None else evidence.octets_sha256,
        "reading": None if reading is None else _as_shown(reading),
        "policy": policy_version,
    }
    return hashlib.sha256(rfc8785.dumps(content)).hexdigest()


def _as_shown(reading: Reading) -> dict[str, Any]:
    return {
        "version": reading.reading_version,
        "readable": reading.readable.value,
        "cause": reading.cause,
        "subject": reading.subject,
        "from": list(reading.sender),
        "to": list(reading.recipients),
        "date": reading.date,
        "authentication": None if reading.authentication is None else reading.authentication.model_dump(mode="json"),
        "text": reading.text,
        "textSource": reading.text_source.value,
        "textCut": reading.text_cut,
        "hiddenText": reading.hidden_text,
        "hosts": list(reading.hosts),
        "attachments": [attachment.model_dump(mode="json") for attachment in reading.attachments],
        "attachmentsLeftOut": reading.attachments_left_out,
        "warnings": [warning.model_dump(mode="json") for warning in reading.warnings],
    }

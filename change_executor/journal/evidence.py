"""What the executor saw of a message for a proposal, as rows: facts in `evidence`, content in `texts`."""

import base64
import hashlib
import zlib
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, bindparam, insert, select

from change_executor.journal import schema
from change_executor.journal.chain import event_details
from change_executor.journal.journal import Proposal, Writing
from change_executor.journal.moves import EXECUTOR
from change_executor.journal.statement import Statement

# Headers and text of nearly every message; attachments come behind them and are listed, not looked at.
KEPT_SOURCE_OCTETS: Final = 256 * 1024


_READ: Final = Statement(select(schema.evidence).where(schema.evidence.c.id == bindparam("wanted")))


@dataclass(frozen=True, slots=True)
class Evidence:
    """A row of `evidence`; digests in lower-case hexadecimal, `internaldate` RFC 3339, `size` in octets."""

    proposal: str
    uidvalidity: int
    uid: int
    octets_sha256: str
    size: int
    internaldate: str
    copies: int
    reading_version: str
    reading_sha256: str
    sender_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class DatedEvidence:
    """Evidence with its id and the time when it was made."""

    id: int
    made_at: datetime
    evidence: Evidence


def record(writing: Writing, evidence: Evidence, source_sha256: str | None = None) -> Proposal:
    """Write a row of evidence and make it the one that its proposal shows; the event repeats its digests and places.

    `source_sha256` is of the octets kept in texts, where any are. The proposal waits for nothing any more.
    """
    return writing.change(
        evidence.proposal,
        "evidence",
        EXECUTOR,
        {
            "uidvalidity": evidence.uidvalidity,
            "uid": evidence.uid,
            "sha256": evidence.octets_sha256,
            "copies": evidence.copies,
            "readingSha256": evidence.reading_sha256,
        }
        | ({} if source_sha256 is None else {"sourceSha256": source_sha256}),
        evidence=_stored(writing, evidence),
        waiting_code=None,
        waiting_since=None,
    )


def read(connection: Connection, evidence_id: int) -> DatedEvidence:
    """Return a row of evidence by its id; a proposal names only rows that exist."""
    row = _READ.first(connection, {"wanted": evidence_id})
    assert row is not None, "a proposal names only rows that exist"
    return DatedEvidence(
        id=row["id"],
        made_at=row["made_at"],
        evidence=Evidence(**{name: row[name] for name in Evidence.__slots__}),
    )


def keep_text(writing: Writing, proposal_id: str, kind: str, text: str) -> None:
    """Write a text of a proposal, in place of the one of this kind that it had; before the event that goes with it."""
    writing.keep_text(proposal_id, kind, text)


def text(connection: Connection, proposal_id: str, kind: str) -> str | None:
    """Return a text of a proposal, or None where there is none or it is forgotten."""
    found: str | None = connection.execute(
        select(schema.texts.c.text).where(schema.texts.c.proposal == proposal_id, schema.texts.c.kind == kind)
    ).scalar_one_or_none()
    return found


def keep_source(writing: Writing, proposal_id: str, octets: bytes) -> str:
    """Keep the first octets of a message, to be looked at as they are, and return the SHA-256 of what was kept."""
    kept = octets[:KEPT_SOURCE_OCTETS]
    keep_text(writing, proposal_id, "source", base64.b64encode(zlib.compress(kept)).decode("ascii"))
    return hashlib.sha256(kept).hexdigest()


def source(connection: Connection, proposal_id: str) -> bytes | None:
    """Return the kept octets of a proposal's message; None where there are none, or not those that were recorded."""
    packed = text(connection, proposal_id, "source")
    recorded = connection.execute(
        select(schema.events.c.details)
        .where(schema.events.c.subject == proposal_id, schema.events.c.kind == "proposal:evidence")
        .order_by(schema.events.c.seq.desc())
        .limit(1)
    ).scalar_one_or_none()
    if packed is None or recorded is None:
        return None
    try:
        octets = zlib.decompressobj().decompress(base64.b64decode(packed), KEPT_SOURCE_OCTETS + 1)
    except (ValueError, zlib.error):
        return None
    digest = hashlib.sha256(octets).hexdigest()
    return octets if digest == event_details(recorded).get("sourceSha256") else None


def _stored(writing: Writing, evidence: Evidence) -> int:
    values = {name: getattr(evidence, name) for name in Evidence.__slots__}
    done = writing.connection.execute(insert(schema.evidence).values(made_at=writing.now, **values))
    assert done.inserted_primary_key is not None, "SQLite numbers the rows"
    return int(done.inserted_primary_key[0])

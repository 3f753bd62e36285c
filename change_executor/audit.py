"""Verifying the journal: the chain from its first event, and every proposal's row against what its events say.

Only SQL and SHA-256: a reader of `docs/journal.md` can write the same in another language and must find the same.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import rfc8785
from sqlalchemy import Connection, RowMapping

from change_executor.journal import chain, schema

# Of a journal that was tampered with at its start, every later event is a finding; the first hundred say enough.
MAX_FINDINGS: Final = 100

# A journal of any length is read in pieces of about half a megabyte.
_ROWS_AT_ONCE: Final = 1_000


# Columns of a row that the event beside it repeats, and where in its details: what was looked at, what was intended.
_EVIDENCE_COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "uidvalidity": ("uidvalidity",),
    "uid": ("uid",),
    "octets_sha256": ("sha256",),
    "copies": ("copies",),
    "reading_sha256": ("readingSha256",),
}
_MOVE_COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "kind": ("kind",),
    "source_uidvalidity": ("source", "uidvalidity"),
    "source_uid": ("source", "uid"),
    "target_uidvalidity": ("target", "uidvalidity"),
    "target_uidnext": ("target", "uidnext"),
    "octets_sha256": ("sha256",),
}


class Fault(StrEnum):
    """What can be wrong; `docs/journal.md` says what each means."""

    MALFORMED = "malformed"
    GAP = "gap"
    BROKEN_LINK = "broken_link"
    WRONG_HASH = "wrong_hash"
    WRONG_STEP = "wrong_step"
    ROW_DIFFERS = "row_differs"
    ROW_MISSING = "row_missing"
    ROW_UNRECORDED = "row_unrecorded"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that an honest journal cannot hold; `subject` is `event 7` or a proposal id."""

    fault: Fault
    subject: str
    detail: str


@dataclass(frozen=True, slots=True)
class Verification:
    """How many events there are, the hash of the last one, and what is wrong (at most `MAX_FINDINGS`)."""

    events: int
    head: str
    findings: tuple[Finding, ...]


@dataclass(slots=True)
class _Replay:
    head: str = chain.FIRST_PREVIOUS
    count: int = 0
    # Rows of `proposals` as the events make them, by id.
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    # What the events say of rows of `evidence` and `moves`, by table and id: the columns that they name.
    facts: dict[tuple[str, Any], dict[str, Any]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def find(self, fault: Fault, subject: str, detail: str) -> None:
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(Finding(fault, subject, detail))


def verify(connection: Connection) -> Verification:
    """Walk the whole journal in one snapshot; memory grows with the number of proposals, not of events."""
    replay = _Replay()
    for row in _rows(
        connection, "SELECT seq, at, kind, subject, actor, details, previous, hash FROM events ORDER BY seq"
    ):
        _verify_event(replay, row)
    _verify_proposals(connection, replay)
    for table in ("evidence", "moves"):
        _verify_facts(connection, replay, table)
    return Verification(replay.count, replay.head, tuple(replay.findings))


def _rows(connection: Connection, statement: str) -> Iterator[RowMapping]:
    # Past the schema's types: a column that somebody filled with another type is a finding, not an exception.
    return iter(connection.exec_driver_sql(statement, execution_options={"yield_per": _ROWS_AT_ONCE}).mappings())


def _verify_event(replay: _Replay, row: RowMapping) -> None:
    seq, kind, subject, previous, digest = (row[name] for name in ("seq", "kind", "subject", "previous", "hash"))
    name = f"event {seq}"
    if seq != replay.count + 1:
        replay.find(Fault.GAP, name, f"follows event {replay.count}")
    if previous != replay.head:
        replay.find(Fault.BROKEN_LINK, name, "does not hold the hash of the event before it")
    replay.count, replay.head = seq, digest if isinstance(digest, str) else ""
    content = _content(row["details"])
    if content is None or not all(isinstance(text, str) for text in (kind, subject, row["actor"], previous, digest)):
        replay.find(Fault.MALFORMED, name, "its columns are not what an event holds")
        return
    try:
        expected = chain.event_hash(
            seq=seq,
            at=row["at"],
            kind=kind,
            subject=subject,
            actor=row["actor"],
            details=content,
            previous=previous,
        )
    except rfc8785.CanonicalizationError:
        replay.find(Fault.MALFORMED, name, "its columns have no canonical form")
        return
    if expected != digest:
        replay.find(Fault.WRONG_HASH, name, "its hash is not that of its content")
    if kind.startswith("proposal:"):
        _replay_proposal(replay, name, subject, content)
    elif kind == "move:intended":
        if not _is_number(content.get("move")):
            replay.find(Fault.MALFORMED, name, "names no move")
            return
        replay.facts["moves", content["move"]] = {"proposal": subject} | _named(content, _MOVE_COLUMNS)


def _content(details: object) -> dict[str, Any] | None:
    try:
        content = json.loads(details) if isinstance(details, str) else None
        if not isinstance(content, dict) or rfc8785.dumps(content).decode() != details:
            return None
    except (ValueError, TypeError, RecursionError):
        return None
    return content


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _replay_proposal(replay: _Replay, name: str, proposal_id: str, content: dict[str, Any]) -> None:
    stated = content.get("set")
    stated = stated if isinstance(stated, dict) else {}
    if not _is_number(content.get("version")) or not (stated.get("evidence") is None or _is_number(stated["evidence"])):
        replay.find(Fault.MALFORMED, name, "has no version, or names no evidence, as a number")
        return
    row = replay.rows.get(proposal_id)
    before = (None, 0) if row is None else (row["state"], row["version"])
    step = (content.get("from"), content.get("version"))
    if step != (before[0], before[1] + 1):
        replay.find(
            Fault.WRONG_STEP, name, f"{proposal_id} was {before[0]} at version {before[1]}, not {content.get('from')}"
        )
    if row is None:
        row = replay.rows[proposal_id] = dict.fromkeys(schema.proposals.columns.keys()) | {"id": proposal_id}
    row |= stated
    if stated.get("evidence") is not None:
        replay.facts["evidence", stated["evidence"]] = {"proposal": proposal_id} | _named(content, _EVIDENCE_COLUMNS)
    row |= {"state": content.get("to"), "version": content.get("version")}


def _verify_proposals(connection: Connection, replay: _Replay) -> None:
    columns = schema.proposals.columns.keys()
    for row in _rows(connection, "SELECT * FROM proposals ORDER BY id"):
        found = dict(row)
        expected = replay.rows.pop(found["id"], None)
        if expected is None:
            replay.find(Fault.ROW_UNRECORDED, str(found["id"]), "stands in the table without an event")
        elif different := [column for column in columns if found[column] != expected.get(column)]:
            replay.find(Fault.ROW_DIFFERS, found["id"], f"not as its events left it: {', '.join(different)}")
    for proposal_id in replay.rows:
        replay.find(Fault.ROW_MISSING, proposal_id, "has events and no row")


def _named(content: dict[str, Any], columns: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    return {column: _at(content, path) for column, path in columns.items()}


def _at(content: Any, path: tuple[str, ...]) -> Any:  # noqa: ANN401 - any JSON value
    for step in path:
        content = content.get(step) if isinstance(content, dict) else None
    return content


def _verify_facts(connection: Connection, replay: _Replay, table: str) -> None:
    expected = {row_id: facts for (of, row_id), facts in replay.facts.items() if of == table}
    for row in _rows(connection, f"SELECT * FROM {table} ORDER BY id"):  # noqa: S608 - one of our two names
        name, facts = f"{table} {row['id']}", expected.pop(row["id"], None)
        if facts is None:
            replay.find(Fault.ROW_UNRECORDED, name, "stands in the table without an event")
        elif different := [column for column, value in facts.items() if row[column] != value]:
            replay.find(Fault.ROW_DIFFERS, name, f"not as its event says: {', '.join(different)}")
    for row_id in expected:
        replay.find(Fault.ROW_MISSING, f"{table} {row_id}", "has an event and no row")

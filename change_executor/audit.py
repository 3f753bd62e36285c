"""Verifying the journal: the chain from its first event, every row against what events say, and the published heads.

Only SQL and SHA-256: a reader of `docs/journal.md` can write the same in another language and must find the same.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, TypeGuard

import rfc8785
from sqlalchemy import Connection, RowMapping

from change_executor.journal import chain, coverage, schema
from change_executor.legible import any_octets, legible

# Of a journal that was tampered with at its start, every later event is a finding; the first hundred say enough.
MAX_FINDINGS: Final = 100

# One page that is wrong may be told of each of its rows.
_DAMAGES_TOLD: Final = 10

# A journal of any length is read in pieces of about half a megabyte.
_ROWS_AT_ONCE: Final = 1_000


_NO_HEADS: Final[Mapping[int, str]] = MappingProxyType({})

# In place of a column that somebody took away.
_GONE: Final = object()


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
    HEAD_MISSING = "head_missing"
    HEAD_DIFFERS = "head_differs"
    DAMAGED = "damaged"


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
    published: Mapping[int, str]
    covered: Mapping[str, str]
    head: str = chain.FIRST_PREVIOUS
    count: int = 0
    # Rows of `proposals` as the events make them, by id.
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    # The digests of rows of the other covered tables as the events left them, by table and key.
    digests: dict[str, dict[str, str]] = field(init=False)
    # And those of texts, by proposal and kind.
    texts: dict[str, dict[str, str]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.digests = {table: {} for table in self.covered}

    def find(self, fault: Fault, subject: str, detail: str) -> None:
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(Finding(fault, legible(subject), legible(detail)))


def verify(
    connection: Connection,
    published: Mapping[int, str] = _NO_HEADS,
    *,
    covered: Mapping[str, str] = coverage.COVERED,
) -> Verification:
    """Walk the whole journal in one snapshot; memory grows with the number of proposals, not of events.

    `published` holds heads that were told outside the journal, by the number of events that they closed; `covered`
    the tables that the chain covers, with the column that names a row: a journal of an older revision has fewer.
    """
    replay = _Replay(published, covered)
    with any_octets(connection):
        _walk(connection, replay)
    return Verification(replay.count, legible(replay.head), tuple(replay.findings))


def _walk(connection: Connection, replay: _Replay) -> None:
    _verify_indexes(connection, replay)
    for row in _rows(
        connection, "SELECT seq, at, kind, subject, actor, details, previous, hash FROM events ORDER BY seq"
    ):
        _verify_event(replay, row)
    _verify_proposals(connection, replay)
    for table, key in replay.covered.items():
        _verify_rows(connection, replay, table, key)
    _verify_texts(connection, replay)
    for events in sorted(each for each in replay.published if each > replay.count):
        replay.find(Fault.HEAD_MISSING, f"event {events}", "was published, and the journal ends before it")


def _verify_indexes(connection: Connection, replay: _Replay) -> None:
    # The executor finds a move under way by an index, and this walk passes them by.
    for row in connection.exec_driver_sql(f"PRAGMA integrity_check({_DAMAGES_TOLD})"):
        if row[0] != "ok":
            replay.find(Fault.DAMAGED, "database", str(row[0]))


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
    if seq in replay.published and replay.published[seq] != digest:
        replay.find(Fault.HEAD_DIFFERS, name, "is not the one whose hash was published")
    content = _content(row["details"])
    if content is None or not all(isinstance(text, str) for text in (kind, subject, row["actor"], previous, digest)):
        replay.find(Fault.MALFORMED, name, "its columns are not what an event holds")
        return
    try:
        hashed = {column: row[column] for column in ("actor", "at", "kind", "previous", "seq", "subject")}
        expected = hashlib.sha256(rfc8785.dumps(hashed | {"details": content})).hexdigest()
    except (rfc8785.CanonicalizationError, UnicodeError):
        replay.find(Fault.MALFORMED, name, "its columns have no canonical form")
        return
    if expected != digest:
        replay.find(Fault.WRONG_HASH, name, "its hash is not that of its content")
    if kind.startswith("proposal:"):
        _replay_proposal(replay, name, subject, content)
    if not _replay_digests(replay, kind, subject, content):
        replay.find(Fault.MALFORMED, name, "what it says of rows or texts is not what an event says")


def _replay_digests(replay: _Replay, kind: str, subject: str, content: dict[str, Any]) -> bool:
    """Lay what an event says of rows and texts over what those before it said; False where it says nonsense."""
    match kind:
        case "journal:adopt":
            return _replay_adopted(replay, content)
        case "texts:forget":
            # Until version 2 a number stood here; what was forgotten then has no digest that could be missed.
            gone = content.get("proposals")
            for proposal_id in gone if isinstance(gone, list) else ():
                replay.texts.pop(str(proposal_id), None)
            return True
        case _:
            return _replay_row(replay, content.get("row")) and _replay_texts(replay, subject, content.get("texts", {}))


def _replay_adopted(replay: _Replay, content: dict[str, Any]) -> bool:
    table, digests = content.get("table"), content.get("rows")
    if not _are_digests(digests):
        return False
    if table == "texts":
        for name, digest in digests.items():
            proposal_id, _, kind = name.partition(":")
            replay.texts.setdefault(proposal_id, {})[kind] = digest
        return True
    if not isinstance(table, str) or table not in replay.covered:
        return False
    replay.digests[table] |= digests
    return True


def _replay_row(replay: _Replay, row: object) -> bool:
    if row is None:
        return True
    if not isinstance(row, dict):
        return False
    table, key, digest = row.get("table"), row.get("key"), row.get("sha256")
    if not isinstance(table, str) or table not in replay.covered:
        return False
    if not isinstance(key, str) or not (digest is None or isinstance(digest, str)):
        return False
    replay.digests[table].pop(key, None)
    if digest is not None:
        replay.digests[table][key] = digest
    return True


def _replay_texts(replay: _Replay, subject: str, texts: object) -> bool:
    if not _are_digests(texts):
        return False
    if texts:
        replay.texts.setdefault(subject, {}).update(texts)
    return True


def _are_digests(value: object) -> TypeGuard[dict[str, str]]:
    return isinstance(value, dict) and all(isinstance(digest, str) for digest in value.values())


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
    row |= {"state": content.get("to"), "version": content.get("version")}


def _verify_proposals(connection: Connection, replay: _Replay) -> None:
    columns = schema.proposals.columns.keys()
    for row in _rows(connection, "SELECT * FROM proposals ORDER BY id"):
        found = dict(row)
        expected = replay.rows.pop(found["id"], None)
        if expected is None:
            replay.find(Fault.ROW_UNRECORDED, str(found["id"]), "stands in the table without an event")
        elif different := [column for column in columns if found.get(column, _GONE) != expected.get(column)]:
            replay.find(Fault.ROW_DIFFERS, str(found["id"]), f"not as its events left it: {', '.join(different)}")
    for proposal_id in replay.rows:
        replay.find(Fault.ROW_MISSING, proposal_id, "has events and no row")


def _verify_rows(connection: Connection, replay: _Replay, table: str, key: str) -> None:
    rows = _rows(connection, f"SELECT * FROM {table} ORDER BY {key}")  # noqa: S608 - a table of ours
    found = ((str(row[key]), _digest(coverage.row_digest, row)) for row in rows)
    _compare(replay, table, found, replay.digests[table])


def _verify_texts(connection: Connection, replay: _Replay) -> None:
    rows = _rows(connection, "SELECT proposal, kind, text FROM texts ORDER BY proposal, kind")
    found = ((f"{row['proposal']}:{row['kind']}", _digest(coverage.text_digest, row["text"])) for row in rows)
    expected = {f"{name}:{kind}": digest for name, texts in replay.texts.items() for kind, digest in texts.items()}
    _compare(replay, "texts", found, expected)


def _compare(replay: _Replay, table: str, found: Iterator[tuple[str, str | None]], expected: dict[str, str]) -> None:
    for key, digest in found:
        stated = expected.pop(key, None)
        if stated is None:
            replay.find(Fault.ROW_UNRECORDED, f"{table} {key}", "stands in the table without an event")
        elif stated != digest:
            replay.find(Fault.ROW_DIFFERS, f"{table} {key}", "not as the last event about it left it")
    for key in expected:
        replay.find(Fault.ROW_MISSING, f"{table} {key}", "has an event and no row")


def _digest(digest: Callable[[Any], str], content: object) -> str | None:
    try:
        return digest(content)
    except (rfc8785.CanonicalizationError, UnicodeError, AttributeError):
        return None

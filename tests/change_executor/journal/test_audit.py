"""What an honest journal cannot hold is found, by ours and by the verifier that the documentation prints."""

from __future__ import annotations

import hashlib
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import rfc8785
from sqlalchemy.exc import DBAPIError

from change_executor.audit import MAX_FINDINGS, Fault, Verification, verify
from change_executor.journal import chain, schema
from change_executor.journal.moves import Intent, MoveKind, begin
from change_executor.legible import any_octets
from change_executor.lifecycle import Event
from change_executor.switch import press_stop, release_stop
from tests.change_executor.journal.clock import MovableClock, new_proposal

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from change_executor.journal.journal import Journal

DOCUMENT = Path(__file__).parents[3] / "docs" / "journal.md"


@pytest.fixture
def lived(journal: Journal, clock: MovableClock) -> Journal:
    """A journal with a day's life: four proposals on different ways, the stop button, a name with an accent."""
    for number in range(1, 5):
        with journal.writing() as writing:
            writing.create(new_proposal(number))
        clock.advance(minutes=3)
    press_stop(journal, "person:zoë")
    release_stop(journal, "person:zoë")
    with journal.writing() as writing:
        writing.change("P" + "1".zfill(20), "waiting", "executor", waiting_code="x", waiting_since=writing.now)
    with journal.writing() as writing:
        writing.advance("P" + "1".zfill(20), Event.APPROVE, "person:ada", decided_by="ada", decided_at=writing.now)
        writing.advance("P" + "2".zfill(20), Event.REJECT, "person:ada", decided_by="ada")
        writing.advance("P" + "3".zfill(20), Event.ABSENT, "executor", outcome_code="absent", copies_left=0)
    return journal


def verification(journal: Journal) -> Verification:
    with journal.reading() as connection:
        return verify(connection)


def faults(journal: Journal) -> set[tuple[Fault, str]]:
    return {(finding.fault, finding.subject) for finding in verification(journal).findings}


def tamper(url: str, *statements: str) -> None:
    """What somebody with the file in hand can do."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
        connection.execute("DROP TRIGGER events_refuse_update")
        connection.execute("DROP TRIGGER events_refuse_delete")
        for statement in statements:
            connection.execute(statement)


def independent(url: str) -> subprocess.CompletedProcess[str]:
    program = re.search(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert program is not None
    return subprocess.run(
        [sys.executable, "-I", "-c", program[1], url.removeprefix("sqlite:///")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("kind", "details"),
    [
        ("move:intended", {"row": [1]}),
        ("move:intended", {"row": {"table": "events", "key": "1", "sha256": "a"}}),
        ("move:intended", {"row": {"table": "moves", "key": 1, "sha256": "a"}}),
        ("move:intended", {"row": {"table": "moves", "key": [], "sha256": "a"}}),
        ("move:intended", {"row": {"table": [], "key": "1", "sha256": "a"}}),
        ("move:intended", {"row": {"table": "moves", "key": "1", "sha256": ["a"]}}),
        ("text:keep", {"texts": {"reason": 1}}),
        ("journal:adopt", {"table": [], "rows": {}}),
        ("journal:adopt", {"table": "moves", "rows": [1]}),
        ("journal:adopt", {"table": "events", "rows": {}}),
        ("proposal:evidence", {"version": 2, "set": {"evidence": [1]}}),
        ("proposal:wait", {"version": "a"}),
        ("proposal:wait", {"version": True}),
    ],
)
def test_an_event_that_is_rightly_hashed_and_says_nonsense_is_a_finding(
    journal: Journal, kind: str, details: dict[str, Any]
) -> None:
    with journal.writing() as writing:
        writing.append(kind, "P" + "1".zfill(20), "executor", details)
    assert {(Fault.MALFORMED, "event 1")} == faults(journal)


def test_an_empty_journal_verifies(journal: Journal, url: str) -> None:
    assert Verification(0, "0" * 64, ()) == verification(journal)
    assert (0, f"0 events, head {'0' * 64}\n") == (independent(url).returncode, independent(url).stdout)


def test_an_honest_journal_verifies_and_both_verifiers_name_one_head(lived: Journal, url: str) -> None:
    found = verification(lived)
    assert (10, ()) == (found.events, found.findings)
    assert f"10 events, head {found.head}\n" == independent(url).stdout


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE events SET actor = 'person:eve' WHERE seq = 5", {(Fault.WRONG_HASH, "event 5")}),
        ("UPDATE events SET at = at + 1 WHERE seq = 5", {(Fault.WRONG_HASH, "event 5")}),
        ("UPDATE events SET kind = 'stop:release' WHERE seq = 5", {(Fault.WRONG_HASH, "event 5")}),
        ("UPDATE events SET subject = 'stap' WHERE seq = 5", {(Fault.WRONG_HASH, "event 5")}),
        ("UPDATE events SET details = '{\"a\":1}' WHERE seq = 5", {(Fault.WRONG_HASH, "event 5")}),
        ("UPDATE events SET details = ' {}' WHERE seq = 5", {(Fault.MALFORMED, "event 5")}),
        ("UPDATE events SET details = 'x' WHERE seq = 5", {(Fault.MALFORMED, "event 5")}),
        ("UPDATE events SET details = '{\"a\":NaN}' WHERE seq = 5", {(Fault.MALFORMED, "event 5")}),
        ("UPDATE events SET details = '{\"a\":1e999}' WHERE seq = 5", {(Fault.MALFORMED, "event 5")}),
        (
            "UPDATE events SET details = replace(hex(zeroblob(100000)), '00', '[') WHERE seq = 5",
            {(Fault.MALFORMED, "event 5")},
        ),
        ("UPDATE events SET actor = x'00ff' WHERE seq = 5", {(Fault.MALFORMED, "event 5")}),
        ("UPDATE events SET at = 'noon' WHERE seq = 5", {(Fault.WRONG_HASH, "event 5")}),
        ("UPDATE events SET at = x'00' WHERE seq = 5", {(Fault.MALFORMED, "event 5")}),
        (
            "UPDATE events SET hash = 'f' WHERE seq = 5",
            {(Fault.WRONG_HASH, "event 5"), (Fault.BROKEN_LINK, "event 6")},
        ),
        (
            "UPDATE events SET previous = 'f' WHERE seq = 5",
            {(Fault.WRONG_HASH, "event 5"), (Fault.BROKEN_LINK, "event 5")},
        ),
        ("DELETE FROM events WHERE seq = 5", {(Fault.GAP, "event 6"), (Fault.BROKEN_LINK, "event 6")}),
        (
            "DELETE FROM events WHERE seq = 1",
            {
                (Fault.GAP, "event 2"),
                (Fault.BROKEN_LINK, "event 2"),
                (Fault.ROW_UNRECORDED, "P" + "1".zfill(20)),
                (Fault.WRONG_STEP, "event 7"),
                (Fault.WRONG_STEP, "event 8"),
            },
        ),
    ],
)
def test_an_event_that_was_changed_or_removed_is_found(
    lived: Journal, url: str, statement: str, expected: set[tuple[Fault, str]]
) -> None:
    tamper(url, statement)
    found = faults(lived)
    if "seq = 1" in statement:
        # The proposal's life is then told from its middle.
        assert {(Fault.GAP, "event 2"), (Fault.BROKEN_LINK, "event 2"), (Fault.WRONG_STEP, "event 7")} <= found
    else:
        assert expected == found
    assert independent(url).returncode == 1


def test_the_last_event_removed_leaves_a_row_without_its_event(lived: Journal, url: str) -> None:
    tamper(url, "DELETE FROM events WHERE seq = 10")
    assert {(Fault.ROW_DIFFERS, "P" + "3".zfill(20))} == faults(lived)


def test_events_that_changed_places_are_found(lived: Journal, url: str) -> None:
    tamper(
        url,
        "UPDATE events SET seq = 99 WHERE seq = 2",
        "UPDATE events SET seq = 2 WHERE seq = 3",
        "UPDATE events SET seq = 3 WHERE seq = 99",
    )
    found = {fault for fault, _ in faults(lived)}
    assert {Fault.BROKEN_LINK, Fault.WRONG_HASH} <= found
    assert independent(url).returncode == 1


def test_an_inserted_event_is_found_even_when_its_own_hash_is_right(lived: Journal, url: str) -> None:
    details: dict[str, Any] = {"from": "pending", "to": "approved", "version": 2, "set": {}}
    forged = chain.event_hash(
        seq=11, at=1, kind="proposal:approve", subject="P" + "4".zfill(20), actor="person:eve", details=details,
        previous="0" * 64,
    )  # fmt: skip
    tamper(
        url,
        f"INSERT INTO events VALUES (11, 1, 'proposal:approve', 'P{4:020d}', 'person:eve', "
        f"'{rfc8785.dumps(details).decode()}', '{'0' * 64}', '{forged}')",
    )
    assert {(Fault.BROKEN_LINK, "event 11"), (Fault.ROW_DIFFERS, f"P{4:020d}")} == faults(lived)


@pytest.mark.parametrize(
    "change",
    [
        "state = 'approved'",
        "version = 9",
        "to_role = 'escalate'",
        "email_id = 'Mx'",
        "agent = 'eve'",
        "decided_by = 'ada'",
        "expires_at = expires_at + 1",
        "shown = 'f'",
    ],
)
def test_a_proposal_that_is_not_as_its_events_left_it_is_found(lived: Journal, url: str, change: str) -> None:
    tamper(url, f"UPDATE proposals SET {change} WHERE id = 'P{4:020d}'")
    assert {(Fault.ROW_DIFFERS, f"P{4:020d}")} == faults(lived)


def test_a_proposal_removed_or_slipped_in_is_found(lived: Journal, url: str) -> None:
    tamper(
        url,
        f"UPDATE proposals SET id = 'P{7:020d}' WHERE id = 'P{4:020d}'",
    )
    assert {(Fault.ROW_MISSING, f"P{4:020d}"), (Fault.ROW_UNRECORDED, f"P{7:020d}")} == faults(lived)


@pytest.fixture
def moved(journal: Journal) -> Journal:
    """A journal with a proposal that was looked at and for which a move was intended."""
    seen = {
        "id": 1, "proposal": f"P{1:020d}", "made_at": journal.now(), "uidvalidity": 7, "uid": 3, "octets_sha256": "aa",
        "size": 9, "internaldate": "2026-11-29T12:00:00Z", "copies": 1, "reading_version": "1", "reading_sha256": "bb",
    }  # fmt: skip
    intent = Intent(
        proposal=f"P{1:020d}", kind=MoveKind.MOVE, credential="move", source_mailbox="Incoming", source_uidvalidity=7,
        source_uid=3, target_mailbox="Done", target_uidvalidity=8, target_uidnext=5, octets_sha256="aa", size=9,
        internaldate="2026-11-29T12:00:00Z",
    )  # fmt: skip
    with journal.writing() as writing:
        writing.create(new_proposal(1))
        digests = {"uidvalidity": 7, "uid": 3, "sha256": "aa", "copies": 1, "readingSha256": "bb"}
        writing.connection.execute(schema.evidence.insert().values(**seen))
        writing.change(intent.proposal, "evidence", "executor", digests, evidence=1)
        begin(writing, intent)
    assert () == verification(journal).findings
    return journal


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE evidence SET uid = 4", {(Fault.ROW_DIFFERS, "evidence 1")}),
        ("UPDATE evidence SET octets_sha256 = 'cc'", {(Fault.ROW_DIFFERS, "evidence 1")}),
        # The same digits as octets match nothing any more.
        ("UPDATE evidence SET octets_sha256 = x'aa'", {(Fault.ROW_DIFFERS, "evidence 1")}),
        ("UPDATE moves SET source_uid = 4", {(Fault.ROW_DIFFERS, "moves 1")}),
        ("UPDATE moves SET target_uidnext = 4", {(Fault.ROW_DIFFERS, "moves 1")}),
        ("DELETE FROM moves", {(Fault.ROW_MISSING, "moves 1")}),
        ("UPDATE moves SET id = 2", {(Fault.ROW_MISSING, "moves 1"), (Fault.ROW_UNRECORDED, "moves 2")}),
    ],
)
def test_what_was_looked_at_and_what_was_intended_cannot_be_changed_unseen(
    moved: Journal, url: str, statement: str, expected: set[tuple[Fault, str]]
) -> None:
    tamper(url, statement)
    assert expected == faults(moved)


def test_an_index_that_hides_a_move_under_way_is_found(moved: Journal, url: str) -> None:
    # Every row stands where it stood; only looking it up finds nothing.
    page = "(SELECT rootpage FROM sqlite_schema WHERE name = 'empty')"
    tamper(
        url,
        "CREATE INDEX empty ON moves (id) WHERE proposal = ''",
        "PRAGMA writable_schema = ON",
        f"UPDATE sqlite_schema SET rootpage = {page} WHERE name = 'ix_moves_proposal'",
        "DELETE FROM sqlite_schema WHERE name = 'empty'",
        "PRAGMA schema_version = 999",
    )
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        looked_up, walked = (
            connection.execute(f"SELECT count(*) FROM moves {how} WHERE proposal = 'P{1:020d}'").fetchone()
            for how in ("INDEXED BY ix_moves_proposal", "NOT INDEXED")
        )
    assert ((0,), (1,)) == (looked_up, walked)
    assert {(Fault.DAMAGED, "database")} == faults(moved)


@pytest.mark.parametrize(
    ("statement", "fault", "kind"),
    [
        ("UPDATE texts SET text = 'an invoice'", Fault.ROW_DIFFERS, "reason"),
        ("UPDATE texts SET text = x'00ff'", Fault.ROW_DIFFERS, "reason"),
        ("DELETE FROM texts", Fault.ROW_MISSING, "reason"),
        (f"INSERT INTO texts VALUES ('P{1:020d}', 'decision_reason', 'x')", Fault.ROW_UNRECORDED, "decision_reason"),
    ],
)
def test_a_text_that_was_changed_taken_or_slipped_in_is_found(
    journal: Journal, url: str, statement: str, fault: Fault, kind: str
) -> None:
    with journal.writing() as writing:
        writing.create(new_proposal(1), {"reason": "a receipt"})
    assert set() == faults(journal)
    tamper(url, statement)
    assert {(fault, f"texts P{1:020d}:{kind}")} == faults(journal)


def test_a_chain_forged_from_a_point_on_shows_another_head(lived: Journal, url: str) -> None:
    """The chain alone cannot tell a whole rewriting; the heads that were published do."""
    before = verification(lived).head
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
        connection.execute("DROP TRIGGER events_refuse_update")
        rows = connection.execute("SELECT seq, at, kind, subject, actor, details FROM events ORDER BY seq").fetchall()
        previous = "0" * 64
        for seq, at, kind, subject, actor, details in rows:
            shifted = at + 1 if seq == 5 else at
            text = (
                b'{"actor":' + rfc8785.dumps(actor) + b',"at":' + str(shifted).encode() + b',"details":'
                + details.encode() + b',"kind":' + rfc8785.dumps(kind) + b',"previous":' + rfc8785.dumps(previous)
                + b',"seq":' + str(seq).encode() + b',"subject":' + rfc8785.dumps(subject) + b"}"
            )  # fmt: skip
            digest = hashlib.sha256(text).hexdigest()
            connection.execute(
                "UPDATE events SET at = ?, previous = ?, hash = ? WHERE seq = ?", (shifted, previous, digest, seq)
            )
            previous = digest
    assert set() == faults(lived)
    assert before != verification(lived).head


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("UPDATE events SET actor = CAST(X'ff1b' AS TEXT) WHERE seq = 3", Fault.WRONG_HASH),
        ("UPDATE events SET details = CAST(X'7bff7d' AS TEXT) WHERE seq = 3", Fault.MALFORMED),
        ("UPDATE events SET details = '[]' WHERE seq = 3", Fault.MALFORMED),
        (f"UPDATE events SET details = '{'[' * 10_000}' WHERE seq = 3", Fault.MALFORMED),
        ("UPDATE proposals SET agent = CAST(X'ff1b' AS TEXT)", Fault.ROW_DIFFERS),
        ("UPDATE proposals SET id = CAST(X'ff1b' AS TEXT) WHERE id LIKE '%1'", Fault.ROW_UNRECORDED),
        ("UPDATE switches SET by = CAST(X'ff1b' AS TEXT)", Fault.ROW_DIFFERS),
        ("ALTER TABLE proposals DROP COLUMN copies_left", Fault.ROW_DIFFERS),
    ],
)
def test_what_no_program_of_ours_writes_hides_nothing_and_is_told_as_letters(
    lived: Journal, url: str, statement: str, fault: Fault
) -> None:
    press_stop(lived, "person:zoë")
    tamper(url, statement, "UPDATE events SET at = at + 1 WHERE seq = 7")
    found = verification(lived).findings
    assert {fault, Fault.WRONG_HASH} <= {finding.fault for finding in found}
    assert all(finding.subject.isprintable() and finding.detail.isprintable() for finding in found)
    done = independent(url)
    assert (1, "") == (done.returncode, done.stderr)
    assert "event 7" in done.stdout.splitlines()


def test_findings_are_bounded(journal: Journal, url: str) -> None:
    with journal.writing() as writing:
        for _ in range(150):
            writing.append("test:event", "x", "operator")
    tamper(url, "UPDATE events SET actor = 'eve'")
    assert MAX_FINDINGS == len(verification(journal).findings)
    assert verification(journal).events == 150


def test_texts_that_are_no_text_are_read_so_while_somebody_looks_and_not_after(journal: Journal) -> None:
    def said(connection: Connection) -> str:
        return str(connection.exec_driver_sql("SELECT CAST(X'ff' AS TEXT)").scalar_one())

    with journal.reading() as connection:
        with any_octets(connection):
            assert "\udcff" == said(connection)
        with pytest.raises(DBAPIError):
            said(connection)

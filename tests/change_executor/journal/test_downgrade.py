"""The journal taken back to older tables: nothing that happened is lost, nothing moves unseen, nobody gains power."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from change_executor.audit import verify
from change_executor.backing_up import backup_journal, restore_journal
from change_executor.downgrading import Downgraded, downgrade_journal, found_revision, preview_downgrade
from change_executor.holding_back import HeldBack
from change_executor.journal import coverage, migrating, migrations, moves
from change_executor.journal.engine import reader_engine, writer_engine
from change_executor.journal.journal import read_proposal
from change_executor.journal.open import open_journal
from change_executor.review.links import new_link
from change_executor.review.people import Role, add_person, change_role, remove_person
from change_executor.review.sessions import How, begin_session, find_session
from change_executor.worker import take_worker_lock
from shared.revisions import DowngradeRefused
from shared.settings import ConfigurationError
from tests.change_executor.journal.clock import MovableClock, new_proposal
from tests.change_executor.journal.filled import STEPS, WITHOUT_INTENT, filled
from tests.change_executor.journal.first_version import first_version
from tests.change_executor.settings import settings_in

if TYPE_CHECKING:
    from change_executor.config import ExecutorSettings

Rows = dict[str, list[tuple[Any, ...]]]
# From here on the way leads back; what 0001 left uncovered no chain could tell.
REVISIONS = [revision.number for revision in migrations.REVISIONS]
BACK = REVISIONS[1:-1]
# What a downgrade says, and what came of it: the rest is as it was.
SAID = {"events", "alembic_version"}


@pytest.fixture
def settings(tmp_path: Path) -> ExecutorSettings:
    return settings_in(tmp_path)


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    return tmp_path / "copies"


def at_revision(path: Path, number: str, clock: MovableClock) -> None:
    """Bring a journal to a revision, as the release of then did when it opened it."""
    engine = writer_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        migrating.upgrade(connection, clock(), number)
    engine.dispose()


def tables(path: Path) -> list[tuple[Any, ...]]:
    """Every table, index, trigger and view, with the words that made it and what SQLite makes of them."""
    with contextlib.closing(sqlite3.connect(path)) as raw:
        made = [
            (kind, name, " ".join((sql or "").split()).replace(" ,", ","))
            for kind, name, sql in raw.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name")
        ]
        asked = ("table_xinfo", "index_list", "foreign_key_list")
        understood = [
            # In whichever order the indexes were made.
            (name, what, *(row[1:] if what == "index_list" else row))
            for kind, name, _ in made
            if kind == "table"
            for what in asked
            for row in raw.execute(f"SELECT * FROM pragma_{what}(?)", (name,))
        ]
    return sorted([*made, *understood], key=repr)


def rows(path: Path) -> Rows:
    with contextlib.closing(sqlite3.connect(path)) as raw:
        names = [name for (name,) in raw.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: sorted(raw.execute(f"SELECT * FROM {name}"), key=repr) for name in names}


def verified(path: Path, published: dict[int, str]) -> dict[int, str]:
    """The head of a journal of any covered revision, which verifies and has every head that was told before."""
    there = rows(path).keys()
    engine = reader_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        covered = {table: key for table, key in coverage.COVERED.items() if table in there}
        found = verify(connection, published, covered=covered)
    engine.dispose()
    assert () == found.findings
    return published | {found.events: found.head}


def refused(settings: ExecutorSettings, to: str, copies: Path, clock: MovableClock) -> DowngradeRefused:
    """A refusal, in trying and in earnest, that leaves the journal as it is."""
    path = Path(settings.journal.url.removeprefix("sqlite:///"))
    before, copied = rows(path), set(copies.glob("*"))
    with pytest.raises(DowngradeRefused) as tried:
        preview_downgrade(settings, to, clock)
    with pytest.raises(DowngradeRefused) as done:
        downgrade_journal(settings, to, copies, clock)
    assert tried.value.code == done.value.code
    assert before == rows(path)
    assert not copies.exists() or copied == set(copies.iterdir())
    return done.value


def test_a_journal_goes_to_every_revision_and_back_and_up_again_with_all_that_it_holds(
    tmp_path: Path, settings: ExecutorSettings, copies: Path, clock: MovableClock
) -> None:
    path, fresh = tmp_path / "journal.db", tmp_path / "fresh.db"
    first_version(path)
    made: dict[str, list[tuple[Any, ...]]] = {}
    held: dict[str, Rows] = {}
    published: dict[int, str] = {}
    for number in REVISIONS[1:]:
        at_revision(path, number, clock)
        at_revision(fresh, number, clock)
        made[number], held[number] = tables(fresh), rows(path)
        assert made[number] == tables(path)
        published = verified(path, published)
    for number in reversed(BACK):
        events = rows(path)["events"]
        clock.advance(minutes=1)
        done = downgrade_journal(settings, number, copies, clock)
        assert (REVISIONS[REVISIONS.index(number) + 1], number) == (done.before, done.after)
        # Of this step alone, also where the journal came from further up.
        assert {"0004": 1, "0003": 1, "0002": 2}[number] == len(done.lost)
        assert number == found_revision(settings)
        assert made[number] == tables(path)
        found = rows(path)
        assert [(number,)] == found["alembic_version"]
        assert {name: found[name] for name in found.keys() - SAID} == {
            name: held[number][name] for name in found.keys() - SAID
        }
        # History is added to, and nothing of it is another one.
        assert set(events) < set(found["events"])
        published = verified(path, published)
    for number in REVISIONS[2:]:
        at_revision(path, number, clock)
        assert made[number] == tables(path)
        found = rows(path)
        assert all(held[number][name] == found[name] for name in found.keys() - SAID)
        published = verified(path, published)


@pytest.mark.parametrize("number", BACK)
def test_the_oldest_that_can_be_reached_is_reached_in_one_command_too(
    tmp_path: Path, settings: ExecutorSettings, copies: Path, clock: MovableClock, number: str
) -> None:
    at_revision(tmp_path / "fresh.db", number, clock)
    with contextlib.closing(filled(settings, clock)):
        pass
    downgrade_journal(settings, number, copies, clock)
    assert tables(tmp_path / "fresh.db") == tables(tmp_path / "journal.db")
    verified(tmp_path / "journal.db", {})
    opened = open_journal(settings.journal.url, clock)
    with contextlib.closing(opened) as journal, journal.reading() as connection:
        assert () == verify(connection).findings


def test_nothing_moves_unseen_after_it_and_everybody_signs_in_anew(
    settings: ExecutorSettings, copies: Path, clock: MovableClock
) -> None:
    with contextlib.closing(filled(settings, clock)) as journal:
        with journal.writing() as writing:
            cookie = begin_session(writing, "ada", How.PASSWORD, secrets.token_bytes)
        new_link(journal, "bob", secrets.token_bytes)
    clock.advance(seconds=1)
    done = downgrade_journal(settings, "0004", copies, clock)
    # 2, 4 and 9 are asked for again: of 4 nothing was sent. 3 and 6 may have been; 10 cannot have been moved back.
    assert HeldBack(asked_again=3, doubtful=2) == done.held
    # As the older release finds it; here the newer one looks.
    with contextlib.closing(open_journal(settings.journal.url, clock)) as journal, journal.reading() as connection:
        found = {number: read_proposal(connection, new_proposal(number).id) for number in STEPS}
        states = "pending pending doubtful pending applied undo_doubtful rejected doubtful pending applied"
        assert states == " ".join(proposal.state.value for proposal in found.values())
        for number in (2, WITHOUT_INTENT, 9):
            asked = found[number]
            assert (None, None, None, None) == (asked.decided_by, asked.shown, asked.evidence, asked.policy_version)
            assert "restored" == asked.outcome_code
        assert found[1].evidence is not None
        undo = moves.under_way(connection, found[6].id)
        assert undo is not None
        assert ("Processed", 46, "Incoming") == (
            undo.intent.source_mailbox,
            undo.intent.source_uid,
            undo.intent.target_mailbox,
        )
        # What came back since has a larger UID than the message had.
        assert (8, 7, 4) == (
            undo.intent.source_uidvalidity,
            undo.intent.target_uidvalidity,
            undo.intent.target_uidnext,
        )
        assert [("stop", "operator")] == list(connection.exec_driver_sql('SELECT name, "by" FROM switches'))
        assert [(None,)] != list(connection.exec_driver_sql("SELECT spent_at FROM links"))
        told = connection.exec_driver_sql("SELECT kind, details FROM events ORDER BY seq DESC LIMIT 1").one()
        details = json.loads(told.details)
        assert () == verify(connection).findings
    assert find_session(journal, cookie) is None
    assert "journal:downgrade" == told.kind
    assert done.copy is not None
    assert {"from": "0005", "to": "0004", "askedAgain": 3, "doubtful": 2} == details


def test_the_copy_that_is_made_first_is_the_journal_as_it_was(
    tmp_path: Path, settings: ExecutorSettings, copies: Path, clock: MovableClock
) -> None:
    filled(settings, clock).close()
    path = tmp_path / "journal.db"
    before = rows(path)
    done = downgrade_journal(settings, "0002", copies, clock)
    assert done.copy is not None
    assert before == rows(done.copy / "journal.db")
    for each in tmp_path.glob("journal.db*"):
        each.unlink()
    # It goes back by `restore`, which the downgraded one does not: it is what it was.
    published = {len(before["events"]): before["events"][-1][-1]}
    restore_journal(settings, done.copy, published, clock)
    assert "0005" == found_revision(settings)


def test_trying_says_what_would_be_lost_and_changes_nothing_while_an_executor_runs(
    tmp_path: Path, settings: ExecutorSettings, copies: Path, clock: MovableClock
) -> None:
    with contextlib.closing(filled(settings, clock)) as running:
        lock = take_worker_lock(settings.journal.url)
        before = rows(tmp_path / "journal.db")
        would = preview_downgrade(settings, "0002", clock)
        assert before == rows(tmp_path / "journal.db")
        with pytest.raises(ConfigurationError, match="another change-executor is running"):
            downgrade_journal(settings, "0002", copies, clock)
        assert before == rows(tmp_path / "journal.db")
        assert not copies.exists()
        with running.writing() as writing:
            writing.append("test:event", "x", "operator")
    os.close(lock)
    done = downgrade_journal(settings, "0002", copies, clock)
    assert (would.before, would.after, would.held, would.lost) == (done.before, done.after, done.held, done.lost)
    assert any("roles of 2 people" in each for each in done.lost)
    assert not list(tmp_path.glob(".downgrade-*"))


def test_where_roles_are_lost_nobody_gains_power(settings: ExecutorSettings, copies: Path, clock: MovableClock) -> None:
    with contextlib.closing(filled(settings, clock)) as journal:
        for name in ("cleo", "dan"):
            add_person(journal, name)
        found = refused(settings, "0002", copies, clock)
        assert "people_would_gain_power" == found.code
        assert "cleo, dan" in found.detail
        assert "change-executor user remove" in found.fix
        # A step that keeps roles is none of it.
        assert preview_downgrade(settings, "0003", clock).lost
        with journal.writing() as writing:
            remove_person(writing, "cleo", "operator")
        assert "people_would_gain_power" == refused(settings, "0002", copies, clock).code
        with journal.writing() as writing:
            change_role(writing, "dan", Role.ADMINISTRATOR, "operator")
    assert "0002" == downgrade_journal(settings, "0002", copies, clock).after


@pytest.mark.parametrize("is_there_still", [True, False])
def test_a_journal_that_tells_of_passkeys_is_not_given_to_a_release_that_cannot_verify_it(
    settings: ExecutorSettings, copies: Path, clock: MovableClock, *, is_there_still: bool
) -> None:
    with contextlib.closing(filled(settings, clock)) as journal:
        with journal.writing() as writing:
            writing.connection.exec_driver_sql("INSERT INTO passkeys VALUES ('key', 'ada', 'cose', 0, 1, NULL)")
            writing.append("passkey:added", "key", "person:ada", {"person": "ada"})
        if not is_there_still:
            with journal.writing() as writing:
                writing.connection.exec_driver_sql("DELETE FROM passkeys")
                writing.append("passkey:removed", "key", "person:ada", {"person": "ada"})
    assert "passkeys_on_record" == refused(settings, "0002", copies, clock).code
    assert "0003" == downgrade_journal(settings, "0003", copies, clock).after


def test_what_cannot_be_is_refused_by_its_name_with_nothing_changed(
    tmp_path: Path, settings: ExecutorSettings, copies: Path, clock: MovableClock
) -> None:
    nowhere = settings_in(tmp_path / "nowhere")
    with pytest.raises(DowngradeRefused, match="no_journal"):
        downgrade_journal(nowhere, "0004", copies, clock)
    filled(settings, clock).close()
    path = tmp_path / "journal.db"
    assert "chain_would_end" == refused(settings, "0001", copies, clock).code
    for unknown in ("base", "-1", "0006", "head", "", "4"):
        assert "unknown_revision" == refused(settings, unknown, copies, clock).code
    assert Downgraded("0005", "0005") == downgrade_journal(settings, "0005", copies, clock)
    downgrade_journal(settings, "0003", copies, clock)
    clock.advance(seconds=1)
    assert "already_older" == refused(settings, "0004", copies, clock).code
    with contextlib.closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE alembic_version SET version_num = '9999'")
    newer = refused(settings, "0004", copies, clock)
    assert "newer_program" == newer.code
    assert "change-executor downgrade --to" in newer.fix
    with contextlib.closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("DROP TABLE alembic_version")
    assert "no_tables" == refused(settings, "0004", copies, clock).code


def test_a_journal_that_does_not_verify_is_not_taken_back(
    tmp_path: Path, settings: ExecutorSettings, copies: Path, clock: MovableClock
) -> None:
    for change in (
        "UPDATE moves SET target_mailbox = 'Trash' WHERE id = 1",
        "UPDATE people SET password_hash = 'x' WHERE name = 'ada'",
        "INSERT INTO revoked_agents VALUES ('mailbot', 1, 'x')",
        "UPDATE texts SET text = 'another' WHERE kind = 'reason'",
    ):
        filled(settings, clock).close()
        with contextlib.closing(sqlite3.connect(tmp_path / "journal.db")) as raw, raw:
            raw.execute(change)
        found = refused(settings, "0004", copies, clock)
        assert "chain_broken" == found.code
        assert re.match("row_(differs|unrecorded): ", found.detail)


@pytest.mark.parametrize("number", BACK)
def test_a_failure_in_the_middle_leaves_the_journal_as_it_was(
    tmp_path: Path, settings: ExecutorSettings, copies: Path, clock: MovableClock, number: str
) -> None:
    filled(settings, clock).close()
    path = tmp_path / "journal.db"
    # The last thing that a step does is to say which revision it came to.
    trigger = (
        f"CREATE TRIGGER planted BEFORE UPDATE ON alembic_version WHEN new.version_num = '{number}' "
        "BEGIN SELECT RAISE(ABORT, 'planted'); END"
    )
    with contextlib.closing(sqlite3.connect(path)) as raw, raw:
        raw.execute(trigger)
    before = tables(path), rows(path)
    with pytest.raises(Exception, match="planted"):
        downgrade_journal(settings, number, copies, clock)
    assert before == (tables(path), rows(path))
    with contextlib.closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("DROP TRIGGER planted")
    clock.advance(seconds=1)
    assert number == downgrade_journal(settings, number, copies, clock).after
    verified(path, {})


def test_without_a_copy_nothing_is_taken_back(tmp_path: Path, settings: ExecutorSettings, clock: MovableClock) -> None:
    filled(settings, clock).close()
    before = rows(tmp_path / "journal.db")
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="cannot be used"):
        downgrade_journal(settings, "0004", tmp_path / "file", clock)
    assert before == rows(tmp_path / "journal.db")


def test_a_copy_of_an_older_revision_is_made_and_put_back_as_any(
    tmp_path: Path, settings: ExecutorSettings, copies: Path, clock: MovableClock
) -> None:
    filled(settings, clock).close()
    downgrade_journal(settings, "0003", copies, clock)
    clock.advance(seconds=1)
    copy = backup_journal(settings, copies, clock, None)
    for each in tmp_path.glob("journal.db*"):
        each.unlink()
    restore_journal(settings, copy, {}, clock)
    assert "0005" == found_revision(settings)


def test_every_revision_is_listed_with_its_release_and_is_the_last_of_one_file() -> None:
    files = sorted((Path(migrations.__file__).parent / "versions").glob("v*.py"))
    assert REVISIONS == [path.name[1:5] for path in files]
    assert migrations.HEAD == REVISIONS[-1]
    assert all(revision.release and revision.brought for revision in migrations.REVISIONS)

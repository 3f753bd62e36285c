"""A journal put back from a copy: whatever happened since, nothing moves again unseen."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import sqlite3
import threading
from typing import TYPE_CHECKING

import pytest

from change_executor import audit, checkpoints
from change_executor.backing_up import Restored, backup_journal, restore_journal
from change_executor.heads import Head
from change_executor.holding_back import hold_back_where_behind
from change_executor.journal import schema
from change_executor.journal.file import journal_path
from change_executor.journal.journal import is_stopped
from change_executor.journal.open import open_journal
from change_executor.lifecycle import Event
from change_executor.review.links import LinkRefused, new_link, spend_link
from change_executor.review.people import add_person
from change_executor.review.sessions import How, begin_session, find_session
from change_executor.switch import release_stop
from change_executor.worker import take_worker_lock
from shared.settings import ConfigurationError
from tests.change_executor.moving.workshop import QUIET_SECONDS, Workshop

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.servers.dovecot import Dovecot


def head(workshop: Workshop) -> dict[int, str]:
    with workshop.journal.reading() as connection:
        found = audit.verify(connection)
    return {found.events: found.head}


def lose_journal(workshop: Workshop) -> None:
    """What a broken disk does; what was is kept aside for the post-mortem."""
    workshop.journal.close()
    path = journal_path(workshop.settings.journal.url)
    for end in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + end).rename(path.with_name("lost" + end))


def restore(dovecot: Dovecot, folder: Path, copy: Path, published: dict[int, str]) -> tuple[Workshop, Restored]:
    """Restore into the folder of a lost journal, and open a workshop on it."""
    with contextlib.closing(Workshop(dovecot, folder / "unused")) as like:
        url = f"sqlite:///{folder / 'journal.db'}"
        settings = like.settings.model_copy(update={"journal": like.settings.journal.model_copy(update={"url": url})})
        done = restore_journal(settings, copy, published, like.clock)
    return Workshop(dovecot, folder), done


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    return tmp_path / "copies"


def backed_up(workshop: Workshop, copies: Path) -> Path:
    return backup_journal(workshop.settings, copies, workshop.clock, None)


def stopped(workshop: Workshop) -> bool:
    with workshop.journal.reading() as connection:
        return is_stopped(connection)


def make_workshop(dovecot: Dovecot, folder: Path, at: Callable[[Workshop], None], point: str) -> Workshop:
    """A workshop that does something once, at a checkpoint."""
    done: list[bool] = []

    def checkpoint(name: str) -> None:
        if name == point and not done:
            done.append(True)
            at(made)

    made = Workshop(dovecot, folder, checkpoint=checkpoint)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "unused").mkdir()
    return tmp_path


def test_what_was_approved_and_moved_since_has_to_be_decided_again(
    dovecot: Dovecot, folder: Path, copies: Path
) -> None:
    workshop = Workshop(dovecot, folder)
    proposal = workshop.approved(workshop.deliver())
    copy = backed_up(workshop, copies)
    workshop.apply.move(proposal)
    assert {"Processed": 1} == workshop.copies()
    # The owner moves it back by hand; with yesterday's approval it would go again.
    published = head(workshop)
    lose_journal(workshop)
    with dovecot.connect() as owner:
        owner.select("Processed")
        owner.uid("MOVE", "1", "Incoming")
    again, done = restore(dovecot, folder, copy, published)
    assert (True, 1, 0) == (done.is_behind, done.asked_again, done.doubtful)
    assert stopped(again)
    assert ("pending", "restored", None) == again.told(proposal)
    row = again.proposal(proposal)
    assert (None, None, None, None) == (row.decided_by, row.shown, row.evidence, row.policy_version)
    release_stop(again.journal, "operator")
    again.apply.recover()
    again.apply.move(proposal)
    assert {"Incoming": 1} == again.copies()
    with again.journal.reading() as connection:
        kinds = [row.kind for row in connection.execute(schema.events.select().order_by(schema.events.c.seq))]
        details = json.loads(
            connection.execute(schema.events.select().where(schema.events.c.kind == "journal:restore")).one().details
        )
    assert ["stop:press", "proposal:restore", "journal:restore"] == [
        kind for kind in kinds if kind in {"stop:press", "proposal:restore", "journal:restore"}
    ]
    assert (max(published), True) == (details["published"], details["behind"])
    again.close()


def test_g6_a_copy_that_somebody_put_back_by_hand_is_held_back_by_the_head_that_it_lacks(
    dovecot: Dovecot, folder: Path, copies: Path
) -> None:
    workshop = Workshop(dovecot, folder)
    proposal = workshop.approved(workshop.deliver())
    add_person(workshop.journal, "zoe")
    with workshop.journal.writing() as writing:
        cookie = begin_session(writing, "zoe", How.PASSWORD, secrets.token_bytes)
    copy = backed_up(workshop, copies)
    then = Head(*head(workshop).popitem())
    workshop.happen(proposal, Event.REJECT)
    now = Head(*head(workshop).popitem())
    lose_journal(workshop)
    shutil.copy(copy / "journal.db", folder / "journal.db")
    again = Workshop(dovecot, folder)
    assert not hold_back_where_behind(again.journal, then)
    assert "approved" == again.proposal(proposal).state.value
    assert find_session(again.journal, cookie) is not None
    assert hold_back_where_behind(again.journal, now)
    # It may have been ended since.
    assert find_session(again.journal, cookie) is None
    assert ("pending", "restored", None) == again.told(proposal)
    assert stopped(again)
    # Not the same event either, when its number has come.
    assert hold_back_where_behind(again.journal, Head(*head(again).popitem())._replace(head="f" * 64))
    again.close()


def test_a_move_that_was_under_way_is_looked_for(dovecot: Dovecot, folder: Path, copies: Path) -> None:
    taken: list[Path] = []
    workshop = make_workshop(
        dovecot, folder, lambda made: taken.append(backed_up(made, copies)), checkpoints.MOVE_BEFORE
    )
    proposal = workshop.approved(workshop.deliver())
    workshop.apply.move(proposal)
    assert ("applied", "moved", None) == workshop.told(proposal)
    published = head(workshop)
    lose_journal(workshop)
    again, done = restore(dovecot, folder, taken[0], published)
    assert (True, 0, 1) == (done.is_behind, done.asked_again, done.doubtful)
    assert "doubtful" == again.told(proposal)[0]
    again.reconcile.reconcile(proposal)
    assert ("applied", "moved", None) == again.told(proposal)
    assert {"Processed": 1} == again.copies()
    again.close()


@pytest.mark.parametrize("was_done", [True, False])
def test_an_undo_that_was_asked_for_is_looked_for(
    dovecot: Dovecot, folder: Path, copies: Path, *, was_done: bool
) -> None:
    workshop = Workshop(dovecot, folder)
    proposal = workshop.approved(workshop.deliver())
    workshop.apply.move(proposal)
    workshop.happen(proposal, Event.UNDO)
    copy = backed_up(workshop, copies)
    if was_done:
        workshop.apply.undo(proposal)
    published = {max(head(workshop)) + 1: "f" * 64}
    lose_journal(workshop)
    again, done = restore(dovecot, folder, copy, published)
    assert (True, 1) == (done.is_behind, done.doubtful)
    assert "undo_doubtful" == again.told(proposal)[0]
    # The command that put it back read the real machine's clock: here it counts anew, from the first look.
    again.reconcile.reconcile(proposal)
    again.clock.advance(seconds=QUIET_SECONDS + 1)
    again.reconcile.reconcile(proposal)
    expected = ("undone", "moved_back") if was_done else ("applied", "undo_did_not_happen")
    assert expected == again.told(proposal)[:2]
    assert {"Incoming" if was_done else "Processed": 1} == again.copies()
    again.close()


def test_a_copy_that_has_every_published_event_goes_on_as_it_was(dovecot: Dovecot, folder: Path, copies: Path) -> None:
    workshop = Workshop(dovecot, folder)
    proposal = workshop.approved(workshop.deliver())
    add_person(workshop.journal, "zoe")
    with workshop.journal.writing() as writing:
        cookie = begin_session(writing, "zoe", How.PASSWORD, secrets.token_bytes)
    link = new_link(workshop.journal, "zoe", secrets.token_bytes)
    assert find_session(workshop.journal, cookie) is not None
    published = head(workshop)
    copy = backed_up(workshop, copies)
    lose_journal(workshop)
    again, done = restore(dovecot, folder, copy, published)
    # A browser that was signed out since, or a link that was used, would open the page again.
    assert find_session(again.journal, cookie) is None
    with pytest.raises(LinkRefused), again.journal.writing() as writing:
        spend_link(writing, link, begin_anew=False)
    assert not done.is_behind
    assert not stopped(again)
    again.apply.move(proposal)
    assert ("applied", "moved", None) == again.told(proposal)
    again.close()


@pytest.mark.parametrize("published", [{}, {3: "0" * 63 + "1"}])
def test_without_a_head_or_with_another_one_it_counts_as_behind(
    dovecot: Dovecot, folder: Path, copies: Path, published: dict[int, str]
) -> None:
    workshop = Workshop(dovecot, folder)
    proposal = workshop.approved(workshop.deliver())
    copy = backed_up(workshop, copies)
    lose_journal(workshop)
    again, done = restore(dovecot, folder, copy, published)
    assert done.is_behind
    assert stopped(again)
    assert "pending" == again.told(proposal)[0]
    again.close()


def test_nothing_is_written_over_and_no_damaged_or_foreign_copy_is_taken(
    dovecot: Dovecot, folder: Path, copies: Path
) -> None:
    workshop = Workshop(dovecot, folder)
    copy = backed_up(workshop, copies)
    before = head(workshop)
    with pytest.raises(ConfigurationError, match="is there already"):
        restore_journal(workshop.settings, copy, {}, workshop.clock)
    assert before == head(workshop)
    with pytest.raises(ConfigurationError, match="is there already"):
        # The same second again.
        backed_up(workshop, copies)
    lose_journal(workshop)
    file = copy / "journal.db"
    octets = file.read_bytes()

    def refused(match: str) -> None:
        with pytest.raises(ConfigurationError, match=match):
            restore_journal(workshop.settings, copy, {}, workshop.clock)
        assert not journal_path(workshop.settings.journal.url).exists()
        assert not list(folder.glob("*.restoring*"))

    file.write_bytes(octets[:-1] + bytes([octets[-1] ^ 1]))
    refused("digest differs")
    file.write_bytes(octets)
    lock = take_worker_lock(workshop.settings.journal.url)
    refused("another change-executor is running")
    os.close(lock)
    manifest = copy / "manifest.json"
    text = manifest.read_text()
    manifest.write_text(text.replace('"change-executor"', '"agent-reader"'))
    refused("copy of agent-reader")
    manifest.write_text(text.replace('"version":"0', '"version":"9').replace('"version": "0', '"version": "9'))
    refused("tables of version 9")
    manifest.write_text(text.replace('"journal.db"', '"../journal.db"'))
    refused("is no copy")
    manifest.write_text("{")
    refused("is no copy")
    manifest.write_text(text)
    # Whoever writes a journal by hand cannot have it put back as one.
    with contextlib.closing(sqlite3.connect(file)) as raw, raw:
        raw.execute("INSERT INTO switches VALUES ('x', 1, 'y')")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    said = json.loads(text)
    said["files"][0] |= {"sha256": digest, "octets": file.stat().st_size}
    manifest.write_text(json.dumps(said))
    refused("no honest journal")


def test_a_copy_is_whole_while_the_journal_is_written_to_and_only_its_owner_can_read_it(
    dovecot: Dovecot, folder: Path, copies: Path
) -> None:
    workshop = Workshop(dovecot, folder)
    ending = threading.Event()

    def write() -> None:
        while not ending.is_set():
            with workshop.journal.writing() as writing:
                writing.append("test:event", "x", "operator")

    with workshop.journal.writing() as writing:
        writing.append("test:event", "x", "operator")
    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    made = []
    for _ in range(5):
        workshop.clock.advance(seconds=1)
        made.append(backed_up(workshop, copies))
    ending.set()
    for thread in threads:
        thread.join()
    assert 0o700 == copies.stat().st_mode & 0o7777
    counts = []
    for copy in made:
        assert {0o600} == {each.stat().st_mode & 0o7777 for each in copy.iterdir()}
        assert {"journal.db", "manifest.json"} == {each.name for each in copy.iterdir()}
        facts = json.loads((copy / "manifest.json").read_text())["facts"]
        opened = open_journal(f"sqlite:///{copy}/journal.db", workshop.clock)
        with contextlib.closing(opened) as journal, journal.reading() as connection:
            found = audit.verify(connection)
        assert () == found.findings
        assert (found.events, found.head) == (facts["events"], facts["head"])
        counts.append(found.events)
    assert sorted(counts) == counts
    workshop.close()
    kept = backup_journal(workshop.settings, copies, lambda: workshop.clock.now.replace(year=2027), 2)
    assert {made[-1], kept} == set(copies.iterdir())

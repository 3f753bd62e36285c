"""Sync into the real store: what a question then finds, and what a restart does not ask for again."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog

from agent_reader.imap.session import ReadOnlySession
from agent_reader.store.store import Store
from agent_reader.sync.run import Round, Sync
from shared.identity import email_id, message_digest
from tests.fakes.accounts import reader_account
from tests.servers.dovecot import Dovecot
from tests.servers.dovecot_config import MAILBOXES, NON_ASCII_MAILBOX

if TYPE_CHECKING:
    from pathlib import Path


def mail(subject: str) -> bytes:
    return f"Subject: {subject}\r\nMessage-ID: <{subject}@example.org>\r\n\r\nbody\r\n".encode()


def identity(subject: str) -> str:
    return email_id(message_digest(mail(subject)))


def one_round(dovecot: Dovecot, folder: Path) -> Round:
    """A round by a process that has just started: a store, a session and a sync of its own."""
    with contextlib.closing(Store(folder / "store", lambda: datetime.now(UTC))) as store:
        session = ReadOnlySession.open(reader_account(dovecot, folder))
        with contextlib.closing(session):
            return Sync(store.account("shop"), None, structlog.get_logger()).round(session)


def places(folder: Path, subject: str) -> list[tuple[int, int]]:
    with contextlib.closing(Store(folder / "store", lambda: datetime.now(UTC))) as store:
        return list(store.locate("shop", identity(subject)).copies)


def body_fetches(dovecot: Dovecot) -> int:
    return sum(b"BODY.PEEK" in line for line in dovecot.commands("reader"))


def test_everything_is_found_after_one_round_and_the_store_counts_it(dovecot: Dovecot, tmp_path: Path) -> None:
    dovecot.deliver("INBOX", mail("one"), ["\\Seen", "vip"])
    dovecot.deliver(NON_ASCII_MAILBOX, mail("one"))
    dovecot.deliver("Incoming", mail("two"))
    done = one_round(dovecot, tmp_path)
    assert Round(whole=True, taken_in=3, changed=0, vanished=0, set_aside=0, missing=()) == done
    with contextlib.closing(Store(tmp_path / "store", lambda: datetime.now(UTC))) as store:
        status = store.status("shop")
        assert set(MAILBOXES) == {mailbox.name for mailbox in store.account("shop").mailboxes()}
        located = store.locate("shop", identity("one"))
    assert (2, None, ()) == (status.messages, status.failure, status.set_aside)
    assert located.fresh
    snapshot = dovecot.snapshot()
    expected = {(snapshot[name].uidvalidity, 1) for name in ("INBOX", NON_ASCII_MAILBOX)}
    assert expected == set(located.copies)


def test_a_restart_fetches_nothing_again(dovecot: Dovecot, tmp_path: Path) -> None:
    for number in range(5):
        dovecot.deliver("INBOX", mail(str(number)))
    one_round(dovecot, tmp_path)
    fetched = body_fetches(dovecot)
    done = one_round(dovecot, tmp_path)
    assert Round(whole=True, taken_in=0, changed=0, vanished=0, set_aside=0, missing=()) == done
    assert fetched == body_fetches(dovecot)


def test_flags_moves_and_deletions_reach_the_store(dovecot: Dovecot, tmp_path: Path) -> None:
    for subject in ("moves", "goes", "stays"):
        dovecot.deliver("Incoming", mail(subject))
    one_round(dovecot, tmp_path)
    with dovecot.connect() as owner:
        owner.select("Incoming")
        owner._simple_command("UID", "MOVE", "1", "Processed")
        owner.uid("STORE", "2", "+FLAGS", "(\\Deleted)")
        owner.uid("EXPUNGE", "2")
        owner.uid("STORE", "3", "+FLAGS", "(\\Flagged)")
    done = one_round(dovecot, tmp_path)
    assert (True, 1, 1, 2) == (done.whole, done.taken_in, done.changed, done.vanished)
    snapshot = dovecot.snapshot()
    assert [(snapshot["Processed"].uidvalidity, 1)] == places(tmp_path, "moves")
    assert [] == places(tmp_path, "goes")
    assert [(snapshot["Incoming"].uidvalidity, 3)] == places(tmp_path, "stays")


def test_a_renamed_mailbox_and_another_uidvalidity_lose_nothing(dovecot: Dovecot, tmp_path: Path) -> None:
    with dovecot.rearranging() as owner:
        owner.create("Old")
        owner.create("Again")
    dovecot.deliver("Old", mail("in old"))
    dovecot.deliver("Again", mail("again"))
    one_round(dovecot, tmp_path)
    with dovecot.rearranging() as owner:
        owner.rename("Old", "New")
        owner.delete("Again")
        owner.create("Again")
    dovecot.deliver("Again", mail("again"))
    assert one_round(dovecot, tmp_path).whole
    snapshot = dovecot.snapshot()
    assert [(snapshot["New"].uidvalidity, 1)] == places(tmp_path, "in old")
    assert [(snapshot["Again"].uidvalidity, 1)] == places(tmp_path, "again")

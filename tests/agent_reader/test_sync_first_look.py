"""The first look: what threads the newest messages is known before the first of them comes in."""

from __future__ import annotations

import contextlib
import imaplib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import structlog

from agent_reader.imap.session import ReadOnlySession
from agent_reader.store.store import Store
from agent_reader.sync.first_look import first_look
from agent_reader.sync.run import Sync
from shared.identity import email_id, message_digest
from tests.fakes.accounts import reader_account
from tests.fakes.mirror import FakeMirror

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.dovecot import Dovecot

START = datetime(2026, 1, 1, tzinfo=UTC)


def mail(number: int, *references: int) -> bytes:
    named = " ".join(f"<{each}@x>" for each in references)
    return f"Message-ID: <{number}@x>\r\nSubject: S\r\nReferences: {named}\r\n\r\nbody {number}\r\n".encode()


def fill(dovecot: Dovecot, mailbox: str, numbers: range, at: datetime = START) -> None:
    with dovecot.connect() as owner:
        for number in numbers:
            date = imaplib.Time2Internaldate(at + timedelta(minutes=number))
            assert owner.append(mailbox, "", date, mail(number))[0] == "OK"


def nobody(mailbox: object, refusal: object) -> None:
    raise AssertionError(mailbox, refusal)


def test_two_messages_that_only_a_third_joins_are_one_thread_wherever_they_lie(
    dovecot: Dovecot, tmp_path: Path
) -> None:
    letters = [mail(1), mail(2), mail(3, 1, 2), mail(4)]
    for number, mailbox in enumerate(("Incoming", "Archive", "Sent", "INBOX")):
        dovecot.deliver(mailbox, letters[number])
    with contextlib.closing(Store(tmp_path / "store", lambda: datetime.now(UTC))) as store:
        mirror = store.account("shop")
        for _ in range(2):
            with contextlib.closing(ReadOnlySession.open(reader_account(dovecot, tmp_path))) as session:
                assert Sync(mirror, None, structlog.get_logger()).round(session).whole
        with store.snapshot("shop") as snapshot:
            ids = [email_id(message_digest(octets)) for octets in letters]
            found = snapshot.emails(ids)
    threads = [found[each].thread_id for each in ids]
    assert len(set(threads[:3])) == 1
    assert threads[3] not in threads[:3]
    said = [line for line in dovecot.commands("reader") if b"BODY.PEEK" in line]
    is_header = [b"HEADER.FIELDS" in line for line in said]
    assert is_header == sorted(is_header, reverse=True)
    assert sum(is_header) == 4


def test_the_newest_of_all_mailboxes_are_looked_at_and_not_more(dovecot: Dovecot, tmp_path: Path) -> None:
    fill(dovecot, "Archive", range(60))
    fill(dovecot, "INBOX", range(60, 90), START + timedelta(days=1))
    mirror = FakeMirror()
    mirror.threaded = False
    with contextlib.closing(ReadOnlySession.open(reader_account(dovecot, tmp_path))) as session:
        mirror.put_mailboxes(session.list_mailboxes())
        first_look(session, mirror, mirror.mailboxes(), nobody, most_headers=70)
    looked = {mailbox_id: uids for (mailbox_id, _), uids in mirror.headers.items()}
    assert set(range(1, 31)) == looked[mirror.named("INBOX").id]
    assert set(range(11, 61)) == looked[mirror.named("Archive").id]
    assert mirror.threaded


def test_an_interrupted_first_look_goes_on_where_it_was(dovecot: Dovecot, tmp_path: Path) -> None:
    fill(dovecot, "INBOX", range(120))
    mirror = FakeMirror()
    mirror.threaded = False
    with contextlib.closing(ReadOnlySession.open(reader_account(dovecot, tmp_path))) as session:
        mirror.put_mailboxes(session.list_mailboxes())
        inbox = [mailbox for mailbox in mirror.mailboxes() if mailbox.name == "INBOX"]
        first_look(session, mirror, inbox, nobody, most_headers=50)
        mirror.threaded = False
        first_look(session, mirror, inbox, nobody)
    (uids,) = mirror.headers.values()
    assert set(range(1, 121)) == uids
    asked = [line.split()[3] for line in dovecot.commands("reader") if b"HEADER.FIELDS" in line]
    assert [b"71:120", b"1:70"] == asked

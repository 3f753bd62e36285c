"""Sync against a real Dovecot: everything comes in, everything that happens is seen, and nothing is touched."""

from __future__ import annotations

import re
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from agent_reader.imap.session import ReadOnlySession
from agent_reader.sync.run import Round, Sync
from shared.imap_login import ImapFailure
from shared.reader_verbs import READER_TABLE
from tests.fakes.accounts import plain_account, reader_account
from tests.fakes.mirror import FakeMirror
from tests.servers.dovecot import Dovecot, quoted
from tests.servers.dovecot_config import MAILBOXES, NON_ASCII_MAILBOX
from tests.servers.proxy import BreakingProxy, BreakPoint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def mail(subject: str, body: str = "Hello.") -> bytes:
    return (
        f"From: a@example.org\r\nSubject: {subject}\r\nMessage-ID: <{subject}@example.org>\r\n\r\n{body}\r\n".encode()
    )


@contextmanager
def session_of(dovecot: Dovecot, folder: Path, **changes: Any) -> Iterator[ReadOnlySession]:
    session = ReadOnlySession.open(reader_account(dovecot, folder, **changes))
    try:
        yield session
    finally:
        session.close()


def new_sync(mirror: FakeMirror, **options: Any) -> Sync:
    return Sync(mirror, options.pop("allowed", None), structlog.get_logger(), **options)


def one_round(dovecot: Dovecot, folder: Path, mirror: FakeMirror, **options: Any) -> Round:
    with session_of(dovecot, folder) as session:
        return new_sync(mirror, **options).round(session)


def test_all_mailboxes_come_in_with_octets_flags_and_dates(dovecot: Dovecot, tmp_path: Path) -> None:
    berlin = datetime(2026, 3, 1, 9, 30, tzinfo=timezone(timedelta(hours=1)))
    dovecot.deliver("INBOX", mail("one"), ["\\Seen", "\\Flagged", "$Forwarded", "shop-vip"], berlin)
    dovecot.deliver(NON_ASCII_MAILBOX, mail("two"), [], datetime(2001, 1, 1, tzinfo=UTC))
    dovecot.deliver("Incoming", mail("three"))
    mirror = FakeMirror()

    done = one_round(dovecot, tmp_path, mirror)

    assert Round(whole=True, taken_in=3, changed=0, vanished=0, set_aside=0, missing=()) == done
    assert set(MAILBOXES) == mirror.names()
    assert {1: mail("one")} == mirror.octets("INBOX")
    assert {1: mail("two")} == mirror.octets(NON_ASCII_MAILBOX)
    message = mirror.named("INBOX").messages[1]
    assert frozenset({"\\Seen", "\\Flagged", "$Forwarded", "shop-vip"}) == message.state.flags
    assert berlin == message.internaldate
    assert timedelta(0) == message.internaldate.utcoffset()
    assert mail("one").partition(b"Hello.")[0] == message.header
    assert datetime(2001, 1, 1, tzinfo=UTC) == mirror.named(NON_ASCII_MAILBOX).messages[1].internaldate
    assert "\\Trash" in mirror.named("Trash").listed.attributes
    assert mirror.settled == 1


@pytest.mark.statement("44")
def test_reading_leaves_flags_recent_and_modseq_as_they_were(dovecot: Dovecot, tmp_path: Path) -> None:
    dovecot.deliver("INBOX", mail("unread"))
    dovecot.deliver("Incoming", mail("read"), ["\\Seen", "kept"])
    dovecot.deliver("Incoming", mail("large", ("x" * 76 + "\r\n") * 40_000))
    before = dovecot.snapshot()
    mirror = FakeMirror()

    one_round(dovecot, tmp_path, mirror)
    one_round(dovecot, tmp_path, mirror)

    assert before == dovecot.snapshot()
    assert before["INBOX"].messages[1].recent


@pytest.mark.statement("44")
def test_the_server_got_nothing_that_is_not_in_the_table(dovecot: Dovecot, tmp_path: Path) -> None:
    dovecot.deliver("INBOX", mail("one"))
    dovecot.deliver("Incoming", mail("large", ("x" * 76 + "\r\n") * 40_000))
    mirror = FakeMirror()
    account = reader_account(dovecot, tmp_path, tls="none", port=dovecot.port, ca_file=None)
    session = ReadOnlySession.open(account)
    new_sync(mirror).round(session)
    dovecot.deliver("INBOX", mail("two"))
    new_sync(mirror).round(session)
    session.close()

    lines = dovecot.commands("reader")

    tagged = [re.fullmatch(rb"[A-Z]+[0-9]+ (UID [A-Z]+|[A-Z]+)(?: (.*))?", line) for line in lines]
    commands = [(match[1], match[2] or b"") for match in tagged if match]
    assert [line for line, match in zip(lines, tagged, strict=True) if not match and b" " in line] == []
    assert [command for command in commands if not READER_TABLE.permits(*command)] == []
    said = {verb for verb, _ in commands}
    assert {b"AUTHENTICATE", b"EXAMINE", b"UID FETCH", b"UID SEARCH", b"LIST"} <= said
    assert said.isdisjoint({b"SELECT", b"CLOSE", b"LOGIN"})


def test_new_changed_and_vanished_messages_are_seen_by_the_next_round(dovecot: Dovecot, tmp_path: Path) -> None:
    for subject in ("stays", "gets a flag", "goes"):
        dovecot.deliver("INBOX", mail(subject))
    mirror = FakeMirror()
    sync = new_sync(mirror)
    with session_of(dovecot, tmp_path) as session:
        sync.round(session)
        assert sync.round(session) == Round(whole=True, taken_in=0, changed=0, vanished=0, set_aside=0, missing=())
        with dovecot.connect() as owner:
            owner.select("INBOX")
            owner.uid("STORE", "2", "+FLAGS", "(\\Answered later)")
            owner.uid("STORE", "3", "+FLAGS", "(\\Deleted)")
            owner.uid("EXPUNGE", "3")
        dovecot.deliver("INBOX", mail("new"))

        done = sync.round(session)

    assert Round(whole=True, taken_in=1, changed=1, vanished=1, set_aside=0, missing=()) == done
    inbox = mirror.named("INBOX").messages
    assert {1, 2, 4} == inbox.keys()
    assert frozenset({"\\Answered", "later"}) == inbox[2].state.flags
    assert len(mirror.destroyed) == 1


def test_a_moved_message_is_never_destroyed(dovecot: Dovecot, tmp_path: Path) -> None:
    dovecot.deliver("Incoming", mail("moves"))
    mirror = FakeMirror()
    one_round(dovecot, tmp_path, mirror)
    before = mirror.email_ids()
    # Away from a mailbox that is looked at first and last.
    for source, target in (("Incoming", "Archive"), ("Archive", "Trash"), ("Trash", "INBOX")):
        with dovecot.connect() as owner:
            owner.select(source)
            assert owner._simple_command("UID", "MOVE", "1:*", target)[0] == "OK"
        one_round(dovecot, tmp_path, mirror)
        assert before == mirror.email_ids()
        assert [1] == list(mirror.named(target).messages)
    assert set() == mirror.destroyed


def test_renamed_deleted_and_created_mailboxes_follow(dovecot: Dovecot, tmp_path: Path) -> None:
    with dovecot.rearranging() as owner:
        for name in ("Old", "Doomed", "Nested/Deep"):
            owner.create(quoted(name))
    dovecot.deliver("Old", mail("kept"))
    dovecot.deliver("Doomed", mail("lost"))
    mirror = FakeMirror()
    one_round(dovecot, tmp_path, mirror)
    assert {"Old", "Doomed", "Nested", "Nested/Deep"} <= mirror.names()
    kept = mirror.octets("Old")
    with dovecot.rearranging() as owner:
        owner.rename("Old", quoted("Näu"))
        owner.delete("Doomed")

    assert one_round(dovecot, tmp_path, mirror).whole

    assert {"Old", "Doomed"}.isdisjoint(mirror.names())
    assert kept == mirror.octets("Näu")
    assert len(mirror.destroyed) == 1


def test_a_mailbox_that_cannot_be_opened_by_its_nature_is_not_asked(dovecot: Dovecot, tmp_path: Path) -> None:
    with dovecot.rearranging() as owner:
        owner.create(quoted("Parent/Child"))
    one_round(dovecot, tmp_path, FakeMirror())
    said = dovecot.commands("reader")
    assert any(line.endswith(b'EXAMINE "Parent/Child"') for line in said)
    assert not any(line.endswith(b'EXAMINE "Parent"') for line in said)


def test_another_uidvalidity_begins_the_mailbox_anew(dovecot: Dovecot, tmp_path: Path) -> None:
    with dovecot.rearranging() as owner:
        owner.create("Again")
    dovecot.deliver("Again", mail("first life"))
    dovecot.deliver("Again", mail("in both"))
    mirror = FakeMirror()
    one_round(dovecot, tmp_path, mirror)
    with dovecot.rearranging() as owner:
        owner.delete("Again")
        owner.create("Again")
    dovecot.deliver("Again", mail("in both"))

    assert one_round(dovecot, tmp_path, mirror).whole

    assert mirror.restarts == 1
    assert {1: mail("in both")} == mirror.octets("Again")
    assert len(mirror.destroyed) == 1


def test_another_login_on_the_same_mirror_trusts_no_uid(dovecot: Dovecot, tmp_path: Path) -> None:
    dovecot.deliver("INBOX", mail("one"))
    mirror = FakeMirror()
    one_round(dovecot, tmp_path, mirror)
    assert one_round(dovecot, tmp_path, mirror, restart_all=True).whole
    assert len(MAILBOXES) == mirror.restarts
    assert {1: mail("one")} == mirror.octets("INBOX")
    assert set() == mirror.destroyed


def test_only_the_named_mailboxes_are_read(dovecot: Dovecot, tmp_path: Path) -> None:
    dovecot.deliver("INBOX", mail("private"))
    dovecot.deliver("Incoming", mail("business"))
    mirror = FakeMirror()
    done = one_round(dovecot, tmp_path, mirror, allowed=("Incoming", "Nowhere"))
    assert ("Nowhere",) == done.missing
    assert {"Incoming"} == mirror.names()
    assert not any(b"INBOX" in line for line in dovecot.commands("reader"))


def test_newest_mail_comes_first(dovecot: Dovecot, tmp_path: Path) -> None:
    with dovecot.connect() as owner:
        for number in range(230):
            owner.append("INBOX", "", "", mail(f"number {number}"))
    mirror = FakeMirror()
    with session_of(dovecot, tmp_path) as session:
        fetched: list[set[int]] = []
        mirror.on_add = lambda uids: fetched.append(set(uids))
        new_sync(mirror).round(session)
    assert [set(range(31, 231)), set(range(1, 31))] == fetched


def test_a_server_that_goes_away_in_the_middle_loses_and_repeats_nothing(dovecot: Dovecot, tmp_path: Path) -> None:
    dovecot.deliver("INBOX", mail("first"))
    dovecot.deliver("Incoming", mail("second"))
    mirror = FakeMirror()
    sync = new_sync(mirror)
    mirror.on_add = lambda _: dovecot.stop()
    with session_of(dovecot, tmp_path) as session, pytest.raises(ImapFailure):
        sync.round(session)
    assert {1: mail("first")} == mirror.octets("INBOX")
    assert mirror.settled == 0
    mirror.on_add = None
    dovecot.start()

    with session_of(dovecot, tmp_path) as session:
        assert sync.round(session).whole

    # The mirror refuses a message that is fetched twice.
    assert [("INBOX", 1), ("Incoming", 1)] == mirror.added


@pytest.mark.parametrize(
    "point", [BreakPoint.BEFORE_COMMAND, BreakPoint.AFTER_COMMAND_FIN, BreakPoint.RESPONSE_DROPPED]
)
@pytest.mark.parametrize("command", [b"LIST", b"EXAMINE", b"SEARCH", b"BODY.PEEK[]"])
def test_a_connection_that_breaks_anywhere_is_a_failure_and_the_next_round_is_whole(
    dovecot: Dovecot, tmp_path: Path, command: bytes, point: BreakPoint
) -> None:
    dovecot.deliver("INBOX", mail("one"))
    mirror = FakeMirror()
    sync = new_sync(mirror)
    with BreakingProxy(dovecot.port, command, point) as proxy:
        account = plain_account(proxy.port, tmp_path)
        (tmp_path / "plain.secret").write_text(dovecot.passwords["reader"])
        (tmp_path / "plain.secret").chmod(0o600)
        session = ReadOnlySession.open(account)
        with pytest.raises(ImapFailure) as failure:
            sync.round(session)
        assert failure.value.retryable
        assert mirror.settled == 0
        session = ReadOnlySession.open(account)
        assert sync.round(session).whole
        session.close()
    assert {1: mail("one")} == mirror.octets("INBOX")

"""Servers that refuse, break off, leave out and lie: one bad message never stops the others."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest
import structlog

from agent_reader.imap.session import ReadOnlySession
from agent_reader.sync.run import Round, Sync
from shared.imap_login import ImapFailure
from tests.fakes.accounts import plain_account
from tests.fakes.imap_server import ScriptedImapServer, ScriptedMailbox
from tests.fakes.mirror import FakeMirror

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# No ENABLED ever comes from it, so flags are compared one by one; ESEARCH is listed and answered with SEARCH.
CAPABILITIES = b"IMAP4rev1 AUTH=PLAIN ENABLE CONDSTORE ESEARCH ID"


def mails(count: int) -> dict[int, bytes]:
    return {uid: b"Subject: %d\r\n\r\nbody\r\n" % uid for uid in range(1, count + 1)}


def rounds(
    mailbox: ScriptedMailbox, folder: Path, count: int, between: Callable[[], object] = lambda: None
) -> tuple[FakeMirror, list[Round | str], list[bytes]]:
    """Run rounds, each lost connection followed by a new one; gives what each round came to."""
    mirror = FakeMirror()
    sync = Sync(mirror, None, structlog.get_logger())
    results: list[Round | str] = []
    with ScriptedImapServer(mailbox, CAPABILITIES) as server:
        for _ in range(count):
            with contextlib.closing(ReadOnlySession.open(plain_account(server.port, folder))) as session:
                try:
                    results.append(sync.round(session))
                except ImapFailure as failure:
                    results.append(failure.code)
            between()
        return mirror, results, server.commands


def whole(result: Round | str) -> bool:
    return isinstance(result, Round) and result.whole


def test_a_message_that_is_refused_three_times_is_set_aside_with_code_cause_and_fix(tmp_path: Path) -> None:
    mailbox = ScriptedMailbox(mails(20))
    mailbox.refuse = {7}
    mirror, results, _ = rounds(mailbox, tmp_path, 4)
    assert [False, False, True, True] == [whole(result) for result in results]
    assert mails(20).keys() - {7} == mirror.named("INBOX").messages.keys()
    aside = mirror.named("INBOX").aside[7]
    assert aside.code == "message_refused"
    assert "UNAVAILABLE" in aside.cause
    assert aside.fix


def test_until_it_is_set_aside_nothing_is_settled(tmp_path: Path) -> None:
    mailbox = ScriptedMailbox(mails(2))
    mailbox.refuse = {1}
    mirror, _, _ = rounds(mailbox, tmp_path, 2)
    assert mirror.settled == 0
    assert mirror.named("INBOX").looks == 0
    assert {2} == mirror.named("INBOX").messages.keys()


def test_a_message_set_aside_is_not_asked_for_again(tmp_path: Path) -> None:
    mailbox = ScriptedMailbox(mails(3))
    mailbox.refuse = {2}
    _, _, commands = rounds(mailbox, tmp_path, 6)
    assert 3 == sum(command.startswith(b"UID FETCH 2 ") and b"BODY" in command for command in commands)


def test_a_refused_message_that_comes_right_is_taken_in(tmp_path: Path) -> None:
    mailbox = ScriptedMailbox(mails(3))
    mailbox.refuse = {2}
    mirror, results, _ = rounds(mailbox, tmp_path, 3, mailbox.refuse.clear)
    assert [False, True, True] == [whole(result) for result in results]
    assert mails(3).keys() == mirror.named("INBOX").messages.keys()


def test_a_message_that_ends_the_connection_is_found_and_set_aside(tmp_path: Path) -> None:
    mailbox = ScriptedMailbox(mails(30))
    mailbox.break_at = {9}
    mirror, results, _ = rounds(mailbox, tmp_path, 8)
    assert whole(results[-1])
    assert mails(30).keys() - {9} == mirror.named("INBOX").messages.keys()
    assert mirror.named("INBOX").aside[9].code == "message_breaks_connection"


def test_a_server_that_refuses_large_batches_is_asked_for_less(tmp_path: Path) -> None:
    mailbox = ScriptedMailbox(mails(40))
    mailbox.refuse_over = 3
    mirror, results, _ = rounds(mailbox, tmp_path, 1)
    assert whole(results[0])
    assert mails(40) == mirror.octets("INBOX")


def test_an_answer_without_the_body_counts_as_a_failure(tmp_path: Path) -> None:
    mailbox = ScriptedMailbox(mails(3))
    mailbox.silent = {3}
    mirror, results, _ = rounds(mailbox, tmp_path, 3)
    assert [False, False, True] == [whole(result) for result in results]
    assert {1, 2} == mirror.named("INBOX").messages.keys()
    assert mirror.named("INBOX").aside[3].code == "message_incomplete"


def test_a_server_that_refuses_everything_is_left_alone_after_a_few(tmp_path: Path) -> None:
    mailbox = ScriptedMailbox(mails(500))
    mailbox.refuse = set(mailbox.messages)
    _, results, commands = rounds(mailbox, tmp_path, 1)
    assert not whole(results[0])
    assert sum(b"BODY" in command for command in commands) < 40


def test_a_server_that_throttles_is_left_alone_at_once(tmp_path: Path) -> None:
    mailbox = ScriptedMailbox(mails(50))
    mailbox.refuse = {50}
    mailbox.refusal = b"NO [OVERQUOTA] Account exceeded command or bandwidth limits."
    mirror, results, commands = rounds(mailbox, tmp_path, 1)
    assert ["throttled"] == results
    assert 1 == sum(b"BODY" in command for command in commands)
    assert {} == mirror.named("INBOX").aside


def test_a_message_that_search_leaves_out_comes_in_and_stays(tmp_path: Path) -> None:
    mailbox = ScriptedMailbox(mails(4))
    mailbox.hidden_from_search = {2}
    mirror, results, _ = rounds(mailbox, tmp_path, 2)
    assert [True, True] == [whole(result) for result in results]
    assert mails(4) == mirror.octets("INBOX")


def test_flags_change_and_messages_vanish_without_mod_sequences(tmp_path: Path) -> None:
    mailbox = ScriptedMailbox(mails(3))

    def between() -> None:
        mailbox.messages.pop(2, None)
        mailbox.flags = b"\\Answered keyword"

    mirror, results, _ = rounds(mailbox, tmp_path, 2, between)
    assert results[1] == Round(whole=True, taken_in=0, changed=2, vanished=1, set_aside=0, missing=())
    inbox = mirror.named("INBOX").messages
    assert {1, 3} == inbox.keys()
    assert frozenset({"\\Answered", "keyword"}) == inbox[3].state.flags


def test_recent_and_the_order_of_items_do_not_matter(tmp_path: Path) -> None:
    mirror, _, _ = rounds(ScriptedMailbox(mails(1)), tmp_path, 1)
    message = mirror.named("INBOX").messages[1]
    assert frozenset({"\\Seen"}) == message.state.flags
    assert "2026-11-29T09:00:00+00:00" == message.internaldate.isoformat()


def test_a_mailbox_that_the_login_may_not_open_is_skipped_and_stops_no_other(tmp_path: Path) -> None:
    inbox = ScriptedMailbox(mails(1))

    def answer(command: bytes) -> tuple[list[bytes], bytes] | None:
        if command.startswith(b"LIST"):
            return [b'LIST () "/" Closed', b'LIST () "/" INBOX', b'LIST (\\NOSELECT) "/" Group'], b"OK done"
        if command == b'EXAMINE "Closed"':
            return [], b"NO [NOPERM] Permission denied"
        return inbox(command)

    mirror = FakeMirror()
    with ScriptedImapServer(answer, CAPABILITIES) as server:
        session = ReadOnlySession.open(plain_account(server.port, tmp_path))
        done = Sync(mirror, None, structlog.get_logger()).round(session)
        session.close()
    assert done.whole
    assert mails(1) == mirror.octets("INBOX")
    assert b'EXAMINE "Group"' not in server.commands


def test_a_mailbox_known_before_and_refused_for_now_holds_back_the_settling(tmp_path: Path) -> None:
    mailbox = ScriptedMailbox(mails(1))

    def between() -> None:
        mailbox.examine = b"NO [SERVERBUG] Internal error occurred"

    mirror, results, _ = rounds(mailbox, tmp_path, 2, between)
    assert [True, False] == [whole(result) for result in results]
    assert mirror.settled == 1
    assert mails(1) == mirror.octets("INBOX")


def test_a_mailbox_that_is_opened_for_writing_is_not_read(tmp_path: Path) -> None:
    mailbox = ScriptedMailbox(mails(1))
    mailbox.examine = b"OK [READ-WRITE] careless"
    mirror, _, commands = rounds(mailbox, tmp_path, 1)
    assert {} == mirror.octets("INBOX")
    assert not any(b"FETCH" in command for command in commands)


def test_an_empty_list_of_mailboxes_does_not_empty_the_mirror(tmp_path: Path) -> None:
    mailbox = ScriptedMailbox(mails(1))
    empty = False

    def answer(command: bytes) -> tuple[list[bytes], bytes] | None:
        return ([], b"OK nothing") if empty and command.startswith(b"LIST") else mailbox(command)

    mirror = FakeMirror()
    sync = Sync(mirror, None, structlog.get_logger())
    with (
        ScriptedImapServer(answer, CAPABILITIES) as server,
        contextlib.closing(ReadOnlySession.open(plain_account(server.port, tmp_path))) as session,
    ):
        sync.round(session)
        empty = True
        with pytest.raises(ImapFailure):
            sync.round(session)
    assert mails(1) == mirror.octets("INBOX")


@pytest.mark.parametrize(
    "line",
    [
        b"* 1 FETCH (FLAGS (",
        b"* 1 FETCH (UID x FLAGS ())",
        b"* 1 FETCH (BODY[] {99999999999999999999}",
        b"nonsense",
        b"* BYE shutting down",
        b"X1 OK not yours",
    ],
)
def test_an_answer_that_is_no_imap_is_a_failure_of_the_server(tmp_path: Path, line: bytes) -> None:
    mailbox = ScriptedMailbox(mails(1))

    def answer(command: bytes) -> tuple[list[bytes], bytes] | None:
        if command.startswith(b"UID FETCH"):
            # The line break ends one line and begins the hostile one.
            return [b"OK then\r\n" + line], b"OK done"
        return mailbox(command)

    mirror = FakeMirror()
    with (
        ScriptedImapServer(answer, CAPABILITIES) as server,
        contextlib.closing(ReadOnlySession.open(plain_account(server.port, tmp_path), 1.0)) as session,
        pytest.raises(ImapFailure) as failure,
    ):
        Sync(mirror, None, structlog.get_logger()).round(session)
    assert failure.value.retryable
    assert {} == mirror.octets("INBOX")


def test_messages_that_do_not_answer_at_all_do_not_count_as_gone(tmp_path: Path) -> None:
    mailbox = ScriptedMailbox(mails(3))
    mute = False

    def answer(command: bytes) -> tuple[list[bytes], bytes] | None:
        return ([], b"OK nothing to say") if mute and b"FETCH" in command else mailbox(command)

    mirror = FakeMirror()
    sync = Sync(mirror, None, structlog.get_logger())
    with (
        ScriptedImapServer(answer, CAPABILITIES) as server,
        contextlib.closing(ReadOnlySession.open(plain_account(server.port, tmp_path))) as session,
    ):
        sync.round(session)
        mute = True
        assert not sync.round(session).whole
    assert mails(3) == mirror.octets("INBOX")


def test_a_message_that_a_listing_leaves_out_and_that_still_answers_is_not_gone(tmp_path: Path) -> None:
    mailbox = ScriptedMailbox(mails(2))
    uidnext = 3

    def answer(command: bytes) -> tuple[list[bytes], bytes] | None:
        if command.startswith(b"ENABLE"):
            return [b"ENABLED CONDSTORE"], b"OK done"
        if command.startswith(b"EXAMINE"):
            codes = [b"OK [UIDVALIDITY 7] x", b"OK [UIDNEXT %d] x" % uidnext, b"OK [HIGHESTMODSEQ 5] x"]
            return [b"2 EXISTS", *codes], b"OK [READ-ONLY] done"
        if command.startswith(b"UID SEARCH"):
            # As many as there are, and not the same.
            return [b'ESEARCH (TAG "x") UID ALL ' + (b"1:2" if uidnext == 3 else b"1,99")], b"OK done"
        return mailbox(command)

    mirror = FakeMirror()
    sync = Sync(mirror, None, structlog.get_logger())
    with (
        ScriptedImapServer(answer, CAPABILITIES) as server,
        contextlib.closing(ReadOnlySession.open(plain_account(server.port, tmp_path))) as session,
    ):
        sync.round(session)
        uidnext = 4
        sync.round(session)
    assert any(b"ESEARCH" in command or b"RETURN" in command for command in server.commands)
    assert mails(2) == mirror.octets("INBOX")

"""QRESYNC: what happened since, in one answer; believed only where the server enabled it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest
import structlog

from agent_reader.errors import Refused, Throttled, stated_wait
from agent_reader.imap.session import ReadOnlySession
from agent_reader.imap.values import Examined, ListedMailbox, MessageState
from agent_reader.sync.run import Sync
from shared.imap_login import ImapFailure
from tests.agent_reader.mirrored import fetched
from tests.fakes.accounts import plain_account, reader_account
from tests.fakes.imap_server import ScriptedImapServer
from tests.fakes.mirror import FakeMirror
from tests.fakes.raw_imap_server import Conversation, RawImapServer
from tests.servers.dovecot import Dovecot

if TYPE_CHECKING:
    from pathlib import Path

CAPABILITIES = b"IMAP4rev1 AUTH=PLAIN ENABLE CONDSTORE QRESYNC ESEARCH"


def mail(subject: str) -> bytes:
    return f"Subject: {subject}\r\n\r\nbody\r\n".encode()


def test_new_changed_and_vanished_messages_are_told_in_the_answer_to_examine(dovecot: Dovecot, tmp_path: Path) -> None:
    for subject in "abcd":
        dovecot.deliver("INBOX", mail(subject))
    with contextlib.closing(ReadOnlySession.open(reader_account(dovecot, tmp_path))) as session:
        before = session.examine("INBOX")
        assert before.highestmodseq is not None
        with dovecot.connect() as owner:
            owner.select("INBOX")
            owner.uid("STORE", "2", "+FLAGS", "(\\Seen)")
            owner.uid("STORE", "1,3", "+FLAGS", "(\\Deleted)")
            owner.uid("EXPUNGE", "1,3")
        dovecot.deliver("INBOX", mail("e"))
        said = len(dovecot.commands("reader"))
        examined, resync = session.examine_since("INBOX", before.uidvalidity, before.highestmodseq)
    assert resync is not None
    assert {1, 3} == resync.vanished.among(range(1, 6))
    assert {2: frozenset({"\\Seen"}), 5: frozenset()} == {uid: state.flags for uid, state in resync.changed.items()}
    assert (3, 6) == (examined.exists, examined.uidnext)
    assert len(dovecot.commands("reader")) == said + 1


def test_of_another_uidvalidity_nothing_is_told(dovecot: Dovecot, tmp_path: Path) -> None:
    dovecot.deliver("INBOX", mail("a"))
    with contextlib.closing(ReadOnlySession.open(reader_account(dovecot, tmp_path))) as session:
        examined, resync = session.examine_since("INBOX", 1, 1)
    assert resync is None
    assert 1 == examined.exists


def scripted(
    tmp_path: Path, enabled: dict[bytes, list[bytes]], state: list[bytes]
) -> tuple[Examined, object, list[bytes]]:
    def answer(command: bytes) -> tuple[list[bytes], bytes] | None:
        if command.startswith(b"ENABLE"):
            return enabled.get(command.split()[1], []), b"OK done"
        return (state, b"OK [READ-ONLY] done") if command.startswith(b"EXAMINE") else ([], b"")

    with (
        ScriptedImapServer(answer, CAPABILITIES) as server,
        contextlib.closing(ReadOnlySession.open(plain_account(server.port, tmp_path))) as session,
    ):
        examined, resync = session.examine_since("INBOX", 7, 5)
        return examined, resync, [line for line in server.commands if line.startswith((b"ENABLE", b"EXAMINE"))]


STATE = [b"2 EXISTS", b"OK [UIDVALIDITY 7] x", b"OK [UIDNEXT 9] x", b"OK [HIGHESTMODSEQ 8] x"]


def test_a_server_that_lists_qresync_and_enables_nothing_is_asked_without(tmp_path: Path) -> None:
    examined, resync, commands = scripted(tmp_path, {}, STATE)
    assert (None, None) == (examined.highestmodseq, resync)
    assert [b"ENABLE QRESYNC", b"ENABLE CONDSTORE", b'EXAMINE "INBOX"'] == commands


def test_a_server_that_enables_condstore_alone_keeps_its_mod_sequences(tmp_path: Path) -> None:
    examined, resync, commands = scripted(tmp_path, {b"CONDSTORE": [b"ENABLED CONDSTORE"]}, STATE)
    assert (8, None) == (examined.highestmodseq, resync)
    assert b'EXAMINE "INBOX"' == commands[-1]


def test_vanished_ranges_of_any_width_take_no_room(tmp_path: Path) -> None:
    vanished = [b"VANISHED (EARLIER) 3:4294967295", b"VANISHED (EARLIER) 1", b"1 FETCH (UID 2 FLAGS () MODSEQ (8))"]
    _, resync, _ = scripted(tmp_path, {b"QRESYNC": [b"ENABLED QRESYNC"]}, [*STATE, *vanished])
    assert resync is not None
    assert ((1, 1), (3, 4294967295)) == resync.vanished.ranges  # type: ignore[attr-defined]  # object keeps the helper short
    assert {2: MessageState(frozenset(), 8)} == resync.changed  # type: ignore[attr-defined]  # the same


@pytest.mark.parametrize("without", [b"OK [NOMODSEQ] x", b"OK [HIGHESTMODSEQ 0] x", b"OK [HIGHESTMODSEQ 4] x"])
def test_a_mailbox_without_mod_sequences_or_one_whose_went_back_tells_nothing(tmp_path: Path, without: bytes) -> None:
    _, resync, _ = scripted(tmp_path, {b"QRESYNC": [b"ENABLED QRESYNC"]}, [*STATE[:3], without])
    assert resync is None


def test_more_uids_than_anybody_has_are_a_failure_and_no_memory(tmp_path: Path) -> None:
    def answer(command: bytes) -> tuple[list[bytes], bytes] | None:
        return ([b"ESEARCH (TAG x) UID ALL 1:4294967295"], b"OK") if command.startswith(b"UID SEARCH") else ([], b"")

    with (
        ScriptedImapServer(answer, CAPABILITIES) as server,
        contextlib.closing(ReadOnlySession.open(plain_account(server.port, tmp_path))) as session,
        pytest.raises(ImapFailure) as failure,
    ):
        session.uids(Examined(7, 9, 2, None, None))
    assert "protocol" == failure.value.code


def test_flags_of_a_large_mailbox_are_asked_for_in_several_answers(tmp_path: Path) -> None:
    with (
        ScriptedImapServer(capabilities=CAPABILITIES) as server,
        contextlib.closing(ReadOnlySession.open(plain_account(server.port, tmp_path))) as session,
    ):
        session.changed_since(3, range(2, 200_002, 2))
        asked = [line.split()[2] for line in server.commands if line.startswith(b"UID FETCH")]
    assert [b"1:100000", b"100001:200000", b"200001:*"] == asked


@pytest.mark.parametrize("told", [b"", b" QRESYNC"])
def test_after_an_answer_that_was_too_large_the_changes_are_asked_for_in_several(tmp_path: Path, told: bytes) -> None:
    """Somebody marked half a million messages as read: one answer for all of them is never taken in."""
    too_large, uids = b"1 FETCH (" + b"x" * 2_000_000, range(2, 100_004, 2)
    examined = [b"%d EXISTS" % len(uids), b"OK [UIDVALIDITY 7] x", b"OK [UIDNEXT 100004] x", b"OK [HIGHESTMODSEQ 8] x"]

    def answer(command: bytes) -> tuple[list[bytes], bytes] | None:
        match command.split():
            case [b"ENABLE", extension]:
                return [b"ENABLED " + extension], b"OK done"
            case [b"LIST", *_]:
                return [b'LIST () "/" INBOX'], b"OK done"
            case [b"EXAMINE", *parameters]:
                return [*examined, *([too_large] if len(parameters) > 1 else [])], b"OK [READ-ONLY] done"
            case [b"UID", b"FETCH", b"1:*", *_]:
                return [too_large], b"OK done"
            case [b"UID", b"FETCH", b"1:100000", *_]:
                return [b"1 FETCH (UID 2 FLAGS (\\Seen) MODSEQ (8))"], b"OK done"
        return [], b""

    mirror = FakeMirror()
    mirror.put_mailboxes([ListedMailbox("INBOX", "/", frozenset(), subscribed=True)])
    box = mirror.named("INBOX")
    box.uidvalidity, box.uidnext, box.highestmodseq = 7, uids.stop, 5
    box.messages = dict.fromkeys(uids, fetched(2, b"Subject: a\r\n\r\n"))
    sync = Sync(mirror, None, structlog.get_logger())
    with ScriptedImapServer(answer, b"IMAP4rev1 AUTH=PLAIN ENABLE CONDSTORE" + told) as server:
        with contextlib.closing(ReadOnlySession.open(plain_account(server.port, tmp_path))) as session:
            with pytest.raises(ImapFailure) as failure:
                sync.round(session)
            assert "too_large" == failure.value.code
        with contextlib.closing(ReadOnlySession.open(plain_account(server.port, tmp_path))) as session:
            assert sync.round(session).whole
    assert {"\\Seen"} == box.messages[2].state.flags
    assert 8 == box.highestmodseq


@pytest.mark.parametrize(
    ("say", "code"),
    [
        (b"* 1 FETCH (UID 1 RFC822.SIZE 3 BODY[] {104857600}\r\n", "too_large"),
        (b"* 1 FETCH (UID 1 RFC822.SIZE 3 BODY[] {99999999999999999999}\r\n", "too_large"),
        (b"* 1 FETCH (UID 1 RFC822.SIZE 3 BODY[] {900}\r\nonly this\r\n", "too_slow"),
        (b"* 1 FETCH (UID 1 RFC822.SIZE 3 BODY[] {2}\r\nmuch more than that)\r\n", "protocol"),
        (b"* 1 FETCH (" + b"x" * 1_100_000, "too_large"),
        (b"* OK no line end", "too_slow"),
    ],
)
def test_an_answer_that_lies_about_its_length_or_never_ends_is_a_failure_of_its_kind(
    tmp_path: Path, say: bytes, code: str
) -> None:
    def raw(conversation: Conversation, tag: bytes, command: bytes) -> bool:
        if not command.startswith(b"UID FETCH"):
            return False
        conversation.say(say)
        if code == "protocol":
            conversation.say(tag + b" OK done\r\n")
        conversation.say_nothing()
        return True

    with (
        RawImapServer(raw) as server,
        contextlib.closing(ReadOnlySession.open(plain_account(server.port, tmp_path), 0.3)) as session,
    ):
        with pytest.raises(ImapFailure) as failure:
            session.fetch_messages([1])
        assert (code, True) == (failure.value.code, failure.value.retryable)
        # Whatever went wrong, the connection is not used again.
        with pytest.raises(ImapFailure):
            session.list_mailboxes()


def test_a_server_that_sends_an_octet_now_and_then_is_given_up_on(tmp_path: Path) -> None:
    def raw(conversation: Conversation, _: bytes, command: bytes) -> bool:
        if command.startswith(b"LIST"):
            conversation.trickle(b"* OK let me think about that for a very long time" * 100, 0.02)
        return command.startswith(b"LIST")

    with (
        RawImapServer(raw) as server,
        contextlib.closing(ReadOnlySession.open(plain_account(server.port, tmp_path), 0.3)) as session,
        pytest.raises(ImapFailure) as failure,
    ):
        session.list_mailboxes()
    assert "too_slow" == failure.value.code


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Request is throttled. Suggested Backoff Time: 299961 milliseconds", 299.961),
        ("[THROTTLED] Try again in 2 minutes", 120.0),
        ("Too many simultaneous connections. Retry after 30 seconds.", 30.0),
        ("[LIMIT] Rate limit hit, try again after 1 hour", 3_600.0),
        ("[THROTTLED] wait for 99999 hours", 86_400.0),
        ("[OVERQUOTA] Account exceeded command or bandwidth limits.", None),
        ("[UNAVAILABLE] UID FETCH Server error - Please try again later", None),
    ],
)
def test_the_time_that_a_server_states_is_read(text: str, seconds: float | None) -> None:
    assert seconds == stated_wait(text)
    assert Throttled("x", text).wait_seconds == seconds
    throttles = "UNAVAILABLE" not in text
    assert throttles == Refused("UID FETCH", "NO", text).is_throttling
    assert throttles == Throttled.is_meant_by(text)
    assert ("OVERQUOTA" in text) == Throttled("x", text).is_quota

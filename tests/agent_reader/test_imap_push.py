"""What a server says unasked: heard at once, whatever else it says, and an end is an end."""

from __future__ import annotations

import contextlib
import itertools
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agent_reader.errors import Refused
from agent_reader.imap.push import PushConnection
from agent_reader.imap.values import Heard
from shared.imap_login import ImapFailure
from tests.fakes.accounts import plain_account, reader_account
from tests.fakes.raw_imap_server import Conversation, RawImapServer
from tests.servers.dovecot import Dovecot
from tests.servers.dovecot_config import NON_ASCII_MAILBOX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# Long enough for a notice on a busy machine; nothing waits for it to pass.
LONG = 30.0
SELECTED = Heard(selected=True)


def mail(subject: str) -> bytes:
    return f"Subject: {subject}\r\n\r\nbody\r\n".encode()


@contextlib.contextmanager
def listening(dovecot: Dovecot, folder: Path) -> Iterator[PushConnection]:
    with contextlib.closing(PushConnection.open(reader_account(dovecot, folder))) as connection:
        yield connection


def test_new_mail_changed_flags_and_a_deletion_are_each_heard_while_it_idles(dovecot: Dovecot, tmp_path: Path) -> None:
    with listening(dovecot, tmp_path) as connection:
        connection.examine("INBOX")
        dovecot.deliver("INBOX", mail("one"))
        assert SELECTED == connection.listen(LONG, time.monotonic)
        with dovecot.connect() as owner:
            owner.select("INBOX")
            owner.uid("STORE", "1", "+FLAGS", "(\\Flagged)")
            assert SELECTED == connection.listen(LONG, time.monotonic)
            owner.uid("STORE", "1", "+FLAGS", "(\\Deleted)")
            owner.uid("EXPUNGE", "1")
            assert SELECTED == connection.listen(LONG, time.monotonic)


def test_by_notify_one_connection_hears_of_every_mailbox_by_name(dovecot: Dovecot, tmp_path: Path) -> None:
    with listening(dovecot, tmp_path) as connection:
        assert connection.can("NOTIFY")
        connection.notify()
        for name in ("Incoming", NON_ASCII_MAILBOX, "INBOX"):
            dovecot.deliver(name, mail("one"))
            assert _heard_of(connection, name)


def _heard_of(connection: PushConnection, name: str) -> bool:
    # Notices may come twice, and those of one mailbox with another's.
    return any(name in connection.listen(LONG, time.monotonic).mailboxes for _ in range(3))


def test_idle_is_renewed_and_the_connection_proven_each_time(dovecot: Dovecot, tmp_path: Path) -> None:
    with listening(dovecot, tmp_path) as connection:
        connection.examine("INBOX")
        for _ in range(3):
            assert not connection.listen(0.01, time.monotonic)
        dovecot.deliver("INBOX", mail("still heard"))
        assert SELECTED == connection.listen(LONG, time.monotonic)
    said = [line.rpartition(b" ")[2] for line in dovecot.commands("reader")]
    assert [b"IDLE", b"DONE"] * 4 == [word for word in said if word in {b"IDLE", b"DONE"}]


def test_a_connection_that_ends_while_it_idles_is_a_failure_at_once(dovecot: Dovecot, tmp_path: Path) -> None:
    for end in (dovecot.kill_session, lambda _: dovecot.stop()):
        with listening(dovecot, tmp_path) as connection:
            connection.examine("INBOX")
            assert not connection.listen(0.01, time.monotonic)
            end("reader")
            with pytest.raises(ImapFailure):
                connection.listen(LONG, time.monotonic)
            with pytest.raises(ImapFailure):
                connection.listen(LONG, time.monotonic)


def test_nothing_is_touched_by_listening(dovecot: Dovecot, tmp_path: Path) -> None:
    dovecot.deliver("INBOX", mail("recent"))
    before = dovecot.snapshot()
    with listening(dovecot, tmp_path) as connection:
        connection.notify()
        connection.examine("INBOX")
        connection.listen(0.01, time.monotonic)
    assert before == dovecot.snapshot()


@contextlib.contextmanager
def scripted(idle: Callable[[Conversation, bytes], bool | None], folder: Path) -> Iterator[PushConnection]:
    def raw(conversation: Conversation, tag: bytes, command: bytes) -> bool | None:
        return idle(conversation, tag) if command == b"IDLE" else False

    with (
        RawImapServer(raw) as server,
        contextlib.closing(PushConnection.open(plain_account(server.port, folder), LONG)) as connection,
    ):
        yield connection


def test_a_line_before_the_plus_and_lines_in_pieces_are_heard(tmp_path: Path) -> None:
    def idle(conversation: Conversation, tag: bytes) -> bool:
        conversation.say(b"* OK just a moment\r\n* 1 RECENT\r\n+ idling\r\n* OK Still ")
        conversation.say(b"here\r\n* 4 EXI")
        conversation.trickle(b"STS\r\n", 0.01)
        assert b"DONE" == conversation.hear()
        conversation.say(b"* 5 EXISTS\r\n" + tag + b" OK done\r\n")
        return True

    with scripted(idle, tmp_path) as connection:
        assert SELECTED == connection.listen(LONG, time.monotonic)
        assert SELECTED == connection.listen(LONG, time.monotonic)


def test_what_comes_before_the_plus_is_heard_too(tmp_path: Path) -> None:
    def idle(conversation: Conversation, tag: bytes) -> bool:
        conversation.say(b"* 4 EXISTS\r\n+ idling\r\n")
        conversation.hear()
        conversation.say(tag + b" OK done\r\n")
        return True

    with scripted(idle, tmp_path) as connection:
        assert SELECTED == connection.listen(LONG, time.monotonic)


def test_a_mailbox_that_cannot_be_told_may_be_any(tmp_path: Path) -> None:
    def idle(conversation: Conversation, tag: bytes) -> bool:
        conversation.say(b'+ idling\r\n* STATUS {2}\r\n\xff\xfe (MESSAGES 1)\r\n* LIST () "/" New\r\n')
        conversation.hear()
        conversation.say(tag + b" OK done\r\n")
        return True

    with scripted(idle, tmp_path) as connection:
        assert connection.listen(LONG, time.monotonic).anything


def test_a_server_that_says_no_to_idle_refuses_it_and_the_connection_is_finished(tmp_path: Path) -> None:
    def idle(conversation: Conversation, tag: bytes) -> bool:
        conversation.say(tag + b" NO not now\r\n")
        return True

    with scripted(idle, tmp_path) as connection:
        with pytest.raises(Refused) as refusal:
            connection.listen(LONG, time.monotonic)
        assert ("IDLE", "NO", "not now") == (refusal.value.verb, refusal.value.answer, refusal.value.text)
        with pytest.raises(ImapFailure):
            connection.list_mailboxes()


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (b"+ idling\r\n* BYE Session expired, please login again.\r\n", "protocol"),
        (b"* BYE no\r\n", "protocol"),
        (b"+ idling\r\nX99 OK not yours\r\n", "protocol"),
        (b"+ idling\r\n* BYE [THROTTLED] Request is throttled\r\n", "throttled"),
        (b"+ idling\r\n* 1 FETCH (BODY[] {99999999}\r\n", "too_large"),
        (b"+ idling\r\n* 3 EXISTS and then nothing", "too_slow"),
        (b"", "too_slow"),
    ],
)
def test_whatever_ends_or_hinders_an_idle_is_a_failure_of_its_kind(tmp_path: Path, said: bytes, code: str) -> None:
    def idle(conversation: Conversation, _: bytes) -> bool:
        conversation.say(said)
        conversation.say_nothing()
        return True

    with scripted(idle, tmp_path) as connection:
        if code == "too_slow":
            # Only now: to sign in takes its time.
            answers = connection._imap.answers
            answers._limits = replace(answers._limits, seconds=0.3)
        with pytest.raises(ImapFailure) as failure:
            connection.listen(LONG, time.monotonic)
    assert (code, True) == (failure.value.code, failure.value.retryable)


def test_a_server_that_chatters_fills_no_memory_and_ends_no_silence(tmp_path: Path) -> None:
    chatter = itertools.repeat(b"* OK Still here\r\n" * 100, 50)

    def idle(conversation: Conversation, tag: bytes) -> bool:
        conversation.say(b"+ idling\r\n" + b"".join(chatter) + b"* 4 EXISTS\r\n")
        conversation.hear()
        conversation.say(tag + b" OK done\r\n")
        return True

    with scripted(idle, tmp_path) as connection:
        assert SELECTED == connection.listen(LONG, time.monotonic)
        assert {} == connection._imap.untagged_responses

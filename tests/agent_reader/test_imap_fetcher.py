"""Messages fetched because somebody waits: exact, few connections, ahead of the sync, and nothing changed by it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent_reader.imap.fetcher import MOST_CONNECTIONS, Fetcher
from agent_reader.imap.precedence import Precedence
from agent_reader.imap.values import Place
from shared.imap_login import ImapFailure
from tests.fakes.accounts import plain_account, reader_account
from tests.fakes.imap_server import ScriptedImapServer, ScriptedMailbox
from tests.servers.dovecot import Dovecot

SECONDS = 20.0
LETTER = b"Subject: a\r\n\r\nA letter.\r\n"
LARGE = b"Subject: large\r\n\r\n" + bytes(range(32, 127)) * 30_000 + b"\r\n"


@dataclass
class Seconds:
    """A monotonic clock that stands until it is moved."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@contextlib.contextmanager
def fetcher(account: Any, **options: Any) -> Iterator[Fetcher]:
    with contextlib.closing(Fetcher(account, options.pop("precedence", Precedence()), **options)) as opened:
        yield opened


def fetched(opened: Fetcher, place: Place) -> bytes | None:
    octets = bytearray()
    return bytes(octets) if opened.fetch(place, octets.extend) else None


def in_a_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def await_true(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(int(SECONDS * 100)):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("it never came")


def test_a_real_server_gives_exact_octets_and_keeps_everything_as_it_was(dovecot: Dovecot, tmp_path: Path) -> None:
    uids = {octets: dovecot.deliver("INBOX", octets) for octets in (LETTER, LARGE)}
    before = dovecot.snapshot()
    uidvalidity = before["INBOX"].uidvalidity
    with fetcher(reader_account(dovecot, tmp_path)) as opened:
        for octets, uid in uids.items():
            assert octets == fetched(opened, Place("INBOX", uidvalidity, uid))
        assert fetched(opened, Place("INBOX", uidvalidity, 999)) is None
        assert fetched(opened, Place("INBOX", uidvalidity + 1, uids[LETTER])) is None
        assert fetched(opened, Place("Nowhere", uidvalidity, uids[LETTER])) is None
    assert before == dovecot.snapshot()
    said = dovecot.commands("reader")
    assert 2 <= sum(b"BODY.PEEK[]<" in line for line in said)
    assert not any(b" SELECT" in line or b"BODY[" in line for line in said)


def test_a_connection_that_was_lost_meanwhile_is_made_anew_once(dovecot: Dovecot, tmp_path: Path) -> None:
    uid = dovecot.deliver("INBOX", LETTER)
    place = Place("INBOX", dovecot.snapshot()["INBOX"].uidvalidity, uid)
    with fetcher(reader_account(dovecot, tmp_path)) as opened:
        assert LETTER == fetched(opened, place)
        assert dovecot.kill_session("reader")
        assert LETTER == fetched(opened, place)


def test_a_server_that_is_down_fails_and_is_asked_again_once_it_is_back(dovecot: Dovecot, tmp_path: Path) -> None:
    uid = dovecot.deliver("INBOX", LETTER)
    place, clock = Place("INBOX", dovecot.snapshot()["INBOX"].uidvalidity, uid), Seconds()
    dovecot.stop()
    with fetcher(reader_account(dovecot, tmp_path), monotonic=clock) as opened:
        with pytest.raises(ImapFailure) as failure:
            fetched(opened, place)
        assert ("unreachable", True) == (failure.value.code, failure.value.retryable)
        dovecot.start()
        clock.now += 10
        assert LETTER == fetched(opened, place)


def test_a_refused_login_is_not_tried_again_at_once(tmp_path: Path) -> None:
    def answer(command: bytes) -> tuple[list[bytes], bytes]:
        return ([], b"NO [AUTHENTICATIONFAILED] no") if command.startswith(b"LOGIN") else ([], b"")

    clock = Seconds()
    with (
        ScriptedImapServer(answer, b"IMAP4rev1") as server,
        fetcher(plain_account(server.port, tmp_path), monotonic=clock) as opened,
    ):
        for _ in range(3):
            with pytest.raises(ImapFailure) as failure:
                fetched(opened, Place("INBOX", 7, 1))
            assert "login_refused" == failure.value.code
        assert 1 == server.connections
        clock.now += 301
        with pytest.raises(ImapFailure):
            fetched(opened, Place("INBOX", 7, 1))
        assert 2 == server.connections


def test_what_is_refused_for_now_is_a_failure_that_may_pass(tmp_path: Path) -> None:
    mailbox = ScriptedMailbox({1: LETTER, 2: LETTER})
    mailbox.refuse = {1}
    with ScriptedImapServer(mailbox) as server, fetcher(plain_account(server.port, tmp_path)) as opened:
        with pytest.raises(ImapFailure) as failure:
            fetched(opened, Place("INBOX", 7, 1))
        assert ("refused", True) == (failure.value.code, failure.value.retryable)
        # The connection lives, and the next message comes over it.
        assert LETTER == fetched(opened, Place("INBOX", 7, 2))
        assert 1 == server.connections


def test_a_server_that_wants_to_be_left_alone_is_for_as_long_as_it_says(tmp_path: Path) -> None:
    mailbox, clock = ScriptedMailbox({1: LETTER}), Seconds()
    mailbox.refuse, mailbox.refusal = {1}, b"NO [THROTTLED] try again in 90 seconds"
    with (
        ScriptedImapServer(mailbox) as server,
        fetcher(plain_account(server.port, tmp_path), monotonic=clock) as opened,
    ):
        for _ in range(2):
            with pytest.raises(ImapFailure) as failure:
                fetched(opened, Place("INBOX", 7, 1))
            assert ("throttled", True) == (failure.value.code, failure.value.retryable)
        assert 1 == sum(b"BODY.PEEK" in command for command in server.commands)
        mailbox.refuse = set()
        clock.now += 91
        assert LETTER == fetched(opened, Place("INBOX", 7, 1))


def test_a_server_that_is_silent_about_a_message_has_it_not(tmp_path: Path) -> None:
    mailbox = ScriptedMailbox({1: LETTER})
    mailbox.silent = {1}
    with ScriptedImapServer(mailbox) as server, fetcher(plain_account(server.port, tmp_path)) as opened:
        assert fetched(opened, Place("INBOX", 7, 1)) is None


def test_an_idle_connection_is_logged_out(tmp_path: Path) -> None:
    with ScriptedImapServer(ScriptedMailbox({1: LETTER})) as server:
        with fetcher(plain_account(server.port, tmp_path), idle_seconds=0.05) as opened:
            assert LETTER == fetched(opened, Place("INBOX", 7, 1))
            await_true(lambda: b"LOGOUT" in server.commands)
            assert LETTER == fetched(opened, Place("INBOX", 7, 1))
        assert 2 == server.connections


@dataclass
class Held:
    """Answers for a mailbox that holds every fetch of a body until it is let go."""

    mailbox: ScriptedMailbox
    waiting: threading.Semaphore
    let_go: threading.Event

    def __call__(self, command: bytes) -> tuple[list[bytes], bytes] | None:
        if b"BODY.PEEK" in command:
            self.waiting.release()
            assert self.let_go.wait(SECONDS)
        return self.mailbox(command)


@pytest.fixture
def held() -> Iterator[Held]:
    answers = Held(ScriptedMailbox({1: LETTER}), threading.Semaphore(0), threading.Event())
    try:
        yield answers
    finally:
        answers.let_go.set()


def test_no_more_than_a_few_connections_and_whoever_waits_too_long_is_told(held: Held, tmp_path: Path) -> None:
    place = Place("INBOX", 7, 1)
    with ScriptedImapServer(held) as server:
        with fetcher(plain_account(server.port, tmp_path), turn_seconds=0.0) as opened:
            threads = [in_a_thread(lambda: fetched(opened, place)) for _ in range(MOST_CONNECTIONS)]
            for _ in threads:
                assert held.waiting.acquire(timeout=SECONDS)
            with pytest.raises(ImapFailure) as failure:
                fetched(opened, place)
            assert ("busy", True) == (failure.value.code, failure.value.retryable)
            held.let_go.set()
            for thread in threads:
                thread.join(SECONDS)
            assert LETTER == fetched(opened, place)
        assert MOST_CONNECTIONS == server.connections


def test_closing_interrupts_what_waits(held: Held, tmp_path: Path) -> None:
    failures: list[str] = []

    def work() -> None:
        try:
            fetched(opened, Place("INBOX", 7, 1))
        except ImapFailure as failure:
            failures.append(failure.code)

    with ScriptedImapServer(held) as server, fetcher(plain_account(server.port, tmp_path)) as opened:
        thread = in_a_thread(work)
        assert held.waiting.acquire(timeout=SECONDS)
        opened.close()
        thread.join(SECONDS)
        assert not thread.is_alive()
        held.let_go.set()
    assert failures in (["unreachable"], ["protocol"])


def test_background_work_stands_back_while_a_message_is_fetched(held: Held, tmp_path: Path) -> None:
    precedence = Precedence()
    with (
        ScriptedImapServer(held) as server,
        fetcher(plain_account(server.port, tmp_path), precedence=precedence) as opened,
    ):
        assert precedence.give_way(0.0)
        thread = in_a_thread(lambda: fetched(opened, Place("INBOX", 7, 1)))
        assert held.waiting.acquire(timeout=SECONDS)
        # It would wait, and goes on in the end: it is slowed, not stopped.
        assert not precedence.give_way(0.0)
        held.let_go.set()
        assert precedence.give_way(SECONDS)
        thread.join(SECONDS)

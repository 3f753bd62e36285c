"""The worker of one account: it repeats, waits, comes back by itself, and ends when asked."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from agent_reader.errors import NoReadingProcess
from agent_reader.sync.backoff import pause_after
from agent_reader.sync.proven import ProvenLogins
from agent_reader.sync.worker import Worker
from shared.imap_login import ImapFailure
from shared.settings import ConfigurationError
from tests.fakes.accounts import reader_account
from tests.fakes.mirror import FakeMirror
from tests.servers.dovecot import Dovecot
from tests.servers.proxy import BreakingProxy, BreakPoint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Long enough for a round on a busy machine; nothing waits for it to pass.
DEADLINE = 20.0
NEVER = 86_400


@contextmanager
def working(dovecot: Dovecot, folder: Path, mirror: FakeMirror, **changes: Any) -> Iterator[Worker]:
    account = reader_account(dovecot, folder, **({"sync_seconds": NEVER, "push": []} | changes))
    worker = Worker(account, mirror, ProvenLogins(folder / "logins.json"), structlog.get_logger(), lambda: 0.5)
    worker.start()
    try:
        yield worker
    finally:
        worker.stop()
        assert worker.join(DEADLINE)


def mail(subject: str) -> bytes:
    return f"Subject: {subject}\r\n\r\nbody\r\n".encode()


def test_it_brings_everything_in_and_looks_again_when_woken(dovecot: Dovecot, tmp_path: Path) -> None:
    dovecot.deliver("INBOX", mail("one"))
    mirror = FakeMirror()
    with working(dovecot, tmp_path, mirror) as worker:
        worker.first_contact.result(DEADLINE)
        mirror.await_settled(1)
        dovecot.deliver("INBOX", mail("two"))
        worker.wake()
        mirror.await_settled(2)
    assert {1: mail("one"), 2: mail("two")} == mirror.octets("INBOX")
    assert [] == mirror.failures


def test_it_looks_again_by_itself_after_its_pause(dovecot: Dovecot, tmp_path: Path) -> None:
    mirror = FakeMirror()
    with working(dovecot, tmp_path, mirror, sync_seconds=1):
        mirror.await_settled(3)


def test_one_connection_serves_many_rounds(dovecot: Dovecot, tmp_path: Path) -> None:
    mirror = FakeMirror()
    with working(dovecot, tmp_path, mirror) as worker:
        for number in range(1, 4):
            mirror.await_settled(number)
            worker.wake()
        mirror.await_settled(4)
        assert 1 == mirror.let_ins
    assert sum(b" ENABLE " in line for line in dovecot.commands("reader")) == 1


def test_a_server_that_goes_down_is_waited_for_and_nothing_is_lost(dovecot: Dovecot, tmp_path: Path) -> None:
    dovecot.deliver("INBOX", mail("one"))
    mirror = FakeMirror()
    with working(dovecot, tmp_path, mirror) as worker:
        mirror.await_settled(1)
        dovecot.stop()
        worker.wake()
        mirror.await_failures(1)
        worker.wake()
        mirror.await_failures(2)
        assert mirror.failures[-1] == "unreachable"
        assert {1: mail("one")} == mirror.octets("INBOX")
        dovecot.start()
        dovecot.deliver("INBOX", mail("two"))
        worker.wake()
        mirror.await_settled(2)
        assert 2 == mirror.let_ins
    assert {1: mail("one"), 2: mail("two")} == mirror.octets("INBOX")
    assert set() == mirror.destroyed


def test_it_ends_while_the_server_does_not_answer(dovecot: Dovecot, tmp_path: Path) -> None:
    mirror = FakeMirror()
    with (
        BreakingProxy(dovecot.port, b"LIST", BreakPoint.BLACKHOLE) as proxy,
        working(dovecot, tmp_path, mirror, tls="none", port=proxy.port) as worker,
    ):
        assert proxy.broken.wait(DEADLINE)
        # It waits for an answer now, and would for ninety seconds.
        worker.stop()
        assert worker.join(DEADLINE)
    assert [] == mirror.failures


def test_a_store_that_breaks_is_a_failure_of_this_account_and_passes(dovecot: Dovecot, tmp_path: Path) -> None:
    dovecot.deliver("INBOX", mail("one"))
    mirror = FakeMirror()

    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    mirror.on_add = full

    def without_process(_: object) -> None:
        raise NoReadingProcess

    with working(dovecot, tmp_path, mirror) as worker:
        mirror.await_failures(1)
        mirror.on_add = without_process
        dovecot.deliver("INBOX", mail("two"))
        worker.wake()
        mirror.await_failures(2)
        assert ["internal", "no_reading_process"] == mirror.failures
        mirror.on_add = None
        worker.wake()
        mirror.await_settled(1)


def test_the_first_contact_tells_a_wrong_password(dovecot: Dovecot, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("wrong")
    wrong.chmod(0o600)
    mirror = FakeMirror()
    with working(dovecot, tmp_path, mirror, secret_file=wrong) as worker:
        with pytest.raises(ImapFailure) as failure:
            worker.first_contact.result(DEADLINE)
        mirror.await_failures(1)
    assert "login_refused" == failure.value.code
    assert ["login_refused"] == mirror.failures


def test_the_first_contact_tells_a_mailbox_that_is_not_there(dovecot: Dovecot, tmp_path: Path) -> None:
    with (
        working(dovecot, tmp_path, FakeMirror(), mailboxes=["INBOX", "Incomming"]) as worker,
        pytest.raises(ConfigurationError) as error,
    ):
        worker.first_contact.result(DEADLINE)
    assert "`Incomming`" in error.value.what
    assert "`INBOX`" not in error.value.what


def test_a_mailbox_that_went_away_later_does_not_stop_an_account_that_worked(dovecot: Dovecot, tmp_path: Path) -> None:
    with dovecot.rearranging() as owner:
        owner.create("Project")
    dovecot.deliver("INBOX", mail("one"))
    for number in (1, 2):
        mirror = FakeMirror()
        with working(dovecot, tmp_path, mirror, mailboxes=["INBOX", "Project"]) as worker:
            worker.first_contact.result(DEADLINE)
            mirror.await_settled(1)
        assert {1: mail("one")} == mirror.octets("INBOX")
        if number == 1:
            with dovecot.rearranging() as owner:
                owner.delete("Project")


def test_a_login_is_proven_by_a_whole_round_and_another_login_is_not(dovecot: Dovecot, tmp_path: Path) -> None:
    proven = ProvenLogins(tmp_path / "logins.json")
    account = reader_account(dovecot, tmp_path)
    other = reader_account(dovecot, tmp_path, user="someone")
    assert not proven.knows(account)
    mirror = FakeMirror()
    with working(dovecot, tmp_path, mirror) as worker:
        mirror.await_settled(1)
        worker.wake()
        mirror.await_settled(2)
    assert proven.knows(account)
    assert not proven.knows_other(account)
    assert not proven.knows(other)
    assert proven.knows_other(other)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"shop": 7}', "\udcff"])
def test_a_damaged_note_of_proven_logins_proves_nothing(tmp_path: Path, dovecot: Dovecot, text: str) -> None:
    path = tmp_path / "logins.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    proven = ProvenLogins(path)
    account = reader_account(dovecot, tmp_path)
    assert not proven.knows(account)
    proven.prove(account)
    assert proven.knows(account)


def test_pauses_grow_to_five_minutes_are_spread_and_respect_the_server() -> None:
    assert [1.0, 2.0, 4.0, 8.0] == [pause_after(failures, "unreachable", 0.5) for failures in (1, 2, 3, 4)]
    assert pause_after(1_000_000, "unreachable", 0.5) == 300.0
    assert (0.75, 1.25) == (pause_after(1, "unreachable", 0.0), pause_after(1, "unreachable", 1.0))
    assert pause_after(1, "login_refused", 0.5) == 300.0
    assert pause_after(1, "throttled", 0.5) == 1_800.0

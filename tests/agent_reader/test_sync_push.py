"""New mail is in the mirror at once: by NOTIFY, by IDLE, and again after the connection was lost."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import structlog

from agent_reader.errors import Throttled
from agent_reader.imap.precedence import Precedence
from agent_reader.sync.backoff import pause_of
from agent_reader.sync.proven import ProvenLogins
from agent_reader.sync.wakings import Wakings
from agent_reader.sync.worker import Worker
from tests.fakes.accounts import plain_account, reader_account
from tests.fakes.mirror import FakeMirror
from tests.fakes.raw_imap_server import Conversation, RawImapServer
from tests.servers.altering_proxy import AlteringProxy, hiding
from tests.servers.dovecot import Dovecot
from tests.servers.dovecot_config import NON_ASCII_MAILBOX

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_reader.config import Account

# Long enough for a notice on a busy machine; nothing waits for it to pass.
DEADLINE = 30.0
NEVER = 86_400


def mail(subject: str) -> bytes:
    return f"Subject: {subject}\r\n\r\nbody\r\n".encode()


@contextmanager
def working(account: Account, folder: Path, mirror: FakeMirror, **options: Any) -> Iterator[Worker]:
    proven = ProvenLogins(folder / f"{account.id}.json")
    worker = Worker(account, mirror, proven, structlog.get_logger(), lambda: 0.5, **options)
    worker.start()
    try:
        yield worker
    finally:
        worker.stop()
        assert worker.join(DEADLINE)


class Arrivals:
    """Waits until a mailbox of a mirror holds a message."""

    def __init__(self, mirror: FakeMirror) -> None:
        self._mirror, self._added = mirror, threading.Condition()
        mirror.on_add = self._note

    def _note(self, _: object) -> None:
        with self._added:
            self._added.notify_all()

    def wait(self, name: str, octets: bytes) -> None:
        with self._added:
            assert self._added.wait_for(lambda: octets in self._mirror.octets(name).values(), DEADLINE)


def test_new_mail_in_any_mailbox_is_there_long_before_the_next_round(dovecot: Dovecot, tmp_path: Path) -> None:
    mirror = FakeMirror()
    arrivals = Arrivals(mirror)
    with working(reader_account(dovecot, tmp_path, sync_seconds=NEVER), tmp_path, mirror):
        mirror.await_settled(1)
        for name in ("INBOX", NON_ASCII_MAILBOX, "Archive"):
            dovecot.deliver(name, mail(name))
            arrivals.wait(name, mail(name))
    assert [] == mirror.failures


def test_a_deletion_is_settled_without_waiting_for_the_next_round(dovecot: Dovecot, tmp_path: Path) -> None:
    dovecot.deliver("INBOX", mail("goes"))
    mirror = FakeMirror()
    with working(reader_account(dovecot, tmp_path, sync_seconds=NEVER), tmp_path, mirror):
        mirror.await_settled(1)
        with dovecot.connect() as owner:
            owner.select("INBOX")
            owner.uid("STORE", "1", "+FLAGS", "(\\Deleted)")
            owner.uid("EXPUNGE", "1")
        with mirror.happened:
            assert mirror.happened.wait_for(lambda: mirror.destroyed, DEADLINE)


def test_nothing_is_touched_by_all_that_listens_and_looks(dovecot: Dovecot, tmp_path: Path) -> None:
    for name in ("INBOX", "Archive", NON_ASCII_MAILBOX):
        dovecot.deliver(name, mail("unread"))
        dovecot.deliver(name, mail("read"), ["\\Seen", "kept"])
    before = dovecot.snapshot()
    mirror = FakeMirror()
    with working(reader_account(dovecot, tmp_path, sync_seconds=1), tmp_path, mirror):
        mirror.await_settled(3)
    with AlteringProxy(dovecot.port, hiding(b"NOTIFY", b"QRESYNC", b"CONDSTORE")) as proxy:
        account = reader_account(dovecot, tmp_path, tls="none", port=proxy.port, ca_file=None, sync_seconds=1)
        with working(account, tmp_path, mirror):
            mirror.await_settled(6)
    # Flags, MODSEQ, \Recent, counts and subscriptions of every mailbox.
    assert before == dovecot.snapshot()
    assert any(message.recent for mailbox in before.mailboxes.values() for message in mailbox.messages.values())


def test_where_there_is_no_notify_the_chosen_mailboxes_are_listened_to_by_idle(
    dovecot: Dovecot, tmp_path: Path
) -> None:
    mirror = FakeMirror()
    arrivals = Arrivals(mirror)
    with AlteringProxy(dovecot.port, hiding(b"NOTIFY")) as proxy:
        account = reader_account(
            dovecot,
            tmp_path,
            tls="none",
            port=proxy.port,
            ca_file=None,
            sync_seconds=NEVER,
            push=["Incoming", "Archive"],
        )
        with working(account, tmp_path, mirror):
            mirror.await_settled(1)
            for name in ("Incoming", "Archive", "Incoming"):
                dovecot.deliver(name, mail(f"{name} {time.monotonic_ns()}"))
                newest = max(dovecot.snapshot()[name].messages)
                _await_uid(mirror, arrivals, name, newest)
    said = [line for line in dovecot.commands("reader") if b"NOTIFY" in line or line.endswith(b" IDLE")]
    assert said
    assert not any(b"NOTIFY" in line for line in said)


def _await_uid(mirror: FakeMirror, arrivals: Arrivals, name: str, uid: int) -> None:
    with arrivals._added:
        assert arrivals._added.wait_for(lambda: uid in mirror.named(name).messages, DEADLINE)


def test_without_idle_it_polls(dovecot: Dovecot, tmp_path: Path) -> None:
    mirror = FakeMirror()
    arrivals = Arrivals(mirror)
    with AlteringProxy(dovecot.port, hiding(b"IDLE", b"NOTIFY")) as proxy:
        account = reader_account(dovecot, tmp_path, tls="none", port=proxy.port, ca_file=None, sync_seconds=1)
        with working(account, tmp_path, mirror):
            mirror.await_settled(1)
            dovecot.deliver("INBOX", mail("polled"))
            arrivals.wait("INBOX", mail("polled"))
    assert not any(b"IDLE" in line for line in dovecot.commands("reader"))


def test_after_the_connections_were_lost_it_listens_again_and_misses_nothing(dovecot: Dovecot, tmp_path: Path) -> None:
    mirror = FakeMirror()
    arrivals = Arrivals(mirror)
    with working(reader_account(dovecot, tmp_path, sync_seconds=NEVER), tmp_path, mirror):
        mirror.await_settled(1)
        dovecot.kill_session("reader")
        dovecot.deliver("INBOX", mail("meanwhile"))
        arrivals.wait("INBOX", mail("meanwhile"))
        dovecot.deliver("Archive", mail("afterwards"))
        arrivals.wait("Archive", mail("afterwards"))


def test_an_account_whose_server_is_silent_holds_up_no_other(dovecot: Dovecot, tmp_path: Path) -> None:
    def silent(conversation: Conversation, _: bytes, command: bytes) -> bool:
        if not command.startswith(b"LIST"):
            return False
        conversation.say_nothing()
        return True

    stuck, lively = FakeMirror(), FakeMirror()
    arrivals = Arrivals(lively)
    with RawImapServer(silent) as server:
        stuck_account = plain_account(server.port, tmp_path, id="stuck")
        with (
            working(stuck_account, tmp_path, stuck),
            working(reader_account(dovecot, tmp_path, sync_seconds=NEVER), tmp_path, lively),
        ):
            lively.await_settled(1)
            dovecot.deliver("INBOX", mail("not held up"))
            arrivals.wait("INBOX", mail("not held up"))
    assert stuck.settled == 0


def test_an_account_with_a_huge_backlog_holds_up_neither_another_nor_its_own_new_mail(
    dovecot: Dovecot, tmp_path: Path
) -> None:
    dovecot.fill("Archive", (mail(str(number)) for number in range(1_000)))
    huge, small = FakeMirror(), FakeMirror()
    may_go_on = threading.Semaphore(0)
    first_batch = threading.Event()
    fresh = threading.Event()

    def slowly(_: list[int]) -> None:
        first_batch.set()
        if ("INBOX", 1) in huge.added:
            fresh.set()
        elif not fresh.is_set():
            may_go_on.acquire(timeout=DEADLINE)

    huge.on_add = slowly
    arrivals = Arrivals(small)
    other = reader_account(dovecot, tmp_path, id="other", mailboxes=["Incoming"], sync_seconds=NEVER)
    with working(reader_account(dovecot, tmp_path, sync_seconds=NEVER), tmp_path, huge) as worker:
        assert first_batch.wait(DEADLINE)
        with working(other, tmp_path, small):
            small.await_settled(1)
            dovecot.deliver("Incoming", mail("for the other"))
            arrivals.wait("Incoming", mail("for the other"))
        assert len(huge.added) < 1_000
        dovecot.deliver("INBOX", mail("fresh"))
        with worker._wakings._told:
            assert worker._wakings._told.wait_for(
                lambda: worker._wakings.everything or "INBOX" in worker._wakings._names, DEADLINE
            )
        # It hears of it between two of the five batches; the next ones may be under way.
        may_go_on.release(3)
        assert fresh.wait(DEADLINE)
        assert len(huge.added) < 1_000


def test_the_sync_stands_back_while_somebody_waits_for_octets(dovecot: Dovecot, tmp_path: Path) -> None:
    dovecot.fill("INBOX", (mail(str(number)) for number in range(450)))
    mirror, precedence = FakeMirror(), Precedence()
    waits: list[bool] = []
    real = precedence.give_way

    def give_way(most_seconds: float = 0.0) -> bool:
        waits.append(True)
        return real(most_seconds)

    precedence.give_way = give_way  # type: ignore[method-assign]  # counts, and does what it did
    account = reader_account(dovecot, tmp_path, sync_seconds=NEVER, push=[])
    with precedence.foreground(), working(account, tmp_path, mirror, precedence=precedence):
        mirror.await_settled(1)
    assert 450 == len(mirror.octets("INBOX"))
    assert len(waits) >= 4


def test_a_server_that_states_a_time_is_left_alone_whatever_news_there_is(tmp_path: Path) -> None:
    def throttling(conversation: Conversation, tag: bytes, command: bytes) -> bool:
        if not command.startswith(b"LIST"):
            return False
        conversation.say(tag + b" BAD Request is throttled. Suggested Backoff Time: 299961 milliseconds\r\n")
        return True

    mirror = FakeMirror()
    with RawImapServer(throttling) as server, working(plain_account(server.port, tmp_path), tmp_path, mirror) as worker:
        mirror.await_failures(1)
        assert ["throttled"] == mirror.failures
        worker._wakings.wake(["INBOX"])
        worker._wakings.wake_all()
        # Only a person who insists is obeyed sooner.
        worker.wake()
        mirror.await_failures(2)
        assert 2 == server.connections


def test_a_stated_time_is_waited_out_and_a_quota_is_hours() -> None:
    stated = Throttled("x", "Suggested Backoff Time: 299961 milliseconds")
    assert 299.961 == pause_of(stated, 1, 0.0)
    assert 299.961 < pause_of(stated, 9, 1.0) < 331
    quota = Throttled("x", "[OVERQUOTA] Account exceeded command or bandwidth limits.")
    assert [3_600.0, 7_200.0, 14_400.0, 21_600.0, 21_600.0] == [
        pause_of(quota, failures, 0.0) for failures in range(1, 6)
    ]
    assert 1_800.0 == pause_of(Throttled("x", "[THROTTLED] no"), 1, 0.5)


def test_wakings_lose_nothing_and_a_rest_is_ended_by_insistence_only() -> None:
    wakings = Wakings()
    wakings.wake(["a"])
    wakings.wake(["b"])
    wakings.wait(DEADLINE)
    assert {"a", "b"} == wakings.take()
    assert frozenset() == wakings.take()
    wakings.wake_all()
    wakings.rest(0.0)
    wakings.wake(["c"])
    before = wakings.everything
    assert {"c"} == wakings.take_all()
    assert (True, False) == (before, wakings.everything)
    assert frozenset() == wakings.take()
    resting = threading.Thread(target=wakings.rest, args=(DEADLINE,))
    resting.start()
    while resting.is_alive():
        wakings.insist()
        resting.join(0.01)
    wakings.end()
    wakings.take_all()
    wakings.wait(DEADLINE)

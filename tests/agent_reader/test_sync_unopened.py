"""A mailbox in which nothing happened is not opened, where LIST tells that (RFC 5819), and nothing is lost by that."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import structlog

from agent_reader.imap.session import ReadOnlySession
from agent_reader.imap.values import MailboxStatus
from agent_reader.store import DataType
from agent_reader.sync.proven import ProvenLogins
from agent_reader.sync.run import Round, Sync
from agent_reader.sync.terms import Terms
from agent_reader.sync.worker import Worker
from tests.agent_reader.mirrored import ACCOUNT, letter, mirrored
from tests.agent_reader.unopened_world import NONE, Liar, scripted, scripted_store
from tests.fakes.accounts import plain_account, reader_account
from tests.fakes.imap_server import ScriptedImapServer
from tests.fakes.imap_world import CONDSTORE, LISTING_STATUS, ImapWorld
from tests.fakes.mirror import FakeMirror

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.servers.dovecot import Dovecot

NOTHING = Round(whole=True, taken_in=0, changed=0, vanished=0, set_aside=0, missing=())
LONG = timedelta(minutes=11)


def test_a_round_without_news_says_two_commands_and_one_with_news_opens_that_mailbox_only(
    dovecot: Dovecot, tmp_path: Path
) -> None:
    dovecot.deliver("INBOX", b"Subject: one\r\n\r\nbody\r\n")
    dovecot.deliver("Archive", b"Subject: two\r\n\r\nbody\r\n")
    mirror = FakeMirror()

    def said(sync: Sync) -> tuple[Round, list[bytes]]:
        begin = len(dovecot.commands("reader"))
        done = sync.round(session)
        return done, [line.partition(b" ")[2] for line in dovecot.commands("reader")[begin:]]

    listing = b'LIST "" "*" RETURN (SUBSCRIBED SPECIAL-USE STATUS (MESSAGES UIDNEXT UIDVALIDITY HIGHESTMODSEQ))'
    with contextlib.closing(ReadOnlySession.open(reader_account(dovecot, tmp_path))) as session:
        sync = Sync(mirror, None, structlog.get_logger())
        assert sync.round(session).whole
        looks = mirror.named("Archive").looks
        # The last one that was opened is not INBOX, which is open from now on.
        assert (NOTHING, [b'EXAMINE "INBOX"', listing]) == said(sync)
        assert (NOTHING, [b"NOOP", listing]) == said(sync)
        # Another process, which knows only what the mirror keeps.
        assert (NOTHING, [b"NOOP", listing]) == said(Sync(mirror, None, structlog.get_logger()))
        assert looks + 3 == mirror.named("Archive").looks
        before = dovecot.snapshot()
        with dovecot.connect() as owner:
            owner.select("Archive")
            owner.uid("STORE", "1", "+FLAGS", "(\\Flagged)")
        dovecot.deliver("INBOX", b"Subject: three\r\n\r\nbody\r\n")
        done, commands = said(sync)
        assert (1, 1) == (done.taken_in, done.changed)
        opened = [line.split(b'"')[1] for line in commands if line.startswith(b"EXAMINE")]
        assert {b"INBOX", b"Archive"} == set(opened)
        with dovecot.connect() as owner:
            owner.select("INBOX")
            owner.uid("STORE", "1", "+FLAGS", "(\\Answered)")
            owner._simple_command("UID", "MOVE", "2", "Work" if "Work" in before.mailboxes else "Processed")
        done, _ = said(sync)
        assert (1, 1, 1) == (done.taken_in, done.changed, done.vanished)
        assert frozenset({"\\Answered"}) == mirror.named("INBOX").messages[1].state.flags
        assert set() == mirror.destroyed


def test_only_what_status_tells_of_is_opened(tmp_path: Path) -> None:
    with scripted(tmp_path) as of_it:
        assert (NOTHING, [b"INBOX"]) == of_it.round()
        assert (NOTHING, []) == of_it.round()
        of_it.world.flag("Work", 1, frozenset({"\\Seen"}))
        done, opened = of_it.round()
        assert (1, [b"Work"]) == (done.changed, opened)
        # Only INBOX stays open: any other may be deleted or renamed.
        assert b"UNSELECT" == of_it.server.commands[-1]
        of_it.world.move("Archive", 1, "Work")
        done, opened = of_it.round()
        assert (1, 1, {b"Work", b"Archive", b"INBOX"}) == (done.taken_in, done.vanished, set(opened))
        of_it.round()
    assert set() == of_it.mirror.destroyed


@pytest.mark.parametrize(
    "lie",
    [
        lambda told: told | {"HIGHESTMODSEQ": 0},
        lambda told: {item: number for item, number in told.items() if item != "HIGHESTMODSEQ"},
        lambda told: {item: number for item, number in told.items() if item != "UIDNEXT"},
        lambda told: told | {"UIDNEXT": 1},
        lambda told: told | {"UIDVALIDITY": told["UIDVALIDITY"] + 7},
        lambda told: told | {"MESSAGES": told["MESSAGES"] + 1},
        lambda told: told | {"HIGHESTMODSEQ": 1},
        lambda _: {},
    ],
    ids=[
        "no-modseq",
        "without-modseq",
        "without-uidnext",
        "uidnext-back",
        "uidvalidity",
        "count",
        "modseq-back",
        "none",
    ],
)
def test_where_status_tells_too_little_or_another_thing_each_mailbox_is_opened_and_stays_what_it_was(
    tmp_path: Path, lie: Callable[[dict[str, int]], dict[str, int]]
) -> None:
    with scripted(tmp_path) as of_it:
        of_it.world.lie = lie
        for sync in (of_it.sync, of_it.new_sync()):
            done, opened = of_it.round(sync)
            assert (NOTHING, {b"INBOX", b"Archive", b"Work"}) == (done, set(opened))
        of_it.world.flag("Work", 1, frozenset({"\\Seen"}))
        assert 1 == of_it.round()[0].changed


def test_without_mod_sequences_every_mailbox_is_always_opened(tmp_path: Path) -> None:
    with scripted(tmp_path, LISTING_STATUS.replace(b" ENABLE CONDSTORE", b"")) as of_it:
        # The same numbers hide a changed flag.
        of_it.world.boxes["Work"].messages[1].flags = frozenset({"\\Seen"})
        done, opened = of_it.round()
        assert (1, {b"INBOX", b"Archive", b"Work"}) == (done.changed, set(opened))
    assert not any(b"STATUS" in line for line in of_it.server.commands)


def test_without_the_extension_nothing_of_it_is_said(tmp_path: Path) -> None:
    with scripted(tmp_path, CONDSTORE) as of_it:
        assert {b"INBOX", b"Archive", b"Work"} == set(of_it.round()[1])
        assert b"UNSELECT" == of_it.server.commands[-1]
    assert not any(b"STATUS" in line or line == b"NOOP" for line in of_it.server.commands)


def test_a_server_that_tells_by_status_what_was_long_ago_is_looked_into_now_and_then(tmp_path: Path) -> None:
    with scripted(tmp_path) as of_it:
        of_it.round()
        told = {name: of_it.world.told_by_status(box) for name, box in of_it.world.boxes.items()}
        by_uidvalidity = {each["UIDVALIDITY"]: each for each in told.values()}
        of_it.world.lie = lambda told: by_uidvalidity[told["UIDVALIDITY"]]
        of_it.world.deliver("Work", letter("late"), NONE)
        assert (NOTHING, []) == of_it.round()
        # Who is told that there is news believes that.
        assert 1 == of_it.sync.round(of_it.session, ["Work"]).taken_in
        of_it.world.flag("Archive", 1, frozenset({"\\Seen"}))
        assert 0 == of_it.round()[0].changed
        of_it.clock.now += LONG
        assert 1 == of_it.round()[0].changed


@pytest.mark.parametrize("is_late", [False, True], ids=["before", "as-it-begins"])
def test_a_round_opens_what_a_listener_was_told_of_before_it(tmp_path: Path, is_late: bool) -> None:
    world, mirror = Liar(), FakeMirror()
    world.create("Work")
    with ScriptedImapServer(world.answer, LISTING_STATUS) as server:
        account = plain_account(server.port, tmp_path, sync_seconds=86_400, push=[])
        worker = Worker(account, mirror, ProvenLogins(tmp_path / "proven"), structlog.get_logger(), lambda: 0.5)
        wakings = worker._wakings
        take = wakings.take

        def taken_before() -> frozenset[str]:
            wakings.take = take  # type: ignore[method-assign]  # what comes between two steps of another thread
            names = take()
            wakings.wake(["Work"])
            return names

        def deliver_in_secret(told: dict[str, int]) -> dict[str, int]:
            world.lie = lambda told: by_uidvalidity[told["UIDVALIDITY"]]
            world.deliver("Work", letter("told of"), NONE)
            if is_late:
                wakings.take = taken_before  # type: ignore[method-assign]  # see above
            else:
                wakings.wake(["Work"])
            wakings.wake_all()
            return told

        worker.start()
        try:
            mirror.await_settled(1)
            by_uidvalidity = {
                each["UIDVALIDITY"]: each for each in (world.told_by_status(box) for box in world.boxes.values())
            }
            world.lie = deliver_in_secret
            worker.wake()
            mirror.await_settled(3)
        finally:
            worker.stop()
            assert worker.join(20)
    assert b'EXAMINE "Work"' == [line for line in server.commands if line.startswith(b"EXAMINE")][-1]
    assert letter("told of") in mirror.octets("Work").values()


def test_what_a_mailbox_tells_as_it_is_opened_is_believed_more_than_its_count_of_changes(tmp_path: Path) -> None:
    with scripted(tmp_path, LISTING_STATUS + b" QRESYNC") as of_it:
        of_it.round()
        answer = of_it.world.answer

        def telling(command: bytes) -> tuple[list[bytes], bytes] | None:
            told = answer(command)
            if told is not None and command.startswith(b'EXAMINE "Work" (QRESYNC'):
                told[0].append(b"1 FETCH (UID 1 FLAGS (\\Flagged) MODSEQ (9))")
            return told

        of_it.server._answer = telling
        assert 1 == of_it.sync.round(of_it.session, ["Work"]).changed
    assert frozenset({"\\Flagged"}) == of_it.mirror.named("Work").messages[1].state.flags


def test_what_the_open_mailbox_says_unasked_is_news_whatever_its_status(tmp_path: Path) -> None:
    with scripted(tmp_path) as of_it:
        of_it.round()
        told = of_it.world.told_by_status(of_it.world.boxes["INBOX"])
        of_it.world.lie = lambda now: told if now["UIDVALIDITY"] == told["UIDVALIDITY"] else now
        answer = of_it.world.answer

        def speaking(command: bytes) -> tuple[list[bytes], bytes] | None:
            return ([b"2 EXISTS"], b"OK done") if command == b"NOOP" else answer(command)

        of_it.world.deliver("INBOX", letter("new"), NONE)
        assert (NOTHING, []) == of_it.round()
        of_it.server._answer = speaking
        done, opened = of_it.round()
        assert (1, [b"INBOX"]) == (done.taken_in, opened)


def test_a_mailbox_that_could_not_be_opened_is_tried_until_it_can_be(tmp_path: Path) -> None:
    with scripted(tmp_path) as of_it:
        of_it.round()
        of_it.world.refused = b"Work"
        assert not of_it.sync.round(of_it.session, ["Work"]).whole
        done, opened = of_it.round()
        # A refusal leaves no mailbox open, so INBOX is opened anew.
        assert (False, [b"INBOX", b"Work"]) == (done.whole, opened)
        of_it.world.refused = b"nothing"
        assert (NOTHING, [b"INBOX", b"Work"]) == of_it.round()
        assert (NOTHING, [b"INBOX"]) == of_it.round()
        assert (NOTHING, []) == of_it.round()


def test_another_login_opens_everything(tmp_path: Path) -> None:
    with scripted(tmp_path) as of_it:
        other = Sync(of_it.mirror, None, structlog.get_logger(), restart_all=True)
        done, opened = of_it.round(other)
        assert (3, {b"INBOX", b"Archive", b"Work"}) == (done.taken_in, set(opened))


def test_what_is_moved_between_the_listing_and_the_look_is_not_destroyed(tmp_path: Path) -> None:
    with scripted_store(tmp_path) as (_, world, store, _, one_round):
        world.create("Work")
        world.deliver("Work", letter("Work"), NONE)
        for _ in range(3):
            one_round()
        world.flag("Work", 1, frozenset({"\\Seen"}))
        # Archive, as LIST told, is as it was; when Work is opened its message is there.
        world.happens = lambda: None
        one_round()
        world.flag("Work", 1, NONE)
        with store.snapshot(ACCOUNT) as snapshot:
            before = snapshot.state
        # INBOX is opened before the listing, Work after it.
        world.happens = lambda: setattr(world, "happens", lambda: world.move("Work", 1, "Archive"))
        one_round()
        assert 3 == store.status(ACCOUNT).messages
        one_round()
        assert 3 == store.status(ACCOUNT).messages
        with store.snapshot(ACCOUNT) as snapshot:
            changes = snapshot.changes(DataType.EMAIL, before, 500)
        assert ([], 1, []) == (list(changes.created), len(changes.updated), list(changes.destroyed))


def test_a_mailbox_of_which_something_is_missing_is_opened_by_the_next_process(tmp_path: Path) -> None:
    world = ImapWorld()
    for number in range(3):
        world.deliver("INBOX", letter(str(number)), NONE)
    world.create("Archive")
    with (
        ScriptedImapServer(world.answer, LISTING_STATUS) as server,
        mirrored(tmp_path / "store") as here,
        contextlib.closing(ReadOnlySession.open(plain_account(server.port, tmp_path))) as session,
    ):
        whole = Sync(here.mirror, None, structlog.get_logger())
        assert whole.round(session).whole
        inbox, _ = here.mirror.mailboxes()
        assert MailboxStatus(1, 4, 3, 4) == inbox.whole_at
        world.deliver("INBOX", letter("more"), NONE)
        # Nothing may be fetched: as if it were killed before the batch came in.
        is_over = Sync(here.mirror, None, structlog.get_logger(), terms=Terms(allows=lambda _: False))
        assert not is_over.round(session).whole
        assert not is_over.round(session).whole
        assert here.mirror.mailboxes()[0].whole_at is None
        assert 1 == Sync(here.mirror, None, structlog.get_logger()).round(session).taken_in
        assert here.mirror.mailboxes()[0].whole_at is not None


def test_what_another_version_may_read_better_is_asked_for_again(tmp_path: Path) -> None:
    world = ImapWorld()
    world.deliver("INBOX", letter("one"), NONE)
    with (
        ScriptedImapServer(world.answer, LISTING_STATUS) as server,
        mirrored(tmp_path / "store") as here,
        contextlib.closing(ReadOnlySession.open(plain_account(server.port, tmp_path))) as session,
    ):
        assert Sync(here.mirror, None, structlog.get_logger()).round(session).whole
        connection = here.mirror._connection
        connection.execute("INSERT INTO set_aside SELECT mailbox_key, uid, 'c', 'c', 'f', 'older', 0 FROM copies")
        connection.execute("DELETE FROM copies")
        here.reopen()
        assert 1 == Sync(here.mirror, None, structlog.get_logger()).round(session).taken_in


def test_a_round_without_news_is_a_look_at_every_mailbox(tmp_path: Path) -> None:
    with scripted_store(tmp_path) as (server, world, store, clock, one_round):
        one_round()
        world.expunge("Archive", 1)
        one_round()
        # It may have been moved to where was looked before.
        assert 2 == store.status(ACCOUNT).messages
        clock.now += timedelta(seconds=30)
        begin = len(server.commands)
        one_round()
        assert not any(b"Archive" in line for line in server.commands[begin:])
        assert 1 == store.status(ACCOUNT).messages
        assert [clock.now] * 2 == [each.looked_at for each in store.progress(ACCOUNT).mailboxes]
        assert clock.now == store.status(ACCOUNT).settled_at
        store.account(ACCOUNT).mailbox_failed(store.account(ACCOUNT).mailboxes()[1].id, "c", "d", "f")
        one_round()
        assert [None] * 2 == [each.failure for each in store.progress(ACCOUNT).mailboxes]

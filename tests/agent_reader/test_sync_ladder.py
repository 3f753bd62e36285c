"""Each rung of the ladder on a real server that offers no more: what happened is seen, by as little as it needs."""

from __future__ import annotations

import contextlib
import itertools
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import structlog

from agent_reader.imap.session import ReadOnlySession
from agent_reader.store.store import Store
from agent_reader.sync.order import Age
from agent_reader.sync.run import Ending, Round, Sync
from agent_reader.sync.terms import Terms
from shared.identity import email_id, message_digest
from shared.imap_login import ImapFailure
from tests.fakes.accounts import plain_account, reader_account
from tests.fakes.mirror import FakeMirror
from tests.servers.altering_proxy import AlteringProxy, hiding
from tests.servers.dovecot import Dovecot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

RUNGS = {
    "QRESYNC": (),
    "CONDSTORE and ESEARCH": (b"QRESYNC",),
    "CONDSTORE and SEARCH": (b"QRESYNC", b"ESEARCH"),
    "UIDs and flags": (b"QRESYNC", b"ESEARCH", b"CONDSTORE"),
    "hardly anything": (b"QRESYNC", b"ESEARCH", b"CONDSTORE", b"ENABLE", b"LIST-EXTENDED", b"UNSELECT", b"NAMESPACE"),
}


def mail(subject: str) -> bytes:
    return f"Subject: {subject}\r\nMessage-ID: <{subject}@x>\r\n\r\nbody\r\n".encode()


@contextlib.contextmanager
def session_behind(dovecot: Dovecot, folder: Path, alter: Callable[[bytes], bytes | None]) -> Iterator[ReadOnlySession]:
    with AlteringProxy(dovecot.port, alter) as proxy:
        account = plain_account(proxy.port, folder)
        (folder / "plain.secret").chmod(0o600)
        (folder / "plain.secret").write_text(dovecot.passwords["reader"])
        with contextlib.closing(ReadOnlySession.open(account)) as session:
            yield session


def new_sync(mirror: FakeMirror, terms: Terms | None = None) -> Sync:
    return Sync(mirror, None, structlog.get_logger(), terms=terms)


@pytest.mark.parametrize("rung", RUNGS)
def test_new_changed_moved_and_vanished_messages_are_seen(dovecot: Dovecot, tmp_path: Path, rung: str) -> None:
    for subject in ("stays", "changes", "moves", "goes"):
        dovecot.deliver("Incoming", mail(subject))
    dovecot.deliver("Archive", mail("elsewhere"), ["\\Seen"])
    before = dovecot.snapshot()
    mirror = FakeMirror()
    with session_behind(dovecot, tmp_path, hiding(*RUNGS[rung])) as session:
        assert new_sync(mirror).round(session).whole
        assert before == dovecot.snapshot()
        with dovecot.connect() as owner:
            owner.select("Incoming")
            owner.uid("STORE", "2", "+FLAGS", "(\\Flagged later)")
            owner._simple_command("UID", "MOVE", "3", "Processed")
            owner.uid("STORE", "4", "+FLAGS", "(\\Deleted)")
            owner.uid("EXPUNGE", "4")
        dovecot.deliver("Incoming", mail("new"))
        # Another process, which knows only what the mirror keeps.
        done = new_sync(mirror).round(session)
        assert (True, 2, 1, 2) == (done.whole, done.taken_in, done.changed, done.vanished)
        again = new_sync(mirror).round(session)
    assert Round(whole=True, taken_in=0, changed=0, vanished=0, set_aside=0, missing=()) == again
    assert {1, 2, 5} == mirror.named("Incoming").messages.keys()
    assert frozenset({"\\Flagged", "later"}) == mirror.named("Incoming").messages[2].state.flags
    assert {email_id(message_digest(mail("goes")))} == mirror.destroyed
    # The mirror refuses a message that is fetched twice, so each came once.
    assert 7 == len(mirror.added)


def questions(dovecot: Dovecot, begin: int) -> list[bytes]:
    said = [line.partition(b" ")[2] for line in dovecot.commands("reader")[begin:]]
    return [line for line in said if line.startswith((b"EXAMINE", b"UID"))]


def test_with_qresync_alone_a_mailbox_where_nothing_happened_costs_one_command(
    dovecot: Dovecot, tmp_path: Path
) -> None:
    for number in range(30):
        dovecot.deliver("INBOX", mail(str(number)))
    mirror = FakeMirror()
    with session_behind(dovecot, tmp_path, hiding(b"LIST-STATUS")) as session:
        Sync(mirror, ["INBOX"], structlog.get_logger()).round(session)
        begin = len(dovecot.commands("reader"))
        assert Sync(mirror, ["INBOX"], structlog.get_logger()).round(session).whole
        inbox = mirror.named("INBOX")
        assert [b'EXAMINE "INBOX" (QRESYNC (%d %d))' % (inbox.uidvalidity or 0, inbox.highestmodseq or 0)] == questions(
            dovecot, begin
        )
        dovecot.deliver("INBOX", mail("new"))
        begin = len(dovecot.commands("reader"))
        assert Sync(mirror, ["INBOX"], structlog.get_logger()).round(session).taken_in == 1
    verbs = [line.split(b" ")[0:2] for line in questions(dovecot, begin)]
    assert [[b"EXAMINE", b'"INBOX"'], [b"UID", b"FETCH"], [b"UID", b"FETCH"]] == verbs


def test_the_newest_week_of_every_mailbox_comes_before_older_mail_of_any(dovecot: Dovecot, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    for name, days in (("INBOX", (400, 60, 2, 1)), ("Archive", (500, 90, 20)), ("Sent", (40, 3))):
        for each in days:
            dovecot.deliver(name, mail(f"{name} {each}"), internaldate=now - timedelta(days=each))
    mirror = FakeMirror()
    with contextlib.closing(ReadOnlySession.open(reader_account(dovecot, tmp_path))) as session:
        assert new_sync(mirror).round(session).whole
    sent = {name: mirror.named(name).messages for name in ("INBOX", "Archive", "Sent")}
    ages = [(now - sent[name][uid].internaldate).days for name, uid in mirror.added]
    week, older = ages[:3], ages[3:]
    assert {1, 2, 3} == set(week)
    assert [20] == older[:1]
    assert {400, 500} == set(older[-2:])


def test_an_interrupted_first_sync_goes_on_where_it_was_and_asks_for_no_flags_again(
    dovecot: Dovecot, tmp_path: Path
) -> None:
    dovecot.fill("INBOX", (mail(str(number)) for number in range(450)))
    mirror = FakeMirror()
    batches = itertools.count(1)

    def end_it(_: object) -> None:
        if next(batches) == 2:
            raise KeyboardInterrupt

    mirror.on_add = end_it
    with contextlib.closing(ReadOnlySession.open(reader_account(dovecot, tmp_path))) as session:
        with pytest.raises(KeyboardInterrupt):
            new_sync(mirror).round(session)
        mirror.on_add = None
        begin = len(dovecot.commands("reader"))
        assert new_sync(mirror).round(session).whole
    assert {str(number).encode() for number in range(450)} == {
        octets.split(b"\r\n")[0].removeprefix(b"Subject: ") for octets in mirror.octets("INBOX").values()
    }
    assert 450 == len(mirror.added)
    assert not any(b"FLAGS MODSEQ) (" in line or b"1:* (FLAGS" in line for line in questions(dovecot, begin))


def test_a_batch_that_could_not_be_stored_comes_with_the_next_round(dovecot: Dovecot, tmp_path: Path) -> None:
    dovecot.fill("INBOX", (mail(str(number)) for number in range(250)))
    mirror = FakeMirror()

    def full(_: object) -> None:
        mirror.named("INBOX").messages.clear()
        mirror.added.clear()
        raise OSError(28, "No space left on device")

    mirror.on_add = full
    sync = new_sync(mirror)
    with contextlib.closing(ReadOnlySession.open(reader_account(dovecot, tmp_path))) as session:
        with pytest.raises(OSError, match="No space"):
            sync.round(session)
        mirror.on_add = None
        assert sync.round(session).whole
    assert 250 == len(mirror.added)


def test_what_is_urgent_is_looked_at_between_two_steps_of_a_long_backlog(dovecot: Dovecot, tmp_path: Path) -> None:
    dovecot.fill("Archive", (mail(str(number)) for number in range(700)))
    mirror = FakeMirror()
    steps = itertools.count(1)

    def between() -> list[str]:
        if next(steps) != 3:
            return []
        dovecot.deliver("INBOX", mail("urgent"))
        return ["INBOX"]

    with contextlib.closing(ReadOnlySession.open(reader_account(dovecot, tmp_path))) as session:
        assert new_sync(mirror, Terms(between=between)).round(session).whole
    at = mirror.added.index(("INBOX", 1))
    assert at < 500
    assert 701 == len(mirror.added)


def test_a_round_that_is_over_leaves_its_backlog_to_the_next_and_settles_nothing(
    dovecot: Dovecot, tmp_path: Path
) -> None:
    dovecot.fill("Archive", (mail(str(number)) for number in range(500)))
    mirror = FakeMirror()
    sync = new_sync(mirror, Terms(is_over=lambda: True))
    endings: list[Ending] = []
    with contextlib.closing(ReadOnlySession.open(reader_account(dovecot, tmp_path))) as session:
        while not endings or endings[-1] is Ending.OVER:
            endings.append(sync.round(session).ending)
            assert len(endings) < 20
        assert mirror.settled == 1
    assert [Ending.OVER] * (len(endings) - 1) + [Ending.ALL_IN] == endings
    assert 500 == len(mirror.added)
    # The UIDs are listed once, not in each round.
    assert 1 == sum(b"RETURN (ALL)" in line for line in questions(dovecot, 0))


def test_when_the_day_is_spent_new_mail_still_comes_in_and_older_mail_waits(dovecot: Dovecot, tmp_path: Path) -> None:
    old = datetime.now(UTC) - timedelta(days=100)
    dovecot.deliver("INBOX", mail("old"), internaldate=old)
    dovecot.deliver("INBOX", mail("new"))
    mirror = FakeMirror()
    spent = [True]
    sync = new_sync(mirror, Terms(allows=lambda age: age is Age.WEEK or not spent))
    with contextlib.closing(ReadOnlySession.open(reader_account(dovecot, tmp_path))) as session:
        done = sync.round(session)
        assert (False, 1, Ending.SPENT) == (done.whole, done.taken_in, done.ending)
        assert {2} == mirror.named("INBOX").messages.keys()
        dovecot.deliver("INBOX", mail("newer"))
        assert 1 == sync.round(session).taken_in
        assert mirror.settled == 0
        spent.clear()
        assert sync.round(session).whole
    assert [("INBOX", 2), ("INBOX", 3), ("INBOX", 1)] == mirror.added


def test_a_connection_dropped_at_every_answer_of_a_sync_loses_nothing_and_fetches_nothing_twice(
    dovecot: Dovecot, tmp_path: Path
) -> None:
    for subject in ("one", "two"):
        dovecot.deliver("INBOX", mail(subject))
    dovecot.deliver("Archive", mail("three"))
    mirror = FakeMirror()
    whole = False
    dropped = 0
    while not whole:
        dropped += 1
        left = itertools.count(-dropped)

        def alter(line: bytes, left: Iterator[int] = left) -> bytes | None:
            # What was said before a tagged answer has arrived by then; the answer itself never does.
            return line if line.startswith(b"*") or b" OK " not in line or next(left) < 0 else None

        # Each time with whatever the mirror has by then, now and then from the beginning.
        mirror = FakeMirror() if dropped % 4 == 0 else mirror
        with contextlib.suppress(ImapFailure), session_behind(dovecot, tmp_path, alter) as session:
            whole = Sync(mirror, ["INBOX", "Archive"], structlog.get_logger()).round(session).whole
        assert mirror.destroyed == set()
        assert dropped < 100
    assert {1: mail("one"), 2: mail("two")} == mirror.octets("INBOX")
    assert {1: mail("three")} == mirror.octets("Archive")
    assert dropped > 10


def test_in_the_real_store_an_interruption_at_every_line_ends_the_same(dovecot: Dovecot, tmp_path: Path) -> None:
    dovecot.deliver("INBOX", mail("one"))
    dovecot.deliver("INBOX", mail("two"))
    with contextlib.closing(Store(tmp_path / "store", lambda: datetime.now(UTC))) as store:
        mirror = store.account("shop")
        for cut_at in itertools.count(14, 5):
            left = itertools.count(-cut_at)

            def alter(line: bytes, left: Iterator[int] = left) -> bytes | None:
                return line if next(left) < 0 else None

            with contextlib.suppress(ImapFailure), session_behind(dovecot, tmp_path, alter) as session:
                if Sync(mirror, ["INBOX"], structlog.get_logger()).round(session).whole:
                    break
        (inbox,) = mirror.mailboxes()
        state = dovecot.snapshot()["INBOX"]
        assert (state.uidvalidity, 3, state.highestmodseq) == (inbox.uidvalidity, inbox.uidnext, inbox.highestmodseq)
        assert {1, 2} == mirror.states(inbox.id).keys()
        assert 2 == store.status("shop").messages

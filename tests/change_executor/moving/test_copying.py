"""A server without MOVE: copy, flag, expunge one message; broken anywhere, nothing is lost or doubled."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest

from change_executor import checkpoints
from change_executor.apply import Apply
from change_executor.copying import remove_source
from change_executor.examine import examine_queues
from change_executor.imap_verbs import move_table_for
from change_executor.journal.moves import Intent, MoveKind
from change_executor.lifecycle import Event
from change_executor.looking import OpenedMailbox, SeenMessage
from change_executor.move_reply import Answer, MoveReply
from change_executor.mover import MoveSession
from change_executor.switch import press_stop, release_stop
from shared.settings import ConfigurationError
from tests.change_executor.moving.test_doubtful_replies import mover_of
from tests.change_executor.moving.workshop import MAIL, QUIET_SECONDS, Workshop
from tests.servers.dovecot import Dovecot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from change_executor.connections import Connections
    from change_executor.copying import CopySession
    from shared.imap_login import ImapLogin

FLAGS = ("\\Seen", "\\Flagged", "$label1")
FOREIGN = b"Subject: somebody else marked this\r\n\r\nand will expunge it\r\n"
COPYING: dict[str, Any] = {"without_move": "copy"}
STEPS = [
    checkpoints.MOVE_BEFORE,
    checkpoints.COPY_ANSWERED,
    checkpoints.COPY_NOTED,
    checkpoints.FLAG_ANSWERED,
    checkpoints.FLAG_NOTED,
    checkpoints.EXPUNGE_ANSWERED,
    checkpoints.MOVE_ANSWERED,
    checkpoints.MOVE_VERIFIED,
    checkpoints.OUTCOME_BEFORE,
]


class KilledError(BaseException):
    """The process ends here: nothing of it runs any more."""


def without(*capabilities: str) -> Iterator[Dovecot]:
    """A Dovecot that does not offer these to who has logged in."""
    with Dovecot() as server:
        with server.connect() as owner:
            offered = set(owner.capability()[1][0].decode().split()) - set(capabilities)
        server.stop()
        if server.version() >= (2, 4):
            hidden = "".join(f"    {each} = no\n" for each in capabilities)
            more = f"protocol imap {{\n  imap_capability {{\n{hidden}  }}\n}}\n"
        else:
            more = f"protocol imap {{\n  imap_capability = {' '.join(sorted(offered))}\n}}\n"
        with server.layout.config.open("a", encoding="utf-8") as config:
            config.write(more)
        server.start()
        yield server


@pytest.fixture(scope="module")
def moveless_server() -> Iterator[Dovecot]:
    yield from without("MOVE")


@pytest.fixture
def moveless(moveless_server: Dovecot) -> Dovecot:
    """The server, with every mailbox of the queue empty."""
    with moveless_server.connect() as owner:
        for mailbox in ("Incoming", "Processed", "Escalate", "Archive"):
            owner.select(mailbox)
            if owner.search(None, "ALL")[1] != [b""]:
                owner.store("1:*", "+FLAGS", "\\Deleted")
                owner.expunge()
    return moveless_server


@pytest.fixture
def workshop(moveless: Dovecot, tmp_path: Path) -> Iterator[Workshop]:
    opened = Workshop(moveless, tmp_path, queue=COPYING)
    yield opened
    opened.close()


def verbs(server: Dovecot, since: int) -> list[bytes]:
    words = [line.split(b" ") for line in server.commands("executor")[since:] if b" " in line]
    return [b" ".join(each[1:3]) if each[1] == b"UID" else each[1] for each in words]


def test_it_moves_whole_and_touches_nothing_else(workshop: Workshop) -> None:
    server = workshop.dovecot
    foreign = workshop.deliver(FOREIGN, ("\\Deleted",))
    uid = workshop.deliver(MAIL, FLAGS)
    twin = workshop.deliver(MAIL)
    before = server.snapshot()["Incoming"].messages
    sent = len(server.commands("executor"))
    proposal = workshop.approved(uid, copies=2)
    workshop.apply.move(proposal)
    assert ("applied", "moved", None) == workshop.told(proposal)
    after = server.snapshot()
    moved = after["Processed"].one()
    assert (before[uid].sha256, before[uid].flags, before[uid].keywords, before[uid].internaldate) == (
        moved.sha256,
        moved.flags,
        moved.keywords,
        moved.internaldate,
    )
    # All but Recent, which any SELECT takes away (RFC 3501 §2.3.2).
    assert {uid: replace(before[uid], recent=False) for uid in (foreign, twin)} == {
        uid: replace(message, recent=False) for uid, message in after["Incoming"].messages.items()
    }
    changing = [verb for verb in verbs(server, sent) if verb not in {b"UID FETCH", b"UID SEARCH", b"STATUS"}]
    assert [b"UID COPY", b"UID STORE", b"UID EXPUNGE"] == [verb for verb in changing if verb.startswith(b"UID")]
    assert not {b"EXPUNGE", b"CLOSE", b"UID MOVE"} & set(changing)


def test_an_undo_goes_the_same_way_back(workshop: Workshop) -> None:
    proposal = workshop.approved(workshop.deliver(MAIL, FLAGS))
    before = workshop.dovecot.snapshot()["Incoming"].one()
    workshop.apply.move(proposal)
    workshop.happen(proposal, Event.UNDO)
    workshop.apply.undo(proposal)
    assert ("undone", "moved_back", None) == workshop.told(proposal)
    after = workshop.dovecot.snapshot()["Incoming"].one()
    assert (before.sha256, before.flags, before.keywords) == (after.sha256, after.flags, after.keywords)
    assert {"Incoming": 1} == workshop.copies()


@pytest.mark.parametrize("point", STEPS)
@pytest.mark.parametrize("back", [False, True], ids=["there", "back"])
def test_killed_at_any_step_it_ends_in_one_mailbox(
    moveless: Dovecot, tmp_path: Path, point: str, *, back: bool
) -> None:
    kill = False

    def die(name: str) -> None:
        if kill and name == point:
            raise KilledError

    first = Workshop(moveless, tmp_path, queue=COPYING, checkpoint=die)
    foreign = first.deliver(FOREIGN, ("\\Deleted",))
    proposal = first.approved(first.deliver(MAIL, FLAGS))
    if back:
        first.apply.move(proposal)
        first.happen(proposal, Event.UNDO)
    kill = True
    with pytest.raises(KilledError):
        (first.apply.undo if back else first.apply.move)(proposal)
    first.close()
    moveless.await_no_session("executor")
    second = Workshop(moveless, tmp_path, queue=COPYING)
    second.apply.recover()
    for _ in range(2):
        second.reconcile.reconcile(proposal)
        second.clock.advance(seconds=QUIET_SECONDS)
    if second.proposal(proposal).state.value == "approved":
        second.apply.move(proposal)
    elif second.told(proposal)[1] == "undo_did_not_happen":
        second.happen(proposal, Event.UNDO)
        second.apply.undo(proposal)
    assert ("undone" if back else "applied", None) == (second.told(proposal)[0], second.told(proposal)[2])
    assert {"Incoming" if back else "Processed": 1} == second.copies()
    mailbox = moveless.snapshot()["Incoming" if back else "Processed"]
    (message,) = (each for each in mailbox.messages.values() if each.flags >= {"\\Seen"})
    assert frozenset({"\\Seen", "\\Flagged"}) == message.flags
    assert foreign in moveless.snapshot()["Incoming"].messages
    second.close()


def test_a_stop_leaves_a_half_made_copy_as_it_is_until_it_is_released(moveless: Dovecot, tmp_path: Path) -> None:
    def die(name: str) -> None:
        if name == checkpoints.COPY_NOTED:
            raise KilledError

    first = Workshop(moveless, tmp_path, queue=COPYING, checkpoint=die)
    proposal = first.approved(first.deliver())
    with pytest.raises(KilledError):
        first.apply.move(proposal)
    first.close()
    # A queue that does not allow it any more finishes nothing.
    narrower = Workshop(moveless, tmp_path)
    narrower.apply.recover()
    narrower.reconcile.reconcile(proposal)
    assert ("doubtful", None, "settle") == narrower.told(proposal)
    assert {"Incoming": 1, "Processed": 1} == narrower.copies()
    narrower.close()
    second = Workshop(moveless, tmp_path, queue=COPYING)
    second.apply.recover()
    press_stop(second.journal, "operator")
    second.reconcile.reconcile(proposal)
    assert ("doubtful", None, "stopped") == second.told(proposal)
    assert {"Incoming": 1, "Processed": 1} == second.copies()
    release_stop(second.journal, "operator")
    second.reconcile.reconcile(proposal)
    assert ("applied", "moved", None) == second.told(proposal)
    assert {"Processed": 1} == second.copies()
    second.close()


def test_a_copy_that_somebody_took_on_is_for_a_person(moveless: Dovecot, tmp_path: Path) -> None:
    def die(name: str) -> None:
        if name == checkpoints.FLAG_NOTED:
            raise KilledError

    first = Workshop(moveless, tmp_path, queue=COPYING, checkpoint=die)
    proposal = first.approved(first.deliver())
    with pytest.raises(KilledError):
        first.apply.move(proposal)
    first.close()
    with moveless.connect() as owner:
        owner.select("Processed")
        owner.store("1", "+FLAGS", "\\Deleted")
        owner.expunge()
    second = Workshop(moveless, tmp_path, queue=COPYING)
    second.apply.recover()
    second.clock.advance(seconds=2 * QUIET_SECONDS)
    second.reconcile.reconcile(proposal)
    assert ("doubtful", None, "settle") == second.told(proposal)
    assert {"Incoming": 1} == second.copies()
    second.close()


def test_a_queue_that_does_not_allow_it_does_not_start_and_moves_nothing(moveless: Dovecot, tmp_path: Path) -> None:
    workshop = Workshop(moveless, tmp_path)
    with pytest.raises(ConfigurationError, match='without_move = "copy"'):
        examine_queues(workshop.settings, workshop.mover.session, workshop.journal)
    proposal = workshop.approved(workshop.deliver())
    workshop.apply.move(proposal)
    assert ("approved", None, "move_not_offered") == workshop.told(proposal)
    assert {"Incoming": 1} == workshop.copies()
    workshop.close()


def test_a_queue_that_allows_it_starts(workshop: Workshop) -> None:
    assert 1 == len(examine_queues(workshop.settings, workshop.mover.session, workshop.journal))


def test_without_uidplus_there_is_no_way(tmp_path: Path) -> None:
    for server in without("MOVE", "UIDPLUS"):
        workshop = Workshop(server, tmp_path, queue=COPYING)
        with pytest.raises(ConfigurationError, match="without UIDPLUS"):
            examine_queues(workshop.settings, workshop.mover.session, workshop.journal)
        workshop.close()


def test_where_there_is_move_it_is_used_all_the_same(dovecot: Dovecot, tmp_path: Path) -> None:
    workshop = Workshop(dovecot, tmp_path, queue=COPYING)
    proposal = workshop.approved(workshop.deliver())
    workshop.apply.move(proposal)
    assert ("applied", "moved", None) == workshop.told(proposal)
    assert {b"UID MOVE"} == {b"UID MOVE", b"UID COPY", b"UID STORE", b"UID EXPUNGE"} & set(verbs(dovecot, 0))
    workshop.close()


def test_moved_twice_is_seen_after_a_crash_too(dovecot: Dovecot, tmp_path: Path) -> None:
    def the_owner_copies_and_we_die(name: str) -> None:
        if name == checkpoints.MOVE_BEFORE:
            with dovecot.connect() as owner:
                owner.select("Incoming")
                assert owner.uid("COPY", "1", "Escalate")[0] == "OK"
        if name == checkpoints.MOVE_ANSWERED:
            raise KilledError

    first = Workshop(dovecot, tmp_path, checkpoint=the_owner_copies_and_we_die)
    proposal = first.approved(first.deliver())
    with pytest.raises(KilledError):
        first.apply.move(proposal)
    first.close()
    second = Workshop(dovecot, tmp_path)
    second.apply.recover()
    second.reconcile.reconcile(proposal)
    assert ("doubtful", None, "moved_twice") == second.told(proposal)
    assert {"Processed": 1, "Escalate": 1} == second.copies()
    second.close()


@pytest.mark.parametrize("known", [True, False], ids=["a twin that was counted", "a twin of another day"])
def test_g6_a_twin_that_somebody_else_moves_is_not_taken_for_a_copy_that_nobody_saw(
    moveless: Dovecot, tmp_path: Path, *, known: bool
) -> None:
    class _Lost(MoveSession):
        def copy_one(self, uid: int, target: str) -> MoveReply:  # noqa: ARG002 - it never reaches the server
            return MoveReply(Answer.UNKNOWN)

    workshop = Workshop(moveless, tmp_path, queue=COPYING)
    today = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
    uid = workshop.deliver(internaldate=today)
    twin = workshop.deliver(internaldate=today if known else today - timedelta(days=1))
    proposal = workshop.approved(uid, copies=2 if known else 1)
    Apply(workshop.journal, workshop.settings, mover_of(workshop, _Lost)).move(proposal)
    workshop.reconcile.reconcile(proposal)
    assert ("doubtful", None, "quiet_time") == workshop.told(proposal)
    with moveless.connect() as owner:
        owner.select("Incoming")
        assert owner.uid("COPY", str(twin), "Processed")[0] == "OK"
        owner.uid("STORE", str(twin), "+FLAGS", "\\Deleted")
        owner.uid("EXPUNGE", str(twin))
    workshop.clock.advance(seconds=QUIET_SECONDS)
    for _ in range(2):
        workshop.reconcile.reconcile(proposal)
        assert ("doubtful", None, "settle") == workshop.told(proposal)
    assert {"Incoming": 1, "Processed": 1} == workshop.copies()
    workshop.close()


@pytest.mark.parametrize("deaf_to", ["flag_deleted", "expunge_one"])
def test_a_step_that_is_answered_ok_and_not_done_is_seen(moveless: Dovecot, tmp_path: Path, deaf_to: str) -> None:
    """As servers answer a login without the right: OK, and nothing happened."""
    workshop = Workshop(moveless, tmp_path, queue=COPYING)
    proposal = workshop.approved(workshop.deliver())
    before = len(moveless.commands("executor"))
    Apply(workshop.journal, workshop.settings, _DeafMover(workshop.connections, deaf_to)).move(proposal)
    assert ("doubtful", None, None) == workshop.told(proposal)
    assert {"Incoming": 1, "Processed": 1} == workshop.copies()
    # Nothing is expunged that was not seen to be flagged.
    sent = {b"UID STORE", b"UID EXPUNGE"} & set(verbs(moveless, before))
    assert sent == (set() if deaf_to == "flag_deleted" else {b"UID STORE"})
    flagged = "\\Deleted" in moveless.snapshot()["Incoming"].one().flags
    assert flagged == (deaf_to == "expunge_one")
    workshop.reconcile.reconcile(proposal)
    assert ("applied", "moved", None) == workshop.told(proposal)
    assert {"Processed": 1} == workshop.copies()
    workshop.close()


class _DeafMover:
    def __init__(self, connections: Connections, deaf_to: str) -> None:
        self._connections, self._deaf_to = connections, deaf_to

    @contextmanager
    def session(self, login: ImapLogin, mailboxes: Iterable[str], *, copying: bool = False) -> Iterator[MoveSession]:
        deaf_to = self._deaf_to

        class _Deaf(MoveSession):
            def flag_deleted(self, uid: int) -> Answer:
                return Answer.OK if deaf_to == "flag_deleted" else super().flag_deleted(uid)

            def expunge_one(self, uid: int) -> Answer:
                return Answer.OK if deaf_to == "expunge_one" else super().expunge_one(uid)

        with self._connections.opened(login, move_table_for(mailboxes, copying=copying)) as client:
            yield _Deaf(client, login.id)


def test_a_source_that_changed_between_the_copy_and_the_flag_stays(moveless: Dovecot, tmp_path: Path) -> None:
    """A UID that holds other octets than were copied is not taken away, whatever the journal says."""

    def the_owner_makes_it_anew(name: str) -> None:
        if name == checkpoints.COPY_NOTED:
            with moveless.rearranging() as owner:
                owner.delete("Incoming")
                owner.create("Incoming")
            shop.deliver(FOREIGN)

    shop = Workshop(moveless, tmp_path, queue=COPYING, checkpoint=the_owner_makes_it_anew)
    proposal = shop.approved(shop.deliver())
    shop.apply.move(proposal)
    assert "doubtful" == shop.told(proposal)[0]
    assert {"Incoming": 1} == shop.copies(FOREIGN)
    shop.clock.advance(seconds=2 * QUIET_SECONDS)
    shop.reconcile.reconcile(proposal)
    assert ("doubtful", None, "mailbox_changed") == shop.told(proposal)
    assert {"Incoming": 1} == shop.copies(FOREIGN)
    shop.close()


@pytest.mark.parametrize("what", ["other octets", "another mailbox"])
def test_what_is_not_the_message_any_more_is_not_even_flagged(what: str) -> None:
    """A session that would note any step; nothing but looking may be asked of it."""
    intent = Intent(
        "P", MoveKind.MOVE, "move", "Incoming", 7, 3, "Processed", 8, 1, "0" * 64, 5, "2026-11-29T12:00:00Z"
    )

    class _Looked:
        def select(self, _mailbox: str) -> OpenedMailbox:
            return OpenedMailbox(7 if what == "other octets" else 6, None, read_only=False)

        def fetch(self, uid: int) -> SeenMessage:
            digest = "1" * 64 if what == "other octets" else "0" * 64
            return SeenMessage(uid, digest, 5, intent.internaldate, frozenset(), b"")

    session = cast("CopySession", _Looked())
    assert not remove_source(session, intent, 1, lambda *_: pytest.fail("no step was taken"), checkpoints.pass_by)

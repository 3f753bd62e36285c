"""A server that says OK and proves nothing, and two hands that reach for one proposal."""

from __future__ import annotations

import dataclasses
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn, cast

import pytest

from change_executor.apply import Apply
from change_executor.imap_verbs import move_table_for
from change_executor.journal import moves
from change_executor.lifecycle import Event
from change_executor.move_reply import Answer, CopyUid, MoveReply
from change_executor.mover import Mover, MoveSession
from change_executor.outcomes import Waiting
from shared.imap_login import ImapFailure
from tests.change_executor.moving.workshop import MAIL, QUIET_SECONDS, Workshop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from change_executor.connections import Connections
    from change_executor.journal.journal import Journal, Writing
    from change_executor.looking import MailboxStatus, OpenedMailbox
    from shared.imap_login import ImapLogin
    from tests.servers.dovecot import Dovecot


class _LyingMover:
    """The real mover on the real server; only what it says of a MOVE is bent."""

    def __init__(self, connections: Connections, bend: Callable[[MoveReply], MoveReply], *, moves: bool = True) -> None:
        self._connections, self._bend, self._moves = connections, bend, moves

    @contextmanager
    def session(self, login: ImapLogin, mailboxes: Iterable[str], *, copying: bool = False) -> Iterator[MoveSession]:
        bend, moves = self._bend, self._moves

        class _Lying(MoveSession):
            def move_one(self, uid: int, target: str) -> MoveReply:
                return bend(super().move_one(uid, target) if moves else MoveReply(Answer.OK))

        with self._connections.opened(login, move_table_for(mailboxes, copying=copying)) as client:
            yield _Lying(client, login.id)


def _with(reply: MoveReply, **changed: int) -> MoveReply:
    assert reply.copyuid is not None
    return dataclasses.replace(reply, copyuid=dataclasses.replace(reply.copyuid, **changed))


@pytest.mark.parametrize(
    "bend",
    [
        lambda reply: dataclasses.replace(reply, copyuid=None),
        lambda reply: _with(reply, source_uid=99),
        lambda reply: _with(reply, uidvalidity=99),
        lambda reply: _with(reply, target_uid=1),
        lambda reply: _with(reply, target_uid=99),
        lambda reply: dataclasses.replace(reply, answer=Answer.REFUSED),
        lambda reply: dataclasses.replace(reply, answer=Answer.UNKNOWN),
    ],
    ids=["no copyuid", "of another uid", "another uidvalidity", "an old uid", "no such uid", "refused", "unknown"],
)
def test_a_reply_that_is_not_what_is_seen_is_a_doubt_and_looking_settles_it(
    dovecot: Dovecot, tmp_path: Path, bend: Callable[[MoveReply], MoveReply]
) -> None:
    workshop = Workshop(dovecot, tmp_path)
    dovecot.deliver("Processed", b"Subject: older\r\n\r\nhello\r\n")
    workshop.apply = Apply(workshop.journal, workshop.settings, _LyingMover(workshop.connections, bend))
    proposal = workshop.approved(workshop.deliver())
    workshop.apply.move(proposal)
    assert ("doubtful", None, None) == workshop.told(proposal)
    workshop.reconcile.reconcile(proposal)
    assert ("applied", "moved", None) == workshop.told(proposal)
    assert {"Processed": 1} == workshop.copies()
    workshop.happen(proposal, Event.UNDO)
    Apply(workshop.journal, workshop.settings, workshop.mover).undo(proposal)
    assert ("undone", "moved_back", None) == workshop.told(proposal)
    workshop.close()


def test_an_older_twin_in_the_target_is_not_taken_for_what_was_moved(dovecot: Dovecot, tmp_path: Path) -> None:
    workshop = Workshop(dovecot, tmp_path)
    twin = dovecot.deliver("Processed", MAIL)
    naming_it = _LyingMover(workshop.connections, lambda reply: _with(reply, target_uid=twin))
    proposal = workshop.approved(workshop.deliver())
    Apply(workshop.journal, workshop.settings, naming_it).move(proposal)
    assert ("doubtful", None, None) == workshop.told(proposal)
    workshop.reconcile.reconcile(proposal)
    assert ("applied", "moved", None) == workshop.told(proposal)
    with workshop.journal.reading() as connection:
        moved = moves.last_moved(connection, proposal)
    assert moved is not None
    assert twin + 1 == moved.new_uid
    workshop.close()


def test_an_ok_for_nothing_is_no_move(dovecot: Dovecot, tmp_path: Path) -> None:
    workshop = Workshop(dovecot, tmp_path)
    idle = _LyingMover(workshop.connections, lambda reply: reply, moves=False)
    proposal = workshop.approved(workshop.deliver())
    Apply(workshop.journal, workshop.settings, idle).move(proposal)
    assert ("doubtful", None, None) == workshop.told(proposal)
    workshop.reconcile.reconcile(proposal)
    assert ("doubtful", None, Waiting.QUIET_TIME.value) == workshop.told(proposal)
    workshop.clock.advance(seconds=QUIET_SECONDS)
    workshop.reconcile.reconcile(proposal)
    assert ("approved", None, None) == workshop.told(proposal)
    # The quiet time of another doubt is its own.
    Apply(workshop.journal, workshop.settings, idle).move(proposal)
    workshop.reconcile.reconcile(proposal)
    assert ("doubtful", None, Waiting.QUIET_TIME.value) == workshop.told(proposal)

    def settle_meanwhile(name: str) -> None:
        if name == "reconcile:looked":
            workshop.happen(proposal, Event.SETTLE_FAILED)

    # What a person settles while somebody looks is settled.
    workshop.clock.advance(seconds=QUIET_SECONDS)
    workshop.reconcile._checkpoint = settle_meanwhile
    workshop.reconcile.reconcile(proposal)
    assert "failed" == workshop.proposal(proposal).state.value
    workshop.close()


def test_a_refusal_is_a_failure_where_the_message_still_lies(dovecot: Dovecot, tmp_path: Path) -> None:
    def refuse(_: MoveReply) -> MoveReply:
        return MoveReply(Answer.REFUSED)

    workshop = Workshop(dovecot, tmp_path)
    proposal = workshop.approved(workshop.deliver())
    refusing = _LyingMover(workshop.connections, refuse, moves=False)
    Apply(workshop.journal, workshop.settings, refusing).move(proposal)
    assert ("failed", "server_refused", None) == workshop.told(proposal)
    assert {"Incoming": 1} == workshop.copies()
    assert workshop.under_way(proposal) is None
    workshop.close()


def mover_of(workshop: Workshop, session_as: type[MoveSession]) -> Mover:
    class _Mover(Mover):
        @contextmanager
        def session(
            self, login: ImapLogin, mailboxes: Iterable[str], *, copying: bool = False
        ) -> Iterator[MoveSession]:
            with workshop.connections.opened(login, move_table_for(mailboxes, copying=copying)) as client:
                yield session_as(client, login.id)

    return _Mover(workshop.connections)


def test_a_source_that_is_open_for_reading_only_gets_no_move(dovecot: Dovecot, tmp_path: Path) -> None:
    # Servers were seen to move a message all the same.
    class _ReadOnly(MoveSession):
        def select(self, mailbox: str) -> OpenedMailbox:
            return dataclasses.replace(super().select(mailbox), read_only=True)

    workshop = Workshop(dovecot, tmp_path)
    proposal = workshop.approved(workshop.deliver())
    Apply(workshop.journal, workshop.settings, mover_of(workshop, _ReadOnly)).move(proposal)
    assert ("failed", "server_refused", None) == workshop.told(proposal)
    assert not [line for line in dovecot.commands("executor") if b"UID MOVE" in line]
    workshop.close()


@pytest.mark.parametrize(("is_one", "is_empty"), [(True, False), (False, False), (False, True)])
def test_g3_a_destination_that_is_incoming_under_another_name_gets_no_move(
    dovecot: Dovecot, tmp_path: Path, *, is_one: bool, is_empty: bool
) -> None:
    # While both are empty no examination can tell, and a MOVE would only give the message another UID.
    incoming = dovecot.snapshot()["Incoming"].uidvalidity

    class _TwoNames(MoveSession):
        def _of(self, mailbox: str) -> str:
            return "Incoming" if is_one else mailbox

        def examine(self, mailbox: str) -> OpenedMailbox:
            return dataclasses.replace(super().examine(self._of(mailbox)), uidvalidity=incoming)

        def status(self, mailbox: str) -> MailboxStatus:
            # As servers do that give every mailbox the same UIDVALIDITY.
            return dataclasses.replace(super().status(self._of(mailbox)), uidvalidity=incoming)

        def move_one(self, uid: int, target: str) -> MoveReply:
            reply = super().move_one(uid, self._of(target))
            return _with(reply, uidvalidity=incoming)

    workshop = Workshop(dovecot, tmp_path)
    if not is_empty:
        # Another message at the same UID makes no one mailbox of two.
        dovecot.deliver("Processed", b"Subject: older\r\n\r\nhello\r\n")
    proposal = workshop.approved(workshop.deliver())
    Apply(workshop.journal, workshop.settings, mover_of(workshop, _TwoNames)).move(proposal)
    ended = ("approved", None, "same_mailbox") if is_one else ("applied", "moved", None)
    assert ended == workshop.told(proposal)
    assert is_one is not any(b"UID MOVE" in line for line in dovecot.commands("executor"))
    workshop.close()


@pytest.mark.parametrize("answer", [Answer.REFUSED, Answer.OK])
def test_a_copy_in_the_target_with_its_source_still_there_is_for_a_person(
    dovecot: Dovecot, tmp_path: Path, answer: Answer
) -> None:
    def only_copy(_: MoveReply) -> MoveReply:
        with dovecot.connect() as owner:
            owner.select("Incoming")
            assert owner.uid("COPY", str(uid), "Processed")[0] == "OK"
        target = dovecot.snapshot()["Processed"]
        copied = CopyUid(target.uidvalidity, uid, max(target.messages))
        return MoveReply(answer, copied if answer is Answer.OK else None)

    workshop = Workshop(dovecot, tmp_path)
    uid = workshop.deliver()
    proposal = workshop.approved(uid)
    halfway = _LyingMover(workshop.connections, only_copy, moves=False)
    Apply(workshop.journal, workshop.settings, halfway).move(proposal)
    assert ("doubtful", None, None) == workshop.told(proposal)
    workshop.clock.advance(seconds=QUIET_SECONDS)
    workshop.reconcile.reconcile(proposal)
    assert ("doubtful", None, Waiting.SETTLE.value) == workshop.told(proposal)
    assert {"Incoming": 1, "Processed": 1} == workshop.copies()
    workshop.close()


def test_a_hand_that_comes_after_the_other_one_has_finished_begins_nothing(dovecot: Dovecot, tmp_path: Path) -> None:
    def let_another_do_it_all(name: str) -> None:
        if name == "intent:before":
            Apply(workshop.journal, workshop.settings, workshop.mover).undo(proposal)

    workshop = Workshop(dovecot, tmp_path)
    proposal = workshop.approved(workshop.deliver())
    workshop.apply.move(proposal)
    workshop.happen(proposal, Event.UNDO)
    Apply(workshop.journal, workshop.settings, workshop.mover, let_another_do_it_all).undo(proposal)
    assert ("undone", "moved_back", None) == workshop.told(proposal)
    assert {"Incoming": 1} == workshop.copies()
    assert 2 == sum(b"UID MOVE" in line for line in dovecot.commands("executor"))
    workshop.close()


def test_what_moved_on_while_a_hand_waited_in_vain_is_left_as_it_is(dovecot: Dovecot, tmp_path: Path) -> None:
    class Silent(Mover):
        def session(self, *_: object, **__: object) -> NoReturn:
            raise ImapFailure("unreachable", "no answer", "Wait.", retryable=True)

    class Late:
        """A person rejects between the last look and the write that would say what is waited for."""

        now, reading = property(lambda _: workshop.journal.now), property(lambda _: workshop.journal.reading)

        @contextmanager
        def writing(self) -> Iterator[Writing]:
            workshop.happen(proposal, Event.REJECT)
            with workshop.journal.writing() as writing:
                yield writing

    workshop = Workshop(dovecot, tmp_path)
    proposal = workshop.approved(workshop.deliver())
    Apply(cast("Journal", Late()), workshop.settings, Silent(workshop.connections)).move(proposal)
    assert ("rejected", None, None) == workshop.told(proposal)
    workshop.close()


@pytest.mark.parametrize("kind", ["move", "undo"])
def test_two_workers_on_one_proposal_make_one_move(dovecot: Dovecot, tmp_path: Path, kind: str) -> None:
    # No lock keeps them apart here: the journal alone does.
    workshop = Workshop(dovecot, tmp_path)
    proposal = workshop.approved(workshop.deliver())
    if kind == "undo":
        workshop.apply.move(proposal)
        workshop.happen(proposal, Event.UNDO)
    together = threading.Barrier(2)

    def meet(name: str) -> None:
        # Both stand before the one step that only one may take.
        if name == ("claim:before" if kind == "move" else "intent:before"):
            together.wait(20)

    def run() -> None:
        apply = Apply(workshop.journal, workshop.settings, workshop.mover, meet)
        apply.move(proposal) if kind == "move" else apply.undo(proposal)

    hands = [threading.Thread(target=run) for _ in range(2)]
    for hand in hands:
        hand.start()
    for hand in hands:
        hand.join()
    ended = ("applied", "moved", None) if kind == "move" else ("undone", "moved_back", None)
    assert ended == workshop.told(proposal)
    assert {"Processed" if kind == "move" else "Incoming": 1} == workshop.copies()
    moves = [line for line in dovecot.commands("executor") if b"UID MOVE" in line]
    assert len(moves) == (1 if kind == "move" else 2)
    workshop.close()

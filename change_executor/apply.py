"""Applying what a person approved, and undoing it: claim, intent, move, outcome, each committed before the next step.

A proposal is claimed once; an intent is committed before the first octet of a MOVE may leave; and whatever is not
proven to have happened, or not to have happened, is a doubt that `reconcile` concludes by looking.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, assert_never

from sqlalchemy import Connection, select

from change_executor import checkpoints, errand
from change_executor.agents import end_revoked
from change_executor.carrying_out import Ending, MoveSession, carry_out
from change_executor.checkpoints import Checkpoint
from change_executor.config import ExecutorSettings, Queue
from change_executor.errand import Errand
from change_executor.errors import VersionChanged
from change_executor.journal import moves, schema, standing
from change_executor.journal.journal import Journal, Proposal, Writing, read_proposal
from change_executor.journal.moves import EXECUTOR, CopyStep, Intent, MoveKind
from change_executor.lifecycle import Event
from change_executor.outcomes import Outcome, Waiting
from change_executor.policy import (
    MOVES_DAY,
    MOVES_WINDOW,
    Approval,
    Moves,
    MovingRuling,
    judge_moving,
    policy_version,
)
from change_executor.steps import end, wait, waiting_for
from change_executor.switch import is_frozen, stop_file_present
from shared.imap_login import ImapFailure, ImapLogin
from shared.proposal import State
from shared.settings import ConfigurationError

_WAITING_FOR: Final = {
    MovingRuling.STOPPED: Waiting.STOPPED,
    MovingRuling.BEING_MOVED: Waiting.BEING_MOVED,
    MovingRuling.TOO_MANY_MOVES: Waiting.MOVES_PER_HOUR,
    MovingRuling.TOO_MANY_MOVES_TODAY: Waiting.MOVES_PER_DAY,
}


class Mover(Protocol):
    """What opens sessions that can move; `change_executor.mover.Mover` is the one that there is."""

    def session(  # noqa: D102 - see the mover
        self, login: ImapLogin, mailboxes: Iterable[str], *, copying: bool = False
    ) -> AbstractContextManager[MoveSession]: ...


class Apply:
    """Carries approved proposals and undos out, one at a time; used by the one worker."""

    def __init__(
        self,
        journal: Journal,
        settings: ExecutorSettings,
        mover: Mover,
        checkpoint: Checkpoint = checkpoints.pass_by,
    ) -> None:
        self._journal = journal
        self._settings = settings
        self._mover = mover
        self._checkpoint = checkpoint

    def move(self, proposal_id: str) -> None:
        """Move the message of an approved proposal, or leave the proposal waiting with its reason.

        Raises `JournalUnavailable`; where that happens after the intent, a restart reconciles.
        """
        with self._journal.reading() as connection:
            proposal, ruling = self._judged(connection, proposal_id)
        if proposal.state is not State.APPROVED:
            return
        queue = self._settings.queue(proposal.queue)
        if ruling in _WAITING_FOR and _WAITING_FOR[ruling] == proposal.waiting_code:
            return
        if ruling is not MovingRuling.ALLOWED or queue is None:
            self._claim(proposal_id, only_judge=True)
            return
        try:
            # Signing in comes before the claim: a server that is down costs no step of the proposal.
            names, copying = errand.mailboxes_of(queue), errand.may_copy(queue)
            with self._mover.session(self._login(queue), names, copying=copying) as session:
                claimed = self._claim(proposal_id)
                if claimed is not None:
                    self._run(session, claimed, before=proposal)
        except (ImapFailure, ConfigurationError) as failure:
            self._wait(proposal_id, State.APPROVED, waiting_for(failure))

    def undo(self, proposal_id: str) -> None:
        """Move the message of a proposal that is being undone back, or leave it waiting with its reason.

        Raises `JournalUnavailable`; where that happens after the intent, a restart reconciles.
        """
        with self._journal.reading() as connection:
            proposal = read_proposal(connection, proposal_id)
            if proposal.state is not State.UNDOING:
                return
            stopped = self._stopped(connection)
            back = errand.to_undo(connection, self._settings, proposal)
        if stopped:
            self._wait(proposal_id, State.UNDOING, Waiting.STOPPED)
            return
        if isinstance(back, Outcome):
            self._refuse_undo(proposal, back)
            return
        try:
            with self._mover.session(self._login(back.queue), back.mailboxes(), copying=back.may_copy) as session:
                self._run(session, back, before=proposal)
        except VersionChanged:
            return
        except (ImapFailure, ConfigurationError) as failure:
            self._wait(proposal_id, State.UNDOING, waiting_for(failure))

    def recover(self, takes: Callable[[str], bool] = lambda _: True) -> None:
        """Take up what an earlier process left in the middle, of the queues that the caller takes.

        Call it while no errand of these is under way.
        With an intent that is not concluded: a doubt. Claimed without one: nothing was sent. An undo without one is
        simply done again. Intents of proposals that a person settled are concluded too.
        """
        with self._journal.reading() as connection:
            found = _in_states(connection, State.APPLYING, State.UNDOING)
            left = [each for each in found if takes(each.queue)]
            doubts = {proposal.id: moves.under_way(connection, proposal.id) is not None for proposal in left}
            settled = moves.settled(connection)
        if settled:
            with self._journal.writing() as writing:
                moves.conclude_settled(writing)
        for proposal in left:
            happened = Event.DOUBT if doubts[proposal.id] else Event.NOTHING_SENT
            if proposal.state is State.UNDOING and happened is Event.NOTHING_SENT:
                continue
            self._checkpoint(checkpoints.RECOVERY_BEFORE)
            with self._journal.writing() as writing:
                writing.advance(proposal.id, happened, EXECUTOR, expected_version=proposal.version)
            self._checkpoint(checkpoints.RECOVERY_COMMITTED)

    def _login(self, queue: Queue) -> ImapLogin:
        return self._settings.credential(queue.credential)

    def _judged(self, connection: Connection, proposal_id: str) -> tuple[Proposal, MovingRuling]:
        """A proposal and its judgement, from one question: nothing can change between what is read for it."""
        now = self._journal.now()
        found = standing.read(connection, proposal_id, now - MOVES_WINDOW, now - MOVES_DAY)
        proposal, queue = found.proposal, self._settings.queue(found.proposal.queue)
        ruling = judge_moving(
            queue,
            Approval(proposal.to_role, proposal.expires_at, proposal.policy_version),
            policy_now="" if queue is None else policy_version(self._settings, queue),
            now=now,
            moves=Moves(*found.begun),
            revoked=found.revoked,
            stopped=found.stopped or stop_file_present(self._settings.stop_file),
            being_moved=found.being_moved,
        )
        return proposal, ruling

    def _is_allowed(self, connection: Connection, proposal_id: str) -> bool:
        return self._judged(connection, proposal_id)[1] is MovingRuling.ALLOWED

    def _stopped(self, connection: Connection) -> bool:
        return is_frozen(connection, self._settings.stop_file)

    def _claim(self, proposal_id: str, *, only_judge: bool = False) -> Errand | None:
        self._checkpoint(checkpoints.CLAIM_BEFORE)
        with self._journal.writing() as writing:
            proposal, ruling = self._judged(writing.connection, proposal_id)
            if proposal.state is not State.APPROVED:
                return None
            if ruling is not MovingRuling.ALLOWED:
                _stand_back(writing, proposal, ruling)
                return None
            if only_judge:
                return None
            queue = self._settings.queue(proposal.queue)
            assert queue is not None, "a queue that is gone is a changed policy"
            claimed = errand.to_move(writing.connection, queue, writing.advance(proposal_id, Event.CLAIM, EXECUTOR))
            assert claimed is not None, "what was approved had evidence, and the policy is the same"
        self._checkpoint(checkpoints.CLAIM_COMMITTED)
        return claimed

    def _run(self, session: MoveSession, task: Errand, *, before: Proposal) -> None:
        begun: list[int] = []

        def commit(intent: Intent) -> Ending | None:
            self._checkpoint(checkpoints.INTENT_BEFORE)
            with self._journal.writing() as writing:
                # One errand for one proposal: whoever else may run, only one intent is ever under way.
                if (
                    writing.proposal(task.proposal.id).version != task.proposal.version
                    or moves.under_way(writing.connection, task.proposal.id) is not None
                ):
                    raise VersionChanged(task.proposal.id)
                if self._stopped(writing.connection):
                    return Ending(Event.NOTHING_SENT, waiting=Waiting.STOPPED)
                # A large message is read for minutes: an approval that ended meanwhile ends at the next look, unmoved.
                if task.kind is MoveKind.MOVE and not self._is_allowed(writing.connection, task.proposal.id):
                    return Ending(Event.NOTHING_SENT)
                begun.append(moves.begin(writing, intent))
            self._checkpoint(checkpoints.INTENT_COMMITTED)
            return None

        def note(step: CopyStep, new_uid: int) -> None:
            with self._journal.writing() as writing:
                moves.come_as_far(writing, begun[0], step, new_uid)

        ending = carry_out(session, task, commit, note, self._checkpoint)
        self._checkpoint(checkpoints.OUTCOME_BEFORE)
        with self._journal.writing() as writing:
            if ending.event is Event.ABSENT and _may_have_run_late(writing, task):
                ending = Ending(Event.DOUBT)
            if begun and ending.event is not Event.DOUBT:
                moves.conclude(writing, begun[0], ending.event.value, ending.new_uid)
            conclude_errand(writing, task, ending, before)
        self._checkpoint(checkpoints.OUTCOME_COMMITTED)

    def _wait(self, proposal_id: str, state: State, waiting: Waiting) -> None:
        with self._journal.reading() as connection:
            proposal = read_proposal(connection, proposal_id)
        if proposal.state is state and proposal.waiting_code != waiting:
            with self._journal.writing() as writing:
                # The row may have moved on between the two transactions.
                if writing.proposal(proposal_id).version == proposal.version:
                    wait(writing, proposal, waiting)

    def _refuse_undo(self, proposal: Proposal, outcome: Outcome) -> None:
        with self._journal.writing() as writing:
            if writing.proposal(proposal.id).version == proposal.version:
                end(writing, proposal, Event.REFUSED, outcome)


def _may_have_run_late(writing: Writing, task: Errand) -> bool:
    """Begin an earlier intent of an errand again, if its command may have taken the message away after all.

    Nothing is sent for it: reconcile looks where that command would have put the message.
    """
    earlier = moves.not_seen_to_run(writing.connection, task.proposal.id, task.kind)
    if earlier is None or earlier.source_uid != task.source_uid:
        return False
    moves.begin(writing, earlier)
    return True


def conclude_errand(writing: Writing, task: Errand, ending: Ending, before: Proposal) -> None:
    """Write what an errand came to into its proposal, which stood as `before` when it was taken up."""
    if task.kind is MoveKind.UNDO and ending.event is Event.NOTHING_SENT:
        # An undo that did not begin is simply done again.
        assert ending.waiting is not None, "nothing was sent for a reason"
        wait(writing, writing.proposal(task.proposal.id), ending.waiting)
        return
    values: dict[str, Any] = {}
    details: dict[str, Any] = {}
    if ending.outcome is not None:
        values |= {"outcome_code": ending.outcome.value, "outcome_at": writing.now}
        details["outcome"] = ending.outcome.value
    if ending.waiting is not None:
        # The claim took the reason away; one that it had already keeps its time.
        since = before.waiting_since if before.waiting_code == ending.waiting else writing.now
        values |= {"waiting_code": ending.waiting.value, "waiting_since": since}
        details["waiting"] = ending.waiting.value
    if ending.new_uid is not None:
        details["newUid"] = ending.new_uid
    if ending.event is Event.MOVED and task.kind is MoveKind.MOVE:
        values["copies_left"] = task.copies_left
    writing.advance(task.proposal.id, ending.event, EXECUTOR, details=details, **values)


def _stand_back(writing: Writing, proposal: Proposal, ruling: MovingRuling) -> None:
    match ruling:
        case (
            MovingRuling.STOPPED
            | MovingRuling.BEING_MOVED
            | MovingRuling.TOO_MANY_MOVES
            | MovingRuling.TOO_MANY_MOVES_TODAY
        ):
            wait(writing, proposal, _WAITING_FOR[ruling])
        case MovingRuling.EXPIRED:
            end(writing, proposal, Event.EXPIRE, Outcome.NOT_DECIDED_IN_TIME)
        case MovingRuling.AGENT_REVOKED:
            end_revoked(writing, proposal, EXECUTOR)
        case MovingRuling.POLICY_CHANGED:
            _ask_again(writing, proposal)
        case MovingRuling.ALLOWED:
            raise AssertionError("what is allowed does not stand back")
        case _:
            assert_never(ruling)


def _ask_again(writing: Writing, proposal: Proposal) -> None:
    # The evidence goes too: other rules may mean another mailbox, so the executor looks anew.
    writing.advance(
        proposal.id,
        Event.POLICY_CHANGED,
        EXECUTOR,
        decided_by=None,
        decided_at=None,
        policy_version=None,
        shown=None,
        evidence=None,
        outcome_code=Outcome.POLICY_CHANGED.value,
        outcome_at=writing.now,
    )


def _in_states(connection: Connection, *states: State) -> list[Proposal]:
    rows = connection.execute(
        select(schema.proposals)
        .where(schema.proposals.c.state.in_([state.value for state in states]))
        .order_by(schema.proposals.c.created_at, schema.proposals.c.id)
    ).mappings()
    return [Proposal.from_row(row) for row in rows]

"""Concluding a doubt by looking: the source's UID, then the target's new UIDs, by digest. Never by repeating the MOVE.

A time-out or a failure to look is never taken for "gone": it only means looking again later. Only a move by copy is
finished here: where the copy is made and its source still there, that one UID is taken away.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, Final, Protocol

from sqlalchemy import Connection, select

from change_executor import checkpoints
from change_executor.checkpoints import Checkpoint
from change_executor.config import ExecutorSettings
from change_executor.copying import CopySession, remove_source
from change_executor.errand import mailboxes_of, may_copy
from change_executor.errors import MailboxRefused, VersionChanged
from change_executor.journal import moves, schema
from change_executor.journal.chain import event_details
from change_executor.journal.journal import Journal, Proposal, Writing, read_proposal
from change_executor.journal.moves import EXECUTOR, CopyStep, Intent, Move, MoveKind, MoveMethod
from change_executor.journal.steady import Reading
from change_executor.lifecycle import Event
from change_executor.outcomes import Outcome, Waiting
from change_executor.sighting import LookSession, Sighting, conclude, look
from change_executor.steps import wait, waiting_for
from change_executor.switch import is_frozen
from shared.imap_login import ImapFailure, ImapLogin
from shared.proposal import State
from shared.settings import ConfigurationError

# Reasons that only a person ends: looking again would tell nothing new, or would hide what was found.
_FOR_A_PERSON: Final = frozenset({Waiting.MOVED_TWICE.value})


OpenLook = Callable[[ImapLogin], AbstractContextManager[LookSession]]


class OpenMove(Protocol):
    """Opens a session that can take a source away whose copy was made; the mover's is the one that there is."""

    def __call__(  # noqa: D102 - see the mover
        self, login: ImapLogin, mailboxes: Iterable[str], *, copying: bool = False
    ) -> AbstractContextManager[CopySession]: ...


class Reconcile:
    """Looks after doubts, one at a time; used by the one worker."""

    def __init__(
        self,
        journal: Journal,
        settings: ExecutorSettings,
        open_look: OpenLook,
        checkpoint: Checkpoint = checkpoints.pass_by,
        *,
        open_move: OpenMove,
    ) -> None:
        self._journal = journal
        self._settings = settings
        self._open_look = open_look
        self._checkpoint = checkpoint
        self._open_move = open_move
        self._first_asked: dict[str, Reading] = {}

    def reconcile(self, proposal_id: str) -> None:
        """Look for the message of a doubtful proposal and conclude, or leave it doubtful with its reason."""
        with self._journal.reading() as connection:
            proposal = read_proposal(connection, proposal_id)
            move = moves.under_way(connection, proposal_id)
            left = self.quiet_left(connection, proposal_id)
        if proposal.state not in (State.DOUBTFUL, State.UNDO_DOUBTFUL) or proposal.waiting_code in _FOR_A_PERSON:
            return
        assert move is not None, "a doubt is about an intent"
        found = self._look(move.intent)
        self._checkpoint(checkpoints.RECONCILE_LOOKED)
        over = not left
        if isinstance(found, Sighting) and _copy_is_half_done(move, found, quiet_time_over=over):
            found = self._finish_copy(proposal, move, found.hits[0])
        if isinstance(found, Waiting):
            self._write(proposal, move, None, found, ())
            return
        happened = conclude(move.intent.kind, found, quiet_time_over=over, step=move.step)
        self._write(proposal, move, happened, _reason(move, found), found.hits)

    def quiet_left(self, connection: Connection, proposal_id: str) -> timedelta:
        """Return how much of its quiet time a doubtful proposal has still before it, by the clock that nobody sets.

        Where that was another boot's, or was not noted, it counts from when this was first asked: longer, not shorter.
        """
        now, noted = self._journal.steady(), _noted(connection, proposal_id)
        passed = now.since(noted)
        if passed is None:
            first = self._first_asked.get(proposal_id)
            passed = now.since(first)
            if passed is None:
                self._first_asked[proposal_id], passed = now, 0
        return max(timedelta(0), timedelta(seconds=self._settings.quiet_seconds) - timedelta(microseconds=passed))

    def _login(self, intent: Intent) -> ImapLogin | None:
        return next((each for each in self._settings.credentials if each.id == intent.credential), None)

    def _look(self, intent: Intent) -> Sighting | Waiting:
        login = self._login(intent)
        if login is None:
            return Waiting.QUEUE_NOT_CONFIGURED
        try:
            with self._open_look(login) as session:
                return look(session, intent)
        except MailboxRefused:
            return Waiting.MAILBOX_REFUSED
        except (ImapFailure, ConfigurationError) as failure:
            return waiting_for(failure)

    def _finish_copy(self, proposal: Proposal, move: Move, new_uid: int) -> Sighting | Waiting:
        """Take the source away of a copy that was made, and look again.

        A copy that nobody noted must be this message's for sure: a twin that somebody else moved looks the same.
        """
        intent, login = move.intent, self._login(move.intent)
        hindrance = self._cannot_finish(proposal, move)
        if login is None or hindrance is not None:
            return hindrance or Waiting.SETTLE

        def note(step: CopyStep, uid: int) -> None:
            with self._journal.writing() as writing:
                if writing.proposal(proposal.id).version != proposal.version:
                    raise VersionChanged(proposal.id)
                moves.come_as_far(writing, move.id, step, uid)

        try:
            with self._open_move(login, {intent.source_mailbox, intent.target_mailbox}, copying=True) as session:
                if not _lies_there(session, move, new_uid):
                    return Waiting.SETTLE
                if move.step is None:
                    note(CopyStep.COPIED, new_uid)
                remove_source(session, intent, new_uid, note, self._checkpoint)
        except MailboxRefused:
            return Waiting.MAILBOX_REFUSED
        except VersionChanged:
            return Waiting.SETTLE
        except (ImapFailure, ConfigurationError) as failure:
            return waiting_for(failure)
        return self._look(intent)

    def _cannot_finish(self, proposal: Proposal, move: Move) -> Waiting | None:
        intent, queue = move.intent, self._settings.queue(proposal.queue)
        mailboxes = {intent.source_mailbox, intent.target_mailbox}
        if queue is None or not may_copy(queue) or not mailboxes <= mailboxes_of(queue):
            return Waiting.SETTLE
        with self._journal.reading() as connection:
            if is_frozen(connection, self._settings.stop_file):
                return Waiting.STOPPED
            left = _copies_left(connection, proposal)
        return Waiting.SETTLE if move.step is None and intent.kind is MoveKind.MOVE and left != 0 else None

    def _write(
        self, before: Proposal, move: Move, happened: Event | None, reason: Waiting, hits: tuple[int, ...]
    ) -> None:
        if happened is None and before.waiting_code == reason:
            return
        self._checkpoint(checkpoints.CONCLUSION_BEFORE)
        with self._journal.writing() as writing:
            proposal = writing.proposal(before.id)
            # A person may have settled it while we looked.
            if proposal.version != before.version:
                return
            if happened is None:
                wait(writing, proposal, reason)
            else:
                self._first_asked.pop(proposal.id, None)
                _conclude(writing, proposal, move, happened, hits)
        self._checkpoint(checkpoints.CONCLUSION_COMMITTED)


def _copy_is_half_done(move: Move, found: Sighting, *, quiet_time_over: bool) -> bool:
    """Whether the copy is made and its source still there, for sure: noted, or alone after the quiet time."""
    if move.intent.method is not MoveMethod.COPY or not found.in_source or found.elsewhere or len(found.hits) != 1:
        return False
    return found.hits[0] == move.new_uid if move.step is not None else quiet_time_over


def _lies_there(session: CopySession, move: Move, new_uid: int) -> bool:
    """Whether the copy still lies in the target; one that nobody noted has the INTERNALDATE (RFC 9051 §6.4.7) too."""
    intent = move.intent
    if session.examine(intent.target_mailbox).uidvalidity != intent.target_uidvalidity:
        return False
    copy = session.fetch(new_uid)
    if copy is None or copy.sha256 != intent.octets_sha256:
        return False
    return move.step is not None or copy.internaldate == intent.internaldate


def _reason(move: Move, found: Sighting) -> Waiting:
    if found.elsewhere:
        return Waiting.MOVED_TWICE
    # A copy that nobody has noted may still be under way, as a MOVE may.
    may_still_run = found.in_source and move.step is None
    if may_still_run and (not found.hits or (move.intent.method is MoveMethod.COPY and len(found.hits) == 1)):
        return Waiting.QUIET_TIME
    return Waiting.SETTLE


def _conclude(writing: Writing, proposal: Proposal, move: Move, happened: Event, hits: tuple[int, ...]) -> None:
    new_uid = hits[0] if hits else None
    moves.conclude(writing, move.id, happened.value, new_uid)
    values: dict[str, Any] = {}
    details: dict[str, Any] = {"move": move.id}
    outcome = _outcome(move.intent.kind, happened)
    if outcome is not None:
        values |= {"outcome_code": outcome.value, "outcome_at": writing.now}
        details["outcome"] = outcome.value
    if outcome is Outcome.MOVED:
        values["copies_left"] = _copies_left(writing.connection, proposal)
    if new_uid is not None:
        details["newUid"] = new_uid
    writing.advance(proposal.id, happened, EXECUTOR, details=details, **values)


def _outcome(kind: MoveKind, happened: Event) -> Outcome | None:
    match (kind, happened):
        case (MoveKind.MOVE, Event.FOUND_IN_TARGET):
            return Outcome.MOVED
        case (MoveKind.MOVE, Event.FOUND_IN_NEITHER):
            return Outcome.MESSAGE_GONE
        case (MoveKind.UNDO, Event.FOUND_IN_SOURCE):
            return Outcome.MOVED_BACK
        case (MoveKind.UNDO, Event.FOUND_IN_TARGET):
            return Outcome.UNDO_DID_NOT_HAPPEN
        case _:
            return None


def _copies_left(connection: Connection, proposal: Proposal) -> int | None:
    copies = connection.execute(
        select(schema.evidence.c.copies).where(schema.evidence.c.id == proposal.evidence)
    ).scalar_one_or_none()
    return None if copies is None else copies - 1


def _noted(connection: Connection, proposal_id: str) -> Reading | None:
    # When the doubt was noted: at that time, at the latest, the connection had broken.
    columns = schema.events.c
    last = (
        select(columns.details)
        .where(columns.subject == proposal_id, columns.kind == f"proposal:{Event.DOUBT.value}")
        .order_by(columns.seq.desc())
        .limit(1)
    )
    details = connection.execute(last).scalar_one_or_none()
    return None if details is None else Reading.noted(event_details(details))

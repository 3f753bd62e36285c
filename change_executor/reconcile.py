"""Concluding a doubt by looking: the source's UID, then the target's new UIDs, by digest. Never by repeating the MOVE.

A time-out or a failure to look is never taken for "gone": it only means looking again later.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from sqlalchemy import Connection, func, select

from change_executor import checkpoints
from change_executor.checkpoints import Checkpoint
from change_executor.config import ExecutorSettings
from change_executor.errors import MailboxRefused
from change_executor.journal import moves, schema
from change_executor.journal.journal import Journal, Proposal, Writing, read_proposal
from change_executor.journal.moves import EXECUTOR, Intent, Move, MoveKind
from change_executor.lifecycle import Event
from change_executor.looking import OpenedMailbox, SeenMessage
from change_executor.outcomes import Outcome, Waiting
from change_executor.steps import wait, waiting_for
from shared.imap_login import ImapFailure, ImapLogin
from shared.proposal import State
from shared.settings import ConfigurationError

# A destination gets a few messages between a doubt and its reconcile. Past this a person looks faster than we do.
MAX_CANDIDATES: Final = 500

# Reasons that only a person ends: looking again would tell nothing new, or would hide what was found.
_FOR_A_PERSON: Final = frozenset({Waiting.MOVED_TWICE.value})


class LookSession(Protocol):
    """What reconcile needs of a session; `change_executor.looking.Looking` is the one that there is."""

    def examine(self, mailbox: str) -> OpenedMailbox: ...  # noqa: D102 - see looking
    def fetch(self, uid: int) -> SeenMessage | None: ...  # noqa: D102 - see looking
    def uids_from(self, uid: int) -> list[int]: ...  # noqa: D102 - see looking


OpenLook = Callable[[ImapLogin], AbstractContextManager[LookSession]]


@dataclass(frozen=True, slots=True)
class Sighting:
    """Where the message of an intent was seen: at its old UID or not, and at which new UIDs of the target."""

    in_source: bool
    hits: tuple[int, ...]


def conclude(kind: MoveKind, sighting: Sighting, *, quiet_time_over: bool) -> Event | None:
    """Return the event that a sighting proves, or None where it proves nothing yet.

    Found only where it lay means that the command did not run, or not yet: a server process that was stopped can run
    it later, so this counts after the quiet time. In both, or more than once: a person settles it. Of an undo that
    is found nowhere a person settles it too.
    """
    match (sighting.in_source, len(sighting.hits)):
        case (False, 1):
            return Event.FOUND_IN_TARGET if kind is MoveKind.MOVE else Event.FOUND_IN_SOURCE
        case (True, 0) if quiet_time_over:
            return Event.FOUND_IN_SOURCE if kind is MoveKind.MOVE else Event.FOUND_IN_TARGET
        case (False, 0) if kind is MoveKind.MOVE:
            return Event.FOUND_IN_NEITHER
        case _:
            return None


def look(session: LookSession, intent: Intent) -> Sighting | Waiting:
    """Look for the message of an intent, or return why looking tells nothing."""
    # The source first: a command that runs between the two looks then shows the message twice, and never nowhere.
    if session.examine(intent.source_mailbox).uidvalidity != intent.source_uidvalidity:
        return Waiting.MAILBOX_CHANGED
    in_source = _is_it(session.fetch(intent.source_uid), intent)
    if session.examine(intent.target_mailbox).uidvalidity != intent.target_uidvalidity:
        return Waiting.MAILBOX_CHANGED
    candidates = session.uids_from(intent.target_uidnext)
    if len(candidates) > MAX_CANDIDATES:
        return Waiting.TOO_MANY_TO_LOOK_AT
    return Sighting(in_source, tuple(uid for uid in candidates if _is_it(session.fetch(uid), intent)))


class Reconcile:
    """Looks after doubts, one at a time; used by the one worker."""

    def __init__(
        self,
        journal: Journal,
        settings: ExecutorSettings,
        open_look: OpenLook,
        checkpoint: Checkpoint = checkpoints.pass_by,
    ) -> None:
        self._journal = journal
        self._settings = settings
        self._open_look = open_look
        self._checkpoint = checkpoint

    def reconcile(self, proposal_id: str) -> None:
        """Look for the message of a doubtful proposal and conclude, or leave it doubtful with its reason."""
        with self._journal.reading() as connection:
            proposal = read_proposal(connection, proposal_id)
            move = moves.under_way(connection, proposal_id)
            doubted_at = _doubted_at(connection, proposal_id)
        if proposal.state not in (State.DOUBTFUL, State.UNDO_DOUBTFUL) or proposal.waiting_code in _FOR_A_PERSON:
            return
        assert move is not None, "a doubt is about an intent"
        found = self._look(move.intent)
        self._checkpoint(checkpoints.RECONCILE_LOOKED)
        if isinstance(found, Waiting):
            self._write(proposal, move, None, found, ())
            return
        happened = conclude(
            move.intent.kind, found, quiet_time_over=self._journal.now() >= self.quiet_until(doubted_at)
        )
        lies_only_where_it_lay = found.in_source and not found.hits
        reason = Waiting.QUIET_TIME if lies_only_where_it_lay else Waiting.SETTLE
        self._write(proposal, move, happened, reason, found.hits)

    def quiet_until(self, doubted_at: datetime) -> datetime:
        """Return when a message found only in the source counts as not moved."""
        return doubted_at + timedelta(seconds=self._settings.quiet_seconds)

    def quiet_time_ends(self, connection: Connection, proposal_id: str) -> datetime:
        """Return when the quiet time of a doubtful proposal ends."""
        return self.quiet_until(_doubted_at(connection, proposal_id))

    def _look(self, intent: Intent) -> Sighting | Waiting:
        login = next((each for each in self._settings.credentials if each.id == intent.credential), None)
        if login is None:
            return Waiting.QUEUE_NOT_CONFIGURED
        try:
            with self._open_look(login) as session:
                return look(session, intent)
        except MailboxRefused:
            return Waiting.MAILBOX_REFUSED
        except (ImapFailure, ConfigurationError) as failure:
            return waiting_for(failure)

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
                _conclude(writing, proposal, move, happened, hits)
        self._checkpoint(checkpoints.CONCLUSION_COMMITTED)


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


def _doubted_at(connection: Connection, proposal_id: str) -> datetime:
    # From when the doubt was noted: at that time, at the latest, the connection had broken.
    last: datetime | None = connection.execute(
        select(func.max(schema.events.c.at)).where(
            schema.events.c.subject == proposal_id, schema.events.c.kind == f"proposal:{Event.DOUBT.value}"
        )
    ).scalar_one()
    return datetime.min.replace(tzinfo=UTC) if last is None else last


def _is_it(message: SeenMessage | None, intent: Intent) -> bool:
    return message is not None and message.sha256 == intent.octets_sha256

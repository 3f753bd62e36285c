"""One errand in one IMAP session: check, let the intent be committed, move, verify. It knows no journal."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from change_executor import checkpoints
from change_executor.checkpoints import Checkpoint
from change_executor.config import Queue
from change_executor.copying import CopySession, NoteStep, copy_over
from change_executor.errand import Errand, may_copy
from change_executor.errors import MailboxRefused
from change_executor.journal.moves import Intent, MoveKind, MoveMethod
from change_executor.lifecycle import Event
from change_executor.looking import MailboxStatus
from change_executor.move_reply import Answer, MoveReply
from change_executor.outcomes import Outcome, Waiting
from change_executor.sighting import Sighting, lies_elsewhere, look
from shared.imap_login import ImapFailure


class Capable(Protocol):
    """What tells what a server offers."""

    def has_capability(self, name: str) -> bool: ...  # noqa: D102 - see looking


class MoveSession(CopySession, Protocol):
    """What an errand needs of the mover; `change_executor.mover.MoveSession` is the one that there is."""

    def move_one(self, uid: int, target: str) -> MoveReply: ...  # noqa: D102 - see the mover
    def status(self, mailbox: str) -> MailboxStatus: ...  # noqa: D102 - see the mover
    def has_capability(self, name: str) -> bool: ...  # noqa: D102 - see the mover
    def uids_from(self, uid: int) -> list[int]: ...  # noqa: D102 - see the mover


@dataclass(frozen=True, slots=True)
class Ending:
    """What an errand came to: an event of the lifecycle with its outcome, or a reason to wait, or a doubt."""

    event: Event
    outcome: Outcome | None = None
    waiting: Waiting | None = None
    new_uid: int | None = None


@dataclass(frozen=True, slots=True)
class _Ready:
    intent: Intent
    flags: frozenset[str]


# Commits the intent, or returns why the errand may not go on after all.
CommitIntent = Callable[[Intent], Ending | None]


def carry_out(
    session: MoveSession, errand: Errand, commit: CommitIntent, note: NoteStep, checkpoint: Checkpoint
) -> Ending:
    """Carry one errand out; `commit` is called once, before the first octet of the MOVE, `note` after a copy's steps.

    Never raises `ImapFailure` or `MailboxRefused`: before the MOVE they mean that nothing was sent, after it a doubt.
    """
    try:
        ready = _check(session, errand, checkpoint)
    except MailboxRefused:
        return Ending(Event.NOTHING_SENT, waiting=Waiting.MAILBOX_REFUSED)
    except ImapFailure:
        return Ending(Event.NOTHING_SENT, waiting=Waiting.MAIL_SERVER_UNREACHABLE)
    if isinstance(ready, Ending):
        return ready
    refused = commit(ready.intent)
    if refused is not None:
        return refused
    checkpoint(checkpoints.MOVE_BEFORE)
    try:
        if ready.intent.method is MoveMethod.COPY:
            reply = copy_over(session, ready.intent, note, checkpoint)
        else:
            reply = session.move_one(errand.source_uid, errand.target)
        checkpoint(checkpoints.MOVE_ANSWERED)
        ending = _judge(session, errand, ready, reply)
    except (ImapFailure, MailboxRefused):
        return Ending(Event.DOUBT)
    checkpoint(checkpoints.MOVE_VERIFIED)
    return ending


def method_on(session: Capable, queue: Queue) -> MoveMethod | None:
    """Return how a message of this queue is moved on this server, or None where it cannot be."""
    if session.has_capability("MOVE"):
        return MoveMethod.MOVE
    return MoveMethod.COPY if may_copy(queue) and session.has_capability("UIDPLUS") else None


def _check(session: MoveSession, errand: Errand, checkpoint: Checkpoint) -> _Ready | Ending:
    method = method_on(session, errand.queue)
    if method is None:
        return Ending(Event.NOTHING_SENT, waiting=Waiting.MOVE_NOT_OFFERED)
    # Before the source is read: what comes into the target from here on has a UID from the one recorded on, whoever
    # brings it there; also an earlier command of ours that wakes up late.
    target = session.status(errand.target)
    elsewhere = _elsewhere(session, errand)
    checkpoint(checkpoints.TARGET_ASKED)
    opened = session.select(errand.source)
    if opened.uidvalidity == target.uidvalidity:
        if _are_one(session, errand):
            return Ending(Event.NOTHING_SENT, waiting=Waiting.SAME_MAILBOX)
        opened = session.select(errand.source)
    checkpoint(checkpoints.SOURCE_OPENED)
    if opened.read_only:
        return Ending(Event.REFUSED, _refusal(errand))
    if opened.uidvalidity != errand.source_uidvalidity:
        return Ending(Event.CHANGED, Outcome.MAILBOX_CHANGED)
    message = session.fetch(errand.source_uid)
    checkpoint(checkpoints.MESSAGE_READ)
    if message is None:
        return Ending(Event.ABSENT, Outcome.MESSAGE_GONE)
    if message.sha256 != errand.octets_sha256:
        return Ending(Event.CHANGED, Outcome.MESSAGE_CHANGED)
    intent = Intent(
        proposal=errand.proposal.id,
        kind=errand.kind,
        credential=errand.queue.credential,
        source_mailbox=errand.source,
        source_uidvalidity=opened.uidvalidity,
        source_uid=errand.source_uid,
        target_mailbox=errand.target,
        target_uidvalidity=target.uidvalidity,
        target_uidnext=target.uidnext,
        octets_sha256=message.sha256,
        size=message.size,
        internaldate=message.internaldate,
        method=method,
        elsewhere=elsewhere,
    )
    return _Ready(intent, message.flags)


def _are_one(session: MoveSession, errand: Errand) -> bool:
    """Whether the target is the open source under another name: while both were empty the examination could not tell.

    Some servers give every mailbox the same UIDVALIDITY, so the message must lie in both at the same UID.
    """
    here = session.fetch(errand.source_uid)
    session.examine(errand.target)
    there = session.fetch(errand.source_uid)
    if here is None or there is None:
        return False
    return (here.sha256, here.internaldate) == (there.sha256, there.internaldate)


def _elsewhere(session: MoveSession, errand: Errand) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for mailbox in errand.others():
        # A destination that this message has no business in must not hold it up.
        with suppress(MailboxRefused):
            status = session.status(mailbox)
            found[mailbox] = (status.uidvalidity, status.uidnext)
    return found


def _judge(session: MoveSession, errand: Errand, ready: _Ready, reply: MoveReply) -> Ending:
    match reply.answer:
        case Answer.NOTHING_SENT:
            return Ending(Event.NOTHING_SENT, waiting=Waiting.MAIL_SERVER_UNREACHABLE)
        case Answer.UNKNOWN:
            return Ending(Event.DOUBT)
        case Answer.REFUSED:
            # Also after a NO a message may lie in both mailboxes (RFC 6851 §3.3); believed where it is seen not to.
            only_there = look(session, ready.intent) == Sighting(in_source=True, hits=())
            return Ending(Event.REFUSED, _refusal(errand)) if only_there else Ending(Event.DOUBT)
        case Answer.OK:
            return _verify(session, errand, ready, reply)


def _verify(session: MoveSession, errand: Errand, ready: _Ready, reply: MoveReply) -> Ending:
    # OK alone proves nothing: the MOVE of a UID that is gone is OK on most servers.
    copyuid, intent = reply.copyuid, ready.intent
    if (
        copyuid is None
        or copyuid.source_uid != errand.source_uid
        or copyuid.uidvalidity != intent.target_uidvalidity
        or copyuid.target_uid < intent.target_uidnext
    ):
        return Ending(Event.DOUBT)
    if session.examine(errand.target).uidvalidity != intent.target_uidvalidity:
        return Ending(Event.DOUBT)
    moved = session.fetch(copyuid.target_uid)
    if moved is None or moved.sha256 != errand.octets_sha256:
        return Ending(Event.DOUBT)
    if session.examine(errand.source).uidvalidity != intent.source_uidvalidity or session.has(errand.source_uid):
        return Ending(Event.DOUBT)
    # MOVE is no claim: two sessions that move one UID at the same moment both succeed, on Dovecot and on Cyrus.
    if lies_elsewhere(session, intent):
        return Ending(Event.DOUBT, waiting=Waiting.MOVED_TWICE)
    return Ending(Event.MOVED, _success(errand, kept=ready.flags <= moved.flags), new_uid=copyuid.target_uid)


def _refusal(errand: Errand) -> Outcome:
    return Outcome.UNDO_NOT_PERMITTED if errand.kind is MoveKind.UNDO else Outcome.SERVER_REFUSED


def _success(errand: Errand, *, kept: bool) -> Outcome:
    if errand.kind is MoveKind.UNDO:
        return Outcome.MOVED_BACK if kept else Outcome.MOVED_BACK_FLAGS_LOST
    return Outcome.MOVED if kept else Outcome.MOVED_FLAGS_LOST

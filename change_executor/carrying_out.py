"""One errand in one IMAP session: check, let the intent be committed, move, verify. It knows no journal."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from change_executor import checkpoints
from change_executor.checkpoints import Checkpoint
from change_executor.errand import Errand
from change_executor.errors import MailboxRefused
from change_executor.journal.moves import Intent, MoveKind
from change_executor.lifecycle import Event
from change_executor.looking import MailboxStatus, OpenedMailbox, SeenMessage
from change_executor.move_reply import Answer, MoveReply
from change_executor.outcomes import Outcome, Waiting
from shared.imap_login import ImapFailure


class MoveSession(Protocol):
    """What an errand needs of the mover; `change_executor.mover.MoveSession` is the one that there is."""

    def select(self, mailbox: str) -> OpenedMailbox: ...  # noqa: D102 - see the mover
    def move_one(self, uid: int, target: str) -> MoveReply: ...  # noqa: D102 - see the mover
    def examine(self, mailbox: str) -> OpenedMailbox: ...  # noqa: D102 - see the mover
    def status(self, mailbox: str) -> MailboxStatus: ...  # noqa: D102 - see the mover
    def fetch(self, uid: int) -> SeenMessage | None: ...  # noqa: D102 - see the mover
    def has(self, uid: int) -> bool: ...  # noqa: D102 - see the mover
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
    uidnext_elsewhere: dict[str, int]


# Commits the intent, or returns why the errand may not go on after all.
CommitIntent = Callable[[Intent], Ending | None]


def carry_out(session: MoveSession, errand: Errand, commit: CommitIntent, checkpoint: Checkpoint) -> Ending:
    """Carry one errand out; `commit` is called once, before the first octet of the MOVE.

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
    reply = session.move_one(errand.source_uid, errand.target)
    checkpoint(checkpoints.MOVE_ANSWERED)
    try:
        ending = _judge(session, errand, ready, reply)
    except (ImapFailure, MailboxRefused):
        return Ending(Event.DOUBT)
    checkpoint(checkpoints.MOVE_VERIFIED)
    return ending


def _check(session: MoveSession, errand: Errand, checkpoint: Checkpoint) -> _Ready | Ending:
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
    target = session.status(errand.target)
    elsewhere = _uidnext_elsewhere(session, errand)
    checkpoint(checkpoints.TARGET_ASKED)
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
    )
    return _Ready(intent, message.flags, elsewhere)


def _uidnext_elsewhere(session: MoveSession, errand: Errand) -> dict[str, int]:
    found: dict[str, int] = {}
    for mailbox in errand.others():
        # A destination that this message has no business in must not hold it up.
        with suppress(MailboxRefused):
            found[mailbox] = session.status(mailbox).uidnext
    return found


def _judge(session: MoveSession, errand: Errand, ready: _Ready, reply: MoveReply) -> Ending:
    match reply.answer:
        case Answer.NOTHING_SENT:
            return Ending(Event.NOTHING_SENT, waiting=Waiting.MAIL_SERVER_UNREACHABLE)
        case Answer.UNKNOWN:
            return Ending(Event.DOUBT)
        case Answer.REFUSED:
            # NO says that nothing was moved; believed where the message is seen to lie where it lay.
            message = session.fetch(errand.source_uid)
            still_there = message is not None and message.sha256 == errand.octets_sha256
            return Ending(Event.REFUSED, _refusal(errand)) if still_there else Ending(Event.DOUBT)
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
    if any(_lies_in(session, errand, mailbox, uidnext) for mailbox, uidnext in ready.uidnext_elsewhere.items()):
        return Ending(Event.DOUBT, waiting=Waiting.MOVED_TWICE)
    return Ending(Event.MOVED, _success(errand, kept=ready.flags <= moved.flags), new_uid=copyuid.target_uid)


def _lies_in(session: MoveSession, errand: Errand, mailbox: str, uidnext: int) -> bool:
    if session.status(mailbox).uidnext == uidnext:
        return False
    session.examine(mailbox)
    messages = (session.fetch(uid) for uid in session.uids_from(uidnext))
    return any(message is not None and message.sha256 == errand.octets_sha256 for message in messages)


def _refusal(errand: Errand) -> Outcome:
    return Outcome.UNDO_NOT_PERMITTED if errand.kind is MoveKind.UNDO else Outcome.SERVER_REFUSED


def _success(errand: Errand, *, kept: bool) -> Outcome:
    if errand.kind is MoveKind.UNDO:
        return Outcome.MOVED_BACK if kept else Outcome.MOVED_BACK_FLAGS_LOST
    return Outcome.MOVED if kept else Outcome.MOVED_FLAGS_LOST

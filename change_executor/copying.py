"""Moving on a server without MOVE: copy one message, flag the source, expunge just that UID; each step checked.

No step is taken before the one before it was seen to have happened and is on record. What breaks in between leaves the
message in both mailboxes, never in none: reconcile finds the copy and finishes, or hands the case to a person.
"""

from collections.abc import Callable
from typing import Final, Protocol

from change_executor import checkpoints
from change_executor.checkpoints import Checkpoint
from change_executor.journal.moves import CopyStep, Intent
from change_executor.looking import OpenedMailbox, SeenMessage
from change_executor.move_reply import Answer, CopyUid, MoveReply

# RFC 9051 §2.3.2; flags are compared in lower case.
_DELETED: Final = "\\deleted"

# Commits a step with the UID of the copy, before the next one is taken.
NoteStep = Callable[[CopyStep, int], None]


class CopySession(Protocol):
    """What copying needs of the mover; `change_executor.mover.MoveSession` is the one that there is."""

    def select(self, mailbox: str) -> OpenedMailbox: ...  # noqa: D102 - see the mover
    def examine(self, mailbox: str) -> OpenedMailbox: ...  # noqa: D102 - see the mover
    def fetch(self, uid: int) -> SeenMessage | None: ...  # noqa: D102 - see the mover
    def has(self, uid: int) -> bool: ...  # noqa: D102 - see the mover
    def copy_one(self, uid: int, target: str) -> MoveReply: ...  # noqa: D102 - see the mover
    def flag_deleted(self, uid: int) -> Answer: ...  # noqa: D102 - see the mover
    def expunge_one(self, uid: int) -> Answer: ...  # noqa: D102 - see the mover


def copy_over(session: CopySession, intent: Intent, note: NoteStep, checkpoint: Checkpoint) -> MoveReply:
    """Move by copy, and answer as a MOVE would; the source must be selected and the message checked.

    `OK` comes after the source is gone. Raises `ImapFailure` or `MailboxRefused`, which then mean a doubt.
    """
    reply = session.copy_one(intent.source_uid, intent.target_mailbox)
    checkpoint(checkpoints.COPY_ANSWERED)
    if reply.answer is not Answer.OK:
        return reply
    copied = _copied(session, intent, reply.copyuid)
    if copied is None:
        return MoveReply(Answer.UNKNOWN)
    note(CopyStep.COPIED, copied.target_uid)
    checkpoint(checkpoints.COPY_NOTED)
    gone = remove_source(session, intent, copied.target_uid, note, checkpoint)
    return MoveReply(Answer.OK, copied) if gone else MoveReply(Answer.UNKNOWN)


def remove_source(session: CopySession, intent: Intent, new_uid: int, note: NoteStep, checkpoint: Checkpoint) -> bool:
    """Take away the message whose copy was seen in the target and noted; whether it is seen to be gone.

    The message is compared once more, in the session that expunges it.
    """
    if session.select(intent.source_mailbox).uidvalidity != intent.source_uidvalidity:
        return False
    message = session.fetch(intent.source_uid)
    if message is None:
        return True
    if message.sha256 != intent.octets_sha256:
        return False
    session.flag_deleted(intent.source_uid)
    checkpoint(checkpoints.FLAG_ANSWERED)
    # OK alone proves nothing: some servers answer so to a login that may not.
    flagged = session.fetch(intent.source_uid)
    if flagged is None or flagged.sha256 != intent.octets_sha256 or _DELETED not in flagged.flags:
        return False
    note(CopyStep.FLAGGED, new_uid)
    checkpoint(checkpoints.FLAG_NOTED)
    session.expunge_one(intent.source_uid)
    checkpoint(checkpoints.EXPUNGE_ANSWERED)
    return not session.has(intent.source_uid)


def _copied(session: CopySession, intent: Intent, copyuid: CopyUid | None) -> CopyUid | None:
    """Return where the copy is, if it is one of these octets, new in the target."""
    if (
        copyuid is None
        or copyuid.source_uid != intent.source_uid
        or copyuid.uidvalidity != intent.target_uidvalidity
        or copyuid.target_uid < intent.target_uidnext
        or session.examine(intent.target_mailbox).uidvalidity != intent.target_uidvalidity
    ):
        return None
    message = session.fetch(copyuid.target_uid)
    return copyuid if message is not None and message.sha256 == intent.octets_sha256 else None

"""The whole power of the system: one message, by its UID, into a mailbox that the configuration names.

This is the only code of the repository that can change a mailbox. It says SELECT and UID MOVE (RFC 6851), through a
table narrowed to the mailboxes of one queue; and where the queue allows it for a server without MOVE, UID COPY, the
flag Deleted and UID EXPUNGE (RFC 4315). It decides nothing: what may be moved, and what a reply means, is for `apply`.
"""

import imaplib
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from imapclient.exceptions import IMAPClientAbortError, IMAPClientError

from change_executor.connections import Connections
from change_executor.imap_verbs import move_table_for
from change_executor.looking import Looking, OpenedMailbox
from change_executor.move_reply import Answer, CopyUid, MoveReply
from shared.imap_login import ImapLogin

# RFC 4315 §3, as it must be for one message: UIDVALIDITY, one source UID, one target UID.
_COPYUID: Final = re.compile(rb"(\d{1,10}) (\d{1,10}) (\d{1,10})")


class MoveSession(Looking):
    """A connection that may look, and move between the mailboxes of one queue."""

    def select(self, mailbox: str) -> OpenedMailbox:
        """Open a mailbox to move from it, or raise `MailboxRefused`; `read_only` where the rights do not suffice."""
        return self._open(mailbox, readonly=False)

    def move_one(self, uid: int, target: str) -> MoveReply:
        """Move one message of the selected mailbox; tells exactly whether an octet of the command may have left."""
        return self._to_target(lambda: self._client.move([uid], target))

    def copy_one(self, uid: int, target: str) -> MoveReply:
        """Copy one message of the selected mailbox; as `move_one`."""
        return self._to_target(lambda: self._client.copy([uid], target))

    def flag_deleted(self, uid: int) -> Answer:
        """Set the flag Deleted on one message of the selected mailbox; whether it is set a fetch tells."""
        return self._said(lambda: self._client.add_flags([uid], ["\\Deleted"], silent=True))

    def expunge_one(self, uid: int) -> Answer:
        """Expunge one message that is flagged Deleted, and no other that is (RFC 4315 §2.1)."""
        return self._said(lambda: self._client.uid_expunge([uid]))

    def _to_target(self, command: Callable[[], object]) -> MoveReply:
        connection = self._client._imap  # noqa: SLF001 - imapclient's move() and copy() return no COPYUID
        # A value left from an earlier command would be taken for the answer to this one.
        connection.response("COPYUID")
        answer = self._said(command)
        if answer is not Answer.OK:
            return MoveReply(answer)
        # RFC 6851 §4.3 sends it untagged, RFC 4315 §3 tagged; imaplib keeps both in one place.
        return MoveReply(Answer.OK, _copyuid(connection.response("COPYUID")[1]))

    def _said(self, command: Callable[[], object]) -> Answer:
        passed_before = self._client.octets_passed
        try:
            command()
        except (IMAPClientError, OSError) as error:
            if self._client.octets_passed == passed_before:
                return Answer.NOTHING_SENT
            return Answer.REFUSED if _is_answer(error) else Answer.UNKNOWN
        return Answer.OK


class Mover:
    """Opens sessions that can move."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    @contextmanager
    def session(self, login: ImapLogin, mailboxes: Iterable[str], *, copying: bool = False) -> Iterator[MoveSession]:
        """Sign in with a table in which SELECT and UID MOVE know these mailboxes only; `copying` adds the other way.

        Raises `shared.imap_login.ImapFailure` or `shared.settings.ConfigurationError`.
        """
        with self._connections.opened(login, move_table_for(mailboxes, copying=copying)) as client:
            yield MoveSession(client, login.id)


def _is_answer(error: Exception) -> bool:
    # NO and BAD come as plain errors; a lost connection, a BYE and nonsense come as abort or OSError.
    return isinstance(error, imaplib.IMAP4.error) and not isinstance(error, IMAPClientAbortError)


def _copyuid(values: list[bytes | None]) -> CopyUid | None:
    if len(values) != 1 or values[0] is None:
        return None
    match = _COPYUID.fullmatch(values[0])
    return None if match is None else CopyUid(int(match[1]), int(match[2]), int(match[3]))

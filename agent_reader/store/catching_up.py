"""What a mirror has of one mailbox, asked and put forward in as few steps as a notice of one new message wants."""

from collections.abc import Iterable, Iterator

import apsw

from agent_reader.store import emails, mailboxes
from agent_reader.store.writing import Writing
from agent_reader.sync.mirror import KnownCopy, MessageState

_KEY = "(SELECT key FROM mailboxes WHERE handle = ? AND standing <> 'gone')"


def states(
    connection: apsw.Connection, mailbox_id: str, ranges: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, str, int | None]]:
    """Yield UID, flags (JSON) and MODSEQ of the copies in these ranges of UIDs."""
    for low, high in ranges:
        yield from connection.execute(
            f"SELECT uid, flags, modseq FROM copies WHERE mailbox_key = {_KEY} AND uid BETWEEN ? AND ?",  # noqa: S608 - constants only
            (mailbox_id, low, high),
        )


def count(connection: apsw.Connection, mailbox_id: str) -> int:
    """Return how many messages of a mailbox are taken in or set aside."""
    return int(
        connection.execute(
            f"SELECT (SELECT count(*) FROM copies WHERE mailbox_key = {_KEY}) "  # noqa: S608 - constants only
            f"+ (SELECT count(*) FROM set_aside WHERE mailbox_key = {_KEY})",
            (mailbox_id, mailbox_id),
        ).get
    )


def add_copies(writing: Writing, mailbox_id: str, copies: Iterable[KnownCopy]) -> list[int]:
    """Put copies of Emails that are here from other mailboxes; return the UIDs for which one was."""
    found: dict[int, tuple[int, str, MessageState]] = {}
    for copy in copies:
        row = writing.connection.execute(
            "SELECT e.key, e.id FROM copies c JOIN emails e ON e.key = c.email_key "  # noqa: S608 - constants only
            f"WHERE c.mailbox_key = {_KEY} AND c.uid = ?",
            (copy.of_mailbox_id, copy.of_uid),
        ).fetchone()
        if row is not None:
            found[copy.uid] = (int(row[0]), str(row[1]), copy.state)
    mailboxes.recognise(
        writing, mailboxes.key_of(writing, mailbox_id), {uid: email_id for uid, (_, email_id, _) in found.items()}
    )
    key = mailboxes.key_of(writing, mailbox_id)
    for uid, (email_key, _, state) in found.items():
        emails.put_known_copy(writing, key, uid, state, email_key)
    return list(found)


def reached(writing: Writing, mailbox_key: int, highestmodseq: int | None) -> None:
    """Record up to where the messages that are held are as the server has them, while others are missing still."""
    # No mailbox has the UIDNEXT 0: by this it is not taken for whole, whatever STATUS says, until it was looked at.
    writing.connection.execute(
        "UPDATE mailboxes SET highestmodseq = ?, uidnext = 0 WHERE key = ?", (highestmodseq, mailbox_key)
    )

"""Messages that could not be had or read: remembered with what to do, so that they stop no other, and tried again.

What is set aside is not asked for again, round after round. Another version of the reading may do better, so what an
earlier one set aside is forgotten when the file is opened, and sync finds it new.
"""

from collections.abc import Iterable
from typing import Final

import apsw

from agent_reader.store.reading import reading_version
from agent_reader.store.writing import Writing
from agent_reader.sync.mirror import SetAside

UNREADABLE_FIX: Final = (
    "Open it with a mail program. It is tried again after the next upgrade of the reader; report it, with the message "
    "if you may."
)


def put(writing: Writing, mailbox_key: int, message: SetAside) -> None:
    """Remember a message that cannot be had or read."""
    writing.connection.execute(
        "INSERT OR REPLACE INTO set_aside (mailbox_key, uid, code, cause, fix, version, at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (mailbox_key, message.uid, message.code, message.cause, message.fix, reading_version(), writing.now),
    )


def forget(writing: Writing, mailbox_key: int, uids: Iterable[int] | None = None) -> None:
    """Forget those with these UIDs, or all of a mailbox: they came in, or are there no more."""
    if uids is None:
        writing.connection.execute("DELETE FROM set_aside WHERE mailbox_key = ?", (mailbox_key,))
        return
    writing.connection.executemany(
        "DELETE FROM set_aside WHERE mailbox_key = ? AND uid = ?", [(mailbox_key, uid) for uid in uids]
    )


def forget_older_readings(connection: apsw.Connection) -> None:
    """Let another version of the reading try again."""
    # Asked first: a command that only looks must not wait for the daemon's transaction.
    stale = connection.execute("SELECT 1 FROM set_aside WHERE version <> ? LIMIT 1", (reading_version(),)).get
    if stale is not None:
        with connection:
            # What is forgotten is missing: the mailbox is not whole any more (`catching_up.reached`).
            connection.execute(
                "UPDATE mailboxes SET uidnext = 0 WHERE key IN (SELECT mailbox_key FROM set_aside WHERE version <> ?)",
                (reading_version(),),
            )
            connection.execute("DELETE FROM set_aside WHERE version <> ?", (reading_version(),))

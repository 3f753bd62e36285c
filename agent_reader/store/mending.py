"""What is kept of a message and was damaged (on the disk, by a copy gone wrong) is read again from the mail server.

Its copies are forgotten, so that sync finds them missing; the Email stays, held, with its id, Thread and keywords, and
comes whole again with the first copy that is read. Until then whoever asks for it is told so (`MessageDamaged`).
"""

from collections.abc import Iterable
from typing import Any, Final

import apsw

from agent_reader.damage import MessageDamaged
from agent_reader.store import emails, packing, search
from agent_reader.store.writing import Writing

# A transaction of some tens of milliseconds; questions and new mail go between.
_EMAILS_AT_A_TIME: Final = 500
_BEFORE_ALL: Final = -(2**63)


def mend_some(writing: Writing, after: int | None) -> tuple[int | None, int]:
    """Look at the next Emails after this key, the first for None, and have the damaged ones read again.

    Returns the last key that was looked at, None behind the end, and how many were damaged.
    """
    last, damaged = None, list[int]()
    rows = writing.connection.execute(
        "SELECT key, document, summary, words FROM email_texts WHERE key > ? ORDER BY key LIMIT ?",
        (_BEFORE_ALL if after is None else after, _EMAILS_AT_A_TIME),
    )
    for last, document, *others in rows:
        # Without a document it waits already.
        if document != packing.NOTHING and not all(map(_is_whole, (document, *others))):
            damaged.append(last)
    for key in damaged:
        _have_read_again(writing, key)
    return last, len(damaged)


def mend_at_opening(connection: apsw.Connection, damaged: Iterable[int]) -> None:
    """Have these read again, which were met while the file was made ready; held as of the last whole round."""
    damaged = list(damaged)
    if damaged:
        with connection:
            writing = Writing(connection, int(connection.execute("SELECT settled_at FROM account").get or 0))
            for key in damaged:
                _have_read_again(writing, key)
            emails.bring_up_to_date(writing)


def _is_whole(packed: Any) -> bool:  # noqa: ANN401 - a column
    try:
        packing.unpack(packed)
    except MessageDamaged:
        return False
    return True


def _have_read_again(writing: Writing, key: int) -> None:
    connection = writing.connection
    connection.execute(
        "UPDATE email_texts SET document = ?, summary = ?, words = ? WHERE key = ?",
        (packing.NOTHING, packing.NOTHING, search.pack_words(search.NO_WORDS), key),
    )
    # No mailbox has the UIDNEXT 0: it is looked at anew, whatever STATUS says.
    connection.execute(
        "UPDATE mailboxes SET uidnext = 0 WHERE key IN (SELECT mailbox_key FROM copies WHERE email_key = ?)", (key,)
    )
    connection.execute("DELETE FROM copies WHERE email_key = ?", (key,))
    writing.touched.add(key)

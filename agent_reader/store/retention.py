"""Forgetting what should not be kept (any more): by a narrower measure than before, or since it has become old.

The other way needs the message again: `agent-reader forget`, and the next start reads everything anew.
"""

from typing import Final

import apsw

from agent_reader.keep import Keep, Retention
from agent_reader.store import document, reading, search
from agent_reader.store.emails import KEY_SHIFT, show_words
from agent_reader.store.search import Column
from agent_reader.store.writing import Writing

# A transaction of some hundred milliseconds; questions and new mail go between.
_EMAILS_AT_A_TIME: Final = 200


def bring_down(writing: Writing, retention: Retention) -> int:
    """Forget what should not be kept (any more) of some Emails; of how many. None are left when it returns 0."""
    connection = writing.connection
    old = retention.oldest_with_text(writing.now) << KEY_SHIFT
    rows = list(
        connection.execute(
            "SELECT key, 0 FROM emails WHERE kept IN (1, 2) AND key < :old UNION ALL "
            "SELECT key, :keep FROM emails WHERE kept > :keep AND key >= :old LIMIT :most",
            {"old": old, "keep": int(retention.keep), "most": _EMAILS_AT_A_TIME},
        )
    )
    # In the order of the search table: whatever comes out of order there is written apart.
    for key, keep in sorted(rows, reverse=True):
        _bring_down(writing, int(key), Keep(keep))
    return len(rows)


def overwrite_what_was_forgotten(connection: apsw.Connection) -> None:
    """Have no forgotten word stay in free pages, in the search table's older parts or in the write-ahead log."""
    connection.execute("INSERT INTO search (search) VALUES ('optimize')")
    connection.pragma("wal_checkpoint", "truncate")


def _bring_down(writing: Writing, key: int, keep: Keep) -> None:
    connection = writing.connection
    packed, summary, words = connection.execute(
        "SELECT document, summary, words FROM email_texts WHERE key = ?", (key,)
    ).fetchone() or (b"", b"", b"")
    # What waits to be read again comes with what is kept by then.
    kept = document.narrow(packed, keep) if packed else packed
    connection.execute("UPDATE email_texts SET document = ? WHERE key = ?", (kept, key))
    email_id = connection.execute("UPDATE emails SET kept = ? WHERE key = ? RETURNING id", (int(keep), key)).get
    writing.forgotten.add(str(email_id))
    if keep is Keep.METADATA:
        without_body = list(search.unpack_words(words))
        without_body[list(Column).index(Column.BODY)] = ""
        if summary:
            summary = reading.pack_summary(reading.unpack_summary(summary) | {"preview": ""})
        connection.execute(
            "UPDATE email_texts SET summary = ?, words = ? WHERE key = ?",
            (summary, search.pack_words(without_body), key),
        )
        show_words(writing, key, without_body)

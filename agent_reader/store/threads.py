"""Which Thread an Email belongs to (RFC 8621 §3).

A message joins the Thread of any message whose Message-ID it shares or references, if the base subject agrees. RFC 8621
§3, stricter: a thread id once given never changes, so Threads never merge: who belongs to two enters the older.
"""

import hashlib
from typing import Final

from agent_reader.store.reading import Reading
from agent_reader.store.writing import Writing

_LINK_OCTETS: Final = 16


def thread_of(writing: Writing, reading: Reading) -> int:
    """Return the key of the Thread of a new Email, made if there is none."""
    links = [_link(message_id, reading.base_subject) for message_id in dict.fromkeys(reading.message_ids)]
    known = [key for key in (_known(writing, link) for link in links) if key is not None]
    # The id follows from the first Email, so a mirror made anew in the same order gives the same ids.
    thread_key = min(known) if known else _make(writing, "T" + reading.id[1:])
    writing.connection.executemany(
        "INSERT OR IGNORE INTO thread_links VALUES (?, ?)", [(link, thread_key) for link in links]
    )
    return thread_key


def forget_if_empty(writing: Writing, thread_key: int) -> None:
    """Forget a Thread that no Email is left of."""
    if writing.connection.execute("SELECT 1 FROM emails WHERE thread_key = ? LIMIT 1", (thread_key,)).get is None:
        writing.connection.execute("DELETE FROM thread_links WHERE thread_key = ?", (thread_key,))
        writing.connection.execute("DELETE FROM threads WHERE key = ?", (thread_key,))


def thread_id(writing: Writing, thread_key: int) -> str:
    """Return the id of a Thread."""
    return str(writing.connection.execute("SELECT id FROM threads WHERE key = ?", (thread_key,)).get)


def _make(writing: Writing, thread_id: str) -> int:
    connection = writing.connection
    # Taken only where the Email was destroyed, its Thread lives on by others, and its text leads there no more.
    while connection.execute("SELECT 1 FROM threads WHERE id = ?", (thread_id,)).get is not None:
        thread_id += "x"
    key: int = connection.execute("INSERT INTO threads (id) VALUES (?) RETURNING key", (thread_id,)).get
    return key


def _known(writing: Writing, link: bytes) -> int | None:
    key: int | None = writing.connection.execute("SELECT thread_key FROM thread_links WHERE link = ?", (link,)).get
    return key


def _link(message_id: str, base_subject: str) -> bytes:
    return hashlib.sha256(f"{message_id}\0{base_subject}".encode()).digest()[:_LINK_OCTETS]

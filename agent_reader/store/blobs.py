"""Which Email holds a blob: an index from the ids of parts to Emails, and where copies of an Email lie.

A message's own blob needs no index: its id is the Email's with another letter. The index holds 60 bits of each part's
id; whoever finds an Email by it looks whether the part is there. It is made anew from the mirror where it is missing.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import apsw

from agent_reader.imap.values import Place
from agent_reader.store import document
from agent_reader.store.writing import Writing
from shared.message import Message, Part, parse

_BLOB_ID: Final = re.compile(r"B[EX]?[0-9a-v]{32}", re.ASCII)
# Of messages whose names are no digest of their octets.
_UNPROVEN: Final = ("BE", "BX")
# Twelve base32hex characters are 60 bits: they fit SQLite's integers, and two of a million parts that agree by chance
# are told apart by their whole ids.
_HANDLE: Final = slice(1, 13)

# Messages within messages within messages: deeper than that, nobody reads on.
_MOST_NESTED: Final = 8
# What the parser allows one message, once more for all that it holds.
_MOST_PARTS: Final = 2_000

# The copies that are tried; an Email with more has been copied about by a machine.
_MOST_PLACES: Final = 20


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of an Email: its place on the mail server, and the handle of its mailbox here."""

    place: Place
    mailbox_handle: str


def is_blob_id(text: str) -> bool:
    """Whether this is the form of a blob id."""
    return _BLOB_ID.fullmatch(text) is not None


def can_be_part(blob_id: str) -> bool:
    """Whether a part can have this id: its letters are those of a digest."""
    return not blob_id.startswith(_UNPROVEN)


def own_email_id(blob_id: str) -> str:
    """Return the id of the Email whose whole octets would be this blob."""
    return blob_id[1:] if blob_id.startswith(_UNPROVEN) else "M" + blob_id[1:]


def nested_parts(message: Message) -> Iterator[Part]:
    """Yield the leaves of a message, and those of the messages attached to it, as their blob ids can be asked for.

    An attached message is a leaf itself, and comes before what it holds. RFC 8621 §4.9.
    """
    waiting = [(message, 0)]
    left = _MOST_PARTS
    while waiting and left > 0:
        whole, depth = waiting.pop(0)
        for part in whole.root.walk():
            if part.is_multipart:
                continue
            yield part
            left -= 1
            if left <= 0:
                return
            if part.is_message and depth < _MOST_NESTED and (octets := part.content()):
                waiting.append((parse(octets), depth + 1))


def handles_of(message: Message) -> tuple[int, ...]:
    """Return what the index keeps of the parts of a message, each once."""
    return tuple(dict.fromkeys(_handle(part.blob_id) for part in nested_parts(message) if part.blob_id))


def put(writing: Writing, email_key: int, handles: Iterable[int]) -> None:
    """Enter the parts of an Email that is new."""
    writing.connection.executemany(
        "INSERT OR IGNORE INTO part_blobs (handle, email_key) VALUES (?, ?)",
        [(handle, email_key) for handle in handles],
    )


def forget(writing: Writing, email_key: int) -> None:
    """Take out the parts of an Email."""
    writing.connection.execute("DELETE FROM part_blobs WHERE email_key = ?", (email_key,))


def emails_with_part(connection: apsw.Connection, blob_id: str) -> Iterator[str]:
    """Yield the ids of Emails that may hold a part with this blob id, newest first."""
    rows = connection.execute(
        "SELECT e.id FROM part_blobs b JOIN emails e ON e.key = b.email_key WHERE b.handle = ? "
        "ORDER BY b.email_key DESC",
        (_handle(blob_id),),
    )
    return (str(email_id) for (email_id,) in rows)


def copies_of(connection: apsw.Connection, email_key: int) -> tuple[Copy, ...]:
    """Return where copies of an Email lie."""
    rows = connection.execute(
        "SELECT m.name, m.uidvalidity, c.uid, m.handle FROM copies c JOIN mailboxes m ON m.key = c.mailbox_key "
        "WHERE c.email_key = ? AND m.uidvalidity IS NOT NULL AND m.standing <> 'gone' "
        "ORDER BY c.mailbox_key, c.uid LIMIT ?",
        (email_key, _MOST_PLACES),
    )
    return tuple(
        Copy(Place(str(name), int(uidvalidity), int(uid)), str(handle)) for name, uidvalidity, uid, handle in rows
    )


def make(connection: apsw.Connection) -> None:
    """Make the index where it is missing, and fill it with what is known of the mirror's messages."""
    with connection:
        if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'part_blobs'").get is not None:
            return
        connection.execute(
            "CREATE TABLE part_blobs (handle INTEGER NOT NULL, email_key INTEGER NOT NULL, "
            "PRIMARY KEY (handle, email_key)) WITHOUT ROWID"
        )
        connection.execute("CREATE INDEX part_blobs_by_email ON part_blobs (email_key)")
        for key, packed in connection.execute("SELECT key, document FROM email_texts"):
            handles = handles_of(document.unpack(packed))
            connection.executemany(
                "INSERT OR IGNORE INTO part_blobs (handle, email_key) VALUES (?, ?)",
                [(handle, key) for handle in handles],
            )


def _handle(blob_id: str) -> int:
    return int(blob_id[_HANDLE], 32)

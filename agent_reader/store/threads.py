"""Which Thread an Email belongs to (RFC 8621 §3).

A message joins the Thread of any message whose Message-ID it shares or references, if the subject agrees. RFC 8621 §3,
stricter: a thread id once given never changes, so Threads never merge: who belongs to two enters the older.

So that this happens to newcomers alone, the headers of the newest messages are looked at before any id is given: their
Threads are all that hang together, in whatever order the messages came in.
"""

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from agent_reader.store.reading import Reading, threading_of
from agent_reader.store.writing import Writing

_LINK_OCTETS: Final = 16

# Twenty octets are the 32 characters that an Email's id has too.
_ID_OCTETS: Final = 20

# A key names one Thread for as long as changes may speak of it: what a Thread was that is gone, its Emails tell.
_INSERT_THREAD: Final = (
    "INSERT INTO threads (key, id) SELECT max(coalesce((SELECT max(key) FROM threads), 0), "
    "coalesce((SELECT max(thread_key) FROM gone_emails), 0)) + 1, ? RETURNING key"
)


class Threaded(IntEnum):
    """How far the first look at headers came: `AHEAD` while Threads may wait for messages that did not come in yet."""

    NO = 0
    AHEAD = 1
    DONE = 2


@dataclass(frozen=True, slots=True)
class FirstHeader:
    """What threads a message that did not come in yet. `received_at` is seconds since 1970."""

    uid: int
    received_at: int
    links: tuple[bytes, ...]


def links_of(message_ids: Iterable[str], subject: str) -> tuple[bytes, ...]:
    """Return what a message is linked by, each once, in the order of the Message-IDs."""
    return tuple(_link(message_id, subject) for message_id in dict.fromkeys(message_ids))


def links_of_header(header: bytes) -> tuple[bytes, ...]:
    """Return what a message is linked by, from a header with the fields that thread it. Raises for a hostile one."""
    return links_of(*threading_of(header))


def thread_of(writing: Writing, reading: Reading) -> int:
    """Return the key of the Thread of a new Email, made if there is none."""
    links = links_of(reading.message_ids, reading.thread_subject)
    known = [key for key in (_known(writing, link) for link in links) if key is not None]
    # The id follows from the first Email, so a mirror made anew in the same order gives the same ids.
    thread_key = min(known) if known else _make(writing, id_begun_by(reading.id))
    _bind(writing, links, thread_key)
    return thread_key


def id_begun_by(email_id: str) -> str:
    """Return the id of a Thread that begins with an Email.

    Nothing of the Email's own id is in it: whoever sees the Thread may not see that Email.
    """
    digest = hashlib.sha256(f"thread {email_id}".encode()).digest()[:_ID_OCTETS]
    return "T" + base64.b32hexencode(digest).decode("ascii").lower()


def put_first_headers(writing: Writing, mailbox_key: int, uidvalidity: int, headers: Iterable[FirstHeader]) -> None:
    """Keep headers until all that are wanted are there; of no use once an id was given."""
    writing.connection.executemany(
        "INSERT OR REPLACE INTO first_headers (mailbox_key, uidvalidity, uid, received_at, links) "
        "VALUES (?, ?, ?, ?, ?)",
        [(mailbox_key, uidvalidity, each.uid, each.received_at, b"".join(each.links)) for each in headers],
    )


def thread_first_headers(writing: Writing) -> None:
    """Make the Threads of all headers that were kept, the oldest first."""
    rows = writing.connection.execute("SELECT received_at, links FROM first_headers WHERE links <> x''")
    together = _Together()
    for received_at, links in rows:
        together.put(int(received_at), _split(links))
    for oldest, links in sorted(together.groups()):
        # The id follows from the oldest message, so a mirror made anew gives the same; and from what that one names
        # first: whoever sees a reply alone does not learn whether the message that it answers is here.
        thread_key = _make(writing, "T" + base64.b32hexencode(oldest[1]).decode("ascii").rstrip("=").lower())
        _bind(writing, links, thread_key)
    begin(writing, Threaded.AHEAD)


def begin(writing: Writing, threaded: Threaded) -> None:
    """Give ids from now on: what is not threaded by now is threaded as it comes in."""
    writing.connection.execute("DELETE FROM first_headers")
    writing.connection.execute("UPDATE account SET threaded = ?", (threaded,))


def threaded(writing: Writing) -> Threaded:
    """Return how far the first look at headers came."""
    return Threaded(writing.connection.execute("SELECT threaded FROM account").get)


def forget_what_never_came(writing: Writing) -> None:
    """Forget the Threads of headers whose messages did not come in: a whole round has asked for all there are."""
    if threaded(writing) is not Threaded.AHEAD:
        return
    writing.connection.execute(
        "DELETE FROM thread_links WHERE thread_key NOT IN (SELECT thread_key FROM emails)",
    )
    writing.connection.execute("DELETE FROM threads WHERE key NOT IN (SELECT thread_key FROM emails)")
    writing.connection.execute("UPDATE account SET threaded = ?", (Threaded.DONE,))


def forget_if_empty(writing: Writing, thread_key: int) -> None:
    """Forget a Thread that no Email is left of, unless some may still be on their way."""
    if writing.connection.execute("SELECT 1 FROM emails WHERE thread_key = ? LIMIT 1", (thread_key,)).get is None:
        if threaded(writing) is Threaded.AHEAD:
            return
        writing.connection.execute("DELETE FROM thread_links WHERE thread_key = ?", (thread_key,))
        writing.connection.execute("DELETE FROM threads WHERE key = ?", (thread_key,))


def thread_id(writing: Writing, thread_key: int) -> str:
    """Return the id of a Thread."""
    return str(writing.connection.execute("SELECT id FROM threads WHERE key = ?", (thread_key,)).get)


class _Together:
    """What hangs together by links, however the pieces come in: a forest of links, each group with one root."""

    def __init__(self) -> None:
        self._parents: dict[bytes, bytes] = {}
        self._oldest: dict[bytes, tuple[int, bytes]] = {}

    def put(self, received_at: int, links: Sequence[bytes]) -> None:
        """Take in one message."""
        root = self._root(links[0])
        for link in links[1:]:
            root = self._join(root, self._root(link))
        self._be_oldest(root, (received_at, links[0]))

    def groups(self) -> Iterator[tuple[tuple[int, bytes], list[bytes]]]:
        """Yield each group: when its oldest message came and that one's own link, and all links."""
        links: dict[bytes, list[bytes]] = {}
        for link in sorted(self._parents):
            links.setdefault(self._root(link), []).append(link)
        for root, group in links.items():
            yield self._oldest[root], group

    def _root(self, link: bytes) -> bytes:
        parent = self._parents.setdefault(link, link)
        while parent != link:
            # Each step halves the path behind it, so that no chain of references costs more the longer it is.
            grandparent = self._parents[parent]
            self._parents[link] = grandparent
            link, parent = grandparent, self._parents[grandparent]
        return link

    def _join(self, one: bytes, other: bytes) -> bytes:
        if one != other:
            self._parents[other] = one
            if (oldest := self._oldest.pop(other, None)) is not None:
                self._be_oldest(one, oldest)
        return one

    def _be_oldest(self, root: bytes, candidate: tuple[int, bytes]) -> None:
        self._oldest[root] = min(candidate, self._oldest.get(root, candidate))


def _bind(writing: Writing, links: Iterable[bytes], thread_key: int) -> None:
    writing.connection.executemany(
        "INSERT OR IGNORE INTO thread_links VALUES (?, ?)", [(link, thread_key) for link in links]
    )


def _make(writing: Writing, thread_id: str) -> int:
    connection = writing.connection
    # Taken only where the Email was destroyed, its Thread lives on by others, and its text leads there no more.
    while connection.execute("SELECT 1 FROM threads WHERE id = ?", (thread_id,)).get is not None:
        thread_id += "x"
    key: int = connection.execute(_INSERT_THREAD, (thread_id,)).get
    return key


def _known(writing: Writing, link: bytes) -> int | None:
    key: int | None = writing.connection.execute("SELECT thread_key FROM thread_links WHERE link = ?", (link,)).get
    return key


def _split(links: bytes) -> list[bytes]:
    return [links[at : at + _LINK_OCTETS] for at in range(0, len(links), _LINK_OCTETS)]


def _link(message_id: str, subject: str) -> bytes:
    return hashlib.sha256(f"{message_id}\0{subject}".encode()).digest()[:_LINK_OCTETS]

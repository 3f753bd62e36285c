"""Email/get: what an Email looks like, from what the store keeps of it (RFC 8621 §4.2)."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any, Final

import msgspec

from agent_reader.query.email_content import ContentAsked, Names
from agent_reader.query.email_get_arguments import EmailGetArguments
from agent_reader.query.shown_email import ShownEmail
from agent_reader.store.snapshot import Snapshot, StoredEmail
from agent_reader.store.written import Written

_encode: Final = msgspec.json.Encoder().encode


# Takes the JSON of an Email, and what of it the read log is to know.
Put = Callable[[bytes, ShownEmail], None]


def email_get_as_asked(
    snapshot: Snapshot, asked: EmailGetArguments, put: Put, go_on: Callable[[], None] = lambda: None
) -> tuple[str, ...]:
    """Give each Email that was asked for to `put`, in order, and return the ids that are not found.

    One message is in memory at a time; `put` writes it down, or raises where there is no room for it. How many ids may
    be named is the caller's business. `go_on` is called before a message is written anew; it raises where nobody waits.
    """
    missing = dict.fromkeys(asked.ids or ())
    content, question = ContentAsked(asked), digest_of(replace(asked, ids=None))
    ids, row, has_to_read = list(missing), row_asked(content.names), bool(content.names.of_message)
    with closing(snapshot.each_email(ids, with_documents=has_to_read)) as emails:
        for email in emails:
            del missing[email.id]
            written = snapshot.written.find(email.id, question, email.source)
            if written is None:
                go_on()
                written = _written(snapshot, email, content, go_on)
                if is_whole(email, has_to_read=has_to_read):
                    snapshot.written.keep(email.id, question, email.source, written)
            put(*joined(email, row, written))
            # Not while the next one waits for room: it may be as long as an answer.
            del written
    return tuple(missing)


def _written(snapshot: Snapshot, email: StoredEmail, content: ContentAsked, go_on: Callable[[], None]) -> Written:
    at_hand = content.at_hand(email)
    if at_hand is not None:
        return at_hand
    with snapshot.room.place(email.size, go_on):
        return content.written(content.taken_apart(email, partial(snapshot.message_of, email)))


def digest_of(question: object) -> bytes:
    """Return a digest of a question, a value whose repr says all of it: what was written for it is found by that."""
    return hashlib.sha256(repr(question).encode("utf-8", "surrogatepass")).digest()


def is_whole(email: StoredEmail, *, has_to_read: bool) -> bool:
    """Whether all that an answer is made from came with the Email: a large document did not."""
    return email.source[1] is not None or not has_to_read


# Properties that are asked for and may change, and what tells each of an Email.
RowAsked = Sequence[tuple[str, Callable[[StoredEmail], Any]]]


def row_asked(names: Names) -> RowAsked:
    """Return the properties that are asked for and may change."""
    return [(name, _ROW[name]) for name in names.row]


def joined(email: StoredEmail, row: RowAsked, written: Written) -> tuple[bytes, ShownEmail]:
    """Return the JSON of an Email, and what of it the read log is to know."""
    return written.with_row(email.row, lambda: _joined(email, row, written))


def _joined(email: StoredEmail, row: RowAsked, written: Written) -> tuple[bytes, ShownEmail]:
    octets = row_of(email, row)
    if written.members:
        octets = b"%b,%b}" % (octets[:-1], written.members)
    return octets, ShownEmail(email.id, written.has_text, written.parts)


def row_of(email: StoredEmail, row: RowAsked) -> bytes:
    """Return the JSON of those properties of an Email that may change."""
    return _encode({name: value_of(email) for name, value_of in row})


# The properties that the mail server and the store tell (RFC 8621 §4.1.1); they may change.
_ROW: Final[Mapping[str, Callable[[StoredEmail], Any]]] = {
    "id": attrgetter("id"),
    "threadId": attrgetter("thread_id"),
    "mailboxIds": lambda email: dict.fromkeys(email.mailbox_ids, True),
    "keywords": lambda email: dict.fromkeys(email.keywords, True),
    # msgspec writes it as a UTCDate (RFC 8620 §1.4).
    "receivedAt": attrgetter("received_at"),
}

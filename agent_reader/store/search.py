"""The search table: FTS5, contentless, one row for each visible Email, and how rows get into it.

The rowid is the Email's key, which encodes receivedAt: hits come out in date order, a limit stops early, and a range
of dates is a range of rowids. Mailboxes, keywords and attachments are tokens in a column of their own, so that FTS5
intersects them itself, without a join. All folding is done before (`fold.py`), for the index and for questions: the
tokenizer only splits at spaces (`ascii` takes everything beyond ASCII as part of a word), so that it has no second
opinion, and no older Unicode than ours, on what a word is.
"""

import hashlib
import json
import zlib
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

import apsw

from agent_reader.store.fold import TOKEN_MARK

# Raised whenever the table's shape, the folding or the tokens change: the table is then made anew at the next start.
SHAPE: Final = 2


class Column(StrEnum):
    """The columns that text is searched in, in the order of the table."""

    FROM = "from_words"
    TO = "to_words"
    CC = "cc_words"
    BCC = "bcc_words"
    SUBJECT = "subject_words"
    BODY = "body_words"


EVERY_TOKEN: Final = TOKEN_MARK + "e"
ATTACHMENT_TOKEN: Final = TOKEN_MARK + "a"
# No Email has it: what matches nothing.
NO_TOKEN: Final = TOKEN_MARK + "n"

_COLUMNS: Final = ", ".join(("tokens", *Column))
_CREATE: Final = (
    f"CREATE VIRTUAL TABLE search USING fts5({_COLUMNS}, content='', contentless_delete=1, detail=full, "
    "tokenize='ascii')"
)
_INSERT: Final = f"INSERT INTO search (rowid, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - constants only

# Between columns of one Email in the stored words; `fold` never lets it out.
_SEPARATOR: Final = "\n"

# 64 bits of a digest: none of a mailbox's few keywords, and none of its senders, meets another by chance.
_DIGEST_CHARACTERS: Final = 16


def mailbox_token(mailbox_key: int) -> str:
    """Return the token of every Email in a mailbox."""
    return f"{TOKEN_MARK}m{mailbox_key}"


def keyword_token(keyword: str) -> str:
    """Return the token of every Email with a keyword, in lower case; hashed, since keywords hold any ASCII."""
    return f"{TOKEN_MARK}k{_digest(keyword)}"


def sender_token(sender: str) -> str:
    """Return the token of every Email from an address or from a domain, in lower case."""
    return f"{TOKEN_MARK}s{_digest(sender)}"


def tokens(
    mailbox_keys: Iterable[int], keywords: Iterable[str], senders: Iterable[str], *, has_attachment: bool
) -> str:
    """Return the token column of an Email; `senders` are its address and domain, empty ones left out."""
    found = [EVERY_TOKEN, *map(mailbox_token, sorted(mailbox_keys)), *map(keyword_token, sorted(keywords))]
    found += [sender_token(sender) for sender in senders if sender]
    if has_attachment:
        found.append(ATTACHMENT_TOKEN)
    return " ".join(found)


def pack_words(words: Sequence[str]) -> bytes:
    """Return the folded words of the columns as they are kept."""
    return zlib.compress(_SEPARATOR.join(words).encode(), 1)


def unpack_words(packed: bytes) -> list[str]:
    """Return the folded words of the columns, in the order of `Column`."""
    return zlib.decompress(packed).decode().split(_SEPARATOR)


def put(connection: apsw.Connection, email_key: int, token_text: str, words: Sequence[str]) -> None:
    """Put an Email's row in; one that is there must be taken out first."""
    connection.execute(_INSERT, (email_key, token_text, *words))


def remove(connection: apsw.Connection, email_key: int) -> None:
    """Take an Email's row out."""
    connection.execute("DELETE FROM search WHERE rowid = ?", (email_key,))


def make(connection: apsw.Connection) -> None:
    """Make the search table, or make it anew from the mirror where it has another shape or is missing."""
    with connection:
        shape = connection.execute("SELECT search_shape FROM account").get
        exists = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'search'").get is not None
        if exists and shape == SHAPE:
            return
        if exists:
            connection.execute("DROP TABLE search")
            # The same question may have other results now, and nothing says which: no older state can be answered.
            connection.execute("UPDATE account SET state = state + 1, changes_from = state + 1")
        connection.execute(_CREATE)
        _fill(connection)
        connection.execute("UPDATE account SET search_shape = ?", (SHAPE,))


def _fill(connection: apsw.Connection) -> None:
    rows = connection.execute(
        "SELECT e.key, e.keywords, e.has_attachment, e.sender, e.sender_domain, t.words, "
        "(SELECT json_group_array(mailbox_key) FROM email_mailboxes m WHERE m.email_key = e.key) "
        "FROM emails e JOIN email_texts t ON t.key = e.key WHERE e.visible ORDER BY e.key"
    )
    for key, keywords, has_attachment, sender, domain, words, mailbox_keys in rows:
        token_text = tokens(
            json.loads(mailbox_keys), json.loads(keywords), (sender, domain), has_attachment=bool(has_attachment)
        )
        connection.execute(_INSERT, (key, token_text, *unpack_words(words)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARACTERS]

"""The search table: FTS5, contentless, one row for each visible Email, and how rows get into it.

The rowid is the Email's place (`places.py`), the newest first: hits come out in date order, a limit stops early, and a
range of dates is a range of rowids. Mailboxes, keywords, attachments and the header's identifiers are tokens in a
column of their own, so that FTS5 intersects them itself, without a join. All folding is done before (`fold.py`), for
the index and for questions: the tokenizer only splits at spaces (`ascii` takes everything beyond ASCII as part of a
word), so that it has no second opinion, and no older Unicode than ours, on what a word is.
"""

import json
import zlib
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from typing import Any, Final

import apsw

from agent_reader.damage import MessageDamaged
from agent_reader.store import document, packing, tokens
from shared.message import Message

# Raised whenever the table's shape, the folding or the tokens change: the table is then made anew at the next start.
SHAPE: Final = 13
# Where words are folded as they are now, and the header's tokens stand with them.
_SHAPE_WITH_THESE_WORDS: Final = 13


class Column(StrEnum):
    """The columns that text is searched in, in the order in which their words are kept."""

    FROM = "from_words"
    TO = "to_words"
    CC = "cc_words"
    BCC = "bcc_words"
    SUBJECT = "subject_words"
    BODY = "body_words"


# FTS5 spends two octets on each entry that is not of the first column: bodies have the most by far.
_COLUMNS: Final = ", ".join((Column.BODY, "tokens", *(column for column in Column if column is not Column.BODY)))
_CREATE: Final = (
    f"CREATE VIRTUAL TABLE search USING fts5({_COLUMNS}, content='', contentless_delete=1, detail=full, "
    "tokenize='ascii')"
)
# A list is left out page by page where another one has nothing: smaller ones than the 4,050 octets of FTS5's own choice
# answer a tenth faster, at 10,000 messages and at 100,000.
_PAGE_OCTETS: Final = 2_000
_INSERT: Final = f"INSERT INTO search (rowid, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - constants only

# A table of some hundred messages is quick in any number of pieces.
_LEAST_PAGES: Final = 128
# A step takes some tens of milliseconds; questions and new mail go between.
_PAGES_A_STEP: Final = 1_000

# Between columns of one Email in the stored words; `fold` never lets it out.
_SEPARATOR: Final = "\n"


# Of a message of which they are lost: no search finds it by words.
NO_WORDS: Final = ("",) * (len(Column) + 1)


def pack_words(words: Sequence[str]) -> bytes:
    """Return the folded words of the columns, and the header's tokens after them, as they are kept."""
    return zlib.compress(_SEPARATOR.join(words).encode(), 1)


def unpack_words(packed: bytes) -> list[str]:
    """Return the folded words in the order of `Column`, and the header's tokens after them. Raises `MessageDamaged`."""
    return packing.unpack(packed).decode().split(_SEPARATOR)


def whole_words(packed: bytes, note_damage: Callable[[], None]) -> Sequence[str]:
    """Return the same; and none where they are damaged, which is noted: whoever mends it puts them in."""
    try:
        return unpack_words(packed)
    except MessageDamaged:
        note_damage()
        return NO_WORDS


def put(connection: apsw.Connection, place: int, token_text: str, words: Sequence[str]) -> None:
    """Put an Email's row in, with words as `unpack_words` gives them; one that is there must be taken out first."""
    from_words, *others, body, header_tokens = words
    found = f"{token_text} {header_tokens} {tokens.of_from_words(from_words)}"
    connection.execute(_INSERT, (place, body, found, from_words, *others))


def remove(connection: apsw.Connection, place: int) -> None:
    """Take an Email's row out."""
    connection.execute("DELETE FROM search WHERE rowid = ?", (place,))


def is_scattered(connection: apsw.Connection) -> bool:
    """Whether the table lies in many pieces, each of which a question must look into, and it is worth joining them.

    It is once the largest piece is less than two thirds of all: so each entry is written anew three times at most for
    each time that the table doubles.
    """
    pieces = [int(pages) for (pages,) in connection.execute("SELECT count(*) FROM search_idx GROUP BY segid")]
    return sum(pieces) >= _LEAST_PAGES and max(pieces) * 3 < sum(pieces) * 2


def join_pieces(connection: apsw.Connection, *, is_first_step: bool) -> bool:
    """Do a step of joining the table's pieces, in the transaction that is open; whether there is more to do."""
    # https://sqlite.org/fts5.html#the_merge_command: below zero it begins with everything; nothing was left to do if
    # no more than the command's own row changed.
    before = connection.total_changes()
    pages = -_PAGES_A_STEP if is_first_step else _PAGES_A_STEP
    connection.execute("INSERT INTO search (search, rank) VALUES ('merge', ?)", (pages,))
    return connection.total_changes() - before > 1


def make(connection: apsw.Connection, words_of: Callable[[Message], Sequence[str]]) -> list[int]:
    """Make the search table, or make it anew from the mirror where it has another shape or is missing.

    `words_of` gives the words of a kept message where those beside it were folded in another way. Returns the Emails
    of which that, or the words, are damaged, by key.
    """
    with connection:
        shape = connection.execute("SELECT search_shape FROM account").get
        exists = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'search'").get is not None
        if exists and shape == SHAPE:
            return []
        if exists:
            connection.execute("DROP TABLE search")
            # The same question may have other results now, and nothing says which: no older state can be answered.
            connection.execute("UPDATE account SET state = state + 1, changes_from = state + 1")
        connection.execute(_CREATE)
        connection.execute("INSERT INTO search (search, rank) VALUES ('pgsz', ?)", (_PAGE_OCTETS,))
        damaged = _keep_words(connection, words_of) if shape < _SHAPE_WITH_THESE_WORDS else []
        damaged += _fill(connection)
        connection.execute("INSERT INTO search (search) VALUES ('optimize')")
        connection.execute("UPDATE account SET search_shape = ?", (SHAPE,))
    return damaged


def _fill(connection: apsw.Connection) -> list[int]:
    damaged: list[int] = []
    rows = connection.execute(
        "SELECT e.key, e.place, e.keywords, e.has_attachment, e.sender, e.sender_domain, t.words, "
        "EXISTS (SELECT 1 FROM sign_in_emails s WHERE s.email_key = e.key), "
        "(SELECT json_group_array(mailbox_key) FROM email_mailboxes m WHERE m.email_key = e.key) "
        "FROM emails e JOIN email_texts t ON t.key = e.key WHERE e.visible ORDER BY e.key DESC"
    )
    for key, place, keywords, has_attachment, sender, domain, words, signs_in, mailbox_keys in rows:
        token_text = tokens.of_email(
            json.loads(mailbox_keys),
            json.loads(keywords),
            (sender, domain),
            has_attachment=bool(has_attachment),
            signs_in=bool(signs_in),
        )
        put(connection, place, token_text, whole_words(words, partial(damaged.append, key)))
    return damaged


def _keep_words(connection: apsw.Connection, words_of: Callable[[Message], Sequence[str]]) -> list[int]:
    damaged: list[int] = []
    key: Any
    for (key,) in connection.execute("SELECT key FROM email_texts").fetchall():
        kept = connection.execute("SELECT document FROM email_texts WHERE key = ?", (key,)).get
        words: Sequence[str] = NO_WORDS
        try:
            words = words_of(document.unpack(kept))
        except MessageDamaged:
            damaged.append(key)
        connection.execute("UPDATE email_texts SET words = ? WHERE key = ?", (pack_words(words), key))
    return damaged

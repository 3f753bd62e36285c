r"""Emails and their copies: taken in, brought up to date, held, destroyed. IMAP's vocabulary ends here.

The rules: an Email has the mailboxes of its copies without `\Deleted`; a view over everything (`\All`, `\Flagged`)
counts only where the Email has no other mailbox. Its keywords are those that any of these copies has. Without such a
copy it is not shown. Without any copy it is held as it was, until the round is whole: a move is then one change.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

from agent_reader.store import blobs, places, search, set_aside, thread_pages, threads, tokens
from agent_reader.store.changes import ChangeKind, DataType
from agent_reader.store.reading import Reading
from agent_reader.store.writing import KEYWORDS_CHANGED, UNREAD_CHANGED, WORDS_CHANGED, Writing
from agent_reader.sync.mirror import MessageState

# The tie-break's share of a key: a server that was filled by a script has many thousands of messages in one second.
KEY_SHIFT: Final = 20
_TIES: Final = 1 << KEY_SHIFT

# RFC 8621 §4.1.1: system flags that have keywords; all others with a backslash are the server's own business.
_SYSTEM_KEYWORDS: Final = {
    "\\seen": "$seen",
    "\\flagged": "$flagged",
    "\\answered": "$answered",
    "\\draft": "$draft",
}
_DELETED: Final = "\\deleted"

# A key names one Email of one Thread for as long as changes may speak of it.
_TAKEN: Final = (
    "SELECT 1 FROM emails WHERE key = :key "
    "UNION ALL SELECT 1 FROM gone_emails WHERE key = :key AND (id <> :id OR thread_key <> :thread_key)"
)
# See `mending.py`.
_IS_DAMAGED: Final = "SELECT document = x'' FROM email_texts WHERE key = ?"
_VIEWS: Final = frozenset({"\\all", "\\flagged"})


class TooManyInOneSecond(Exception):  # noqa: N818 - the name is the finding
    """More messages of one second than keys have room for."""


@dataclass(frozen=True, slots=True)
class _Stored:
    """An Email's row, and its mailboxes, as they are in the file."""

    key: int
    place: int
    id: str
    thread_key: int
    has_attachment: bool
    signs_in: bool
    keywords: frozenset[str]
    visible: bool
    held: bool
    mailbox_keys: frozenset[int]
    senders: tuple[str, str]


def is_view(attributes: Iterable[str]) -> bool:
    """Whether a mailbox with these attributes only shows messages of other mailboxes again (RFC 6154 §2)."""
    return not _VIEWS.isdisjoint(attribute.lower() for attribute in attributes)


def keywords_of(flags: Iterable[str]) -> frozenset[str]:
    """Return the keywords that flags come to (RFC 8621 §4.1.1)."""
    lowered = (flag.lower() for flag in flags)
    return frozenset(
        keyword for keyword in (_SYSTEM_KEYWORDS.get(flag, flag) for flag in lowered) if not keyword.startswith("\\")
    )


def put_copy(writing: Writing, mailbox_key: int, uid: int, state: MessageState, reading: Reading) -> None:
    """Take in one copy of a message, and its Email if it is new."""
    connection = writing.connection
    key = connection.execute("SELECT key FROM emails WHERE id = ?", (reading.id,)).get
    if key is None:
        key = _make(writing, reading)
    elif connection.execute(_IS_DAMAGED, (key,)).get:
        _write_anew(writing, key, reading)
    put_known_copy(writing, mailbox_key, uid, state, key)


def put_known_copy(writing: Writing, mailbox_key: int, uid: int, state: MessageState, email_key: int) -> None:
    """Take in one copy of an Email that is here."""
    connection = writing.connection
    replaced = connection.execute(
        "SELECT email_key FROM copies WHERE mailbox_key = ? AND uid = ?", (mailbox_key, uid)
    ).get
    if replaced is not None:
        writing.touched.add(replaced)
    connection.execute(
        "INSERT OR REPLACE INTO copies (mailbox_key, uid, email_key, flags, modseq, deleted) VALUES (?, ?, ?, ?, ?, ?)",
        (mailbox_key, uid, email_key, *_flag_columns(state)),
    )
    set_aside.forget(writing, mailbox_key, [uid])
    writing.touched.add(email_key)


def change_copy(writing: Writing, mailbox_key: int, uid: int, state: MessageState) -> None:
    """Take in a copy's flags; a copy that is not known is none of ours."""
    flags, modseq, deleted = _flag_columns(state)
    changed = writing.connection.execute(
        "UPDATE copies SET flags = ?, modseq = ?, deleted = ? WHERE mailbox_key = ? AND uid = ? RETURNING email_key",
        (flags, modseq, deleted, mailbox_key, uid),
    ).get
    if changed is not None:
        writing.touched.add(changed)


def forget_copies(writing: Writing, mailbox_key: int, uids: Iterable[int] | None = None) -> None:
    """Forget copies of a mailbox: those with these UIDs, or all."""
    connection = writing.connection
    if uids is None:
        rows = connection.execute("DELETE FROM copies WHERE mailbox_key = ? RETURNING email_key", (mailbox_key,))
        writing.touched.update(key for (key,) in rows)
        set_aside.forget(writing, mailbox_key)
        return
    gone = list(uids)
    set_aside.forget(writing, mailbox_key, gone)
    for uid in gone:
        row = connection.execute(
            "DELETE FROM copies WHERE mailbox_key = ? AND uid = ? RETURNING email_key", (mailbox_key, uid)
        ).get
        if row is not None:
            writing.touched.add(row)


def bring_up_to_date(writing: Writing) -> None:
    """Make each touched Email what its copies come to, and note what changed."""
    # The newest first, as they stand in the search table: whatever comes out of order there is written apart.
    for key in sorted(writing.touched, reverse=True):
        stored = _stored(writing, key)
        if stored is not None:
            _bring(writing, stored)
    writing.touched.clear()


def destroy_held(writing: Writing, *, before_tick: int, before: int) -> None:
    """Destroy the Emails whose last copy vanished before this tick, or before this moment."""
    rows = list(
        writing.connection.execute(
            "SELECT key FROM emails WHERE held_tick >= 0 AND (held_tick < ? OR held_at < ?)", (before_tick, before)
        )
    )
    for (key,) in rows:
        stored = _stored(writing, key)
        if stored is not None:
            _destroy(writing, stored)


def show_words(writing: Writing, key: int, words: Sequence[str]) -> None:
    """Have an Email found by these words alone from now on: a search that found it may not any more."""
    stored = _stored(writing, key)
    if stored is not None and stored.visible:
        search.remove(writing.connection, stored.place)
        _put_words(writing, stored, stored.mailbox_keys, stored.keywords, words)
        writing.changes.note(DataType.EMAIL, stored.id, ChangeKind.UPDATED)
        writing.note_email(key, stored.mailbox_keys, stored.mailbox_keys, WORDS_CHANGED)


def _make(writing: Writing, reading: Reading) -> int:
    connection = writing.connection
    thread_key = threads.thread_of(writing, reading)
    key = _free_key(writing, reading, thread_key)
    found = places.find(connection, key)
    _move(writing, found.moved)
    connection.execute(
        "INSERT INTO emails (key, id, thread_key, size, received_at, sent_at, has_attachment, from_order, to_order, "
        "subject_order, sender, sender_domain, kept, place, keywords, visible, held_tick) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '[]', 0, NULL)",
        (
            key,
            reading.id,
            thread_key,
            reading.size,
            reading.received_at,
            reading.sent_at,
            int(reading.has_attachment),
            reading.from_order,
            reading.to_order,
            reading.subject_order,
            reading.sender,
            reading.sender_domain,
            int(reading.kept),
            found.place,
        ),
    )
    connection.execute("DELETE FROM gone_emails WHERE key = ?", (key,))
    if reading.signs_in:
        connection.execute("INSERT OR IGNORE INTO sign_in_emails (email_key) VALUES (?)", (key,))
    connection.execute(
        "INSERT INTO email_texts (key, summary, document, words) VALUES (?, ?, ?, ?)",
        (key, reading.summary, reading.document, search.pack_words(reading.words)),
    )
    blobs.put(writing, key, reading.blob_handles)
    writing.words[key] = reading.words
    return key


def _write_anew(writing: Writing, key: int, reading: Reading) -> None:
    """Write what was damaged, as it was: nothing that was told of the Email is another now."""
    connection = writing.connection
    connection.execute(
        "UPDATE email_texts SET summary = ?, document = ?, words = ? WHERE key = ?",
        (reading.summary, reading.document, search.pack_words(reading.words), key),
    )
    connection.execute("UPDATE emails SET kept = ? WHERE key = ?", (int(reading.kept), key))
    writing.words[key] = reading.words
    stored = _stored(writing, key)
    if stored is not None and stored.visible:
        search.remove(connection, stored.place)
        _put_words(writing, stored, stored.mailbox_keys, stored.keywords, reading.words)


def _free_key(writing: Writing, reading: Reading, thread_key: int) -> int:
    # The tie-break comes from the id, so that messages of one second have one order however they came in.
    tie = int.from_bytes(sha256(reading.id.encode()).digest()[:4])
    for step in range(_TIES):
        key = (reading.received_at << KEY_SHIFT) + (tie + step) % _TIES
        if writing.connection.execute(_TAKEN, {"key": key, "id": reading.id, "thread_key": thread_key}).get is None:
            return key
    raise TooManyInOneSecond


def _move(writing: Writing, moved: Sequence[places.Moved]) -> None:
    """Let Emails make room in the search table; all leave before one comes to where another was."""
    stored = {each.key: _stored(writing, each.key) for each in moved}
    shown = [each for each in stored.values() if each is not None and each.visible]
    for each in shown:
        search.remove(writing.connection, each.place)
    writing.connection.executemany(
        "UPDATE emails SET place = ? WHERE key = ?", [(each.new, each.key) for each in moved]
    )
    new = {each.key: each.new for each in moved}
    for each in shown:
        there = replace(each, place=new[each.key])
        _put_words(writing, there, each.mailbox_keys, each.keywords, _words(writing, each.key))


def _put_words(
    writing: Writing, stored: _Stored, mailbox_keys: frozenset[int], keywords: frozenset[str], words: Sequence[str]
) -> None:
    token_text = tokens.of_email(
        mailbox_keys, keywords, stored.senders, has_attachment=stored.has_attachment, signs_in=stored.signs_in
    )
    search.put(writing.connection, stored.place, token_text, words)
    thread_pages.put(writing.connection, stored.place, stored.thread_key)


def _flag_columns(state: MessageState) -> tuple[str, int | None, int]:
    flags = sorted(flag for flag in state.flags if flag.lower() != "\\recent")
    return json.dumps(flags), state.modseq, int(any(flag.lower() == _DELETED for flag in flags))


def _stored(writing: Writing, key: int) -> _Stored | None:
    row = writing.connection.execute(
        "SELECT id, thread_key, has_attachment, keywords, visible, held_tick IS NOT NULL, sender, sender_domain, "
        "place, EXISTS (SELECT 1 FROM sign_in_emails s WHERE s.email_key = e.key) FROM emails e WHERE key = ?",
        (key,),
    ).fetchone()
    if row is None:
        return None
    mailboxes = writing.connection.execute("SELECT mailbox_key FROM email_mailboxes WHERE email_key = ?", (key,))
    return _Stored(
        key=key,
        place=int(row[8]),
        id=str(row[0]),
        thread_key=int(row[1]),
        has_attachment=bool(row[2]),
        keywords=frozenset(json.loads(row[3])),
        visible=bool(row[4]),
        held=bool(row[5]),
        mailbox_keys=frozenset(int(mailbox_key) for (mailbox_key,) in mailboxes),
        senders=(str(row[6]), str(row[7])),
        signs_in=bool(row[9]),
    )


def _bring(writing: Writing, stored: _Stored) -> None:
    copies = list(
        writing.connection.execute(
            "SELECT c.mailbox_key, c.flags, c.deleted, m.attributes FROM copies c JOIN mailboxes m "
            "ON m.key = c.mailbox_key WHERE c.email_key = ?",
            (stored.key,),
        )
    )
    if not copies:
        if not stored.held:
            writing.connection.execute(
                "UPDATE emails SET held_tick = ?, held_at = ? WHERE key = ?", (writing.tick(), writing.now, stored.key)
            )
        return
    if stored.held:
        writing.connection.execute("UPDATE emails SET held_tick = NULL, held_at = NULL WHERE key = ?", (stored.key,))
    shown = [(mailbox_key, flags, attributes) for mailbox_key, flags, deleted, attributes in copies if not deleted]
    proper = [copy for copy in shown if not is_view(json.loads(copy[2]))]
    mailbox_keys = frozenset(int(mailbox_key) for mailbox_key, _, _ in proper or shown)
    keywords = frozenset[str]().union(*(keywords_of(json.loads(flags)) for _, flags, _ in shown))
    if (mailbox_keys, keywords) != (stored.mailbox_keys, stored.keywords):
        _show(writing, stored, mailbox_keys, keywords)


def _show(writing: Writing, stored: _Stored, mailbox_keys: frozenset[int], keywords: frozenset[str]) -> None:
    """Write what the Email has become, and note it for the Email, its Thread and the Mailboxes that it counts in."""
    connection, key = writing.connection, stored.key
    unread = _is_unread(keywords)
    visible = bool(mailbox_keys)
    counts = mailbox_keys != stored.mailbox_keys or unread != _is_unread(stored.keywords)
    others = _thread_is_shown(writing, stored, but=key)
    if counts:
        _count(writing, stored)
    connection.execute(
        "UPDATE emails SET keywords = ?, visible = ? WHERE key = ?",
        (json.dumps(sorted(keywords)), int(visible), key),
    )
    connection.execute("DELETE FROM email_mailboxes WHERE email_key = ?", (key,))
    connection.executemany(
        "INSERT INTO email_mailboxes (mailbox_key, email_key, thread_key, unread) VALUES (?, ?, ?, ?)",
        [(mailbox_key, key, stored.thread_key, int(unread)) for mailbox_key in mailbox_keys],
    )
    if counts:
        _count(writing, stored)
    if stored.visible:
        search.remove(connection, stored.place)
    if visible:
        _put_words(writing, stored, mailbox_keys, keywords, _words(writing, key))
    _note(writing, stored, visible=visible, others=others)
    writing.note_email(
        key, stored.mailbox_keys, mailbox_keys, _what_changed(stored.keywords, keywords) if visible else 0
    )


def _note(writing: Writing, stored: _Stored, *, visible: bool, others: bool) -> None:
    if not visible and not stored.visible:
        return
    kind = ChangeKind.UPDATED
    if visible != stored.visible:
        kind = ChangeKind.CREATED if visible else ChangeKind.DESTROYED
        thread_id = threads.thread_id(writing, stored.thread_key)
        writing.changes.note(DataType.THREAD, thread_id, ChangeKind.UPDATED if others else kind)
    writing.changes.note(DataType.EMAIL, stored.id, kind)


def _destroy(writing: Writing, stored: _Stored) -> None:
    if stored.visible:
        _show(writing, stored, frozenset(), stored.keywords)
    connection = writing.connection
    connection.execute(
        "INSERT OR REPLACE INTO gone_emails (key, id, thread_key, thread_id, sender, sender_domain, at) "
        "SELECT key, id, thread_key, ?, sender, sender_domain, ? FROM emails WHERE key = ?",
        (threads.thread_id(writing, stored.thread_key), writing.now, stored.key),
    )
    connection.execute("DELETE FROM email_texts WHERE key = ?", (stored.key,))
    writing.forgotten.add(stored.id)
    blobs.forget(writing, stored.key)
    connection.execute("DELETE FROM emails WHERE key = ?", (stored.key,))
    connection.execute("DELETE FROM former_copies WHERE email_key = ?", (stored.key,))
    threads.forget_if_empty(writing, stored.thread_key)


def _what_changed(before: frozenset[str], after: frozenset[str]) -> int:
    unread = UNREAD_CHANGED if _is_unread(before) != _is_unread(after) else 0
    return unread | (KEYWORDS_CHANGED if before != after else 0)


def _is_unread(keywords: frozenset[str]) -> bool:
    return keywords.isdisjoint(("$seen", "$draft"))


def _thread_is_shown(writing: Writing, stored: _Stored, *, but: int) -> bool:
    return (
        writing.connection.execute(
            "SELECT 1 FROM email_mailboxes WHERE thread_key = ? AND email_key <> ? LIMIT 1", (stored.thread_key, but)
        ).get
        is not None
    )


def _count(writing: Writing, stored: _Stored) -> None:
    """A Mailbox's unreadThreads depend on the whole Thread, wherever its Emails lie (RFC 8621 §2)."""
    rows = list(
        writing.connection.execute(
            "SELECT DISTINCT mailbox_key FROM email_mailboxes WHERE thread_key = ?", (stored.thread_key,)
        )
    )
    for (mailbox_key,) in rows:
        writing.note_mailbox(mailbox_key, ChangeKind.COUNTED)


def _words(writing: Writing, key: int) -> Sequence[str]:
    if (new := writing.words.get(key)) is not None:
        return new
    packed = writing.connection.execute("SELECT words FROM email_texts WHERE key = ?", (key,)).get
    return search.whole_words(packed, writing.note_damage)

"""Fills a store of a million messages with the rows that questions are answered from, and no others.

What sync writes of a message (`query_store.fill`) takes some 0.7 ms of CPU and more the fuller the file. The rows here
are the same, without copies, documents and changes; the answers are the same too.
"""

import json
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

import apsw

from agent_reader.store import Store, database, emails, places, search, thread_pages, threads, tokens
from agent_reader.store.fold import fold, sort_order
from shared.identity import email_id, message_digest
from shared.message import base_subject
from shared.message.fields import HeaderField
from tests.agent_reader.mirrored import ACCOUNT, listed
from tests.bench.query_mail import LAST, MAILBOXES, Letter, Mail

_BATCH: Final = 2_000
_UIDVALIDITY: Final = 7
_IN_A_THREAD: Final = 4
_CACHE_KIBIBYTES: Final = 512 * 1024

_EMAIL: Final = (
    "INSERT INTO emails (key, id, thread_key, size, received_at, sent_at, has_attachment, from_order, to_order, "
    "subject_order, sender, sender_domain, kept, place, keywords, visible, held_tick) "
    "VALUES (?, ?, ?, ?, ?, ?, 0, ?, 'the desk', ?, ?, ?, 2, ?, ?, 1, NULL)"
)


def fill(folder: Path, mail: Mail) -> float:
    """Fill a store in an empty folder; return the seconds of CPU that it took."""
    store = Store(folder, lambda: LAST)
    mirror = store.account(ACCOUNT)
    mirror.put_mailboxes(map(listed, MAILBOXES))
    handles = [mailbox.id for mailbox in mirror.mailboxes()]
    for handle in handles:
        mirror.restart(handle, _UIDVALIDITY)
    store.close()
    started = time.process_time()
    connection = database.open_file(database.account_file(folder, ACCOUNT), "", database.boot_id())
    connection.pragma("synchronous", "off")
    connection.pragma("cache_size", -_CACHE_KIBIBYTES)
    try:
        keys = {str(name): int(key) for name, key in connection.execute("SELECT name, key FROM mailboxes")}
        for batch in _newest_first(mail):
            with connection:
                for letter in batch:
                    _put(connection, letter, keys[letter.mailbox])
    finally:
        connection.close()
    store = Store(folder, lambda: LAST)
    for handle in handles:
        store.account(ACCOUNT).looked(handle, mail.messages + 1, None)
    store.account(ACCOUNT).settle()
    store.close()
    return time.process_time() - started


def _newest_first(mail: Mail) -> Iterator[list[Letter]]:
    for end in range(mail.messages, 0, -_BATCH):
        yield [mail.letter(number) for number in range(end - 1, max(0, end - _BATCH) - 1, -1)]


def _put(connection: apsw.Connection, letter: Letter, mailbox_key: int) -> None:
    octets = letter.octets()
    name = email_id(message_digest(octets))
    tie = int.from_bytes(sha256(name.encode()).digest()[:4]) % (1 << emails.KEY_SHIFT)
    key = (letter.received_at << emails.KEY_SHIFT) + tie
    # No two messages of this mail are of one unit, so that each has the place of its date.
    place, thread_key = places.of_date(key), letter.number // _IN_A_THREAD + 1
    keywords = emails.keywords_of(letter.flags)
    sender = letter.sender_address
    domain = sender.partition("@")[2]
    orders = (sort_order(letter.sender_name), sort_order(base_subject(letter.subject)))
    dates = (letter.received_at, letter.received_at)
    connection.execute(
        _EMAIL,
        (key, name, thread_key, len(octets), *dates, *orders, sender, domain, place, json.dumps(sorted(keywords))),
    )
    connection.execute(
        "INSERT INTO email_mailboxes (mailbox_key, email_key, thread_key, unread) VALUES (?, ?, ?, ?)",
        (mailbox_key, key, thread_key, int(tokens.SEEN not in keywords)),
    )
    if letter.number % _IN_A_THREAD == 0:
        connection.execute("INSERT INTO threads (key, id) VALUES (?, ?)", (thread_key, threads.id_begun_by(name)))
    words = _words(letter)
    connection.execute(
        "INSERT INTO email_texts (key, summary, document, words) VALUES (?, x'', x'', ?)",
        (key, search.pack_words(words)),
    )
    found = tokens.of_email([mailbox_key], keywords, (sender, domain), has_attachment=False, signs_in=False)
    search.put(connection, place, found, words)
    thread_pages.put(connection, place, thread_key)


def _words(letter: Letter) -> tuple[str, ...]:
    words = {
        search.Column.FROM: fold(f"{letter.sender_name} {letter.sender_address}"),
        search.Column.TO: "the desk desk example com",
        search.Column.SUBJECT: fold(letter.subject),
        search.Column.BODY: fold(letter.body),
    }
    return (*(words.get(column, "") for column in search.Column), tokens.header_tokens(_fields(letter)))


def _fields(letter: Letter) -> Iterator[HeaderField]:
    values = {
        "Message-ID": [letter.message_id],
        "In-Reply-To": letter.references[-1:],
        "References": letter.references,
        "List-Id": [] if letter.list_id is None else [letter.list_id],
    }
    for name, identifiers in values.items():
        if identifiers:
            yield HeaderField(name, " ".join(f"<{each}>" for each in identifiers).encode(), 0, 0)

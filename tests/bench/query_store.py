"""Fills a store with the bench's mail, and says what it took.

What is stored is made from the letter directly, since reading is the same for each message and takes most of the time;
it is written as sync writes it. `fill` reads the messages as well where that is what is measured.
"""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from agent_reader.keep import Keep
from agent_reader.store import Store, database, document, emails, mailboxes, search, tokens
from agent_reader.store.fold import fold, sort_order
from agent_reader.store.reading import Reading, pack_summary, read
from agent_reader.store.thread_subject import thread_subject
from agent_reader.store.writing import Writing
from agent_reader.sync.mirror import FetchedMessage, MessageState
from shared.identity import blob_id, email_id, message_digest
from shared.message import Message, base_subject, parse
from tests.agent_reader.mirrored import ACCOUNT, listed
from tests.bench.query_mail import LAST, MAILBOXES, Letter, Mail

# About as many as sync commits at once.
_BATCH: Final = 500
_UIDVALIDITY: Final = 7


def fill(folder: Path, mail: Mail, *, reads: bool = False) -> float:
    """Fill a store in an empty folder; return the seconds of CPU that it took, with `reads` that of reading too."""
    path = database.account_file(folder, ACCOUNT)
    store = Store(folder, lambda: LAST)
    mirror = store.account(ACCOUNT)
    mirror.put_mailboxes(map(listed, MAILBOXES))
    handles = {mailbox.name: mailbox.id for mailbox in mirror.mailboxes()}
    for handle in handles.values():
        mirror.restart(handle, _UIDVALIDITY)
    store.close()
    taken = 0.0
    connection = database.open_file(path, "", database.boot_id())
    try:
        for batch in _batches(mail):
            started = time.process_time()
            connection.execute("BEGIN IMMEDIATE")
            writing = Writing(connection, int(LAST.timestamp()))
            for letter in batch:
                handle = handles[letter.mailbox]
                reading = _read(letter, handle) if reads else _made(letter)
                key = mailboxes.key_of(writing, handle)
                emails.put_copy(writing, key, letter.number + 1, MessageState(letter.flags, 1), reading)
            emails.bring_up_to_date(writing)
            writing.finish()
            connection.execute("COMMIT")
            taken += time.process_time() - started
    finally:
        connection.close()
    store = Store(folder, lambda: LAST)
    for handle in handles.values():
        store.account(ACCOUNT).looked(handle, mail.messages + 1, None)
    store.account(ACCOUNT).settle()
    store.close()
    return taken


def fill_search_table(folder: Path, mail: Mail) -> float:
    """Put the words alone into a search table; return the seconds of CPU. What an engine without a mirror does."""
    store = Store(folder, lambda: LAST)
    store.account(ACCOUNT)
    store.close()
    taken = 0.0
    connection = database.open_file(database.account_file(folder, ACCOUNT), "", database.boot_id())
    try:
        for batch in _batches(mail):
            rows = [(letter.number, _tokens(letter), _words(letter, parse(letter.octets()))) for letter in batch]
            started = time.process_time()
            with connection:
                for place, token_text, words in rows:
                    search.put(connection, place, token_text, words)
            taken += time.process_time() - started
    finally:
        connection.close()
    return taken


def _batches(mail: Mail) -> Iterator[list[Letter]]:
    batch = []
    for letter in mail.letters():
        batch.append(letter)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _read(letter: Letter, handle: str) -> Reading:
    octets = letter.octets()
    fetched = FetchedMessage(
        uid=letter.number + 1,
        state=MessageState(letter.flags, 1),
        internaldate=datetime.fromtimestamp(letter.received_at, UTC),
        size=len(octets),
        octets=octets,
        header=octets.partition(b"\r\n\r\n")[0],
    )
    return read(fetched, handle, _UIDVALIDITY)


def _made(letter: Letter) -> Reading:
    octets = letter.octets()
    digest = message_digest(octets)
    message = parse(octets)
    sender = {"name": letter.sender_name, "email": letter.sender_address}
    receiver = {"name": "The Desk", "email": "desk@example.com"}
    return Reading(
        id=email_id(digest),
        size=len(octets),
        received_at=letter.received_at,
        sent_at=letter.received_at,
        has_attachment=False,
        from_order=sort_order(letter.sender_name),
        to_order="the desk",
        subject_order=sort_order(base_subject(letter.subject)),
        summary=pack_summary(
            {
                "messageId": [letter.message_id],
                "inReplyTo": list(letter.references[-1:]) or None,
                "references": list(letter.references) or None,
                "sender": None,
                "from": [sender],
                "to": [receiver],
                "cc": None,
                "bcc": None,
                "replyTo": None,
                "subject": letter.subject,
                "sentAt": f"{datetime.fromtimestamp(letter.received_at, UTC):%Y-%m-%dT%H:%M:%SZ}",
                "preview": letter.body[:255],
                "blobId": blob_id(digest),
                "size": len(octets),
                "hasAttachment": False,
            }
        ),
        document=document.pack(message),
        words=_words(letter, message),
        kept=Keep.EVERYTHING,
        message_ids=(*letter.references, letter.message_id),
        thread_subject=thread_subject(letter.subject),
        blob_handles=(),
        sender=letter.sender_address,
        sender_domain=letter.sender_address.partition("@")[2],
        signs_in=False,
    )


def _words(letter: Letter, message: Message) -> tuple[str, ...]:
    words = {
        search.Column.FROM: fold(f"{letter.sender_name} {letter.sender_address}"),
        search.Column.TO: "the desk desk example com",
        search.Column.SUBJECT: fold(letter.subject),
        search.Column.BODY: fold(letter.body),
    }
    return (*(words.get(column, "") for column in search.Column), tokens.header_tokens(message.fields))


def _tokens(letter: Letter) -> str:
    sender = letter.sender_address
    return tokens.of_email(
        [MAILBOXES.index(letter.mailbox)],
        emails.keywords_of(letter.flags),
        (sender, sender.partition("@")[2]),
        has_attachment=False,
        signs_in=False,
    )

"""What questions are answered from: one consistent view of one account, unmoved by what sync writes meanwhile."""

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, cached_property, lru_cache
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Final

import apsw
import msgspec

from agent_reader.scope import WHOLE, Depth, Scope
from agent_reader.store import document, reading, scoped, thread_pages
from agent_reader.store.change_log import ChangeList, changes_since
from agent_reader.store.changes import DataType
from agent_reader.store.deliveries import Deliveries
from agent_reader.store.reading_room import ReadingRoom
from agent_reader.store.scoped import Hidden
from agent_reader.store.selection import Selection, without_bodies
from agent_reader.store.statements import Order, Statement, count_statement, hits_of, rows_statement
from agent_reader.store.thread_pages import ThreadPages, TooManyThreads
from agent_reader.store.written import MOST_OF_ONE, Row, Source, WrittenEmails, WrittenOfAccount
from shared.message import JSON, Message

# A look at the clock costs a microsecond; so many steps of SQLite some hundreds, some thousands with headers read.
_STEPS_BETWEEN_LOOKS: Final = 1_000
_TIME_LIMIT: Final = "time limit"


# One statement for a page of them, in the order that was asked for: CROSS keeps it. A document that is larger than the
# bound is left where it is, without a look at it.
_EMAILS: Final = (
    "SELECT e.id, e.key, t.id, e.keywords, e.received_at, e.size, x.summary, "
    "CASE WHEN length(x.document) <= ? THEN x.document END, (SELECT json_group_array(b.mailbox_key) "
    "FROM (SELECT mailbox_key FROM email_mailboxes WHERE email_key = e.key ORDER BY mailbox_key) b) "
    "FROM json_each(?) asked CROSS JOIN emails e ON e.id = asked.value CROSS JOIN threads t ON t.key = e.thread_key "
    "CROSS JOIN email_texts x ON x.key = e.key WHERE e.visible"
)


# More messages of one Thread and one second are a machine's: the order of their ids will do, and costs no look at them.
_MOST_COMPARED: Final = 32

_NO_PREVIEW: Final = msgspec.Raw(b'""')


@contextmanager
def ended_by(connection: apsw.Connection, is_over: Callable[[], bool], name: str) -> Iterator[None]:
    """End whatever the connection is asked within the block once `is_over`: it raises `apsw.InterruptError`.

    What has another name in a block around this one ends it too.
    """
    connection.set_progress_handler(is_over, _STEPS_BETWEEN_LOOKS, id=name)
    try:
        yield
    finally:
        connection.set_progress_handler(None, id=name)


class TimeIsUp(Exception):  # noqa: N818 - names what happened
    """A question took longer than it may; nothing of it was answered."""


@dataclass(frozen=True, slots=True)
class StoredMailbox:
    """A mailbox that is shown; `name` is the whole decoded path.

    `readable`: it can hold messages, and was not found closed to this login by a whole round.
    """

    key: int
    id: str
    name: str
    delimiter: str | None
    attributes: frozenset[str]
    subscribed: bool
    readable: bool


@dataclass(frozen=True, slots=True)
class MailboxCounts:
    """RFC 8621 §2 totalEmails, unreadEmails, totalThreads, unreadThreads."""

    total_emails: int = 0
    unread_emails: int = 0
    total_threads: int = 0
    unread_threads: int = 0


class StoredEmail(msgspec.Struct, frozen=True, dict=True):
    """An Email that is shown: what the server and the store know of it, and its metadata properties.

    `size` as RFC 8621 §4.1.1 has it. `source` is what is kept of its content, as the file has it: the summary, and the
    document where it was asked for and is no large one.
    """

    key: int
    id: str
    thread_id: str
    mailbox_ids: tuple[str, ...]
    keywords: tuple[str, ...]
    # Seconds since 1970: most answers need no date of it.
    received: int
    size: int
    depth: Depth
    source: Source

    @property
    def received_at(self) -> datetime:
        """When it was received, in UTC."""
        return datetime.fromtimestamp(self.received, UTC)

    @property
    def row(self) -> Row:
        """What of it may change, and its id."""
        return self.id, self.thread_id, self.mailbox_ids, self.keywords, self.received

    @cached_property
    def summary(self) -> Mapping[str, JSON]:
        """The properties blobId, size, hasAttachment, preview and `reading.SUMMARY_PROPERTIES`, as JSON values."""
        summary = reading.unpack_summary(self.source[0])
        if self.depth is Depth.HEADERS:
            summary["preview"] = ""
        return summary

    def summary_as_written(self) -> dict[str, msgspec.Raw]:
        """The same, each as the octets of its JSON."""
        summary = reading.unpack_summary_as_written(self.source[0])
        if self.depth is Depth.HEADERS:
            summary["preview"] = _NO_PREVIEW
        return summary


@dataclass(slots=True)
class Snapshot:
    """One read transaction, of what a scope lets through: the rest is not there, whatever is asked.

    Not for two threads at once; useless after its `with` block. Its connection is narrowed to the scope
    (`scoped.narrow`), so that no statement can see more; how deep into a message one sees is decided here. Whoever
    reads messages holds a place in `room`, which all snapshots of a store have in common, as they have what was
    `written` of Emails before and what was read of `thread_pages`.
    """

    connection: apsw.Connection = field(repr=False)
    account_id: str
    state: str
    counts_kept: dict[tuple[str, int], dict[int, MailboxCounts]] = field(default_factory=dict, repr=False)
    scope: Scope = WHOLE
    hidden_kept: dict[int, Hidden] = field(default_factory=dict, repr=False)
    room: ReadingRoom = field(default_factory=ReadingRoom, repr=False)
    written: WrittenOfAccount = field(default_factory=lambda: WrittenEmails(0).seen_by("", Depth.FULL), repr=False)
    thread_pages: ThreadPages = field(default_factory=ThreadPages, repr=False)
    deliveries: Deliveries = field(default_factory=Deliveries, repr=False)
    note_damage: Callable[[], None] = field(default=lambda: None, repr=False)
    _mailboxes: tuple[StoredMailbox, ...] | None = None

    def delivery_state(self) -> str:
        """Return the state of EmailDelivery: another one when an Email came in, and only then (RFC 8621 §1.5)."""
        return self.deliveries.state(self.connection, self.state)

    def hidden(self) -> Hidden:
        """Return how many Emails the scope hides: all that is told of them."""
        return scoped.hidden(self.connection, self.hidden_kept) if self.scope.hides_emails else Hidden(0, 0)

    @contextmanager
    def time_limited(self, is_over: Callable[[], bool]) -> Iterator[None]:
        """End whatever is asked within the block once `is_over` says so: it raises `TimeIsUp`."""
        try:
            with ended_by(self.connection, is_over, _TIME_LIMIT):
                yield
        except apsw.InterruptError:
            raise TimeIsUp from None

    def mailboxes(self) -> tuple[StoredMailbox, ...]:
        """Return every mailbox that is shown, INBOX first, then by name."""
        if self._mailboxes is None:
            rows = self.connection.execute(
                "SELECT key, id, name, delimiter, attributes, subscribed, "
                "selectable AND NOT (looked_tick IS NULL AND passed_over) FROM mailboxes "
                "WHERE standing <> 'pending' ORDER BY name <> 'INBOX', name, standing"
            )
            self._mailboxes = tuple(
                StoredMailbox(
                    key=int(key),
                    id=str(mailbox_id),
                    name=str(name),
                    delimiter=delimiter,
                    attributes=_attributes(attributes),
                    subscribed=bool(subscribed),
                    readable=bool(readable),
                )
                for key, mailbox_id, name, delimiter, attributes, subscribed, readable in rows
            )
        return self._mailboxes

    def mailbox_key(self, mailbox_id: str) -> int | None:
        """Return the key of a mailbox that is shown."""
        key: int | None = self.connection.execute(
            "SELECT key FROM mailboxes WHERE id = ? AND standing <> 'pending'", (mailbox_id,)
        ).get
        return key

    def counts(self, trash_key: int | None) -> dict[int, MailboxCounts]:
        """Return the counts of each mailbox by key; one without Emails is missing.

        RFC 8621 §2: an unread Email anywhere in a Thread, outside the trash, makes the Thread unread in each mailbox
        that holds part of it; for the trash only the unread Emails in it count.
        """
        trash = -1 if trash_key is None else trash_key
        kept = self.counts_kept.get((self.state, trash))
        if kept is not None:
            return kept
        rows = self.connection.execute(
            "SELECT mailbox_key, count(*), sum(unread), count(DISTINCT thread_key), "
            "count(DISTINCT CASE WHEN mailbox_key = :trash THEN CASE WHEN unread THEN thread_key END "
            "WHEN thread_key IN (SELECT thread_key FROM email_mailboxes WHERE unread AND mailbox_key <> :trash) "
            "THEN thread_key END) FROM email_mailboxes GROUP BY mailbox_key",
            {"trash": trash},
        )
        counted = {int(key): MailboxCounts(*(int(count) for count in counts)) for key, *counts in rows}
        # They take a pass over the account and are asked for often; those of other states are of no more use.
        self.counts_kept.clear()
        self.counts_kept[self.state, trash] = counted
        return counted

    def count(self, selection: Selection, *, by_thread: bool = False) -> int:
        """Return how many Emails (or Threads) are selected."""
        searched = self._searched(selection)
        found = self._threads_of_many(searched) if by_thread else None
        return int(self._run(count_statement(searched, by_thread=by_thread)).get) if found is None else found

    def ids(
        self, selection: Selection, order: Sequence[Order], *, limit: int | None = None, offset: int = 0
    ) -> Iterator[str]:
        """Yield the ids of the selected Emails in order."""
        rows = self._run(rows_statement(self._searched(selection), order, limit=limit, offset=offset))
        # A page is had at once, in fewer steps; everything is had as it is asked for.
        return chain.from_iterable(rows if limit is None else rows.fetchall())

    def ids_and_threads(self, selection: Selection, order: Sequence[Order]) -> Iterator[tuple[str, int]]:
        """Yield (Email id, Thread key) of the selected Emails in order."""
        return iter(self._run(rows_statement(self._searched(selection), order, by_thread=True)))

    def key_of(self, email_id: str) -> int | None:
        """Return the key of an Email that is shown."""
        key: int | None = self.connection.execute("SELECT key FROM emails WHERE id = ? AND visible", (email_id,)).get
        return key

    def ids_beginning(self, start: str, limit: int) -> list[str]:
        """Return the ids of Emails that are shown and begin so, in order; `start` is ASCII."""
        # "~" is above every character of an id.
        rows = self.connection.execute(
            "SELECT id FROM emails WHERE id >= ? AND id < ? AND visible ORDER BY id LIMIT ?",
            (start, f"{start}~", limit),
        )
        return [str(email_id) for (email_id,) in rows]

    def emails(self, email_ids: Iterable[str]) -> dict[str, StoredEmail]:
        """Return the Emails that are shown among these ids; a caller asks for as many as one answer may hold."""
        return {email.id: email for email in self.each_email(email_ids)}

    def each_email(
        self, email_ids: Iterable[str], *, with_documents: bool = False
    ) -> Generator[StoredEmail, None, None]:
        """Yield the Emails that are shown among these ids, in this order; with documents one is in memory at a time.

        Whoever may leave before the end closes it: a statement that goes on would keep this state for the next view.
        """
        mailbox_ids = {mailbox.key: mailbox.id for mailbox in self.mailboxes()}
        # Most Emails of a page lie in the same mailboxes and have the same keywords.
        ids_of = cache(lambda places: tuple([mailbox_ids[place] for place in _array(places)]))
        keywords_of = cache(_array)
        most_octets = MOST_OF_ONE if with_documents else -1
        rows = self.connection.execute(_EMAILS, (most_octets, json.dumps(list(email_ids))))
        try:
            for email_id, key, thread_id, keywords, received, size, summary, packed, places in rows:
                yield StoredEmail(
                    key,
                    email_id,
                    thread_id,
                    ids_of(places),
                    keywords_of(keywords),
                    received,
                    size,
                    self.scope.depth,
                    (summary, packed),
                )
        finally:
            rows.close(True)

    def message(self, key: int) -> Message:
        """Return what is kept of an Email's content, as deep as the scope goes; see `document.StoredPart`."""
        packed = self.connection.execute("SELECT document FROM email_texts WHERE key = ?", (key,)).get
        return document.as_deep_as(document.unpack(packed), self.scope.depth)

    def message_of(self, email: StoredEmail) -> Message:
        """Return the same of an Email that is here, where its document came with it without another look."""
        packed = email.source[1]
        if packed is None:
            return self.message(email.key)
        return document.as_deep_as(document.unpack(packed), self.scope.depth)

    def thread_emails(self, thread_ids: Iterable[str]) -> dict[str, list[str]]:
        """Return the Email ids of each Thread that is shown among these ids, oldest first (RFC 8621 §3).

        Of what came within one second, as a whole conversation may, an answer stands after what it answers.
        """
        found = {}
        for thread_id in thread_ids:
            rows = self.connection.execute(
                "SELECT e.received_at, e.key, e.id FROM threads t JOIN emails e ON e.thread_key = t.key "
                "WHERE t.id = ? AND e.visible ORDER BY e.key",
                (thread_id,),
            )
            seconds = [list(of_second) for _, of_second in groupby(rows, itemgetter(0))]
            if seconds:
                found[thread_id] = [str(email_id) for each in seconds for _, _, email_id in self._as_answered(each)]
        return found

    def _as_answered(self, of_second: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        if 1 < len(of_second) <= _MOST_COMPARED:
            of_second.sort(key=lambda row: self._how_many_it_follows(row[1]))
        return of_second

    def _how_many_it_follows(self, key: int) -> int:
        packed = self.connection.execute("SELECT summary FROM email_texts WHERE key = ?", (key,)).get
        summary = reading.unpack_summary(packed)
        return max(len(ids) if isinstance(ids := summary[name], list) else 0 for name in ("references", "inReplyTo"))

    def thread_ids(self, email_ids: Iterable[str]) -> set[str]:
        """Return the ids of the Threads of those Emails that are shown among these."""
        found = (
            self.connection.execute(
                "SELECT t.id FROM emails e JOIN threads t ON t.key = e.thread_key WHERE e.id = ? AND e.visible",
                (email_id,),
            ).get
            for email_id in email_ids
        )
        return {str(thread_id) for thread_id in found if thread_id is not None}

    def copies(self, email_id: str, limit: int) -> tuple[tuple[int, int], ...]:
        """Return (UIDVALIDITY, UID) of each copy of an Email."""
        rows = self.connection.execute(
            "SELECT m.uidvalidity, c.uid FROM emails e JOIN copies c ON c.email_key = e.key "
            "JOIN mailboxes m ON m.key = c.mailbox_key WHERE e.id = ? AND m.uidvalidity IS NOT NULL "
            "ORDER BY c.mailbox_key, c.uid LIMIT ?",
            (email_id, limit),
        )
        return tuple((int(uidvalidity), int(uid)) for uidvalidity, uid in rows)

    def changes(self, data_type: DataType, untrusted_state: str, limit: int) -> ChangeList:
        """Return what changed since a state, at most `limit` ids (RFC 8620 §5.2).

        Raises `CannotCalculateChanges`.
        """
        return changes_since(self.connection, data_type, untrusted_state, self.state, limit)

    def _searched(self, selection: Selection) -> Selection:
        # Whoever may not read a text must not find out what is in it, word by word.
        return without_bodies(selection) if self.scope.depth is Depth.HEADERS else selection

    def _threads_of_many(self, selection: Selection) -> int | None:
        """How many Threads there are among many hits; None of others, which are looked up one by one."""
        hits = hits_of(selection)
        if hits is None:
            return None
        versions = thread_pages.versions(self.connection)
        least, last = self.thread_pages.worth_hits(self.account_id, versions), len(versions) - 1
        if least and self._run(hits.are_more_than(least)).get is None:
            return None
        chunks = enumerate(self.thread_pages.chunks(self.connection, self.account_id, versions))
        statements = (hits.threads_of(chunk, is_first=number == 0, is_last=number == last) for number, chunk in chunks)
        try:
            return thread_pages.distinct(self._run(statement).get or b"" for statement in statements)
        except TooManyThreads:
            return None

    def _run(self, statement: Statement) -> apsw.Cursor:
        return self.connection.execute(statement.sql, statement.parameters)


# What an Email's mailboxes and keywords can be is little, and the same again and again.
@lru_cache(maxsize=4096)
def _array(array: str) -> tuple[Any, ...]:
    return tuple(json.loads(array))


# Mailboxes have a dozen sets of attributes, and are read with most questions.
@lru_cache(maxsize=1024)
def _attributes(array: str) -> frozenset[str]:
    return frozenset(json.loads(array))

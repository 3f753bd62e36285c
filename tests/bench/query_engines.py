"""The engines that the search bench asks: ours through Email/query, tantivy and notmuch through their own bindings.

Each is given what its users would give it, and gives 50 ids. tantivy: one field of all text with positions, one of
senders, exact terms for mailbox and state, the date as a fast field to sort by; a message's number and its thread are
fast fields too, the quickest way to an id that it has. How many threads there are it estimates. notmuch: the messages
as files, folders and tags; it stems and has its own idea of words.
"""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final, Protocol

from agent_reader.query import email_query, parse_email_query
from agent_reader.store import Store
from shared.message import JSON
from tests.agent_reader.mirrored import ACCOUNT
from tests.bench.query_mail import LAST, Mail
from tests.bench.query_questions import Question

PAGE: Final = 50

# tantivy's own default for its writer.
_TANTIVY_HEAP_OCTETS: Final = 128_000_000


class Engine(Protocol):
    """Answers questions with the newest 50, as many as there are if so asked."""

    name: str

    def newest(self, question: Question) -> int:
        """Return how many of the newest 50 there are."""

    def total(self, question: Question) -> int:
        """Find the newest 50 and return the total."""


class Ours:
    """The reader's Email/query, in process: from JSON to ids, each question in a snapshot of its own."""

    name = "mailwarrant"

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder, lambda: LAST)
        with self.store.snapshot(ACCOUNT) as snapshot:
            self._mailbox_ids = {mailbox.name: mailbox.id for mailbox in snapshot.mailboxes()}
        # Whoever asks makes them, not who answers.
        self._arguments: dict[Question, dict[str, JSON]] = {}

    def newest(self, question: Question) -> int:
        return len(self._ask(question, total=False).ids)

    def total(self, question: Question) -> int:
        return self._ask(question, total=True).total or 0

    def arguments(self, question: Question) -> dict[str, JSON]:
        """Return the arguments of Email/query."""
        condition: dict[str, JSON] = {}
        if question.words:
            condition["text"] = " ".join(question.words)
        if question.phrase:
            condition["text"] = f'"{" ".join(question.phrase)}"'
        if question.sender is not None:
            condition["from"] = question.sender
        if question.mailbox is not None:
            condition["inMailbox"] = self._mailbox_ids[question.mailbox]
        if question.unread:
            condition["notKeyword"] = "$seen"
        if question.since is not None:
            condition["after"] = _utc(question.since)
        if question.before is not None:
            condition["before"] = _utc(question.before)
        asked: JSON = condition
        if question.without is not None:
            refused: JSON = {"operator": "NOT", "conditions": [{"text": question.without}]}
            asked = {"operator": "AND", "conditions": [condition, refused]}
        return {"filter": asked, "limit": PAGE, "collapseThreads": question.by_thread}

    def _ask(self, question: Question, *, total: bool) -> Any:
        if question not in self._arguments:
            self._arguments[question] = self.arguments(question)
        asked = {**self._arguments[question], "calculateTotal": total}
        with self.store.snapshot(ACCOUNT) as snapshot:
            return email_query(snapshot, parse_email_query(asked))


class Tantivy:
    """tantivy, in process."""

    name = "tantivy"

    def __init__(self, folder: Path) -> None:
        import tantivy  # noqa: PLC0415 - of the bench's own environment

        self._library = tantivy
        self._schema = _tantivy_schema(tantivy)
        self._index = tantivy.Index(self._schema, str(folder), reuse=True)
        self._index.reload()
        self._searcher = self._index.searcher()

    @staticmethod
    def fill(folder: Path, mail: Mail) -> float:
        """Fill an index; return the seconds of CPU of all its threads, the making of the mail aside."""
        import tantivy  # noqa: PLC0415 - see above

        folder.mkdir()
        index = tantivy.Index(_tantivy_schema(tantivy), str(folder))
        writer = index.writer(_TANTIVY_HEAP_OCTETS, 1)
        started = time.process_time()
        aside = 0.0
        for letter in mail.letters():
            began = time.thread_time()
            found = tantivy.Document()
            state = "seen" if "\\Seen" in letter.flags else "unread"
            fields = {"sender": f"{letter.sender_name} {letter.sender_address}", "mailbox": letter.mailbox}
            text = f"{fields['sender']} The Desk desk@example.com {letter.subject} {letter.body}"
            thread = letter.number // 4
            aside += time.thread_time() - began
            for name, value in {**fields, "text": text, "state": state}.items():
                found.add_text(name, value)
            found.add_unsigned("received", letter.received_at)
            found.add_unsigned("thread", thread)
            found.add_unsigned("number", letter.number)
            writer.add_document(found)
        writer.commit()
        writer.wait_merging_threads()
        return time.process_time() - started - aside

    def newest(self, question: Question) -> int:
        ids, _ = self._page(question, self._query(question), count=False)
        return len(ids)

    def total(self, question: Question) -> int:
        query = self._query(question)
        _, total = self._page(question, query, count=not question.by_thread)
        return int(self._searcher.cardinality(query, "thread")) if question.by_thread else total

    def _page(self, question: Question, query: Any, *, count: bool) -> tuple[list[int], int]:
        if not question.by_thread:
            found = self._searcher.search(query, limit=PAGE, count=count, order_by_field="received")
            return self._values("number", found), int(found.count or 0)
        # It has no such thing: a longer page, until there are as many threads in it.
        limit = PAGE * 2
        while True:
            found = self._searcher.search(query, limit=limit, count=count, order_by_field="received")
            first: dict[int, int] = {}
            for thread, number in zip(self._values("thread", found), self._values("number", found), strict=True):
                first.setdefault(thread, number)
            if len(first) >= PAGE or len(found.hits) < limit:
                return list(first.values())[:PAGE], 0
            limit *= 2

    def _values(self, field: str, found: Any) -> list[int]:
        return list(self._searcher.fast_field_values(field, [address for _, address in found.hits]))

    def _query(self, question: Question) -> Any:
        query, schema, must = self._library.Query, self._schema, self._library.Occur.Must
        terms = [(must, query.term_query(schema, "text", each)) for each in question.words]
        if question.phrase:
            terms.append((must, query.phrase_query(schema, "text", list(question.phrase))))
        if question.sender is not None:
            terms.append((must, query.term_query(schema, "sender", question.sender)))
        if question.mailbox is not None:
            terms.append((must, query.term_query(schema, "mailbox", question.mailbox)))
        if question.unread:
            terms.append((must, query.term_query(schema, "state", "unread")))
        if question.since is not None:
            unsigned = self._library.FieldType.Unsigned
            limits = (question.since, question.before)
            terms.append((must, query.range_query(schema, "received", unsigned, *limits, include_upper=False)))
        if question.without is not None:
            terms.append((self._library.Occur.MustNot, query.term_query(schema, "text", question.without)))
        return query.boolean_query(terms)


class Notmuch:
    """notmuch, in process, through the binding of its own library."""

    name = "notmuch"

    def __init__(self, folder: Path) -> None:
        import notmuch2  # noqa: PLC0415 - of the bench's own environment

        self._library = notmuch2
        self._database = notmuch2.Database(folder, notmuch2.Database.MODE.READ_ONLY, config=_NO_CONFIG(notmuch2))

    @staticmethod
    def fill(folder: Path, mail: Mail) -> float:
        """Write the messages as files and fill a database; return the seconds of CPU of the latter."""
        import notmuch2  # noqa: PLC0415 - see above

        folder.mkdir()
        taken = 0.0
        with notmuch2.Database.create(folder, config=_NO_CONFIG(notmuch2)) as database:
            letters = mail.letters()
            while batch := list(islice(letters, 1_000)):
                paths = []
                for letter in batch:
                    path = folder / letter.mailbox / "cur" / f"{letter.number}"
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(letter.octets())
                    paths.append(path)
                started = time.process_time()
                with database.atomic():
                    for letter, path in zip(batch, paths, strict=True):
                        message, _ = database.add(path)
                        if "\\Seen" not in letter.flags:
                            message.tags.add("unread")
                taken += time.process_time() - started
        return taken

    def newest(self, question: Question) -> int:
        return sum(1 for _ in self._page(question))

    def total(self, question: Question) -> int:
        sum(1 for _ in self._page(question))
        count = self._database.count_threads if question.by_thread else self._database.count_messages
        return int(count(_notmuch_query(question)))

    def _page(self, question: Question) -> Iterator[str]:
        newest_first = self._library.Database.SORT.NEWEST_FIRST
        if question.by_thread:
            for thread in islice(self._database.threads(_notmuch_query(question), sort=newest_first), PAGE):
                yield thread.threadid
            return
        for message in islice(self._database.messages(_notmuch_query(question), sort=newest_first), PAGE):
            yield message.messageid


_NO_CONFIG: Final[Callable[[Any], Any]] = lambda library: library.Database.CONFIG.EMPTY  # noqa: E731


def _notmuch_query(question: Question) -> str:
    terms = list(question.words)
    if question.phrase:
        terms.append(f'"{" ".join(question.phrase)}"')
    if question.sender is not None:
        terms.append(f"from:{question.sender}")
    if question.mailbox is not None:
        terms.append(f"folder:{question.mailbox}")
    if question.unread:
        terms.append("tag:unread")
    if question.since is not None:
        terms.append(f"date:@{question.since}..@{question.before}")
    if question.without is not None:
        terms.append(f"not {question.without}")
    return " and ".join(terms)


def _tantivy_schema(library: Any) -> Any:
    builder = library.SchemaBuilder()
    builder.add_text_field("text", tokenizer_name="default", index_option="position")
    builder.add_text_field("sender", tokenizer_name="default", index_option="freq")
    for name in ("mailbox", "state"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("received", indexed=True, fast=True)
    builder.add_unsigned_field("thread", fast=True)
    builder.add_unsigned_field("number", fast=True)
    return builder.build()


def _utc(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"

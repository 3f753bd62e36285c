"""A small world of mail with an oracle: which message each scope lets through, told without the store."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import httpx
import structlog
from structlog.testing import CapturingLogger

from agent_reader.access import Access
from agent_reader.imap.values import FetchedMessage, ListedMailbox, MessageState, Place
from agent_reader.jmap.http import make_app
from agent_reader.jmap.session import ServedAccount
from agent_reader.query import BlobReader
from agent_reader.query.blob_cache import BlobCache
from agent_reader.scope import WHOLE, Depth, Scope
from agent_reader.state_watch import StateWatch
from agent_reader.store import Store
from shared.identity import email_id, message_digest
from shared.message import parse
from tests.agent_reader import synced
from tests.agent_reader.empty import empty_access, empty_index

if TYPE_CHECKING:
    from pathlib import Path

    from fastapi import FastAPI

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
SINCE = datetime(2026, 11, 1, tzinfo=UTC)
ACCOUNT = "shop"
OTHER_ACCOUNT = "archive"
MAILBOXES = ("INBOX", "Work", "Secret plans")
BASE_URL = "http://localhost:8620"


@dataclass
class Letter:
    """A message of the world. `number` is in words of its own, so that a trace of it anywhere is found."""

    number: int
    mailboxes: tuple[str, ...]
    sender: str = "ann@example.org"
    at: datetime = NOW - timedelta(days=2)
    thread: int | None = None
    is_sign_in: bool = False
    attached: bool = False
    flags: tuple[str, ...] = ()
    octets: bytes = b""

    def __post_init__(self) -> None:
        references = f"<{self.thread}@thread.example>"
        fields = [
            f"From: Person {self.number} <{self.sender}>",
            "To: shop@example.com",
            f"Subject: {'the thread' if self.thread is not None else f'heading{self.number}word'}",
            f"Message-ID: <{self.number}@id.example>",
            *((f"References: {references}", f"In-Reply-To: {references}") if self.thread is not None else ()),
            f"X-Mark: header{self.number}mark",
            "MIME-Version: 1.0",
        ]
        text = f"hello body{self.number}word."
        if self.is_sign_in:
            text += " Your verification code is 482913. It expires in 10 minutes."
        if self.attached:
            fields.append('Content-Type: multipart/mixed; boundary="b"')
            text = (
                f"--b\r\nContent-Type: text/plain\r\n\r\n{text}\r\n"
                f"--b\r\nContent-Type: text/csv\r\nContent-Disposition: attachment; "
                f"filename=file{self.number}name.csv\r\n\r\ncell{self.number}word\r\n"
                f"--b\r\nContent-Type: message/rfc822\r\n\r\nSubject: inner\r\n\r\ninner{self.number}word\r\n--b--"
            )
        self.octets = ("\r\n".join(fields) + f"\r\n\r\n{text}\r\n").encode()

    @cached_property
    def id(self) -> str:
        return email_id(message_digest(self.octets))

    @cached_property
    def part_blobs(self) -> list[str]:
        """Of each part, and of each part of a message that is attached."""
        leaves = [part for part in parse(self.octets).root.walk() if not part.is_multipart]
        attached = [parse(part.content()) for part in leaves if part.type == "message/rfc822"]
        leaves += [part for each in attached for part in each.root.walk() if not part.is_multipart]
        return [part.blob_id for part in leaves if part.blob_id]

    def is_seen(self, scope: Scope) -> bool:
        """The oracle."""
        return (
            bool(self.seen_in(scope))
            and (scope.received_since is None or self.at >= scope.received_since)
            and (
                scope.senders is None or self.sender in scope.senders or self.sender.partition("@")[2] in scope.senders
            )
            and (scope.sign_in_mail or not self.is_sign_in)
        )

    def seen_in(self, scope: Scope) -> tuple[str, ...]:
        return tuple(name for name in self.mailboxes if scope.mailboxes is None or name in scope.mailboxes)

    def traces(self) -> list[str]:
        """What only this message says, or is called."""
        digest = self.id[1:]
        words = ("heading{}word", "body{}word", "header{}mark", "file{}name", "cell{}word", "inner{}word", "Person {} ")
        return [digest, *(blob[1:] for blob in self.part_blobs), *(word.format(self.number) for word in words)]


def letters() -> list[Letter]:
    """Threads that cross every limit, a copy in two mailboxes, attachments on both sides, sign-in mail."""
    old, work, secret = SINCE - timedelta(days=3), ("Work",), ("Secret plans",)
    return [
        Letter(1, ("INBOX",), thread=77),
        Letter(2, secret, thread=77, flags=("\\Seen",)),
        Letter(3, ("INBOX",), thread=77, at=old),
        Letter(4, ("INBOX",), thread=77, sender="mallory@other.net"),
        Letter(5, ("INBOX",), thread=77, is_sign_in=True),
        Letter(6, ("INBOX", "Secret plans")),
        Letter(7, secret, attached=True),
        Letter(8, ("INBOX",), attached=True, flags=("\\Seen",)),
        Letter(9, work, sender="bob@example.org", attached=True, at=old),
        Letter(10, work, sender="bob@example.org", flags=("\\Flagged",)),
        Letter(11, work, is_sign_in=True, sender="no-reply@other.net"),
        Letter(12, ("INBOX", "Work"), sender="bob@example.org", at=SINCE),
        # A thread that begins with a message from elsewhere.
        Letter(14, ("INBOX",), thread=78, sender="mallory@other.net"),
        Letter(15, ("INBOX",), thread=78, flags=("\\Seen",)),
        Letter(13, secret, sender="mallory@other.net", is_sign_in=True, attached=True, at=old),
    ]


SCOPES: dict[str, Scope] = {
    "whole": WHOLE,
    "ordinary": Scope(),
    "mailbox": Scope(mailboxes=("INBOX",), sign_in_mail=True),
    "mailboxes": Scope(mailboxes=("Work", "INBOX", "No such mailbox"), sign_in_mail=True),
    "since": Scope(received_since=SINCE, sign_in_mail=True),
    "address": Scope(senders=("ann@example.org",), sign_in_mail=True),
    "domain": Scope(senders=("example.org",), sign_in_mail=True),
    "all at once": Scope(mailboxes=("INBOX", "Work"), received_since=SINCE, senders=("example.org",)),
    "nothing": Scope(mailboxes=("No such mailbox",)),
    "headers": Scope(depth=Depth.HEADERS, sign_in_mail=True),
    "text": Scope(depth=Depth.TEXT, mailboxes=("INBOX",)),
}


@dataclass
class World:
    """The server, its tokens by the name of their scope, and the mail that there is."""

    store: Store
    access: Access
    tokens: dict[str, str]
    mail: list[Letter]
    watch: StateWatch
    shelf: dict[tuple[str, int], bytes]
    uids: Callable[[], int]
    placed: dict[tuple[int, str], int] = field(default_factory=dict)
    app: FastAPI = field(init=False)

    def put(self, letter: Letter) -> None:
        """Bring a letter into its mailboxes."""
        for name in letter.mailboxes:
            self.put_copy(letter, name)

    def put_copy(self, letter: Letter, name: str) -> None:
        message = self._message(letter, name)
        self.placed[letter.number, name] = message.uid
        synced.add(self.mirror, self.handle(name), [message])

    def put_elsewhere(self, letter: Letter) -> None:
        """Bring a letter into the INBOX of the other account."""
        mirror = self.store.account(OTHER_ACCOUNT)
        inbox = next(mailbox.id for mailbox in mirror.mailboxes() if mailbox.name == "INBOX")
        synced.add(mirror, inbox, [self._message(letter, "INBOX")])

    def _message(self, letter: Letter, name: str) -> FetchedMessage:
        uid = self.uids()
        self.shelf[name, uid] = letter.octets
        header = letter.octets.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
        state = MessageState(frozenset(letter.flags), 1)
        return FetchedMessage(uid, state, letter.at, len(letter.octets), letter.octets, header)

    def take(self, letter: Letter, name: str) -> None:
        synced.vanish(self.mirror, self.handle(name), [self.placed.pop((letter.number, name))])

    def flag(self, letter: Letter, name: str, *flags: str) -> None:
        uid = self.placed[letter.number, name]
        synced.change(self.mirror, self.handle(name), {uid: MessageState(frozenset(flags), 2)})

    def settle(self) -> None:
        for mailbox in self.mirror.mailboxes():
            highest = max(self.mirror.states(mailbox.id), default=0)
            self.mirror.looked(mailbox.id, max(highest + 1, mailbox.uidnext), None)
        self.mirror.settle()

    @property
    def mirror(self) -> Any:
        return self.store.account(ACCOUNT)

    def handle(self, name: str) -> str:
        return str(next(mailbox.id for mailbox in self.mirror.mailboxes() if mailbox.name == name))

    def mailbox_ids(self) -> dict[str, str]:
        with self.store.snapshot(ACCOUNT) as snapshot:
            return {mailbox.name: mailbox.id for mailbox in snapshot.mailboxes()}

    def thread_ids(self) -> dict[int, str]:
        """Thread ids by the number of the letter."""
        with self.store.snapshot(ACCOUNT) as snapshot:
            found = snapshot.emails([letter.id for letter in self.mail])
        return {letter.number: found[letter.id].thread_id for letter in self.mail if letter.id in found}

    def client(self, scope: str) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(app=self.app),
            base_url=BASE_URL,
            headers={"Authorization": f"Bearer {self.tokens[scope]}"},
        )

    def fetch(self, place: Place, write: Callable[[bytes], None]) -> bool:
        """What a mail server would give."""
        found = self.shelf.get((place.mailbox, place.uid))
        if found is not None:
            write(found)
        return found is not None


@contextmanager
def world(folder: Path) -> Iterator[World]:
    """The world, mirrored and served over ASGI with one token for each scope."""
    numbers = itertools.count(1)
    random_octets = lambda length: next(numbers).to_bytes(length)  # noqa: E731 - one line, one use
    clock = lambda: NOW  # noqa: E731 - one line, one use
    watch = StateWatch()
    empty_access(folder / "store")
    for account in (ACCOUNT, OTHER_ACCOUNT):
        empty_index(folder / "store", account)
    store = Store(folder / "store", clock, random_octets=random_octets, announce=watch.announce)
    cache = BlobCache(folder / "blobs", 1024 * 1024)
    log = structlog.wrap_logger(CapturingLogger(), processors=[lambda _logger, _name, event: event])
    uids = itertools.count(1)
    try:
        with Access(folder / "store", clock, random_octets) as access:
            tokens = {name: access.create_token("clerk", scope=scope).text for name, scope in SCOPES.items()}
            shelf: dict[tuple[str, int], bytes] = {}
            made = World(store, access, tokens, letters(), watch, shelf, lambda: next(uids))
            accounts = (ServedAccount(ACCOUNT, "The shop"), ServedAccount(OTHER_ACCOUNT, "Old mail"))
            made.app = make_app(
                store,
                access,
                accounts,
                blobs=BlobReader({ACCOUNT: made, OTHER_ACCOUNT: made}, cache, 8 * 1024 * 1024),
                watch=watch,
                log=log,
                random_octets=random_octets,
            )
            for account in (ACCOUNT, OTHER_ACCOUNT):
                mirror = store.account(account)
                mirror.put_mailboxes(ListedMailbox(name, "/", frozenset(), subscribed=True) for name in MAILBOXES)
                for number, mailbox in enumerate(mirror.mailboxes()):
                    mirror.restart(mailbox.id, 1000 + number)
            for letter in made.mail:
                made.put(letter)
            made.settle()
            yield made
    finally:
        cache.close()
        store.close()

"""A JMAP server over a small mailbox, in this process, with everything that it is made of."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import structlog
from structlog.testing import CapturingLogger

from agent_reader.access import Access
from agent_reader.door.limits import DEFAULT_LIMITS, Limits
from agent_reader.imap.values import FetchedMessage, ListedMailbox, MessageState, Place
from agent_reader.jmap.capabilities import CORE, MAIL
from agent_reader.jmap.http import make_app
from agent_reader.jmap.methods import METHODS, Method
from agent_reader.jmap.session import ServedAccount
from agent_reader.query import BlobCache, BlobReader
from agent_reader.state_watch import StateWatch
from agent_reader.store.store import Store
from tests.agent_reader import synced
from tests.agent_reader.empty import empty_access, empty_index

if TYPE_CHECKING:
    from fastapi import FastAPI

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
ACCOUNT = "shop"
OTHER_ACCOUNT = "archive"
BASE_URL = "http://localhost:8620"


@dataclass
class Clock:
    """A clock that stands still until it is told to go on."""

    now: datetime = NOW

    def __call__(self) -> datetime:
        return self.now

    def forward(self, by: timedelta) -> None:
        self.now += by


def octets(number: int, subject: str, text: str, **headers: str) -> bytes:
    """A plain message."""
    fields = {
        "From": f"Person {number} <person{number}@example.org>",
        "To": "shop@example.com",
        "Subject": subject,
        "Message-ID": f"<{number}@example.org>",
        "Content-Type": "text/plain; charset=utf-8",
    } | {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{head}\r\n{text}\r\n".encode()


MESSAGES = (
    octets(1, "An order", "I would like a teapot, please."),
    octets(2, "Re: An order", "And two cups.", In_Reply_To="<1@example.org>", References="<1@example.org>"),
    octets(3, "Your receipt", "You paid 12 EUR. Grüße aus Köln."),
)


def fetched(uid: int, content: bytes, received_at: datetime, *flags: str) -> FetchedMessage:
    """A message as sync hands it over."""
    return FetchedMessage(
        uid=uid,
        state=MessageState(frozenset(flags), uid),
        internaldate=received_at,
        size=len(content),
        octets=content,
        header=content.partition(b"\r\n\r\n")[0] + b"\r\n\r\n",
    )


def fill(store: Store, account: str, messages: tuple[bytes, ...], *, clock: Clock) -> None:
    """Put messages into INBOX, a minute apart, the last one unread; another mailbox stays empty."""
    mirror = store.account(account)
    mirror.put_mailboxes(
        [
            ListedMailbox("INBOX", "/", frozenset(), subscribed=True),
            ListedMailbox("Processed", "/", frozenset(), subscribed=True),
        ]
    )
    for mailbox in mirror.mailboxes():
        mirror.restart(mailbox.id, 7)
    inbox = next(mailbox for mailbox in mirror.mailboxes() if mailbox.name == "INBOX")
    start = clock() - timedelta(hours=1)
    synced.add(
        mirror,
        inbox.id,
        [
            fetched(uid, content, start + timedelta(minutes=uid), *(("\\Seen",) if uid < len(messages) else ()))
            for uid, content in enumerate(messages, 1)
        ],
    )
    for mailbox in mirror.mailboxes():
        mirror.looked(mailbox.id, len(messages) + 1, None)
    mirror.settle()


@dataclass
class Shelf:
    """The octets of an account as a mail server would give them; `fetched` names the UIDs that were asked for.

    `failure` is raised instead of an answer.
    """

    octets: dict[int, bytes]
    fetched: list[int] = field(default_factory=list)
    failure: Exception | None = None

    def fetch(self, place: Place, write: Callable[[bytes], None]) -> bool:
        self.fetched.append(place.uid)
        if self.failure is not None:
            raise self.failure
        found = self.octets.get(place.uid)
        if found is not None:
            write(found)
        return found is not None


@dataclass
class House:
    """The server's parts, and a client of one agent."""

    app: FastAPI
    access: Access
    store: Store
    clock: Clock
    token: str
    log: CapturingLogger
    structured: Any
    shelf: Shelf
    watch: StateWatch

    def client(self, token: str | None = None, **headers: str) -> httpx.AsyncClient:
        """A client that speaks to the app without a network."""
        authorization = {"Authorization": f"Bearer {token or self.token}"} if token != "" else {}
        transport = httpx.ASGITransport(app=self.app)
        return httpx.AsyncClient(transport=transport, base_url=BASE_URL, headers=authorization | headers)

    async def post(self, body: Any, **headers: str) -> httpx.Response:
        """Post a body as it is, or as JSON."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self.client() as client:
            return await client.post(
                "/jmap/api", content=content, headers={"Content-Type": "application/json"} | headers
            )

    async def call(self, *calls: tuple[str, Mapping[str, Any]], using: tuple[str, ...] = (CORE, MAIL)) -> list[Any]:
        """The responses to calls whose ids are 0, 1, 2, ..."""
        method_calls = [[name, arguments, str(number)] for number, (name, arguments) in enumerate(calls)]
        response = await self.post({"using": list(using), "methodCalls": method_calls})
        assert 200 == response.status_code, response.text
        responses: list[Any] = response.json()["methodResponses"]
        return responses

    async def one(self, name: str, **arguments: Any) -> tuple[str, Any]:
        """The response to one call in the account."""
        ((answered, body, _),) = await self.call((name, {"accountId": ACCOUNT} | arguments))
        return answered, body


@contextmanager
def house(
    folder: Path,
    messages: tuple[bytes, ...] = MESSAGES,
    *,
    limits: Limits = DEFAULT_LIMITS,
    methods: Mapping[str, Method] = METHODS,
    public_url: str | None = None,
    allow_origins: Collection[str] = (),
    snapshots: Any = None,
    cache_octets: int = 1024 * 1024,
    largest_octets: int = 8 * 1024 * 1024,
) -> Iterator[House]:
    """A server over two accounts: `shop` with messages, `archive` with the first of them."""
    clock = Clock()
    numbers = itertools.count(1)
    # The store and the tokens want octets that differ, no more.
    random_octets = lambda length: next(numbers).to_bytes(length)  # noqa: E731 - one line, one use
    watch = StateWatch()
    store = Store(folder / "store", clock, random_octets=random_octets, announce=watch.announce)
    shelves = {ACCOUNT: Shelf(dict(enumerate(messages, 1))), OTHER_ACCOUNT: Shelf(dict(enumerate(messages[:1], 1)))}
    cache = BlobCache(folder / "blobs", cache_octets)
    log = CapturingLogger()
    structured = structlog.wrap_logger(log, processors=[_as_keywords])
    for account in (ACCOUNT, OTHER_ACCOUNT):
        empty_index(folder / "store", account)
    empty_access(folder / "store")
    try:
        fill(store, ACCOUNT, messages, clock=clock)
        fill(store, OTHER_ACCOUNT, messages[:1], clock=clock)
        with Access(folder / "store", clock, random_octets) as access:
            token = access.create_token("clerk").text
            accounts = (ServedAccount(ACCOUNT, "The shop"), ServedAccount(OTHER_ACCOUNT, "Old mail"))
            app = make_app(
                snapshots or store,
                access,
                accounts,
                blobs=BlobReader(shelves, cache, largest_octets),
                watch=watch,
                log=structured,
                random_octets=random_octets,
                public_url=public_url,
                allow_origins=allow_origins,
                methods=methods,
                limits=limits,
            )
            yield House(app, access, store, clock, token, log, structured, shelves[ACCOUNT], watch)
    finally:
        cache.close()
        store.close()


def _as_keywords(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    return event

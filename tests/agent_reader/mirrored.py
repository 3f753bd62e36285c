"""Messages made for the store's tests, and a store with mailboxes that are filled in a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw

from agent_reader.query import QueryResult, email_query, mailbox_get, parse_email_query
from agent_reader.store import AccountMirror, ChangeList, DataType, Store
from agent_reader.sync.mirror import Examined, FetchedMessage, ListedMailbox, MessageState
from shared.identity import email_id, message_digest
from shared.message import JSON
from tests.agent_reader import synced
from tests.agent_reader.email_get import email_get
from tests.agent_reader.empty import empty_index

ACCOUNT = "main"
START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def letter(
    body: str = "Hello",
    *,
    subject: str = "A letter",
    sender: str = "Ann Sender <ann@example.org>",
    to: str = "bob@example.org",
    headers: Mapping[str, str] | None = None,
    content_type: str = "text/plain; charset=utf-8",
) -> bytes:
    """A message with 8-bit text in header and body."""
    fields = {"From": sender, "To": to, "Subject": subject, **(headers or {}), "MIME-Version": "1.0"}
    lines = [f"{name}: {value}" for name, value in fields.items() if value]
    lines += [f"Content-Type: {content_type}", "Content-Transfer-Encoding: 8bit", "", body, ""]
    return "\r\n".join(lines).encode()


def with_attachment(body: str, *, subject: str = "A letter", file: str = "a.pdf") -> bytes:
    text = (
        f"--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n{body}\r\n"
        f"--b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename={file}\r\n"
        "Content-Transfer-Encoding: base64\r\n\r\nJVBERg==\r\n--b--"
    )
    return letter(text, subject=subject, content_type="multipart/mixed; boundary=b")


def id_of(octets: bytes) -> str:
    return email_id(message_digest(octets))


def fetched(
    uid: int, octets: bytes, *, flags: Sequence[str] = (), at: datetime | None = None, modseq: int | None = 1
) -> FetchedMessage:
    return FetchedMessage(
        uid=uid,
        state=MessageState(frozenset(flags), modseq),
        internaldate=at or START + timedelta(minutes=uid),
        size=len(octets),
        octets=octets,
        header=octets.partition(b"\r\n\r\n")[0],
    )


def listed(name: str, *attributes: str, delimiter: str | None = "/") -> ListedMailbox:
    return ListedMailbox(name, delimiter, frozenset(attributes), subscribed=True)


def expect(mirror: AccountMirror, mailbox_id: str, exists: int) -> None:
    examined = Examined(1, 0, exists, highestmodseq=None, mailbox_id=None)
    mirror.caught_up(mailbox_id, {}, (), examined, whole=False)


@dataclass
class Moment:
    """A clock that stands until it is moved."""

    now: datetime = START

    def __call__(self) -> datetime:
        return self.now


@dataclass
class Mirrored:
    """A store with one account; mailboxes go by their IMAP names here."""

    folder: Path
    clock: Moment = field(default_factory=Moment)
    store: Store = field(init=False)

    def __post_init__(self) -> None:
        empty_index(self.folder, ACCOUNT)
        self.store = Store(self.folder, self.clock)

    @property
    def mirror(self) -> AccountMirror:
        return self.store.account(ACCOUNT)

    def reopen(self) -> None:
        self.store.close()
        self.store = Store(self.folder, self.clock)

    def put_listing(self, *mailboxes: ListedMailbox) -> None:
        self.mirror.put_mailboxes(mailboxes)

    def begin(self, *names: str) -> None:
        """Plain mailboxes, each under a UIDVALIDITY of its own."""
        self.put_listing(*map(listed, names))
        for number, name in enumerate(names):
            self.mirror.restart(self.handle(name), 1000 + number)

    def handle(self, name: str) -> str:
        return next(mailbox.id for mailbox in self.mirror.mailboxes() if mailbox.name == name)

    def add(self, name: str, *messages: FetchedMessage) -> None:
        synced.add(self.mirror, self.handle(name), messages)

    def flag(self, name: str, uid: int, *flags: str) -> None:
        synced.change(self.mirror, self.handle(name), {uid: MessageState(frozenset(flags), 2)})

    def vanish(self, name: str, *uids: int) -> None:
        synced.vanish(self.mirror, self.handle(name), uids)

    def expect(self, name: str, exists: int) -> None:
        """The server counts so many messages in a mailbox; some may be missing here."""
        expect(self.mirror, self.handle(name), exists)

    def end_round(self) -> None:
        for mailbox in self.mirror.mailboxes():
            if mailbox.selectable:
                highest = max(self.mirror.states(mailbox.id), default=0)
                self.mirror.looked(mailbox.id, max(highest + 1, mailbox.uidnext), None)
        self.mirror.settle()

    # What JMAP shows

    def state(self) -> str:
        with self.store.snapshot(ACCOUNT) as snapshot:
            return snapshot.state

    def changes(self, data_type: DataType, state: str, limit: int = 500) -> ChangeList:
        with self.store.snapshot(ACCOUNT) as snapshot:
            return snapshot.changes(data_type, state, limit)

    def mailbox(self, name: str) -> dict[str, JSON]:
        with self.store.snapshot(ACCOUNT) as snapshot:
            return next(each for each in mailbox_get(snapshot).list if each["name"] == name)

    def mailbox_id(self, name: str) -> str:
        return str(self.mailbox(name)["id"])

    def email(self, email_id: str, *properties: str) -> dict[str, JSON]:
        with self.store.snapshot(ACCOUNT) as snapshot:
            return email_get(snapshot, [email_id], properties=properties or None).list[0]

    def mailbox_names(self, email_id: str) -> set[str]:
        with self.store.snapshot(ACCOUNT) as snapshot:
            names = {mailbox.id: mailbox.name for mailbox in snapshot.mailboxes()}
            return {names[each] for each in snapshot.emails([email_id])[email_id].mailbox_ids}

    def keywords(self, email_id: str) -> set[str]:
        with self.store.snapshot(ACCOUNT) as snapshot:
            return set(snapshot.emails([email_id])[email_id].keywords)

    def query(self, **arguments: JSON) -> QueryResult:
        with self.store.snapshot(ACCOUNT) as snapshot:
            return email_query(snapshot, parse_email_query(arguments))

    def found(self, **condition: JSON) -> set[str]:
        return set(self.query(filter=condition).ids)

    def changes_since(self, state: str) -> dict[tuple[str, str], list[str]]:
        """The kinds of change of each (type, id) since a state, in order."""
        with self.store.snapshot(ACCOUNT) as snapshot:
            rows = snapshot.connection.execute(
                "SELECT type, id, kind FROM changes WHERE state > ? ORDER BY state", (int(state.split("-")[1]),)
            )
            found: dict[tuple[str, str], list[str]] = {}
            for data_type, object_id, kind in rows:
                found.setdefault((data_type, object_id), []).append(kind)
            return found


def blank_out(file: Path, table: str) -> None:
    """Make the first page of a table in a database that nobody has open a page of zeros, as a broken disk may."""
    with closing(apsw.Connection(str(file))) as connection:
        connection.pragma("wal_checkpoint", "truncate")
        octets = int(connection.pragma("page_size"))
        page = int(connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).get)
    with file.open("r+b") as opened:
        opened.seek((page - 1) * octets)
        opened.write(bytes(octets))


@contextmanager
def mirrored(folder: Path) -> Iterator[Mirrored]:
    account = Mirrored(folder)
    try:
        yield account
    finally:
        account.store.close()

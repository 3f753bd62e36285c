"""The reader as a process on four real servers: the mirror is what the server has, and nothing on it was touched."""

from __future__ import annotations

import contextlib
import hashlib
import signal
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

import httpx
import pytest

from agent_reader.jmap.methods import METHODS, Read
from agent_reader.store.emails import keywords_of
from shared.identity import email_id
from tests.fakes.reader_process import DEADLINE, MailServer, ReaderFolder, ask
from tests.servers.courier import Courier
from tests.servers.cyrus import Cyrus
from tests.servers.dovecot import Dovecot, quoted
from tests.servers.pymap import Pymap

if TYPE_CHECKING:
    import imaplib
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tests.servers.snapshot import Snapshot

ACCOUNT = "shop"
ATTACHMENT = b"These octets are fetched on demand.\r\n"


class Server(MailServer, Protocol):
    """What the four have in common."""

    def named(self, login: str, mailbox: str) -> str: ...
    def connect(self, login: str = "owner") -> imaplib.IMAP4: ...
    def deliver(self, mailbox: str, octets: bytes, flags: tuple[str, ...] = ()) -> int: ...
    def snapshot(self, login: str = "owner") -> Snapshot: ...


@pytest.fixture(params=[Dovecot, Cyrus, Courier, Pymap])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with request.param() as running:
        yield running


def mail(subject: str, text: str = "A teapot, please.", more: str = "") -> bytes:
    head = f"From: Ann <ann@example.org>\r\nSubject: {subject}\r\nMessage-ID: <{subject.replace(' ', '.')}@example.org>"
    return f"{head}\r\n{more}\r\n{text}\r\n".encode()


def with_attachment() -> bytes:
    part = "--b\r\nContent-Type: text/plain\r\n\r\nSee what is attached.\r\n"
    file = "--b\r\nContent-Type: application/octet-stream\r\nContent-Disposition: attachment; filename=a.bin\r\n\r\n"
    kind = "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n"
    return mail("with attachment", f"{part}{file}{ATTACHMENT.decode()}\r\n--b--", kind)


def expected(server: Server) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """Email id → mailboxes and keywords, from what the reader's login sees over IMAP."""
    shown: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
    for name, mailbox in server.snapshot("reader").mailboxes.items():
        for message in mailbox.messages.values():
            email = email_id(bytes.fromhex(message.sha256))
            names, keywords = shown.get(email, (frozenset[str](), frozenset[str]()))
            shown[email] = (names | {leaf(name)}, keywords | keywords_of(message.flags | message.keywords))
    return shown


def leaf(name: str) -> str:
    return name.replace("/", ".").rpartition(".")[2]


class Agent:
    """An agent of the reader, by JMAP."""

    def __init__(self, address: str, token: str) -> None:
        self._address, self._token = address, token

    def ask(self, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
        whole = [[name, {"accountId": ACCOUNT} | arguments, str(n)] for n, (name, arguments) in enumerate(calls)]
        return [answer for _, answer, _ in ask(self._address, self._token, *whole)]

    def view(self) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
        names = {each["id"]: each["name"] for each in self.ask(("Mailbox/get", {"ids": None}))[0]["list"]}
        reference = {"resultOf": "0", "name": "Email/query", "path": "/ids"}
        properties = ["id", "mailboxIds", "keywords"]
        _, got = self.ask(("Email/query", {"limit": 256}), ("Email/get", {"#ids": reference, "properties": properties}))
        return {
            each["id"]: (frozenset(leaf(names[box]) for box in each["mailboxIds"]), frozenset(each["keywords"]))
            for each in got["list"]
        }

    def download(self, blob_id: str, **headers: str) -> httpx.Response:
        url = f"{self._address}/jmap/download/{ACCOUNT}/{blob_id}/a.bin?type=application/octet-stream"
        with httpx.Client(timeout=DEADLINE) as client:
            answer = client.get(url, headers={"Authorization": f"Bearer {self._token}"} | headers)
            client.head(url, headers={"Authorization": f"Bearer {self._token}"}).raise_for_status()
        return answer

    def read_by_every_method(self, states: Mapping[str, str]) -> set[str]:
        """Call each reading method in every way that could tempt a reader to mark a message; gives their names."""
        (found,) = self.ask(("Email/query", {"filter": {"text": "teapot"}, "calculateTotal": True}))
        ids = found["ids"]
        whole = {"ids": ids, "fetchAllBodyValues": True, "properties": ["threadId", "blobId", "bodyValues", "headers"]}
        (got,) = self.ask(("Email/get", whole))
        blobs = [each["blobId"] for each in got["list"]]
        calls: dict[str, dict[str, Any]] = {
            "Mailbox/get": {"ids": None},
            "Mailbox/changes": {"sinceState": states["Mailbox/get"]},
            "Mailbox/query": {},
            "Mailbox/queryChanges": {"sinceQueryState": self.ask(("Mailbox/query", {}))[0]["queryState"]},
            "Thread/get": {"ids": [each["threadId"] for each in got["list"]]},
            "Thread/changes": {"sinceState": states["Thread/get"]},
            "Email/get": whole,
            "Email/changes": {"sinceState": states["Email/get"]},
            "Email/query": {"filter": {"body": "teapot"}},
            "Email/queryChanges": {"filter": {"text": "teapot"}, "sinceQueryState": found["queryState"]},
            "Email/parse": {"blobIds": blobs},
            "SearchSnippet/get": {"filter": {"text": "teapot"}, "emailIds": ids},
        }
        answers = self.ask(*calls.items())
        assert [] == [answer for answer in answers if "type" in answer and "description" in answer]
        for blob in blobs:
            assert 200 == self.download(blob).status_code
        return set(calls)

    def states(self) -> dict[str, str]:
        names = ("Mailbox/get", "Thread/get", "Email/get")
        return dict(
            zip(names, (each["state"] for each in self.ask(*((name, {"ids": []}) for name in names))), strict=True)
        )

    def changed(self, since: str) -> tuple[set[str], set[str], set[str]]:
        (answer,) = self.ask(("Email/changes", {"sinceState": since}))
        assert not answer["hasMoreChanges"]
        return set(answer["created"]), set(answer["updated"]), set(answer["destroyed"])


def until_equal(wanted: object, look: Callable[[], object]) -> None:
    deadline, pause = time.monotonic() + DEADLINE, threading.Event()
    while (found := look()) != wanted:
        assert time.monotonic() < deadline, (wanted, found)
        pause.wait(0.05)


def said_without_news(server: Dovecot | Cyrus | Courier) -> list[tuple[bytes, bytes]]:
    """Each verb that the reader says, and what follows, while one whole round at least finds nothing new."""
    before = set(server.commands("reader"))

    def said() -> set[bytes]:
        return set(server.commands("reader")) - before

    def is_whole_list(line: bytes) -> bool:
        return b" LIST " in line and (b' "*"' in line or line.endswith(b" *"))

    until_equal(True, lambda: sum(map(is_whole_list, said())) >= 2)
    words = [line.split(b" ", 2) for line in said() if line != b"DONE"]
    return [(verb, b" ".join(rest)) for _, verb, *rest in words]


def check_that_a_look_without_news_opens_nothing(server: Server) -> None:
    if isinstance(server, Pymap):  # in this process: it keeps no record
        return
    assert isinstance(server, Dovecot | Cyrus | Courier)
    said = said_without_news(server)
    asking = {b"LIST", b"LSUB", b"NOOP", b"IDLE", b"EXAMINE", b"UNSELECT", b"STATUS", b"UID"}
    assert asking >= {verb for verb, _ in said}
    if isinstance(server, Courier):  # its LIST tells nothing: as little as there is is asked for
        assert {b"FETCH 1:* FLAGS"} == {rest for verb, rest in said if verb == b"UID"}
    else:  # INBOX is opened to be listened to, and stays open
        assert {b"INBOX"} >= {rest.split(b'"')[1] for verb, rest in said if verb == b"EXAMINE"}
        assert not any(verb == b"UID" for verb, _ in said)


def seen_by_both(server: Server) -> tuple[Snapshot, Snapshot]:
    return server.snapshot("owner"), server.snapshot("reader")


@contextlib.contextmanager
def opened(server: Server, mailbox: str) -> Iterator[imaplib.IMAP4]:
    with server.connect() as owner:
        assert owner.select(quoted(server.named("owner", mailbox)))[0] == "OK"
        yield owner


def move(server: Server, uid: int, source: str, target: str) -> None:
    """As mail programs do it: MOVE where the server has it, and COPY with an expunge where not."""
    name = quoted(server.named("owner", target))
    with opened(server, source) as owner:
        # Not by its capabilities: before the log-in, when imaplib asked, Dovecot does not tell.
        if owner.uid("MOVE", str(uid), name)[0] == "OK":
            return
        assert owner.uid("COPY", str(uid), name)[0] == "OK"
        expunge(owner, uid)


def expunge(owner: imaplib.IMAP4, uid: int) -> None:
    assert owner.uid("STORE", str(uid), "+FLAGS", "(\\Deleted)")[0] == "OK"
    assert owner.expunge()[0] == "OK"


def id_of(octets: bytes) -> str:
    return email_id(hashlib.sha256(octets).digest())


@pytest.mark.statement("44")
def test_the_mirror_is_what_the_server_has_and_nothing_was_touched(server: Server, tmp_path: Path) -> None:
    uids = {name: server.deliver("Incoming", mail(name)) for name in ("stays", "moves", "goes", "is answered")}
    server.deliver("INBOX", with_attachment(), ("\\Flagged",))
    server.deliver("Archive", mail("stays"), ("\\Seen", "$Forwarded"))
    before = seen_by_both(server)
    folder = ReaderFolder(tmp_path, server)
    token = folder.token()
    with folder.serve() as reader:
        agent = Agent(reader.address(), token)
        # Before the first look is over, ids are not given out.
        reader.await_event("sync:round", whole=True)
        until_equal(expected(server), agent.view)
        first = agent.states()
        named = agent.read_by_every_method(first)
        assert {name for name, method in METHODS.items() if isinstance(method, Read)} == named
        (got,) = agent.ask(("Email/get", {"ids": [id_of(with_attachment())], "properties": ["attachments"]}))
        (attachment,) = got["list"][0]["attachments"]
        assert ATTACHMENT == agent.download(attachment["blobId"]).content
        check_that_a_look_without_news_opens_nothing(server)
        assert before == seen_by_both(server)

        server.deliver("INBOX", mail("is new"))
        move(server, uids["moves"], "Incoming", "Processed")
        with opened(server, "Incoming") as owner:
            owner.uid("STORE", str(uids["is answered"]), "+FLAGS", "(\\Answered)")
            expunge(owner, uids["goes"])
        after = seen_by_both(server)
        until_equal(expected(server), agent.view)
        created, updated, destroyed = agent.changed(first["Email/get"])
        assert {id_of(mail("is new"))} == created
        assert {id_of(mail("moves")), id_of(mail("is answered"))} == updated
        assert {id_of(mail("goes"))} == destroyed
        agent.read_by_every_method(first)
        assert after == seen_by_both(server)
        assert 0 == reader.end(by_signal=signal.SIGTERM)
    # Whatever is told at the end of a connection changes nothing either.
    assert after == seen_by_both(server)

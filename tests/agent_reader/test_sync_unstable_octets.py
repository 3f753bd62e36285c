"""A server that makes each message anew for each fetch: names by the header stay, names by octets cost no churn."""

from __future__ import annotations

import contextlib
import itertools
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
import structlog

from agent_reader.identity import Identity, canonical_digest
from agent_reader.imap.fetcher import Fetcher
from agent_reader.imap.precedence import Precedence
from agent_reader.imap.session import ReadOnlySession
from agent_reader.query import BlobCache, BlobReader, BlobUnavailable, Unavailable, find_blob
from agent_reader.store import Store
from agent_reader.store.reader import LONG_BACKLOG
from agent_reader.sync.run import Round, Sync
from shared.identity import blob_id, is_unprovable_email_id, is_unstable_email_id, message_digest
from shared.imap_login import ImapFailure
from tests.fakes.accounts import plain_account
from tests.fakes.imap_server import ScriptedImapServer
from tests.fakes.imap_world import CONDSTORE, ImapWorld

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_reader.query.blob_cache import OpenBlob

PICTURE = b"\x89PNG and so on"


def mail(number: int, **fields: str) -> bytes:
    lines = {
        "Received": f"from a by b id {number}; Mon, 30 Nov 2026 10:00:00 +0000",
        "Message-ID": f"<{number}@x>",
        "Subject": f"of some length, {number}",
        "From": "Ann <ann@example.org>",
    } | fields
    header = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value)
    parts = (
        f"--BOUNDARY\r\nContent-Type: text/plain\r\n\r\nbody {number}\r\n--BOUNDARY\r\nContent-Type: image/png\r\n"
        "Content-Transfer-Encoding: base64\r\n\r\niVBORyBhbmQgc28gb24=\r\n--BOUNDARY--\r\n"
    )
    return f"{header}Content-Type: multipart/mixed; boundary=BOUNDARY\r\n\r\n{parts}".encode()


@dataclass
class Rewriting:
    """Each time another boundary, a field of the session, and long lines folded elsewhere or not at all."""

    times: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def __call__(self, octets: bytes) -> bytes:
        time = next(self.times)
        folded = octets.replace(b"length, ", b"length,\r\n " if time % 2 else b"length, ")
        return b"X-Session: %d\r\n" % time + folded.replace(b"BOUNDARY", b"b%d" % time)


@dataclass
class House:
    """One account on such a server; `rounds` are those of a process that starts, looks and ends."""

    folder: Path
    identity: Identity
    world: ImapWorld = field(default_factory=lambda: ImapWorld(Rewriting()))
    fetched: int = 0
    breaks_at: int = 0

    def answer(self, command: bytes) -> tuple[list[bytes], bytes] | None:
        if b"BODY.PEEK[])" in command:
            self.fetched += 1
            if self.fetched == self.breaks_at:
                return None
        return self.world.answer(command)

    @contextmanager
    def store(self) -> Iterator[Store]:
        with closing(
            Store(self.folder / "store", lambda: datetime.now(UTC), identities={"shop": self.identity})
        ) as store:
            yield store

    def round(self) -> Round:
        with (
            ScriptedImapServer(self.answer, CONDSTORE) as server,
            self.store() as store,
            closing(ReadOnlySession.open(plain_account(server.port, self.folder))) as session,
        ):
            return Sync(store.account("shop"), None, structlog.get_logger()).round(session)

    def ids(self) -> dict[str, str]:
        """Of what is shown: ids by subject."""
        with self.store() as store, store.snapshot("shop") as snapshot:
            shown = [str(row[0]) for row in snapshot.connection.execute("SELECT id FROM emails WHERE visible")]
            return {str(each.summary["subject"]): email_id for email_id, each in snapshot.emails(shown).items()}

    def threads(self) -> set[str]:
        with self.store() as store, store.snapshot("shop") as snapshot:
            return {str(row[0]) for row in snapshot.connection.execute("SELECT id FROM threads")}

    def noted(self) -> int:
        """How many changes of Emails are on record."""
        with self.store() as store, store.snapshot("shop") as snapshot:
            return int(snapshot.connection.execute("SELECT count(*) FROM changes WHERE type = 'Email'").get)

    def download(self, blob: str) -> bytes:
        with self.store() as store, ScriptedImapServer(self.answer, CONDSTORE) as server:
            fetcher = Fetcher(plain_account(server.port, self.folder), Precedence())
            with (
                closing(fetcher),
                closing(BlobCache(self.folder / "blobs", 100_000)) as cache,
                store.snapshot("shop") as snapshot,
                self._opened(BlobReader({"shop": fetcher}, cache, 100_000), snapshot, blob) as opened,
            ):
                return opened.whole()

    @staticmethod
    def _opened(blobs: BlobReader, snapshot: object, blob: str) -> OpenBlob:
        found = find_blob(snapshot, blob)  # type: ignore[arg-type]  # a Snapshot, named by the store alone
        assert found is not None
        return blobs.open("shop", found)


def filled(folder: Path, identity: Identity) -> House:
    house = House(folder, identity)
    house.world.create("Archive")
    for number in range(12):
        house.world.deliver(("INBOX", "Archive")[number % 3 == 0], mail(number), frozenset())
    return house


def test_named_by_the_header_no_id_changes_whatever_happens(tmp_path: Path) -> None:
    house = filled(tmp_path, Identity.HEADERS)
    # Broken off between the two mailboxes, and gone on with by a new process.
    house.breaks_at = 2
    with pytest.raises(ImapFailure):
        house.round()
    held = house.ids()
    assert 0 < len(held) < 12
    assert house.round().whole
    ids = house.ids()
    assert 12 == len(ids)
    assert held.items() <= ids.items()
    assert all(map(is_unstable_email_id, ids.values()))
    fetched, noted = house.fetched, house.noted()
    assert (0, fetched) == (house.round().taken_in, house.fetched)
    # UIDs that mean others now: everything is fetched again, as other octets, and nothing is new.
    house.world.reset("INBOX")
    assert 8 == house.round().taken_in
    assert (ids, noted) == (house.ids(), house.noted())
    # A move is one change, and a rename none.
    house.world.move("Archive", 1, "INBOX")
    house.world.rename("Archive", "Old")
    assert house.round().whole
    assert (ids, noted + 1) == (house.ids(), house.noted())


def test_named_by_octets_such_mail_is_read_and_not_fetched_again_and_again(tmp_path: Path) -> None:
    house = filled(tmp_path, Identity.OCTETS)
    assert house.round().whole
    ids, fetched, noted = house.ids(), house.fetched, house.noted()
    for _ in range(3):
        assert (0, True) == ((done := house.round()).taken_in, done.whole)
    assert (ids, fetched, noted) == (house.ids(), house.fetched, house.noted())
    # What is fetched for another reason comes in anew, once.
    house.world.reset("INBOX")
    assert house.round().whole
    again = house.ids()
    assert 4 == sum(again[subject] == ids[subject] for subject in ids)
    assert noted + 16 == house.noted()
    assert 0 == house.round().taken_in
    assert (again, noted + 16) == (house.ids(), house.noted())
    # And no octets are given for those that were read.
    with pytest.raises(BlobUnavailable) as unavailable:
        house.download("B" + next(iter(again.values()))[1:])
    assert (Unavailable.ALTERED, False) == (unavailable.value.reason, unavailable.value.retryable)


def test_a_changed_setting_has_everything_read_anew_once_and_keeps_the_threads(tmp_path: Path) -> None:
    house = filled(tmp_path, Identity.OCTETS)
    house.round()
    before, threads = house.ids(), house.threads()
    for identity, letter in ((Identity.HEADERS, "E"), (Identity.OCTETS, "M")):
        house.identity = identity
        house.breaks_at = house.fetched + 2
        with pytest.raises(ImapFailure):
            house.round()
        # Nothing is lost meanwhile, and what is read under its new name is not read again.
        assert before.keys() == house.ids().keys()
        assert 0 < (done := house.round()).taken_in < 12
        assert done.whole
        assert {letter} == {email_id[0] for email_id in house.ids().values()}
        assert (before.keys(), threads) == (house.ids().keys(), house.threads())
        fetched = house.fetched
        assert (0, fetched) == (house.round().taken_in, house.fetched)


def test_what_a_process_beside_the_reader_reads_has_the_same_names(tmp_path: Path) -> None:
    house = filled(tmp_path, Identity.HEADERS)
    with (
        ScriptedImapServer(house.answer, CONDSTORE) as server,
        house.store() as store,
        closing(ReadOnlySession.open(plain_account(server.port, tmp_path))) as session,
    ):
        mirror = store.account("shop")
        assert mirror.await_backlog(LONG_BACKLOG)
        with contextlib.closing(mirror):
            assert Sync(mirror, None, structlog.get_logger()).round(session).whole
    beside = house.ids()
    house.folder = tmp_path / "alone"
    house.folder.mkdir()
    house.round()
    assert (12, beside) == (len(beside), house.ids())


def test_messages_alike_in_all_that_names_them_are_one_and_those_that_nothing_names_are_not(tmp_path: Path) -> None:
    house = House(tmp_path, Identity.HEADERS)
    twins = [mail(1), mail(1).replace(b"body", b"BODY")]
    # Anybody can copy what a sender writes; the number that the receiving server gives is another each time.
    forged = mail(1, Received="from a by b id 77; Mon, 30 Nov 2026 10:00:00 +0000")
    nameless = [mail(1, Received="", **{"Message-ID": ""})] * 2
    for octets in (*twins, forged, *nameless):
        house.world.deliver("INBOX", octets, frozenset())
    assert house.round().whole
    with house.store() as store, store.snapshot("shop") as snapshot:
        copies = dict(
            snapshot.connection.execute(
                "SELECT e.id, count(*) FROM emails e JOIN copies c ON c.email_key = e.key GROUP BY e.id"
            )
        )
    assert [1, 1, 1, 2] == sorted(copies.values())
    assert 2 == sum(map(is_unprovable_email_id, copies))


def test_what_is_downloaded_is_the_message_as_it_is_given_now_or_nothing(tmp_path: Path) -> None:
    house = filled(tmp_path, Identity.HEADERS)
    house.round()
    email_id = house.ids()["of some length, 1"]
    first, second = house.download("B" + email_id), house.download("B" + email_id)
    assert first != second
    assert canonical_digest(mail(1)) == canonical_digest(first) == canonical_digest(second)
    # A part that is the same each time is proved by its own digest.
    assert PICTURE == house.download(blob_id(message_digest(PICTURE)))
    # Another message at that place is not given for it.
    inbox = house.world.boxes["INBOX"].messages
    uid = next(uid for uid, message in inbox.items() if message.octets == mail(1))
    inbox[uid].octets = mail(99)
    with pytest.raises(BlobUnavailable) as unavailable:
        house.download("B" + email_id)
    assert unavailable.value.reason is Unavailable.ALTERED


# Written out: a field less would name two messages alike, one more would change every id that was given.
@pytest.mark.parametrize(
    "name",
    ["date", "subject", "from", "sender", "reply-to", "to", "cc", "bcc", "in-reply-to", "message-id", "received"],
)
def test_every_canonical_field_names(name: str) -> None:
    plain = b"Message-ID: <1@x>\r\n\r\nbody\r\n"
    with_it = name.encode() + b": a  b\r\n c\r\n" + plain
    assert canonical_digest(plain) != canonical_digest(with_it)
    # As it is written, but for blanks and the case of its name; and where in the header it stands is nothing.
    for alike in (
        name.upper().encode() + b":a b c \r\n" + plain,
        b"X-Other: 1\r\n" + name.encode() + b": a\r\n b\r\n\tc\r\n" + plain.replace(b"body", b"other"),
    ):
        assert canonical_digest(with_it) == canonical_digest(alike)
    assert canonical_digest(with_it) != canonical_digest(with_it.replace(b"a  b", b"ab"))


def test_no_other_field_names_and_the_digest_is_what_it_was() -> None:
    plain = b"Message-ID: <1@x>\r\n\r\nbody\r\n"
    for name in (b"References", b"Content-Type", b"MIME-Version", b"X-Session", b"Return-Path", b"Resent-From"):
        assert canonical_digest(plain) == canonical_digest(name + b": a\r\n" + plain)
    # Ids that were given stay: by hand, the name in lower case, a colon, the value without outer blanks, and CR LF.
    assert canonical_digest(plain) == message_digest(b"message-id:<1@x>\r\n")


def test_without_a_name_of_its_own_there_is_no_digest() -> None:
    assert canonical_digest(b"Subject: a\r\nDate: x\r\nFrom: a@b\r\n\r\nReceived: not this one") is None
    assert canonical_digest(b"") is None

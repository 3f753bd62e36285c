"""What a request may cost: memory that does not grow with what is asked, and an end to working on it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_reader.door.limits import Limits
from agent_reader.jmap.asking import Asking
from agent_reader.jmap.capabilities import AGENT, CORE, MAIL
from agent_reader.jmap.parsing import answer_email_parse
from agent_reader.jmap.queries import answer_snippets
from agent_reader.jmap.reads import answer_email_get
from agent_reader.jmap.sheet import PIECE_OCTETS, Sheet
from agent_reader.query import BlobCache, BlobReader, find_blob, kept_readings
from agent_reader.query.errors import QueryRefused
from agent_reader.query.kept_readings import KeptReading
from agent_reader.query.patience import Patience
from agent_reader.store.reading_room import ReadingRoom
from agent_reader.store.written import Written, WrittenEmails
from shared.identity import blob_id, email_id, message_digest
from shared.message import Message, parse
from tests.agent_reader.on_loopback import await_true, descriptors, on_loopback
from tests.agent_reader.served import ACCOUNT, MESSAGES, Shelf, house, octets

pytestmark = pytest.mark.anyio

_SECONDS = 20.0


@pytest.mark.parametrize(
    ("function", "name", "id_of"),
    [(answer_email_get, "ids", email_id), (answer_email_parse, "blobIds", blob_id)],
)
def test_reading_ends_when_its_time_is_up_and_nothing_is_left_out(
    tmp_path: Path, function: Any, name: str, id_of: Any
) -> None:
    cache = BlobCache(tmp_path / "blobs", 100_000)
    with contextlib.closing(cache), house(tmp_path) as served, served.store.snapshot(ACCOUNT) as snapshot:
        shelf = Shelf(dict(enumerate(MESSAGES, 1)))

        def answered(ids: list[str], until: float) -> bytes:
            moments = itertools.count()
            with Sheet() as sheet:
                asking = Asking(
                    snapshot=snapshot,
                    limits=Limits(),
                    using=frozenset({CORE, MAIL}),
                    sheet=sheet,
                    blobs=BlobReader({ACCOUNT: shelf}, cache, 100_000),
                    patience=Patience(lambda: float(next(moments)), until, until),
                )
                function(asking, {"accountId": ACCOUNT, name: ids})
                return sheet.read(0, sheet.octets)

        ids = [id_of(message_digest(each)) for each in MESSAGES]
        with pytest.raises(QueryRefused) as refused:
            answered(ids, 2.0)
        assert ("requestTooLarge", "timeLimit") == (refused.value.type, refused.value.code)
        # Whoever asks for fewer gets on.
        assert b"teapot" in answered(ids[:1], 2.0)
        assert b"receipt" in answered(ids, 100.0)


async def test_a_call_that_comes_after_the_time_of_its_request_is_to_be_sent_alone(tmp_path: Path) -> None:
    with house(tmp_path, limits=Limits(max_request_seconds=0.0)) as served:
        _, refused = await served.one("Email/get", ids=[])
        assert ("serverUnavailable", "timeLimit") == (refused["type"], refused["code"])


async def test_references_bring_in_ids_and_no_answers(tmp_path: Path) -> None:
    reference = {"resultOf": "0", "name": "Core/echo", "path": "/a"}
    with house(tmp_path, limits=Limits(max_brought_in_octets=1_000)) as served:
        few, many = {"a": ["x"] * 100}, {"a": ["x"] * 300}
        responses = await served.call(("Core/echo", few), ("Core/echo", {"#a": reference}))
        assert few == responses[1][1]
        for path in ("/a", "/a/*", ""):
            responses = await served.call(("Core/echo", many), ("Core/echo", {"#a": reference | {"path": path}}))
            assert "requestTooLarge" == responses[1][1]["type"], path
        # What a path passes by costs nothing but reading.
        beside = {"a": ["x"], "b": ["y"] * 10_000}
        responses = await served.call(("Core/echo", beside), ("Core/echo", {"#a": reference}))
        assert {"a": ["x"]} == responses[1][1]


async def test_what_a_failed_call_had_written_is_taken_back(tmp_path: Path) -> None:
    large = tuple(octets(number, "Large", "y" * 3_000) for number in range(3))
    ids = [email_id(message_digest(each)) for each in large]
    with house(tmp_path, large, limits=Limits(max_answer_octets=9_000)) as served:
        get = {"accountId": ACCOUNT, "properties": ["bodyValues"], "fetchAllBodyValues": True}
        responses = await served.call(
            ("Email/get", get | {"ids": ids[:1]}), ("Email/get", get | {"ids": ids}), ("Email/get", get | {"ids": []})
        )
    assert ["Email/get", "error", "Email/get"] == [name for name, _, _ in responses]
    assert (1, "requestTooLarge", []) == (
        len(responses[0][1]["list"]),
        responses[1][1]["type"],
        responses[2][1]["list"],
    )


def test_an_answer_that_nobody_takes_lies_on_disk_and_holds_its_agents_place(tmp_path: Path) -> None:
    with house(tmp_path, limits=Limits(max_concurrent_requests=1)) as served, on_loopback(served.app) as at:
        before = descriptors()
        text = "z" * 400_000
        calls = [["Core/echo", {"a": text}, str(number)] for number in range(10)]
        body = json.dumps({"using": [CORE], "methodCalls": calls}).encode()
        fields = {"Authorization": f"Bearer {served.token}", "Content-Type": "application/json"}
        with at.connect("/jmap/api", method="POST", **fields, Content_Length=str(len(body))) as client:
            client.socket.sendall(body)
            client.until(b"methodResponses")
            with at.connect("/jmap/api", method="POST", **fields, Content_Length="2") as other:
                other.socket.sendall(b"{}")
                assert b" 429 " in other.until(b"\r\n\r\n")
            received = client.to_the_end()
        answer = json.loads(received.partition(b"\r\n\r\n")[2])
        assert [text] * 10 == [arguments["a"] for _, arguments, _ in answer["methodResponses"]]
        with at.connect("/jmap/api", method="POST", **fields, Content_Length=str(len(body))) as client:
            client.socket.sendall(body)
            client.until(b"methodResponses")
        await_true(lambda: descriptors() == before)


async def test_large_bodies_of_an_agent_come_one_at_a_time(tmp_path: Path) -> None:
    content = json.dumps({"using": [CORE], "methodCalls": [["Core/echo", {"a": "x" * 2_000}, "0"]]}).encode()
    with house(tmp_path, limits=Limits(max_small_body_octets=1_000)) as served:
        responses = await asyncio.gather(*(served.post(content) for _ in range(3)))
        assert [200, 429, 429] == sorted(response.status_code for response in responses)
        assert {"too_many_large_requests"} == {
            response.json()["code"] for response in responses if response.status_code != 200
        }
        assert 200 == (await served.post(content)).status_code


def test_a_sheet_is_in_memory_while_it_is_short_and_then_in_a_file_without_a_name(tmp_path: Path) -> None:
    before = descriptors()
    with Sheet(tmp_path) as sheet:
        sheet.write(b"short")
        assert descriptors() == before
        sheet.write(b"x" * 2_000_000)
        assert descriptors() == before + 1
        assert [] == list(tmp_path.iterdir())
        sheet.cut(6)
        assert (b"shortx", 6) == (b"".join(sheet.pieces()), sheet.octets)
        sheet.write(b"y" * PIECE_OCTETS)
        assert [PIECE_OCTETS, 6] == [len(piece) for piece in sheet.pieces()]
        assert b"xy" == sheet.read(5, 7)
    assert descriptors() == before


class Reader(threading.Thread):
    """Holds a place in a room until it is told to leave."""

    def __init__(self, room: ReadingRoom, octets: int) -> None:
        super().__init__()
        self.is_in, self.may_leave = threading.Event(), threading.Event()
        self._room, self._octets = room, octets
        self.start()

    def run(self) -> None:
        with self._room.place(self._octets):
            self.is_in.set()
            assert self.may_leave.wait(_SECONDS)

    def leave(self) -> None:
        self.may_leave.set()
        self.join(_SECONDS)


def test_no_more_mail_is_read_at_a_time_than_there_is_room_for() -> None:
    room = ReadingRoom()
    small = [Reader(room, 1) for _ in range(8)]
    assert all(each.is_in.wait(_SECONDS) for each in small)
    largest = Reader(room, 10**12)
    for each in small:
        assert not largest.is_in.is_set()
        each.leave()
    assert largest.is_in.wait(_SECONDS)

    class GivenUp(Exception):  # noqa: N818 - names what happened
        pass

    def give_up() -> None:
        raise GivenUp

    with pytest.raises(GivenUp), room.place(1, give_up):
        raise AssertionError
    largest.leave()
    # Whoever waits for a mail server keeps nobody out.
    with room.place(10**12):
        with room.stepped_out(10**12):
            inner = Reader(room, 1)
            assert inner.is_in.wait(_SECONDS)
            inner.leave()
        outer = Reader(room, 1)
        assert not outer.is_in.is_set()
    assert outer.is_in.wait(_SECONDS)
    outer.leave()


class NotedRoom(ReadingRoom):
    """Notes for how many octets places were held."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[int] = []

    @contextlib.contextmanager
    def place(self, octets: int, go_on: Callable[[], None] = lambda: None) -> Iterator[None]:
        self.noted.append(octets)
        with super().place(octets, go_on):
            yield


_EMAIL_IDS = [email_id(message_digest(each)) for each in MESSAGES]
_BLOB_IDS = [blob_id(message_digest(each)) for each in MESSAGES]


@pytest.mark.parametrize(
    ("function", "arguments", "using", "reads"),
    [
        (answer_email_get, {"ids": _EMAIL_IDS, "properties": ["bodyStructure"]}, {CORE, MAIL}, True),
        (answer_email_get, {"ids": _EMAIL_IDS}, {CORE, MAIL}, False),
        (answer_email_get, {"ids": _EMAIL_IDS, "properties": ["subject", "preview"]}, {CORE, MAIL}, False),
        (answer_email_get, {"ids": _EMAIL_IDS, "properties": ["newText"]}, {CORE, MAIL, AGENT}, True),
        (answer_email_get, {"ids": _EMAIL_IDS, "properties": ["subject"]}, {CORE, MAIL, AGENT}, False),
        (answer_email_parse, {"blobIds": _BLOB_IDS}, {CORE, MAIL}, True),
        (answer_snippets, {"emailIds": _EMAIL_IDS, "filter": {"body": "teapot"}}, {CORE, MAIL}, True),
    ],
)
def test_whoever_reads_messages_holds_a_place_for_each(
    tmp_path: Path, function: Any, arguments: Any, using: set[str], reads: bool
) -> None:
    cache = BlobCache(tmp_path / "blobs", 100_000)
    with contextlib.closing(cache), house(tmp_path) as served, served.store.snapshot(ACCOUNT) as snapshot:
        snapshot.room = room = NotedRoom()
        with Sheet() as sheet:
            asking = Asking(
                snapshot=snapshot,
                limits=Limits(),
                using=frozenset(using),
                sheet=sheet,
                blobs=BlobReader({ACCOUNT: Shelf(dict(enumerate(MESSAGES, 1)))}, cache, 100_000),
                patience=Patience(lambda: 0.0, 1.0, 1.0),
            )
            function(asking, {"accountId": ACCOUNT} | arguments)
    assert ([len(each) for each in MESSAGES] if reads else []) == room.noted


class LookingRoom(ReadingRoom):
    """Counts what of messages is in memory whenever somebody waits for room."""

    def __init__(self, *kinds: type) -> None:
        super().__init__()
        self._kinds = kinds
        self.found: list[int] = []

    @contextlib.contextmanager
    def place(self, octets: int, go_on: Callable[[], None] = lambda: None) -> Iterator[None]:
        self.found.append(sum(isinstance(each, self._kinds) for each in gc.get_objects()))
        with super().place(octets, go_on):
            yield


@pytest.mark.parametrize(
    ("function", "arguments", "using"),
    [
        (answer_email_get, {"ids": _EMAIL_IDS, "properties": ["bodyStructure"]}, {CORE, MAIL}),
        (answer_email_get, {"ids": _EMAIL_IDS, "properties": ["bodyValues"]}, {CORE, MAIL, AGENT}),
        (answer_email_parse, {"blobIds": _BLOB_IDS}, {CORE, MAIL}),
        (answer_email_parse, {"blobIds": _BLOB_IDS, "properties": ["newText"]}, {CORE, MAIL, AGENT}),
        (answer_snippets, {"emailIds": _EMAIL_IDS, "filter": {"body": "a"}}, {CORE, MAIL}),
    ],
)
def test_whoever_waits_for_room_for_a_message_holds_none_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: Any, arguments: Any, using: set[str]
) -> None:
    # As of the largest messages: nothing is kept for the request, or written once for all of them.
    monkeypatch.setattr(kept_readings, "_MOST_OCTETS", 0)
    cache = BlobCache(tmp_path / "blobs", 100_000)
    with contextlib.closing(cache), house(tmp_path) as served:
        served.store._written = WrittenEmails(0)
        with served.store.snapshot(ACCOUNT) as snapshot, Sheet() as sheet:
            snapshot.room = room = LookingRoom(Message, Written)
            asking = Asking(
                snapshot=snapshot,
                limits=Limits(),
                using=frozenset(using),
                sheet=sheet,
                blobs=BlobReader({ACCOUNT: Shelf(dict(enumerate(MESSAGES, 1)))}, cache, 100_000),
                patience=Patience(lambda: 0.0, 1.0, 1.0),
            )
            gc.collect()
            function(asking, {"accountId": ACCOUNT} | arguments)
        # What other tests left behind counts each time.
        assert 3 == len(room.found)
        assert 1 == len(set(room.found)), room.found


WITH_PICTURE = (
    b"From: ann@example.org\r\nSubject: A picture\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n"
    b"\r\n--b\r\nContent-Type: text/plain\r\n\r\nSee below.\r\n"
    b"--b\r\nContent-Type: image/png\r\nContent-Transfer-Encoding: base64\r\n\r\nUGljdHVyZQ==\r\n--b--\r\n"
)


def test_whoever_cuts_a_part_out_of_a_message_holds_room_for_the_message(tmp_path: Path) -> None:
    cache = BlobCache(tmp_path / "blobs", 100_000)
    with (
        contextlib.closing(cache),
        house(tmp_path, (WITH_PICTURE,)) as served,
        served.store.snapshot(ACCOUNT) as snapshot,
    ):
        reader = BlobReader({ACCOUNT: Shelf({1: WITH_PICTURE})}, cache, 100_000)
        # Two rooms: whoever reads in the store's may wait in the other for a message.
        snapshot.room = finding = NotedRoom()
        reader._room = cutting = NotedRoom()
        found = find_blob(snapshot, blob_id(message_digest(b"Picture")))
        assert found is not None
        with reader.open(ACCOUNT, found) as opened:
            assert b"Picture" == opened.whole()
        assert ([len(WITH_PICTURE)], [len(WITH_PICTURE)]) == (finding.noted, cutting.noted)
        # The whole message is copied from disk to disk, and what was cut out lies in the cache.
        for blob in (blob_id(message_digest(WITH_PICTURE)), found.blob_id):
            again = find_blob(snapshot, blob)
            assert again is not None
            reader.open(ACCOUNT, again).close()
        assert 1 == len(cutting.noted)


def test_small_messages_take_room_too_and_who_came_first_is_first() -> None:
    # A message of one octet may have ten thousand fields: no more than eight are read at a time.
    room = ReadingRoom()
    small = [Reader(room, 1) for _ in range(8)]
    assert all(each.is_in.wait(_SECONDS) for each in small)
    ninth = Reader(room, 1)
    await_true(lambda: 1 == len(room._queue))
    largest = Reader(room, 10**12)
    await_true(lambda: 2 == len(room._queue))
    last = Reader(room, 1)
    await_true(lambda: 3 == len(room._queue))
    small[0].leave()
    assert ninth.is_in.wait(_SECONDS)
    for each in (*small[1:], ninth):
        # One that is larger than the room waits for all of it, and the last one for its turn.
        assert not last.is_in.is_set()
        each.leave()
    assert largest.is_in.wait(_SECONDS)
    assert not last.is_in.is_set()
    largest.leave()
    assert last.is_in.wait(_SECONDS)
    last.leave()


def test_a_reading_counts_its_fields_and_parts() -> None:
    fields = KeptReading(parse(b"".join(b"X%d: y\r\n" % number for number in range(5_000)) + b"\r\nhi\r\n"))
    assert fields.octets > 1_000_000

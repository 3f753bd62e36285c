"""The reader's answers are bounded, checked, and worth no more than a hint."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from change_executor.evidence.reader_link import (
    AccountUnknown,
    ReaderFailure,
    ReaderLink,
    ReaderRefused,
    ReaderUnreachable,
)
from shared.link import MAX_ANSWER_OCTETS, Copy, OpenedState
from tests.fakes.reader import FakeReader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EMAIL = "M" + "0" * 32


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[FakeReader]:
    with FakeReader(tmp_path / "reader.sock") as running:
        yield running


def test_it_asks_where_a_message_is(reader: FakeReader) -> None:
    reader.locates((7, 3), (7, 4), fresh=False)
    located = ReaderLink(reader.path, None).locate("shop", EMAIL)
    assert ([Copy(uidvalidity=7, uid=3), Copy(uidvalidity=7, uid=4)], False) == (located.copies, located.fresh)
    assert [("/locate", {"account": "shop", "emailId": EMAIL})] == reader.asked


def test_it_asks_whether_the_agent_opened_it(reader: FakeReader) -> None:
    reader.answers["/opened"] = {"state": "opened", "at": "2026-11-29T12:00:00Z"}
    opened = ReaderLink(reader.path, None).opened("mailbot", "shop", EMAIL)
    assert opened.state is OpenedState.OPENED
    assert opened.at is not None
    assert [("/opened", {"agent": "mailbot", "account": "shop", "emailId": EMAIL})] == reader.asked


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"not json",
        b"[]",
        b'{"copies": [], "fresh": true, "fresh": false}',
        b'{"copies": [], "fresh": true, "more": 1}',
        b'{"copies": [{"uidvalidity": 0, "uid": 1}], "fresh": true}',
        b'{"copies": [{"uidvalidity": 1, "uid": "1"}], "fresh": true}',
        b'{"copies": [{"uidvalidity": 1, "uid": 1, "mailbox": "Trash"}], "fresh": true}',
        b" " * MAX_ANSWER_OCTETS + b'{"copies": [], "fresh": true}',
    ],
)
def test_an_answer_that_is_not_as_agreed_is_none(reader: FakeReader, answer: bytes) -> None:
    reader.answers["/locate"] = answer
    with pytest.raises(ReaderUnreachable):
        ReaderLink(reader.path, None).locate("shop", EMAIL)


@pytest.mark.parametrize(
    ("status", "code", "kind", "waiting"),
    [
        (403, "peer_not_allowed", ReaderRefused, "reader_refused"),
        (404, "unknown_account", AccountUnknown, "account_unknown"),
        (404, "not_found", ReaderUnreachable, "reader_unreachable"),
        (403, "other", ReaderUnreachable, "reader_unreachable"),
        (500, "peer_not_allowed", ReaderUnreachable, "reader_unreachable"),
    ],
)
def test_a_refusal_is_told_by_what_mends_it(
    reader: FakeReader, status: int, code: str, kind: type[ReaderFailure], waiting: str
) -> None:
    reader.refusals["/locate"] = (status, code)
    with pytest.raises(ReaderFailure) as raised:
        ReaderLink(reader.path, None).locate("shop", EMAIL)
    assert (kind, waiting) == (type(raised.value), raised.value.waiting.value)


def test_the_log_tells_when_the_answers_begin_to_fail_and_when_they_come_again(reader: FakeReader) -> None:
    link = ReaderLink(reader.path, None)
    refusals: list[tuple[int, str] | None] = [None, (404, "unknown_account"), (404, "unknown_account"), (500, "x")]
    with capture_logs() as logged:
        for refusal in [*refusals, None, None]:
            reader.refusals = {} if refusal is None else {"/locate": refusal}
            with contextlib.suppress(ReaderFailure):
                link.locate("shop", EMAIL)
    assert [
        ("reader:failed", "account_unknown"),
        ("reader:failed", "reader_unreachable"),
        ("reader:answers", None),
    ] == [(line["event"], line.get("code")) for line in logged]
    assert [True, True, False] == ["executor.toml" in line.get("fix", "") for line in logged]


def test_the_accounts_of_the_reader_are_asked_for(reader: FakeReader) -> None:
    account = {"account": "shop", "fresh": True, "messages": 3, "lastSyncAt": None, "error": None}
    reader.answers["/status"] = {"accounts": [account]}
    assert ["shop"] == [each.account for each in ReaderLink(reader.path, None).status().accounts]
    assert [("/status", None)] == reader.asked


def test_nobody_at_the_socket_is_unreachable(tmp_path: Path) -> None:
    with pytest.raises(ReaderUnreachable):
        ReaderLink(tmp_path / "nobody.sock", None).locate("shop", EMAIL)


@pytest.mark.parametrize("is_the_reader", [True, False])
def test_the_uid_behind_the_socket_is_checked_before_anything_is_said(
    reader: FakeReader, *, is_the_reader: bool
) -> None:
    link = ReaderLink(reader.path, os.getuid() if is_the_reader else os.getuid() + 1)
    if is_the_reader:
        assert link.locate("shop", EMAIL).fresh
    else:
        with pytest.raises(ReaderUnreachable):
            link.locate("shop", EMAIL)
    assert is_the_reader == bool(reader.asked)


def test_an_answer_in_drops_ends_at_the_same_time_as_any(tmp_path: Path) -> None:
    path, ended = tmp_path / "slow.sock", threading.Event()
    now = iter(range(1000))

    def drip(listener: socket.socket) -> None:
        peer, _ = listener.accept()
        # The peer breaks off once its two seconds, by the clock it is given, are over.
        with peer, contextlib.suppress(OSError):
            for octet in b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" + b"x" * 1000:
                peer.sendall(bytes([octet]))
                if ended.wait(0.001):
                    return

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        dripping = threading.Thread(target=drip, args=(listener,))
        dripping.start()
        with pytest.raises(ReaderUnreachable):
            ReaderLink(path, None, monotonic=lambda: float(next(now))).locate("shop", EMAIL)
        ended.set()
        dripping.join()

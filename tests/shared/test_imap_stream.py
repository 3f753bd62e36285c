"""Answers of a mail server have a deadline as a whole, and a size."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from shared.imap_stream import AnswerLimits, AnswerReader, TooLarge, TooSlow

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMITS = AnswerLimits(seconds=20.0, literal_octets=100, octets=2_000_000)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair()
    with near, far:
        yield near, far


class Trickle(socket.socket):
    """Gives one octet for each read, each ten seconds after the one before."""

    clock: Clock

    def recv(self, size: int, flags: int = 0) -> bytes:  # noqa: ARG002 - it gives one, whatever is asked for
        self.clock.now += 10.0
        return super().recv(1, flags)


def test_lines_and_literals_come_as_they_were_sent(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    reader = AnswerReader(near, LIMITS, Clock())
    far.sendall(b"* 1 FETCH (BODY[] {5}\r\nab\r\nc)\r\nend")
    far.shutdown(socket.SHUT_WR)
    assert b"* 1 FETCH (BODY[] {5}\r\n" == reader.readline()
    assert b"ab\r\nc" == reader.read(5)
    assert [b")\r\n", b"end", b""] == [reader.readline() for _ in range(3)]
    assert reader.read(5) == b""
    assert reader.octets_received == 34


def test_an_octet_every_ten_seconds_ends_an_answer_though_no_read_ever_timed_out() -> None:
    clock = Clock()
    near, far = socket.socketpair()
    with far, Trickle(fileno=near.detach()) as trickle:
        trickle.clock = clock
        far.sendall(b"* OK I am still thinking, wait a little longer please\r\n")
        reader = AnswerReader(trickle, LIMITS, clock)
        with pytest.raises(TooSlow):
            reader.readline()
    assert 20.0 <= clock.now <= 30.0


def test_a_server_that_says_nothing_ends_an_answer(pair: tuple[socket.socket, socket.socket]) -> None:
    reader = AnswerReader(pair[0], AnswerLimits(seconds=0.05), Clock())
    with pytest.raises(TooSlow):
        reader.readline()


def test_a_connection_ends_in_its_time_however_briskly_its_answers_come(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    near, far = pair
    clock = Clock()
    reader = AnswerReader(near, LIMITS, clock, ends=30.0)
    for clock.now in (0.0, 19.0, 29.0):
        far.sendall(b"at once\r\n")
        reader.begin()
        assert b"at once\r\n" == reader.readline()
    assert 1.0 == reader.seconds_left()
    clock.now = 30.0
    far.sendall(b"at once\r\n")
    reader.begin()
    with pytest.raises(TooSlow):
        reader.readline()


def test_answers_that_each_come_in_time_do_not_hold_a_connection_past_what_patience_and_octets_allow(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    near, far = pair
    clock = Clock()
    limits = AnswerLimits(seconds=20.0, octets_a_second=100, session_seconds=600.0, patience_seconds=50.0)
    reader = AnswerReader(near, limits, clock)
    for at in (19.0, 38.0):
        reader.begin()
        clock.now = at
        far.sendall(b"x" * 98 + b"\r\n")
        reader.readline()
    reader.begin()
    # Of fifty seconds twelve are left, and two for as many hundred octets.
    assert 14.0 == reader.seconds_left()
    clock.now = 52.0
    with pytest.raises(TooSlow, match="longer than any may"):
        reader.seconds_left()


def test_the_next_command_starts_the_clock_anew_and_octets_that_come_give_more_time(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    near, far = pair
    clock = Clock()
    reader = AnswerReader(near, AnswerLimits(seconds=10.0, octets_a_second=100), clock)
    far.sendall(b"x" * 998 + b"\r\n")
    reader.readline()
    clock.now = 19.0
    far.sendall(b"in time\r\n")
    assert b"in time\r\n" == reader.readline()
    clock.now = 21.0
    far.sendall(b"too late\r\n")
    with pytest.raises(TooSlow):
        reader.readline()
    reader.begin()
    assert b"too late\r\n" == reader.readline()


def test_a_literal_over_the_limit_is_refused_before_anything_of_it_is_read(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    reader = AnswerReader(pair[0], LIMITS, Clock())
    for octets in (101, 10**30):
        with pytest.raises(TooLarge):
            reader.read(octets)
    assert reader.octets_received == 0


def test_a_line_without_an_end_and_an_answer_without_an_end_are_refused(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    near, far = pair
    for endless, message in ((b"* OK more\r\n" * 1_000, "an answer of"), (b"x" * 20_000, "a line of")):
        reader = AnswerReader(near, LIMITS, Clock())
        sending = threading.Thread(target=_send_for_ever, args=(far, endless), daemon=True)
        sending.start()
        with pytest.raises(TooLarge, match=message):
            _read_for_ever(reader)
        assert reader.octets_received <= LIMITS.octets + 300_000
        near.close()
        sending.join(20.0)
        near, far = socket.socketpair()
    near.close()
    far.close()


def _send_for_ever(far: socket.socket, octets: bytes) -> None:
    with far, contextlib.suppress(OSError):
        while True:
            far.sendall(octets)


def _read_for_ever(reader: AnswerReader) -> None:
    while True:
        reader.readline()


def test_what_comes_unasked_is_waited_for_and_an_end_is_no_silence(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    reader = AnswerReader(near, LIMITS, Clock())
    assert not reader.wait(0.01)
    far.sendall(b"* 3 EXISTS\r\n* 1 RECENT\r\n")
    assert reader.wait(20.0)
    assert b"* 3 EXISTS\r\n" == reader.readline()
    assert reader.wait(20.0), "a line that is in the buffer already is not waited for on the network"
    assert b"* 1 RECENT\r\n" == reader.readline()
    far.close()
    with pytest.raises(ConnectionResetError):
        reader.wait(20.0)

"""What passes between a reader and a mail server: one permitted command at a time, and its whole answer.

Half duplex: while an answer comes, the next command is not read; only in IDLE, and between commands, the server speaks
unasked. Of an answer everything is parsed that tells where it ends: lines, literals by their length, the tag.
"""

import re
import select
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from read_gate.reader_side import ReaderSide
from shared.imap_login import GuardedClient

# RFC 9051 §5.4: a server may end a connection after half an hour without a command; the reader renews far earlier.
_QUIET_SECONDS: Final = 35 * 60.0
# A TLS record that is not whole is no news; the server is asked again when more of it came.
_GLANCE_SECONDS: Final = 0.05
# What is collected of one answer before it goes on: fewer system calls, and no more memory than a message takes.
_COLLECTED_OCTETS: Final = 256 * 1024
# RFC 9051 §9: a number has 32 bits, and number64 63; ten digits are more than any literal that is taken.
_MOST_DIGITS: Final = 10

# As imaplib finds them: whatever this takes for a literal, the reader does too, and the other way round.
_LITERAL: Final = re.compile(rb"\{(\d+)\}\r\n\Z")
_TAGGED: Final = re.compile(rb"([A-Za-z0-9]{1,32}) (?:OK|NO|BAD)(?: [^\r\n\0]*)?\r\n", re.IGNORECASE)


class ProtocolBroken(Exception):  # noqa: N818 - says what the server did
    """The mail server said what is no IMAP; nothing of it was passed on, and the connection is finished."""


class _Said(Enum):
    UNTAGGED = auto()
    CONTINUATION = auto()
    COMPLETION = auto()


class Relay:
    """One reader's connection and the one to its mail server; one thread runs it."""

    def __init__(self, side: ReaderSide, server: GuardedClient, monotonic: Callable[[], float]) -> None:
        self._side, self._server, self._monotonic = side, server, monotonic
        self._collected = bytearray()
        self._poll = select.poll()
        self._readers_end = side.sock.fileno()
        self._servers_end = server.socket().fileno()
        for end in (self._readers_end, self._servers_end):
            self._poll.register(end, select.POLLIN)

    def run(self) -> None:
        """Pass on until either end is over. Raises `GuardRefusal`, `ProtocolBroken`, and what breaks a connection."""
        while (line := self._command()) is not None:
            tag, _, command = line[:-2].partition(b" ")
            self._server.say(line)
            if command == b"IDLE" and self._pass_on_until(tag, _Said.CONTINUATION) is _Said.CONTINUATION:
                done = self._command()
                if done is None:
                    return
                self._server.say(done)
                self._pass_on_until(tag, _Said.COMPLETION)
            elif command != b"IDLE":
                self._pass_on_until(tag, _Said.COMPLETION)
            if command == b"LOGOUT":
                return

    def _command(self) -> bytes | None:
        quiet_until = self._monotonic() + _QUIET_SECONDS
        while True:
            while self._server.answers.has_buffered:
                self._pass_on_response(b"")
            self._flush()
            left = quiet_until - self._monotonic()
            if left <= 0:
                return None
            speaking = {end for end, _ in self._poll.poll(left * 1000)}
            if self._servers_end in speaking:
                self._server.wait(_GLANCE_SECONDS)
            elif self._readers_end in speaking and (line := self._side.take()) != b"":
                return line

    def _pass_on_until(self, tag: bytes, expected: _Said) -> _Said:
        """Pass an answer on up to its completion, or to the continuation that is expected; return which came."""
        while (said := self._pass_on_response(tag)) is not _Said.COMPLETION:
            if said is _Said.CONTINUATION and expected is not _Said.CONTINUATION:
                raise ProtocolBroken("a continuation that nobody waits for")
            if said is expected:
                break
        self._flush()
        return said

    def _pass_on_response(self, tag: bytes) -> _Said:
        line = self._line()
        if line.startswith(b"* "):
            while (literal := _LITERAL.search(line)) is not None:
                self._collect(line, self._octets(literal[1]))
                line = self._line()
            self._collect(line)
            return _Said.UNTAGGED
        if line.startswith((b"+ ", b"+\r\n")) and tag:
            self._collect(line)
            return _Said.CONTINUATION
        match = _TAGGED.fullmatch(line)
        if match is None or not tag or match[1] != tag:
            raise ProtocolBroken("a line that is no answer to what was asked")
        self._collect(line)
        return _Said.COMPLETION

    def _line(self) -> bytes:
        line = self._server.answers.readline()
        if not line:
            raise ConnectionResetError("the mail server ended the connection")
        if not line.endswith(b"\r\n"):
            raise ProtocolBroken("a line without its end")
        return line

    def _octets(self, digits: bytes) -> bytes:
        if len(digits) > _MOST_DIGITS:
            raise ProtocolBroken("a literal of more octets than there are")
        octets = self._server.answers.read(int(digits))
        if len(octets) != int(digits):
            raise ConnectionResetError("the mail server ended the connection within a literal")
        return octets

    def _collect(self, *octets: bytes) -> None:
        for each in octets:
            self._collected += each
        if len(self._collected) >= _COLLECTED_OCTETS:
            self._flush()

    def _flush(self) -> None:
        if self._collected:
            self._side.say(self._collected)
            self._collected.clear()

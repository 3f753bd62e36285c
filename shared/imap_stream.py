"""What a mail server's answers are read with: each has a deadline as a whole, and a size.

A timeout for each read alone is no limit: a server that sends one octet every few seconds would hold a thread for ever.
An announced length is no promise either: a literal is refused before any room is made for it.
"""

import imaplib
import math
import socket
from dataclasses import dataclass
from typing import Final

from shared.time_and_chance import Monotonic

_MIB: Final = 1024 * 1024
# One read of the kernel's buffer; more gains nothing (measured on loopback).
_CHUNK_OCTETS: Final = 256 * 1024
# The library ends a connection at longer lines as well; all there is that long is a list of UIDs.
_MOST_LINE_OCTETS: Final = 1_000_000


class TooSlow(TimeoutError):  # noqa: N818 - says what the server was
    """An answer did not come whole in its time."""


class TooLarge(imaplib.IMAP4.abort):
    """A line, a literal or an answer is larger than anything that was asked for."""


MOST_ANSWER_OCTETS: Final = 64 * _MIB


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """How long and how large one answer may be.

    `seconds` to begin with, and one more for each `octets_a_second` that came: a slow line may finish, a trickle not.
    """

    seconds: float
    # Slower than any line that mail is read over; 2 MiB then get four minutes more.
    octets_a_second: int = 8 * 1024
    # Bodies are asked for in batches and pieces of at most 2 MiB; sizes are estimates on some servers.
    literal_octets: int = 8 * _MIB
    # The flags of 800,000 messages.
    octets: int = MOST_ANSWER_OCTETS
    # The connection as a whole, whatever is said on it.
    session_seconds: float = math.inf
    # Of that, what all answers together may take beyond the second for each `octets_a_second` that came: each of them
    # may come within its time, and a server that drips all the same hold whoever asks for as long as he has questions.
    patience_seconds: float = math.inf


class AnswerReader:
    """Reads one connection, from `sock`, buffered; not thread-safe, as a connection is not.

    At `ends`, by `monotonic`, it is over, even in the middle of an answer. After any exception the connection is
    finished: what follows in it has no known beginning.
    """

    def __init__(self, sock: socket.socket, limits: AnswerLimits, monotonic: Monotonic, ends: float = math.inf) -> None:
        self.sock = sock
        # All octets that ever came, for those who count what a provider lets one have.
        self.octets_received = 0
        self._limits, self._monotonic, self._ends = limits, monotonic, ends
        self._buffer = bytearray()
        self._opened = monotonic()
        self.begin()

    def begin(self) -> None:
        """Start the clock of the next answer; called when a command leaves."""
        self._began = self._monotonic()
        self._octets = 0

    @property
    def has_buffered(self) -> bool:
        """Whether octets came that were not taken yet."""
        return bool(self._buffer)

    def readline(self) -> bytes:
        """Return one line with its end; what there is at the end of the connection. Raises TooSlow, TooLarge."""
        scanned = 0
        while (end := self._buffer.find(b"\n", scanned)) < 0:
            scanned = len(self._buffer)
            if scanned > _MOST_LINE_OCTETS:
                raise TooLarge(f"a line of more than {_MOST_LINE_OCTETS} octets")
            if not self._fill():
                return self._take(scanned)
        return self._take(end + 1)

    def read(self, octets: int) -> bytes:
        """Return the octets of a literal, fewer at the end of the connection. Raises TooSlow, TooLarge."""
        if octets > self._limits.literal_octets:
            raise TooLarge(f"a literal of {octets} octets")
        while len(self._buffer) < octets and self._fill():
            pass
        return self._take(min(octets, len(self._buffer)))

    def wait(self, seconds: float) -> bool:
        """Wait until something comes unasked, at most so long; whether it came. Raises at the end of the connection."""
        if self._buffer:
            return True
        self.sock.settimeout(max(seconds, 0.001))
        try:
            chunk = self.sock.recv(_CHUNK_OCTETS)
        except TimeoutError:
            return False
        if not chunk:
            raise ConnectionResetError("the server ended the connection")
        self.begin()
        self._keep(chunk)
        return True

    def seconds_left(self) -> float:
        """Return how long the command and its answer may take from now on. Raises TooSlow where that is over."""
        allowed = self._limits.seconds + self._octets / self._limits.octets_a_second
        left = min(self._began + allowed, self._over_at()) - self._monotonic()
        if left <= 0:
            raise TooSlow(self._too_slow())
        return left

    def _fill(self) -> bool:
        self.sock.settimeout(self.seconds_left())
        try:
            chunk = self.sock.recv(_CHUNK_OCTETS)
        except TimeoutError:
            raise TooSlow(self._too_slow()) from None
        self._keep(chunk)
        return bool(chunk)

    def _over_at(self) -> float:
        came = self.octets_received / self._limits.octets_a_second
        return min(self._ends, self._opened + self._limits.patience_seconds + came)

    def _too_slow(self) -> str:
        if self._monotonic() >= self._over_at():
            return "the connection took longer than any may"
        return (
            f"no whole answer within {self._limits.seconds + self._octets / self._limits.octets_a_second:.0f} seconds"
        )

    def _keep(self, chunk: bytes) -> None:
        self._buffer += chunk
        self._octets += len(chunk)
        self.octets_received += len(chunk)
        if self._octets > self._limits.octets:
            raise TooLarge(f"an answer of more than {self._limits.octets} octets")

    def _take(self, octets: int) -> bytes:
        taken = bytes(memoryview(self._buffer)[:octets])
        del self._buffer[:octets]
        return taken

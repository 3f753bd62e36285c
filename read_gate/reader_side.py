"""The reader's end of a connection: lines in, each judged whole by the guard; octets out, within a time."""

import socket
from collections.abc import Callable
from typing import Final

from shared.imap_guard import Guard, VerbTable
from shared.imap_stream import TooSlow

_CHUNK_OCTETS: Final = 4096
# The reader writes a line at once; who needs longer is not the reader.
LINE_SECONDS: Final = 30.0
# A literal of 8 MiB, to a reader that is busy storing what came before.
_SAY_SECONDS: Final = 90.0


class ReaderSide:
    """One connection of a reader; one thread uses it."""

    def __init__(self, sock: socket.socket, table: VerbTable, monotonic: Callable[[], float]) -> None:
        self.sock = sock
        self._monotonic = monotonic
        self._guard = Guard(table)
        self._line_began: float | None = None

    def judge_by(self, table: VerbTable) -> None:
        """Judge what follows by another table."""
        self._guard = Guard(table)

    def line(self) -> bytes | None:
        """Wait for a whole permitted line, and return it with its end; None at the connection's end.

        Raises `GuardRefusal`, `TooSlow`, OSError.
        """
        while (line := self.take()) == b"":
            pass
        return line

    def take(self) -> bytes | None:
        """Read what there is: a whole permitted line, b"" as long as it is none, None at the end. Raises as `line`."""
        if self._line_began is None:
            self._line_began = self._monotonic()
        left = self._line_began + LINE_SECONDS - self._monotonic()
        if left <= 0:
            raise TooSlow(f"no whole line within {LINE_SECONDS:.0f} seconds")
        self.sock.settimeout(left)
        octets = self.sock.recv(_CHUNK_OCTETS)
        if not octets:
            return None
        line = self._guard.pass_on(octets)
        if line:
            self._line_began = None
        return line

    def say(self, octets: bytes | bytearray) -> None:
        """Send octets. Raises OSError, TimeoutError where the reader does not take them."""
        self.sock.settimeout(_SAY_SECONDS)
        self.sock.sendall(octets)

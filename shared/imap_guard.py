"""The guard where bytes leave for a mail server: one closed table, and every line is judged whole.

imapclient sends one command in pieces and lets CR LF through in arguments, so the guard holds bytes back until CRLF
and compares the whole line with the table. What is not in the table is never sent, and the connection is finished:
a refusal means a bug or an attack, and neither deserves a second line.
"""

import re
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

# Dovecot and Cyrus refuse longer command lines (64 KiB); ours are far below.
MAX_LINE_OCTETS: Final = 60 * 1024

# A password or a token in base64, and the empty line that ends a failed XOAUTH2 exchange.
_MAX_SASL_LINES: Final = 2

_TAGGED: Final = re.compile(rb"([A-Za-z0-9]{1,32}) (UID [A-Z]+|[A-Z]+)(?: (.*))?", re.DOTALL)
_BASE64: Final = re.compile(rb"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_LITERAL: Final = re.compile(rb"\{\d+\+?\}$")

# The pieces that tables are made of. Atoms and quoted strings are printable ASCII; nothing here can hold CR, LF, NUL.
QUOTED: Final = rb'"(?:[^"\\\r\n\0\x80-\xff]|\\["\\])*"'
ATOM: Final = rb"[A-Za-z0-9!#$&'+,\-./:;<=>?@^_`|~]+"
MAILBOX: Final = rb"(?:" + QUOTED + rb"|" + ATOM + rb")"
NUMBER: Final = rb"[1-9][0-9]{0,9}"
UID_SET: Final = rb"(?:N|N:N|N:\*)(?:,(?:N|N:N|N:\*))*".replace(b"N", NUMBER)


# How many lines each table of this process refused: a refusal ends its connection, and may come in any of them.
_refused: Final[Counter[str]] = Counter()
_counting: Final = threading.Lock()


def refused_lines() -> dict[str, int]:
    """Return how many lines were refused in this process so far, by the table's name."""
    with _counting:
        return dict(_refused)


class GuardRefusal(Exception):  # noqa: N818 - a refusal is what it is
    """A line that is not in the table; nothing of it was sent. The message never holds an argument."""


class _Phase(Enum):
    COMMANDS = auto()
    SASL = auto()
    IDLING = auto()
    CLOSED = auto()


@dataclass(frozen=True, slots=True)
class VerbTable:
    """What may be said: each verb with the one pattern that all its arguments together must match.

    `name` tells whose table it is. A verb whose pattern is empty takes no arguments.
    """

    name: str
    arguments: Mapping[bytes, re.Pattern[bytes]]

    def permits(self, verb: bytes, arguments: bytes) -> bool:
        """Whether this verb with just these arguments is in the table."""
        pattern = self.arguments.get(verb)
        return pattern is not None and pattern.fullmatch(arguments) is not None


class Guard:
    """Judges the octets of one connection; not thread-safe, as a connection is not."""

    def __init__(self, table: VerbTable) -> None:
        self._table = table
        self._held = bytearray()
        self._phase = _Phase.COMMANDS
        self._sasl_lines_left = 0

    def pass_on(self, octets: bytes) -> bytes:
        """Take what a client wants to send and return what may leave now: whole permitted lines, or nothing.

        Raises `GuardRefusal`, after which nothing passes any more.
        """
        if self._phase is _Phase.CLOSED:
            raise GuardRefusal(f"{self._table.name}: the connection is finished after a refusal")
        self._held += octets
        end = self._held.rfind(b"\r\n")
        lines = bytes(self._held[: end + 2]) if end >= 0 else b""
        del self._held[: len(lines)]
        try:
            self._judge_what_came(lines)
        except GuardRefusal:
            self._phase = _Phase.CLOSED
            self._held.clear()
            with _counting:
                _refused[self._table.name] += 1
            raise
        return lines

    def _judge_what_came(self, lines: bytes) -> None:
        if len(self._held) > MAX_LINE_OCTETS:
            raise GuardRefusal(f"{self._table.name}: a command line is too long")
        # More than one line at a time is how an injected command travels: commands are said one by one.
        if lines.count(b"\n") > 1:
            raise GuardRefusal(f"{self._table.name}: more than one line in one command")
        if lines:
            self._judge(lines[:-2])

    def _judge(self, line: bytes) -> None:
        if len(line) > MAX_LINE_OCTETS or any(octet in line for octet in b"\r\n\0"):
            raise GuardRefusal(f"{self._table.name}: CR, LF, NUL or too many octets in a command")
        if self._phase is _Phase.IDLING:
            if line != b"DONE":
                raise GuardRefusal(f"{self._table.name}: only DONE ends IDLE")
            self._phase = _Phase.COMMANDS
            return
        if self._phase is _Phase.SASL and self._is_sasl_line(line):
            return
        self._judge_command(line)

    def _is_sasl_line(self, line: bytes) -> bool:
        if b" " in line or self._sasl_lines_left == 0:
            self._phase = _Phase.COMMANDS
            return False
        if _BASE64.fullmatch(line) is None and line != b"*":
            raise GuardRefusal(f"{self._table.name}: not a base64 line inside AUTHENTICATE")
        self._sasl_lines_left -= 1
        return True

    def _judge_command(self, line: bytes) -> None:
        match = _TAGGED.fullmatch(line)
        if match is None:
            raise GuardRefusal(f"{self._table.name}: not a tagged command")
        verb, arguments = match[2], match[3]
        if _LITERAL.search(line):
            raise GuardRefusal(f"{self._table.name}: {verb.decode()} with a literal")
        if not self._table.permits(verb, arguments if arguments is not None else b""):
            raise GuardRefusal(f"{self._table.name}: {verb.decode()} with these arguments is not in the table")
        if verb == b"IDLE":
            self._phase = _Phase.IDLING
        elif verb == b"AUTHENTICATE":
            self._phase, self._sasl_lines_left = _Phase.SASL, _MAX_SASL_LINES

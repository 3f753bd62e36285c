"""Reads the command logs that Dovecot itself writes: what each client really sent."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Dovecot puts the time of arrival (epoch seconds) before each line that it writes to the log.
_TIMESTAMP: Final = re.compile(rb"^\d+\.\d+ ", re.MULTILINE)
_LOGIN: Final = re.compile(rb'^\S+ LOGIN "?([A-Za-z]+)"? ', re.IGNORECASE)
_AUTHENTICATE_PLAIN: Final = re.compile(rb"^\S+ AUTHENTICATE \"?PLAIN\"?(?: (\S+))?$", re.IGNORECASE)
# 20261129-221900.PID.COUNTER.in
_FILE_NAME: Final = re.compile(r"^(\d{8}-\d{6})\.(\d+)\.(\d+)\.in$")


@dataclass(frozen=True, slots=True, order=True)
class ClientLog:
    """What one connection sent: the server's process, and the lines without their line ends."""

    started: str
    pid: int
    counter: int
    lines: tuple[bytes, ...]

    @property
    def login(self) -> str | None:
        """Who logged in by these lines (LOGIN or AUTHENTICATE PLAIN), or None."""
        for position, line in enumerate(self.lines):
            if found := _LOGIN.match(line):
                return found[1].decode()
            if found := _AUTHENTICATE_PLAIN.match(line):
                return _sasl_plain_user(found[1] or b"".join(self.lines[position + 1 : position + 2]))
        return None


def _sasl_plain_user(response: bytes) -> str | None:
    try:
        _, user, _ = base64.b64decode(response, validate=True).split(b"\0")
    except (binascii.Error, ValueError):
        return None
    return user.decode()


def client_logs(folder: Path) -> list[ClientLog]:
    """Every connection logged in a folder, oldest first."""
    return sorted(_read(folder))


def processes(folder: Path) -> list[tuple[int, float]]:
    """The pid of each connection's process and when its log was written last (Unix time), oldest first.

    By the files' names: what they hold is not read. A pid may have been another process's since.
    """
    found = sorted(
        (name[1], int(name[2]), int(name[3]), path.stat().st_mtime)
        for path in folder.iterdir()
        if (name := _FILE_NAME.match(path.name))
    )
    return [(pid, written) for _, pid, _, written in found]


def _read(folder: Path) -> Iterator[ClientLog]:
    for path in folder.iterdir():
        if name := _FILE_NAME.match(path.name):
            text = _TIMESTAMP.sub(b"", path.read_bytes())
            lines = text.replace(b"\r\n", b"\n").split(b"\n")
            yield ClientLog(name[1], int(name[2]), int(name[3]), tuple(lines[:-1] if not lines[-1] else lines))

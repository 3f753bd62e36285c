"""The answer to a request while it is written and sent: in memory while it is short, then in a file without a name.

An answer may take as long to be sent as its client pleases, and many may be on their way: they wait on disk. Whatever a
message holds, what is written is I-JSON (RFC 8620 §1.5).
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from shared import ijson

# A page of messages with their texts; forty of them are nothing.
_IN_MEMORY_OCTETS: Final = 1024 * 1024
PIECE_OCTETS: Final = 64 * 1024


class Sheet:
    """Octets that are written one after the other; for one thread at a time, `close` when done.

    `folder` is where the file is; it never has a name. Writing raises `OSError` where the disk is full.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._in_memory = bytearray()
        self._file: IO[bytes] | None = None
        self.octets = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def write(self, encoded: bytes) -> None:
        """Append JSON in UTF-8, no character of it cut in two."""
        octets = ijson.without_noncharacters(encoded)
        if self._file is None and self.octets + len(octets) <= _IN_MEMORY_OCTETS:
            self._in_memory += octets
        else:
            file = self._on_disk()
            file.seek(self.octets)
            file.write(octets)
        self.octets += len(octets)

    def cut(self, octets: int) -> None:
        """Take back everything after so many octets."""
        if self._file is None:
            del self._in_memory[octets:]
        else:
            self._file.seek(octets)
            self._file.truncate()
        self.octets = octets

    def read(self, start: int, end: int) -> bytes:
        """Return the octets from `start` up to, not including, `end`."""
        if self._file is None:
            return bytes(self._in_memory[start:end])
        self._file.seek(start)
        return self._file.read(end - start)

    def pieces(self) -> Iterator[bytes]:
        """Yield everything in pieces."""
        for start in range(0, self.octets, PIECE_OCTETS):
            yield self.read(start, min(start + PIECE_OCTETS, self.octets))

    def close(self) -> None:
        """Let go of memory and file."""
        self._in_memory.clear()
        if self._file is not None:
            self._file.close()

    def _on_disk(self) -> IO[bytes]:
        if self._file is None:
            file = tempfile.TemporaryFile(dir=None if self._folder is None else str(self._folder))  # noqa: SIM115 - `close` ends it
            try:
                file.write(self._in_memory)
            except OSError:
                file.close()
                raise
            self._file = file
            self._in_memory.clear()
        return self._file

"""The answer to a request while it is written and sent: in memory while it is short, then in a file without a name.

An answer may take as long to be sent as its client pleases, and many may be on their way: they wait on disk.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

# A page of messages with their texts; forty of them are nothing.
_IN_MEMORY_OCTETS: Final = 1024 * 1024
PIECE_OCTETS: Final = 64 * 1024


class Sheet:
    """Octets that are written one after the other; for one thread at a time, `close` when done.

    `folder` is where the file is; it never has a name. Writing raises `OSError` where the disk is full.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY_OCTETS, dir=None if folder is None else str(folder))  # noqa: SIM115 - `close` ends it
        self._is_at_end = True
        self.octets = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def write(self, octets: bytes) -> None:
        """Append octets."""
        if not self._is_at_end:
            self._file.seek(self.octets)
        # Where a disk that is full ends this half way, the end is elsewhere.
        self._is_at_end = False
        self._file.write(octets)
        self._is_at_end = True
        self.octets += len(octets)

    def cut(self, octets: int) -> None:
        """Take back everything after so many octets."""
        self._file.seek(octets)
        self._file.truncate()
        self._is_at_end = True
        self.octets = octets

    def read(self, start: int, end: int) -> bytes:
        """Return the octets from `start` up to, not including, `end`."""
        self._is_at_end = False
        self._file.seek(start)
        return self._file.read(end - start)

    def pieces(self) -> Iterator[bytes]:
        """Yield everything in pieces."""
        for start in range(0, self.octets, PIECE_OCTETS):
            yield self.read(start, min(start + PIECE_OCTETS, self.octets))

    def close(self) -> None:
        """Let go of memory and file."""
        self._file.close()

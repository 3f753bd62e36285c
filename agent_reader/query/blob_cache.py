"""Octets that were fetched and proven, kept for a while: bounded, private, and gone with the process.

Each lies in a file without a name in the reader's own folder: nobody else can open it, a crash leaves nothing behind,
and what is evicted while somebody reads it stays whole until he is done.
"""

import contextlib
import hashlib
import os
import tempfile
import threading
from collections import OrderedDict
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_FOLDER_MODE: Final = 0o700
# Each holds a descriptor; the process has a thousand, and the doors need most of them.
_MOST_ENTRIES: Final = 64


class OpenBlob:
    """The octets of a blob, readable until `close`; one reader's own."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor, self.size = descriptor, size
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def read(self, start: int, octets: int) -> bytes:
        """Return up to so many octets from an offset on."""
        return os.pread(self._descriptor, octets, start)

    def whole(self) -> bytes:
        """Return all octets."""
        return self.read(0, self.size)

    def duplicate(self) -> "OpenBlob":
        """Return the same octets for another reader."""
        return OpenBlob(os.dup(self._descriptor), self.size)

    def close(self) -> None:
        """Let go; safe to call twice."""
        if not self._closed:
            self._closed = True
            os.close(self._descriptor)


class Spool:
    """Where octets are written while they come in, with their digest; a file without a name."""

    def __init__(self, folder: Path) -> None:
        # On Linux O_TMPFILE: there is no name at any time.
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - `close` and `finished` end it
        self._sha256 = hashlib.sha256()
        self.size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def write(self, octets: bytes) -> None:
        """Append octets. Raises `OSError` where the disk is full."""
        rest = memoryview(octets)
        while rest:
            rest = rest[self._file.write(rest) :]
        self._sha256.update(octets)
        self.size += len(octets)

    def digest(self) -> bytes:
        """Return the SHA-256 of what was written."""
        return self._sha256.digest()

    def finished(self) -> OpenBlob:
        """Return what was written, for reading."""
        return OpenBlob(os.dup(self._file.fileno()), self.size)


class BlobCache:
    """Blobs by key, the least lately used given up first; any thread may call, `close` when done.

    `most_octets` bounds what is kept; one blob above that is kept by its readers alone. `folder` is private.
    """

    def __init__(self, folder: Path, most_octets: int) -> None:
        folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        self.folder, self._most_octets = folder, most_octets
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], OpenBlob] = OrderedDict()
        self._octets = 0
        self._closed = False

    def spool(self) -> Spool:
        """Return a place to write new octets to."""
        return Spool(self.folder)

    def get(self, key: tuple[str, str]) -> OpenBlob | None:
        """Return the blob of a key for one more reader, or None."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                return None
            self._kept.move_to_end(key)
            return kept.duplicate()

    def put(self, key: tuple[str, str], blob: OpenBlob) -> None:
        """Keep a blob (a duplicate of it) if it fits, whatever else has to go."""
        with self._lock:
            if self._closed or key in self._kept or blob.size > self._most_octets:
                return
            self._kept[key] = blob.duplicate()
            self._octets += blob.size
            while self._octets > self._most_octets or len(self._kept) > _MOST_ENTRIES:
                _, oldest = self._kept.popitem(last=False)
                self._octets -= oldest.size
                oldest.close()

    def close(self) -> None:
        """Give up everything."""
        with self._lock, contextlib.ExitStack() as closing:
            self._closed = True
            for blob in self._kept.values():
                closing.callback(blob.close)
            self._kept.clear()
            self._octets = 0

"""Telling the chain's head outside the journal: whoever makes the chain anew, or puts yesterday's copy back, is found.

The log has a line for it at the start, at the end, and within a bounded time after commits; an optional file gets the
same. That file is opened for appending only and never made by us: let another user own it (and the file system append
only, `chattr +a`), and what was told there cannot be taken back by the executor's user.
"""

import errno
import json
import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from structlog.typing import FilteringBoundLogger

from change_executor.errors import JournalUnavailable
from change_executor.journal.journal import Journal
from shared.settings import ConfigurationError

_HEAD: Final = "SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1"
_HEX_DIGITS: Final = 64
# Past what SQLite numbers rows with.
_MOST_EVENTS: Final = 2**63

# In place of a head of which another was told for the same number, and so no event's hash. Whoever made the chain anew
# may append to the file too: a later line must not take an earlier one back.
TOLD_APART: Final = "told apart"

OPENED, TOLD, CLOSED = "journal:open", "journal:head", "journal:close"


# The newest line of a file is within its last so many octets, torn ones after it and all.
_TAIL_OCTETS: Final = 64 * 1024


class Head(NamedTuple):
    """How many events a chain had, and the hash of the last one."""

    events: int
    head: str


class HeadPublisher:
    """Tells the head at the start, after commits but no more often than `every_seconds`, and at the end; a thread.

    Raises `ConfigurationError` where the file cannot be appended to.
    """

    def __init__(self, journal: Journal, log: FilteringBoundLogger, *, file: Path | None, every_seconds: float) -> None:
        self._journal, self._log = journal, log
        self._path, self._file = file, None if file is None else _appendable(file)
        self._every_seconds = every_seconds
        # The newest line that the file had no room for; what is in the log and not here yet.
        self._unwritten = b""
        self._told: tuple[int, str | None] | None = None
        self._committed = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heads", daemon=True)

    def start(self) -> None:
        """Tell the head as it is, and begin to tell those that follow. Raises `JournalUnavailable`."""
        self._tell(OPENED)
        self._journal.listen(self._committed.set)
        self._thread.start()

    def stop(self) -> None:
        """Tell the last head and end. Raises `JournalUnavailable`."""
        self._end()
        self._tell(CLOSED)
        self.close()

    def close(self) -> None:
        """End, whatever was told."""
        self._end()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _end(self) -> None:
        self._journal.unlisten(self._committed.set)
        self._ending.set()
        self._committed.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._ending.is_set():
            # Commands of other processes commit too, and are not heard here; and a line may still be to be written.
            self._committed.wait(self._every_seconds)
            self._committed.clear()
            if self._ending.is_set():
                return
            try:
                self._tell(TOLD)
            except JournalUnavailable as error:
                self._log.error("journal:unavailable", error=str(error))
                # The commit that was not told may be the last one for hours.
                self._committed.set()
            self._ending.wait(self._every_seconds)

    def _tell(self, event: str) -> None:
        with self._journal.reading() as connection:
            row = connection.exec_driver_sql(_HEAD).first()
        head: tuple[int, str | None] = (0, None) if row is None else (int(row[0]), str(row[1]))
        if event == TOLD and head == self._told:
            self._write()
            return
        self._told = head
        self._log.info(event, events=head[0], head=head[1])
        if self._file is not None and head[1] is not None:
            line = {"at": self._journal.now().isoformat(), "event": event, "events": head[0], "head": head[1]}
            was_full = bool(self._unwritten)
            self._unwritten = json.dumps(line).encode() + b"\n"
            self._write(was_full=was_full)

    def _write(self, *, was_full: bool = True) -> None:
        if self._file is None or not self._unwritten:
            return
        try:
            self._follow()
            written = os.write(self._file, self._unwritten)
        except OSError as error:
            cause = error.strerror
        else:
            # A file that fills up takes the beginning of a line; the whole of it comes again, on the same line.
            cause = os.strerror(errno.ENOSPC) if written < len(self._unwritten) else None
        if cause is None:
            self._unwritten = b""
            if was_full:
                self._log.info("journal:head_written_again")
        elif not was_full:
            # The log has it all the same; a full disk elsewhere must not stop what the journal can record.
            self._log.error("journal:head_not_written", error=cause)

    def _follow(self) -> None:
        """Go on in the file that its owner put in place of the open one, as a rotation does. Raises `OSError`."""
        assert self._path is not None, "where a file is open"
        assert self._file is not None, "where a file is open"
        if not os.path.samestat(self._path.stat(), os.fstat(self._file)):
            replaced, self._file = self._file, _opened(self._path)
            os.close(replaced)


def published_heads(lines: Iterable[str]) -> dict[int, str]:
    """Return the heads that a file of ours or a log tells, by their number of events; `TOLD_APART` for two.

    Lines that tell no head are passed over.
    """
    return _together(filter(None, map(_head_in, lines)))


def newest_told(file: Path | None) -> Head | None:
    """Return the head that was told to a file last; None where there is none, or where it may not be read."""
    try:
        if file is None or not file.is_file():
            return None
        with file.open("rb") as told:
            told.seek(max(0, told.seek(0, os.SEEK_END) - _TAIL_OCTETS))
            lines = told.read(_TAIL_OCTETS).decode("utf-8", "replace").splitlines()
    except OSError:
        # Whoever may append need not be let read.
        return None
    return next(filter(None, map(_head_in, reversed(lines))), None)


def heads_together(*told: Mapping[int, str]) -> dict[int, str]:
    """Return the heads of several files, by their number of events; `TOLD_APART` where two of them disagree."""
    return _together(head for each in told for head in each.items())


def _together(told: Iterable[tuple[int, str]]) -> dict[int, str]:
    found: dict[int, str] = {}
    for events, head in told:
        found[events] = head if found.get(events, head) == head else TOLD_APART
    return found


def _head_in(untrusted_line: str) -> Head | None:
    # A log daemon may have put its own words before ours, and a disk that was full the beginnings of lines.
    told = _object_from(untrusted_line, untrusted_line.find("{")) or _object_from(
        untrusted_line, untrusted_line.rfind("{")
    )
    events, head = told.get("events"), told.get("head")
    if not isinstance(events, int) or isinstance(events, bool) or not isinstance(head, str):
        return None
    return Head(events, head) if 0 < events < _MOST_EVENTS and len(head) == _HEX_DIGITS else None


def _object_from(untrusted_line: str, start: int) -> dict[str, Any]:
    try:
        told: Any = json.loads(untrusted_line[start:]) if start >= 0 else None
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _opened(file: Path) -> int:
    return os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY)


def _appendable(file: Path) -> int:
    try:
        return _opened(file)
    except OSError as error:
        raise ConfigurationError(
            "[journal] heads_file",
            f"{file} cannot be appended to: {error.strerror}.",
            "Make it as another user, and let the executor's user append: install -o root -g GROUP -m 0660 /dev/null "
            f"{file}",
        ) from None

"""What wakes the executor from outside its process: a commit of a command, and a file that means stop.

A command that resumes, or undoes, writes rows and sends one octet to a socket beside the journal. The stop file may
belong to another user: while it is there nothing moves, and the button is pressed for it; its going releases nothing.
"""

import contextlib
import os
import select
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from structlog.typing import FilteringBoundLogger

from change_executor.errors import JournalUnavailable
from change_executor.journal.journal import Journal
from change_executor.switch import press_stop, stop_file_present
from shared.settings import ConfigurationError

# A person who stops by a file waits no longer than this; every move looks for the file itself besides.
LOOK_SECONDS: Final = 0.5

STOP_FILE: Final = "stop_file"

_SOCKET_MODE: Final = 0o600


class Watch:
    """Wakes by the socket beside the journal, and presses stop for the file; a thread of its own.

    `wake` is called after each octet. The worker's lock is held, so the socket is nobody else's. Raises
    `ConfigurationError` where the stop file could never be seen.
    """

    def __init__(
        self, journal: Journal, journal_file: Path, stop_file: Path | None, wake: Callable[[], None],
        log: FilteringBoundLogger,
    ) -> None:  # fmt: skip
        _check_folder(stop_file)
        self._journal, self._stop_file, self._wake, self._log = journal, stop_file, wake, log
        self._pressed_for_file = False
        self._ending = threading.Event()
        self._socket = _listen(journal_file)
        self._path = _socket_path(journal_file)
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        """Look for the file once, and begin."""
        self._look()
        self._thread.start()

    def stop(self) -> None:
        """End, and take the socket away."""
        self._ending.set()
        if self._thread.is_alive():
            with contextlib.suppress(OSError):
                poke(self._path.with_name(self._path.name.removesuffix(_SUFFIX)))
            self._thread.join()
        self._socket.close()
        self._path.unlink(missing_ok=True)

    def _run(self) -> None:
        while not self._ending.is_set():
            seconds = None if self._stop_file is None else LOOK_SECONDS
            if select.select([self._socket], [], [], seconds)[0]:
                with contextlib.suppress(OSError):
                    self._socket.recv(1)
                self._wake()
            self._look()

    def _look(self) -> None:
        present = stop_file_present(self._stop_file)
        if present:
            try:
                if press_stop(self._journal, STOP_FILE):
                    self._log.warning("stop:file", file=str(self._stop_file))
            except JournalUnavailable as error:
                # Nothing moves all the same: a move looks for the file, and needs the journal.
                if not self._pressed_for_file:
                    self._log.error("journal:unavailable", error=str(error))
        self._pressed_for_file = present


def poke(journal_file: Path) -> None:
    """Wake the executor that runs on this journal, if one does; it finds what was committed."""
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as sender:
        sender.setblocking(False)
        with contextlib.suppress(OSError), _reachable(_socket_path(journal_file)) as address:
            sender.sendto(b".", address)


_SUFFIX: Final = ".wake"


def _socket_path(journal_file: Path) -> Path:
    return journal_file.with_name(journal_file.name + _SUFFIX)


def _listen(journal_file: Path) -> socket.socket:
    path = _socket_path(journal_file)
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener.setblocking(False)
    with _reachable(path) as address:
        listener.bind(address)
    path.chmod(_SOCKET_MODE)
    return listener


@contextlib.contextmanager
def _reachable(path: Path) -> Iterator[str]:
    # A socket's address ends at 107 octets (unix(7)); through the folder's descriptor any path is short.
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) if hasattr(os, "O_PATH") else None
    try:
        yield str(path) if folder is None else f"/proc/self/fd/{folder}/{path.name}"
    finally:
        if folder is not None:
            os.close(folder)


def _check_folder(stop_file: Path | None) -> None:
    if stop_file is not None and not stop_file.parent.is_dir():
        raise ConfigurationError(
            "stop_file",
            f"the folder {stop_file.parent} is not there, so nobody could stop by the file.",
            "Make the folder, and let those write into it who may stop everything.",
        )

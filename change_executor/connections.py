"""The executor's connections to mail servers: opened for one piece of work, bounded in time, breakable by a stop."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from shared.imap_guard import VerbTable
from shared.imap_login import GuardedClient, ImapLogin, connect

# A read timeout counts from the last octet, so a server that trickles would hold the worker for ever. Ten minutes
# is more than 64 MiB takes on a slow line, and more than the longest lock wait that was seen (207 s).
SESSION_SECONDS: Final = 600.0


class Connections:
    """Opens guarded connections and can break all that are open; thread-safe."""

    def __init__(self, session_seconds: float = SESSION_SECONDS) -> None:
        self._session_seconds = session_seconds
        self._open: set[GuardedClient] = set()
        self._lock = threading.Lock()

    @contextmanager
    def opened(self, login: ImapLogin, table: VerbTable) -> Iterator[GuardedClient]:
        """Sign in, and drop the connection at the end of the block.

        Raises `shared.imap_login.ImapFailure` or `shared.settings.ConfigurationError`.
        """
        client = connect(login, table)
        deadline = threading.Timer(self._session_seconds, client.break_off)
        deadline.daemon = True
        deadline.start()
        with self._lock:
            self._open.add(client)
        try:
            yield client
        finally:
            with self._lock:
                self._open.discard(client)
            deadline.cancel()
            deadline.join()
            client.close_connection()

    def break_all(self) -> None:
        """Break every open connection, so that whoever waits for an answer gets an error now."""
        with self._lock:
            for client in self._open:
                client.break_off()

"""The executor's connections to mail servers: opened for one piece of work, bounded in time, breakable by a stop."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from change_executor.sign_ins import SignIns
from shared.imap_guard import VerbTable
from shared.imap_login import GuardedClient, ImapFailure, ImapLogin, connect
from shared.settings import ConfigurationError

# A read timeout counts from the last octet, so a server that trickles would hold the worker for ever. Ten minutes
# is more than 64 MiB takes on a slow line, and more than the longest lock wait that was seen (207 s).
SESSION_SECONDS: Final = 600.0

# What all the answers of one session may take beyond what their octets need: a MOVE that waits for a lock as long as
# any answer may (90 s), and as much again for looking. An octet every few seconds buys no more than that.
PATIENCE_SECONDS: Final = 180.0

# A body comes in pieces of 1 MiB, a list of UIDs in one line of as much. To take 60 MiB of nonsense apart costs twenty
# seconds of processor time, in which the page waits.
ANSWER_OCTETS: Final = 8 * 1024 * 1024


class Connections:
    """Opens guarded connections and can break all that are open; thread-safe.

    With `sign_ins`, a credential that was refused is not tried again before its pause is over.
    """

    def __init__(
        self,
        sign_ins: SignIns | None = None,
        session_seconds: float = SESSION_SECONDS,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self.sign_ins = sign_ins
        self._session_seconds, self._patience_seconds = session_seconds, patience_seconds
        self._opened: Counter[str] = Counter()
        self._open: set[GuardedClient] = set()
        self._lock = threading.Lock()

    @contextmanager
    def opened(self, login: ImapLogin, table: VerbTable) -> Iterator[GuardedClient]:
        """Sign in, and drop the connection at the end of the block.

        Raises `shared.imap_login.ImapFailure` or `shared.settings.ConfigurationError`.
        """
        client = self._signed_in(login, table)
        with self._lock:
            self._opened[login.id] += 1
            self._open.add(client)
        try:
            yield client
        finally:
            with self._lock:
                self._open.discard(client)
            client.close_connection()

    def opened_so_far(self, credential: str) -> int:
        """Return how many were ever opened for a credential; its one user can tell by it how far a failure came."""
        with self._lock:
            return self._opened[credential]

    def _signed_in(self, login: ImapLogin, table: VerbTable) -> GuardedClient:
        if self.sign_ins is None:
            return self._connected(login, table)
        self.sign_ins.check(login.id)
        try:
            client = self._connected(login, table)
        except (ImapFailure, ConfigurationError) as failure:
            self.sign_ins.failed(login.id, failure)
            raise
        self.sign_ins.worked(login.id)
        return client

    def _connected(self, login: ImapLogin, table: VerbTable) -> GuardedClient:
        return connect(
            login,
            table,
            session_seconds=self._session_seconds,
            patience_seconds=self._patience_seconds,
            answer_octets=ANSWER_OCTETS,
        )

    def break_all(self) -> None:
        """Break every open connection, so that whoever waits for an answer gets an error now."""
        with self._lock:
            for client in self._open:
                client.break_off()

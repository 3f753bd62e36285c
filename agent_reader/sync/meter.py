"""What the mail server sends, counted towards the day: messages, and whatever else is asked for them."""

from typing import Final

from agent_reader.imap.session import ReadOnlySession
from agent_reader.sync.mirror import Mirror

# Each count is a transaction. What a kill leaves uncounted is less than this and a batch.
COUNTED_OCTETS: Final = 256 * 1024


class Meter:
    """Counts the octets of an account's connections, one after the other; one thread uses it."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._session: ReadOnlySession | None = None
        self._counted = 0

    def count(self, session: ReadOnlySession, at_least: int = 1) -> None:
        """Count what came since the last time, if it is that much."""
        if session is not self._session:
            self._session, self._counted = session, 0
        octets = session.octets_received - self._counted
        if octets >= at_least:
            self._mirror.received(octets)
            self._counted += octets

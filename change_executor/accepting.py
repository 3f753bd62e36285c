"""Connections that are accepted and not yet requests: few enough, and not for ever.

Whoever may connect could otherwise hold every descriptor of the process, the mail server's and the journal's with it.
"""

import asyncio
from typing import Final

import h11

from change_executor.peers import PeerProtocol

# A request's head over loopback or from a proxy takes milliseconds.
HEAD_SECONDS: Final = 10.0

# Per listener. Streams of open pages count too; two listeners stay well below the usual limit of 1,024 descriptors.
MAX_CONNECTIONS: Final = 300


class BoundedProtocol(PeerProtocol):
    """Closes what is one connection too many, and what sends no whole request head in time."""

    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Take the connection, or drop it at once."""
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()
            return
        self._await_head(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of the timer too."""
        if self._head_timer is not None:
            self._head_timer.cancel()
        super().connection_lost(exc)

    def _await_head(self, before: object) -> None:
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._look, before)

    def _look(self, before: object) -> None:
        # No whole head since the look before (`cycle` is the request at work, or the last one): that time has passed.
        if self.conn.their_state is h11.IDLE and self.cycle is before:
            self.transport.abort()
            return
        self._await_head(self.cycle)

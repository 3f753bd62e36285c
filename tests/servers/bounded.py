"""The time that a listener gives a request's head, over when the test says so: no machine is too slow for it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from shared.bounded_http import BoundedProtocol

if TYPE_CHECKING:
    import uvicorn

# Above what any test takes: the clock ends nothing.
NEVER_SECONDS = 3_600.0
_PATIENCE = 30.0


def let_head_seconds_pass(server: uvicorn.Server) -> None:
    """Have every connection do at once, in its loop, what it does `head_seconds` later; return when all have."""
    connections = [each for each in server.server_state.connections if isinstance(each, BoundedProtocol)]
    done = threading.Event()

    def look() -> None:
        for each in connections:
            if each._timer is not None and not each._timer.cancelled():
                each._timer._run()
        done.set()

    for each in connections[:1]:
        each.loop.call_soon_threadsafe(look)
        assert done.wait(_PATIENCE)

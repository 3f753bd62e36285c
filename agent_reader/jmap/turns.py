"""What is worked out in threads goes one after the other while it is short, and beside the others once it is not.

The interpreter lets one thread work at a time whatever is done. Threads that work at once take it from each other at
each row that SQLite gives, and each time one has to be woken: sixteen answers at a time took three times as long.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

# Ten times as long as a list of mailboxes takes. What takes longer waits for the disk, a mail server or room, or
# searches long, and others get on meanwhile.
TURN_SECONDS: Final = 0.02


class Turns:
    """Turns to work out an answer; who comes first is first. Belongs to the event loop."""

    def __init__(self, seconds: float = TURN_SECONDS) -> None:
        self._seconds = seconds
        self._free = asyncio.Semaphore(1)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Begin the block when it is its turn, which ends with the block, or when it has lasted too long."""
        await self._free.acquire()
        is_held = True

        def give_way() -> None:
            nonlocal is_held
            if is_held:
                is_held = False
                self._free.release()

        ending = asyncio.get_running_loop().call_later(self._seconds, give_way)
        try:
            yield
        finally:
            ending.cancel()
            give_way()

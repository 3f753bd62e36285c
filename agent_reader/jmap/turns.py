"""Answers are worked out one after the other while they are short, and beside the others once they are not.

The interpreter lets one thread work at a time whatever is done. Threads that work at once take it from each other at
each row that SQLite gives, and each time one has to be woken: sixteen answers at a time took three times as long.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

# Ten times as long as a page of messages takes. What takes longer waits for the disk, for a mail server or for room, or
# searches long, and others get on meanwhile.
TURN_SECONDS: Final = 0.02


class Turns:
    """Turns to work out an answer; who comes first is first. Belongs to the event loop."""

    def __init__(self, seconds: float = TURN_SECONDS) -> None:
        self._seconds = seconds
        self._free = asyncio.Semaphore(1)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Callable[[], object]]:
        """Begin the block when it is its turn, and give what ends the turn: any thread may call it.

        It also ends with the block, or when it has lasted too long.
        """
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        is_held = True

        def give_way() -> None:
            nonlocal is_held
            if is_held:
                is_held = False
                self._free.release()

        ending = loop.call_later(self._seconds, give_way)
        try:
            yield partial(loop.call_soon_threadsafe, give_way)
        finally:
            ending.cancel()
            give_way()

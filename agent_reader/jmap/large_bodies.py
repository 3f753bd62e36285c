"""Request bodies that are larger than lists of ids: few at a time, since each is read into ten times its size."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from starlette.requests import Request

from agent_reader.access import Agent
from agent_reader.door.keeper import Places
from agent_reader.jmap import problems

# Ten megabytes of text with one emoji in it take 100 MB.
_AT_ONCE: Final = 3
_OF_ONE_AGENT: Final = 1


class LargeBodies:
    """The large bodies that are read and worked on; belongs to the event loop. `small_octets` is what is none."""

    def __init__(self, small_octets: int) -> None:
        self._small_octets = small_octets
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._places = Places(_OF_ONE_AGENT, problems.too_many_large_requests)

    @asynccontextmanager
    async def turn(self, request: Request, agent: Agent) -> AsyncIterator[None]:
        """Hold a turn while the block runs, if the body is or may become large. Raises a `Problem`.

        While one waits its body stays where it is: in the sockets, and with the client.
        """
        declared = request.headers.get("content-length", "")
        # h11 has refused what is no number; without any the body may become as large as it likes.
        if declared and len(declared) <= 12 and int(declared) <= self._small_octets:  # noqa: PLR2004 - past any limit
            yield
            return
        with self._places.place(agent):
            async with self._turns:
                yield

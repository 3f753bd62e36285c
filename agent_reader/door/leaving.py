"""A client that goes away: whoever works for it learns so at once, in whatever thread, and ends."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.requests import ClientDisconnect, Request

from agent_reader.query.patience import Abandoned


@asynccontextmanager
async def watched(request: Request) -> AsyncIterator[Callable[[], bool]]:
    """Tell within the block whether the client is gone; the body has been read, and nothing else may receive.

    After the block it is: that this server ends cancels the request, and so ends the work as well. `Abandoned` becomes
    `ClientDisconnect`.
    """
    gone = threading.Event()
    watching = asyncio.create_task(_set_when_gone(request, gone))
    try:
        yield gone.is_set
    except Abandoned:
        raise ClientDisconnect from None
    finally:
        gone.set()
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def _set_when_gone(request: Request, gone: threading.Event) -> None:
    # The body was read; all that can come now is the end.
    while (await request.receive())["type"] != "http.disconnect":
        pass
    gone.set()

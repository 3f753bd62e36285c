"""Answers that are sent in pieces, as fast as they are taken, until the client is gone."""

import contextlib
from collections.abc import Callable, Iterable
from typing import Final

import anyio
import anyio.lowlevel
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agent_reader.errors import AccessUnavailable
from agent_reader.jmap.sheet import PIECE_OCTETS, Sheet

# A page of messages with their texts. Whoever takes none of it holds so much of memory with each of his places.
_AT_ONCE_OCTETS: Final = 4 * PIECE_OCTETS


# A token is revoked by a command, another process that wakes nobody here: whatever lasts looks so often whether it was.
# One look is an indexed row, some microseconds; whoever revokes sees the end before he has looked up.
REVOCATION_SECONDS: Final = 1.0


async def send_pieces(pieces: Iterable[bytes], receive: Receive, send: Send, still_opens: Callable[[], bool]) -> None:
    """Send a body whose head was sent; the next piece is made once the one before was taken.

    The client's going ends it, and so does the token's: `still_opens` is asked once a second. What was not sent then is
    missing, and the server closes the connection, so that nobody takes the part for the whole.
    """
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_end_with_the_client, receive, tasks.cancel_scope)
        tasks.start_soon(_end_with_the_token, still_opens, tasks.cancel_scope)
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            # To a client that is lost, sending takes no time at all; this is when the loop may learn of the loss.
            await anyio.lowlevel.checkpoint()
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        tasks.cancel_scope.cancel()


async def _end_with_the_client(receive: Receive, sending: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    sending.cancel()


async def _end_with_the_token(still_opens: Callable[[], bool], sending: anyio.CancelScope) -> None:
    # It did when the answer was put on record.
    opens = True
    while opens:
        await anyio.sleep(REVOCATION_SECONDS)
        try:
            opens = still_opens()
        except AccessUnavailable:
            # Where nobody can tell, it does not.
            opens = False
    sending.cancel()


class SheetResponse(Response):
    """What stands on a sheet; whatever happens, what it holds is let go at the end. Its octets were charged before."""

    def __init__(
        self, sheet: Sheet, media_type: str, holding: contextlib.ExitStack, still_opens: Callable[[], bool]
    ) -> None:
        self._sheet, self._holding, self._still_opens = sheet, holding, still_opens
        super().__init__(media_type=media_type, headers={"Content-Length": str(sheet.octets)})
        # The keeper charges what `body` holds; here it holds nothing.
        del self.body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's signature
        """Send it, a short one at once."""
        with self._holding:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if self._sheet.octets > _AT_ONCE_OCTETS:
                await send_pieces(self._sheet.pieces(), receive, send, self._still_opens)
            else:
                whole = self._sheet.read(0, self._sheet.octets)
                await send({"type": "http.response.body", "body": whole, "more_body": False})

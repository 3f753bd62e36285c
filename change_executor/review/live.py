"""Telling open pages that something changed: which proposals, and how many wait. Never what they say.

A stream holds a place, a wake-up and nothing of the journal; leaving frees all of it.
"""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from sqlalchemy import select
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from change_executor.errors import JournalUnavailable
from change_executor.journal import schema
from change_executor.review.frame import last_seq
from change_executor.review.queue_view import count_waiting
from change_executor.review.room import Room
from change_executor.review.sessions import Session, still_good

# Shows a proxy and the browser that the stream lives, and finds what another process wrote.
BEAT_SECONDS: Final = 15.0
# More changes at once than a page could name: the page is told that something changed, and that is enough.
_MAX_NAMED: Final = 100
_STOP_EVENTS: Final = {"stop:press": "pressed", "stop:release": "released"}
_SEQ: Final = re.compile(r"[0-9]{1,15}", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Change:
    seq: int
    proposals: list[str]
    stop: str | None
    waiting: int

    def __bool__(self) -> bool:
        return bool(self.proposals) or self.stop is not None


async def events(room: Room, request: Request, session: Session) -> Response:
    """`GET /events?since=N`: one `change` event for each change after event N, until the session ends.

    A page knows which event it was made after, and a browser that connects again says which one it heard last, so
    that nothing is missed in between.
    """
    heard = request.headers.get("last-event-id") or request.query_params.get("since", "")
    return _EventStream(room, session, int(heard) if _SEQ.fullmatch(heard) else None)


class _EventStream(Response):
    def __init__(self, room: Room, session: Session, since: int | None) -> None:
        super().__init__()
        self._room, self._session, self._since = room, session, since

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The place is held around the sending, so that a browser that leaves at any moment frees it.
        with self._room.hub.place(self._session.digest) as woken:
            head = await self._room.in_thread(_head, self._room)
            seq = head if self._since is None else min(self._since, head)
            response = StreamingResponse(
                _stream(self._room, self._session, seq, woken),
                media_type="text/event-stream",
                headers={"x-accel-buffering": "no"},
            )
            await response(scope, receive, send)


async def _stream(room: Room, session: Session, seq: int, woken: asyncio.Event) -> AsyncIterator[str]:
    # A first line, so that the browser knows that it is connected.
    yield "retry: 5000\n\n"
    woken.set()
    while True:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(woken.wait(), BEAT_SECONDS)
        woken.clear()
        if room.hub.closed:
            return
        try:
            change = await room.in_thread(_since, room, session, seq)
        except JournalUnavailable:
            yield ": the journal is busy\n\n"
            continue
        if change is None:
            yield "event: signed-out\ndata: {}\n\n"
            return
        seq = change.seq
        if change:
            data = json.dumps({"proposals": change.proposals, "stop": change.stop, "waiting": change.waiting})
            yield f"id: {seq}\nevent: change\ndata: {data}\n\n"
        else:
            yield ": alive\n\n"


def _head(room: Room) -> int:
    with room.journal.reading() as connection:
        return last_seq(connection)


def _since(room: Room, session: Session, seq: int) -> _Change | None:
    columns = schema.events.c
    with room.journal.reading() as connection:
        if not still_good(connection, session.digest, room.journal.now()):
            return None
        rows = connection.execute(
            select(columns.seq, columns.kind, columns.subject)
            .where(columns.seq > seq)
            .order_by(columns.seq.desc())
            .limit(_MAX_NAMED)
        ).all()
        subjects = {row.subject for row in rows if row.kind.startswith("proposal:")}
        return _Change(
            seq=rows[0].seq if rows else seq,
            proposals=sorted(subjects),
            # The latest of them: newest first.
            stop=next((_STOP_EVENTS[row.kind] for row in rows if row.kind in _STOP_EVENTS), None),
            waiting=count_waiting(connection),
        )

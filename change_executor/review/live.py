"""Telling open pages that something changed: which proposals, and how many wait. Never what they say.

A stream holds a place, a wake-up and nothing of the journal; leaving frees all of it.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, func, select
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from change_executor.errors import JournalUnavailable
from change_executor.journal import schema
from change_executor.review.queue_view import count_waiting
from change_executor.review.room import Room
from change_executor.review.sessions import Session, still_good

# Shows a proxy and the browser that the stream lives, and finds what another process wrote.
BEAT_SECONDS: Final = 15.0
# More changes at once than a page could name: the page is told that something changed, and that is enough.
_MAX_NAMED: Final = 100


@dataclass(frozen=True, slots=True)
class _Change:
    seq: int
    proposals: list[str]
    other: bool
    waiting: int

    def __bool__(self) -> bool:
        return bool(self.proposals) or self.other


async def events(room: Room, request: Request, session: Session) -> Response:  # noqa: ARG001 - a handler's signature
    """`GET /events`: one `change` event for each change, until the session ends or the browser leaves."""
    return _EventStream(room, session)


class _EventStream(Response):
    def __init__(self, room: Room, session: Session) -> None:
        super().__init__()
        self._room, self._session = room, session

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The place is held around the sending, so that a browser that leaves at any moment frees it.
        with self._room.hub.place(self._session.digest) as woken:
            seq = await self._room.in_thread(_last_seq, self._room)
            response = StreamingResponse(
                _stream(self._room, self._session, seq, woken),
                media_type="text/event-stream",
                headers={"x-accel-buffering": "no"},
            )
            await response(scope, receive, send)


async def _stream(room: Room, session: Session, seq: int, woken: asyncio.Event) -> AsyncIterator[str]:
    # A first line, so that the browser knows that it is connected.
    yield "retry: 5000\n\n"
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
            data = json.dumps({"proposals": change.proposals, "waiting": change.waiting})
            yield f"id: {seq}\nevent: change\ndata: {data}\n\n"
        else:
            yield ": alive\n\n"


def _last_seq(room: Room) -> int:
    with room.journal.reading() as connection:
        return _head(connection)


def _head(connection: Connection) -> int:
    last: int = connection.execute(select(func.coalesce(func.max(schema.events.c.seq), 0))).scalar_one()
    return last


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
            other=any(row.kind.startswith("stop:") for row in rows),
            waiting=count_waiting(connection),
        )

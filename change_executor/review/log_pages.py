"""The log's pages: searching it, what one message went through, taking it away, and checking the chain."""

from collections.abc import AsyncIterator
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from change_executor.audit import Verification, verify
from change_executor.review.agents_view import ask_who_read
from change_executor.review.forms import Form
from change_executor.review.frame import read_frame
from change_executor.review.log_view import LogFilters, What, exported, log_filters_from, read_about, read_log
from change_executor.review.room import Room, html
from change_executor.review.sessions import Session
from shared.identity import is_email_id

# One line for each event, each a JSON object (the name that such files have by custom).
_EXPORT_TYPE: Final = "application/jsonl"


async def log(room: Room, request: Request, session: Session) -> Response:
    """`GET /log`: the events, newest first; filters as `log_view` names them."""
    filters = log_filters_from(dict(request.query_params))
    return html(await room.in_thread(_log_page, room, session, filters, None))


async def verify_chain(room: Room, request: Request, session: Session, form: Form) -> Response:  # noqa: ARG001 - a handler's signature
    """`POST /log/verify`: walk the whole journal now and say what is wrong with it, if anything."""
    verification = await room.in_thread(_verified, room)
    return html(await room.in_thread(_log_page, room, session, LogFilters(), verification))


async def export(room: Room, request: Request, session: Session) -> Response:  # noqa: ARG001 - a handler's signature
    """`GET /log/export`: the same events as lines of JSON, oldest first, each with its hash."""
    filters = log_filters_from(dict(request.query_params))
    return StreamingResponse(
        _lines(room, filters),
        media_type=_EXPORT_TYPE,
        headers={"content-disposition": 'attachment; filename="mailwarrant-journal.jsonl"'},
    )


async def _lines(room: Room, filters: LogFilters) -> AsyncIterator[str]:
    pieces = exported(room.journal, filters)
    while (piece := await room.in_thread(next, pieces, None)) is not None:
        yield "\n".join(piece) + "\n"


def _verified(room: Room) -> Verification:
    with room.journal.reading() as connection:
        return verify(connection)


def _log_page(room: Room, session: Session, filters: LogFilters, verification: Verification | None) -> str:
    with room.journal.reading() as connection:
        page, frame = read_log(connection, filters), read_frame(connection)
        about = read_about(connection, filters.about) if is_email_id(filters.about) else None
    who_read = None if about is None else ask_who_read(room.reader, filters.about, room.clock())
    return room.page(
        "log.html",
        session,
        frame,
        here="log",
        page=page,
        filters=filters,
        kinds=list(What),
        about=about,
        who_read=who_read,
        verification=verification,
    )

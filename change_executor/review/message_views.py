"""A message seen otherwise than as its text: its HTML in a frame that may do nothing, and its octets as text.

Three things hold the HTML, of which each would suffice: the child cleans it, the frame has no permission, and this
answer forbids everything by a policy of its own.
"""

import re
from html import unescape
from typing import Final

import anyio
from sqlalchemy import Connection, select
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from change_executor.evidence.run_child import clean_html_in_child
from change_executor.journal import evidence, schema
from change_executor.review.error_page import PageError, Refusal
from change_executor.review.headers import FRAME_HEADERS
from change_executor.review.rendering import render
from change_executor.review.room import Room
from change_executor.review.sessions import Session
from shared.fence import clean
from shared.proposal import PROPOSAL_ID

_TAG: Final = re.compile(r"<[^>]*>")


async def html_frame(room: Room, request: Request, session: Session) -> Response:  # noqa: ARG001 - a handler's signature
    """`GET /p/{proposal_id}/html`: the message's HTML, cleaned, for the sandboxed frame of the item page."""
    proposal_id = request.path_params["proposal_id"]
    if PROPOSAL_ID.fullmatch(proposal_id) is None:
        raise PageError(Refusal.NOT_FOUND)
    octets = await room.in_thread(_source, room, proposal_id)
    if octets is None:
        raise PageError(Refusal.NOT_FOUND)
    cleaned = await anyio.to_thread.run_sync(clean_html_in_child, octets, limiter=room.child_threads)
    return HTMLResponse(
        render("frame.html", cleaned=cleaned, is_blank=cleaned is not None and _is_blank(cleaned)),
        headers=FRAME_HEADERS,
    )


def _is_blank(cleaned: str) -> bool:
    # Of what is left, only words show: images and styles are gone.
    return not unescape(_TAG.sub("", cleaned)).strip()


def source_lines(octets: bytes) -> str:
    """Return octets as text: what is no UTF-8 is marked, what is invisible is taken out."""
    return clean(octets.decode("utf-8", "replace")).text


def has_source(connection: Connection, proposal_id: str) -> bool:
    """Whether octets of a proposal's message are kept; whether they are the right ones is seen when they are read."""
    columns = schema.texts.c
    kept = select(columns.kind).where(columns.proposal == proposal_id, columns.kind == "source")
    return connection.execute(kept).first() is not None


def _source(room: Room, proposal_id: str) -> bytes | None:
    with room.journal.reading() as connection:
        return evidence.source(connection, proposal_id)

"""The queue's own pages: the list with its filters, single lines for a list that is open already, and the icon."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import select
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from change_executor.journal import schema
from change_executor.journal.journal import is_stopped
from change_executor.review import wording
from change_executor.review.frame import read_frame
from change_executor.review.landing import read_decided
from change_executor.review.queue_view import UNDER_WAY, After, Row, read_matching, read_queue, read_rows
from change_executor.review.rendering import render
from change_executor.review.room import Room, html
from change_executor.review.searching import Filters, filters_from
from change_executor.review.sessions import Session
from shared.proposal import PROPOSAL_ID, State

_AFTER: Final = re.compile(r"([0-9]{1,17})\.(P[0-9a-v]{20})", re.ASCII)
# As many as one change names.
_MAX_ROWS: Final = 100
# Past this the icon says `99+`.
_MAX_ON_ICON: Final = 99


async def queue(room: Room, request: Request, session: Session) -> Response:
    """`GET /`: the queue; filters as `searching` names them, `?after=` continues it, `?done=` tells of a decision."""
    asked = dict(request.query_params)
    return html(
        await room.in_thread(
            _queue_page, room, session, filters_from(asked), _after(asked.get("after")), asked.get("done", "")
        )
    )


async def rows(room: Room, request: Request, session: Session) -> Response:  # noqa: ARG001 - a handler's signature
    """`GET /rows?ids=A,B&...`: the lines of these proposals that the filters let through, as JSON, oldest first."""
    asked = dict(request.query_params)
    ids = [each for each in asked.get("ids", "").split(",")[:_MAX_ROWS] if PROPOSAL_ID.fullmatch(each)]
    return JSONResponse(await room.in_thread(_rows, room, filters_from(asked), ids))


async def icon(room: Room, request: Request) -> Response:  # noqa: ARG001 - a handler's signature
    """`GET /icon/{count}`: the page's icon with the number of proposals that wait."""
    count = request.path_params["count"]
    shown = int(count) if re.fullmatch(r"[0-9]{1,6}", count, re.ASCII) else 0
    label = f"{_MAX_ON_ICON}+" if shown > _MAX_ON_ICON else str(shown or "")
    return Response(render("icon.svg", label=label), media_type="image/svg+xml")


def _queue_page(room: Room, session: Session, filters: Filters, after: After | None, done: str) -> str:
    with room.journal.reading() as connection:
        view, frame = read_queue(connection, room.settings, filters, after), read_frame(connection)
        decided = read_decided(connection, room.settings, done)
        agents = connection.execute(select(schema.tokens.c.agent).distinct().order_by(schema.tokens.c.agent)).scalars()
        known_agents = list(agents)
    return room.page(
        "queue.html",
        session,
        frame,
        here="queue",
        view=view,
        filters=filters,
        agents=known_agents,
        queues=[queue.id for queue in room.settings.queues],
        roles=sorted({role for queue in room.settings.queues for role in queue.to}),
        done=decided,
        paged=after is not None,
        first_queue=room.settings.queues[0].id,
    )


def _rows(room: Room, filters: Filters, ids: list[str]) -> list[dict[str, Any]]:
    with room.journal.reading() as connection:
        stopped = is_stopped(connection)
        matching = read_matching(connection, filters, ids)
        return [_as_json(row, filters, stopped=stopped) for row in read_rows(connection, room.settings, matching)]


def _as_json(row: Row, filters: Filters, *, stopped: bool) -> dict[str, Any]:
    proposal = row.proposal
    pending, ended, seen = (
        proposal.state is State.PENDING,
        proposal.ended_at is not None,
        proposal.evidence is not None,
    )
    return {
        "id": proposal.id,
        "path": f"/p/{proposal.id}{filters.query()}",
        "pending": pending,
        "over": proposal.state not in UNDER_WAY,
        "tone": wording.TONES.get(proposal.state, ""),
        "done": wording.done(proposal.state, stopped=stopped),
        "times": {"ago": _moment(proposal.ended_at or proposal.created_at), "left": _moment(proposal.expires_at)},
        "undo": None
        if row.taking_back is None
        else {
            "action": f"/p/{proposal.id}/{row.taking_back}",
            "fields": {"version": proposal.version, "shown": row.shown},
        },
        "texts": {
            "subject": row.subject or "",
            "instead": "" if row.subject else wording.instead_of_subject(row.subject, ended=ended, seen=seen),
            "sender": row.sender,
            "from": proposal.from_role,
            "to": proposal.to_role,
            "queue": proposal.queue,
            "agent": f"agent {proposal.agent}",
            "warnings": wording.counted(row.warnings, "warning", "warnings") if row.warnings else "",
            "copies": f"1 of {row.copies} copies" if row.copies > 1 else "",
            "state": "" if pending else wording.STATES[proposal.state],
            "waits": "" if proposal.waiting_code is None else wording.waiting(proposal.waiting_code, stopped=stopped),
        },
    }


def _moment(moment: datetime) -> tuple[str, str]:
    return moment.isoformat(), wording.exact(moment)


def _after(untrusted_text: str | None) -> After | None:
    match = _AFTER.fullmatch(untrusted_text or "")
    if match is None:
        return None
    return After(datetime.fromtimestamp(0, UTC) + timedelta(microseconds=int(match[1])), match[2])

"""Taking back what an agent brought about since a moment: a page that lists each move, and one press for all of them.

What is pressed is what was listed: a move that was added or went meanwhile makes the page show the list again.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from change_executor.journal.journal import Proposal, read_proposal
from change_executor.review.agents_pages import agent_name
from change_executor.review.case import read_texts
from change_executor.review.error_page import PageError, Refusal
from change_executor.review.forms import Form
from change_executor.review.frame import read_frame
from change_executor.review.room import Room, html
from change_executor.review.searching import first_line
from change_executor.review.sessions import Session
from change_executor.undoing import ListChanged, UndoAsked, cannot_undo, list_digest, moved_since, undo_since

# As browsers write `datetime-local`; taken as UTC, and the page says so.
_MOMENT: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2})?", re.ASCII)
# Past this the page is not read; what is not listed is counted, and goes back too.
MAX_LISTED: Final = 200
_CONFLICT: Final = 409


@dataclass(frozen=True, slots=True)
class Moved:
    """One move that can be asked back; `obstacle` is the code of what stands against it, or None."""

    proposal: Proposal
    subject: str | None
    obstacle: str | None


@dataclass(frozen=True, slots=True)
class Listed:
    """What is listed, newest first, the digest of all their ids, and how many more there are."""

    moves: list[Moved]
    digest: str
    more: int


async def list_moves(room: Room, request: Request, session: Session) -> Response:
    """`GET /agents/{agent}/undo?since=T`: what the agent brought about since then (UTC) and still lies there."""
    name, since = agent_name(request), _moment(request.query_params.get("since", ""))
    return html(await room.in_thread(_page, room, session, name, since))


async def take_back(room: Room, request: Request, session: Session, form: Form) -> Response:
    """`POST /agents/{agent}/undo`, with `since` and the digest of what was `listed`."""
    name, since = agent_name(request), _moment(form.text("since"))
    if since is None:
        raise PageError(Refusal.MALFORMED_FORM)
    page, as_listed = await room.in_thread(_take_back, room, session, name, since, form.text("listed"))
    return html(page, 200 if as_listed else _CONFLICT)


def _moment(untrusted: str) -> datetime | None:
    if _MOMENT.fullmatch(untrusted) is None:
        return None
    try:
        return datetime.fromisoformat(untrusted).replace(tzinfo=UTC)
    except ValueError:
        return None


def _take_back(room: Room, session: Session, name: str, since: datetime, untrusted_digest: str) -> tuple[str, bool]:
    person = f"person:{session.person.name}"
    try:
        done = undo_since(room.journal, room.settings, name, since, person, listed=untrusted_digest)
    except ListChanged:
        return _page(room, session, name, since, changed=True), False
    return _page(room, session, name, since, done=done), True


def _page(
    room: Room,
    session: Session,
    name: str,
    since: datetime | None,
    *,
    changed: bool = False,
    done: UndoAsked | None = None,
) -> str:
    with room.journal.reading() as connection:
        listed = Listed([], list_digest(()), 0) if since is None else _listed(connection, room, name, since)
        frame = read_frame(connection)
    return room.page(
        "taking_back.html",
        session,
        frame,
        here="agents",
        name=name,
        since=since,
        listed=listed,
        changed=changed,
        done=done,
    )


def _listed(connection: Connection, room: Room, name: str, since: datetime) -> Listed:
    ids = moved_since(connection, name, since)
    shown = ids[:MAX_LISTED]
    texts = read_texts(connection, shown, ("reading",))
    moves = []
    for each in shown:
        proposal = read_proposal(connection, each)
        refusal = cannot_undo(connection, room.settings, proposal)
        subject = first_line(texts.get(each, {}).get("reading"), "subject")
        moves.append(Moved(proposal, subject, None if refusal is None else refusal.value))
    return Listed(moves, list_digest(ids), len(ids) - len(shown))

"""The pages at which a person looks and decides."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from change_executor.errors import AnotherIsOpen, NoSuchProposal, VersionChanged
from change_executor.journal.journal import Proposal, is_stopped, read_proposal
from change_executor.lifecycle import TransitionRefused
from change_executor.review import wording
from change_executor.review.case import read_case, read_events
from change_executor.review.decisions import DecisionRefused, Desk, LookedAt, SessionEnded, Settled, cannot_approve
from change_executor.review.error_page import PageError, Refusal
from change_executor.review.forms import Form, decision_reason, looked_at
from change_executor.review.live import last_seq
from change_executor.review.queue_view import After, read_queue
from change_executor.review.room import Room, html, see_other
from change_executor.review.sessions import Session
from change_executor.switch import press_stop, release_stop
from shared.proposal import PROPOSAL_ID

_AFTER: Final = re.compile(r"([0-9]{1,17})\.(P[0-9a-v]{20})", re.ASCII)
_CONFLICT: Final = 409


async def queue(room: Room, request: Request, session: Session) -> Response:
    """`GET /`: the queue; `?after=` continues it, `?done=` tells what became of a decision."""
    after, done = _after(request.query_params.get("after")), request.query_params.get("done", "")
    return html(await room.in_thread(_queue_page, room, session, after, done))


async def item(room: Room, request: Request, session: Session) -> Response:
    """`GET /p/{proposal_id}`: one proposal beside its message."""
    return html(await room.in_thread(_item_page, room, session, _proposal_id(request), None))


async def approve(room: Room, request: Request, session: Session, form: Form) -> Response:
    """`POST /p/{proposal_id}/approve`."""
    seen = looked_at(_proposal_id(request), form)
    return await _decide(room, session, seen, lambda desk: desk.approve(seen))


async def reject(room: Room, request: Request, session: Session, form: Form) -> Response:
    """`POST /p/{proposal_id}/reject`, with a `reason` that the agent can read."""
    seen, reason = looked_at(_proposal_id(request), form), decision_reason(form)
    return await _decide(room, session, seen, lambda desk: desk.reject(seen, reason))


async def undo(room: Room, request: Request, session: Session, form: Form) -> Response:
    """`POST /p/{proposal_id}/undo`."""
    seen = looked_at(_proposal_id(request), form)
    return await _decide(room, session, seen, lambda desk: desk.undo(seen))


async def settle(room: Room, request: Request, session: Session, form: Form) -> Response:
    """`POST /p/{proposal_id}/settle`, with an `outcome`: applied, failed or undone."""
    seen = looked_at(_proposal_id(request), form)
    try:
        outcome = Settled(form.text("outcome"))
    except ValueError:
        raise PageError(Refusal.MALFORMED_FORM) from None
    return await _decide(room, session, seen, lambda desk: desk.settle(seen, outcome))


async def stop(room: Room, request: Request, session: Session, form: Form) -> Response:  # noqa: ARG001 - a handler's signature
    """`POST /stop`: nothing is moved until somebody resumes."""
    await room.in_thread(press_stop, room.journal, f"person:{session.person.name}")
    return see_other("/")


async def resume(room: Room, request: Request, session: Session, form: Form) -> Response:  # noqa: ARG001 - a handler's signature
    """`POST /resume`."""
    await room.in_thread(release_stop, room.journal, f"person:{session.person.name}")
    return see_other("/")


async def _decide(room: Room, session: Session, seen: LookedAt, decide: Callable[[Desk], Proposal]) -> Response:
    desk = Desk(room.journal, room.settings, session)
    try:
        proposal = await room.in_thread(decide, desk)
    except VersionChanged:
        refused = "changed"
    except TransitionRefused:
        refused = "transition"
    except DecisionRefused as refusal:
        refused = refusal.code
    except AnotherIsOpen:
        refused = "another_is_open"
    except SessionEnded:
        raise PageError(Refusal.SIGNED_OUT, f"/p/{seen.proposal_id}") from None
    else:
        return see_other(f"/?done={proposal.id}")
    return html(await room.in_thread(_item_page, room, session, seen.proposal_id, refused), _CONFLICT)


def _queue_page(room: Room, session: Session, after: After | None, done: str) -> str:
    with room.journal.reading() as connection:
        view, seq = read_queue(connection, room.settings, after), last_seq(connection)
        decided = None
        if PROPOSAL_ID.fullmatch(done):
            try:
                decided = read_proposal(connection, done)
            except NoSuchProposal:
                decided = None
    return room.page(
        "queue.html",
        session,
        stopped=view.stopped,
        here="queue",
        view=view,
        seq=seq,
        done=decided,
        paged=after is not None,
        first_queue=room.settings.queues[0].id,
    )


def _item_page(room: Room, session: Session, proposal_id: str, refused: str | None) -> str:
    with room.journal.reading() as connection:
        case = read_case(connection, room.settings, proposal_id)
        happened = read_events(connection, proposal_id)
        stopped, seq = is_stopped(connection), last_seq(connection)
    return room.page(
        "item.html",
        session,
        stopped=stopped,
        case=case,
        seq=seq,
        events=happened,
        hints=wording.hint_sentences(_object(case.hints)),
        obstacle=cannot_approve(case, room.clock()),
        refused=refused,
    )


def _proposal_id(request: Request) -> str:
    proposal_id: str = request.path_params["proposal_id"]
    if PROPOSAL_ID.fullmatch(proposal_id) is None:
        raise PageError(Refusal.NOT_FOUND)
    return proposal_id


def _after(untrusted_text: str | None) -> After | None:
    match = _AFTER.fullmatch(untrusted_text or "")
    if match is None:
        return None
    return After(datetime.fromtimestamp(0, UTC) + timedelta(microseconds=int(match[1])), match[2])


def _object(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}

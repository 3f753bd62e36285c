"""The pages at which a person looks and decides."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from change_executor.errors import AnotherIsOpen, VersionChanged
from change_executor.journal import evidence
from change_executor.journal.journal import Proposal
from change_executor.lifecycle import TransitionRefused
from change_executor.review import wording
from change_executor.review.case import Case, read_case, read_events
from change_executor.review.decisions import DecisionRefused, Desk, LookedAt, SessionEnded, Settled, cannot_approve
from change_executor.review.earlier import read_earlier
from change_executor.review.error_page import PageError, Refusal
from change_executor.review.forms import Form, decision_reason, looked_at, seen_in
from change_executor.review.frame import read_frame
from change_executor.review.landing import list_of, place_after, read_decided
from change_executor.review.message_views import has_source, source_lines
from change_executor.review.queue_view import read_next
from change_executor.review.room import Room, html, see_other, way_back
from change_executor.review.searching import Filters, filters_from
from change_executor.review.sessions import Session
from change_executor.switch import PressedSince, is_frozen, press_stop, release_stop
from shared.proposal import PROPOSAL_ID

_CONFLICT: Final = 409


class View(StrEnum):
    """How the message is looked at: its text, its HTML in a sandbox, or its octets as text."""

    TEXT = "text"
    HTML = "html"
    SOURCE = "source"


@dataclass(frozen=True, slots=True)
class Arrival:
    """How a person came to an item: from which list, after which decision, and how they look at the message."""

    filters: Filters
    done: str = ""
    view: View = View.TEXT


async def item(room: Room, request: Request, session: Session) -> Response:
    """`GET /p/{proposal_id}`: one proposal beside its message; `?view=html` and `?view=source` show more.

    Filters as the queue has them say which list it was reached from, `?done=` what was decided just before.
    """
    asked = dict(request.query_params)
    arrival = Arrival(filters_from(asked), asked.get("done", ""), _view(asked.get("view")))
    return html(await room.in_thread(_item_page, room, session, proposal_id_of(request), arrival, None))


async def approve(room: Room, request: Request, session: Session, form: Form) -> Response:
    """`POST /p/{proposal_id}/approve`."""
    seen = looked_at(proposal_id_of(request), form)
    return await _decide(room, session, form, seen, lambda desk: desk.approve(seen))


async def reject(room: Room, request: Request, session: Session, form: Form) -> Response:
    """`POST /p/{proposal_id}/reject`, with a `reason` that the agent can read."""
    seen, reason = looked_at(proposal_id_of(request), form), decision_reason(form)
    return await _decide(room, session, form, seen, lambda desk: desk.reject(seen, reason))


async def undo(room: Room, request: Request, session: Session, form: Form) -> Response:
    """`POST /p/{proposal_id}/undo`."""
    seen = looked_at(proposal_id_of(request), form)
    return await _decide(room, session, form, seen, lambda desk: desk.undo(seen))


async def settle(room: Room, request: Request, session: Session, form: Form) -> Response:
    """`POST /p/{proposal_id}/settle`, with an `outcome`: applied, failed or undone."""
    seen = looked_at(proposal_id_of(request), form)
    try:
        outcome = Settled(form.text("outcome"))
    except ValueError:
        raise PageError(Refusal.MALFORMED_FORM) from None
    return await _decide(room, session, form, seen, lambda desk: desk.settle(seen, outcome))


async def stop(room: Room, request: Request, session: Session, form: Form) -> Response:  # noqa: ARG001 - a handler's signature
    """`POST /stop`: nothing is approved or moved until somebody resumes."""
    await room.in_thread(press_stop, room.journal, f"person:{session.person.name}")
    return see_other(_here(form))


async def resume(room: Room, request: Request, session: Session, form: Form) -> Response:  # noqa: ARG001 - a handler's signature
    """`POST /resume`, with `seen`: the last event that the page knew of. A stop that it did not show goes on."""
    release = partial(release_stop, room.journal, f"person:{session.person.name}", seen=seen_in(form))
    try:
        await room.in_thread(release)
    except PressedSince:
        raise PageError(Refusal.STOPPED_AGAIN) from None
    return see_other(_here(form))


def _here(form: Form) -> str:
    return way_back(form.text("next"))


async def _decide(
    room: Room, session: Session, form: Form, seen: LookedAt, decide: Callable[[Desk], Proposal]
) -> Response:
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
        return see_other(await room.in_thread(_place_after, room, form, proposal))
    arrival = Arrival(list_of(form))
    return html(await room.in_thread(_item_page, room, session, seen.proposal_id, arrival, refused), _CONFLICT)


def _place_after(room: Room, form: Form, decided: Proposal) -> str:
    with room.journal.reading() as connection:
        return place_after(connection, form, decided)


def _item_page(room: Room, session: Session, proposal_id: str, arrival: Arrival, refused: str | None) -> str:
    view = arrival.view
    with room.journal.reading() as connection:
        case = read_case(connection, room.settings, proposal_id)
        happened = read_events(connection, proposal_id)
        earlier = read_earlier(connection, case)
        source = evidence.source(connection, proposal_id) if view is View.SOURCE else None
        source_is_kept = has_source(connection, proposal_id)
        frame = read_frame(connection)
        frozen = is_frozen(connection, room.settings.stop_file)
        decided = read_decided(connection, room.settings, arrival.done)
        following = read_next(connection, arrival.filters, case.proposal)
    return room.page(
        "item.html",
        session,
        frame,
        case=case,
        events=happened,
        earlier=earlier,
        view=view.value,
        source=None if source is None else source_lines(source),
        has_source=source_is_kept,
        hints=hints_of(case),
        obstacle=cannot_approve(case, room.clock(), frozen=frozen),
        refused=refused,
        filters=arrival.filters,
        done=decided,
        following=following,
    )


def hints_of(case: Case) -> list[str]:
    """Return what the reader says about the agent and the message, in our words."""
    return wording.hint_sentences(_object(case.hints))


def _view(untrusted: str | None) -> View:
    return View(untrusted) if untrusted in set(View) else View.TEXT


def proposal_id_of(request: Request) -> str:
    """Return the proposal that a path names. Raises `PageError` where it cannot be one."""
    proposal_id: str = request.path_params["proposal_id"]
    if PROPOSAL_ID.fullmatch(proposal_id) is None:
        raise PageError(Refusal.NOT_FOUND)
    return proposal_id


def _object(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}

"""The settings: a person's ways in and sessions, this browser's keys and notifications, the people, the stop button."""

import re
from dataclasses import dataclass, field
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from change_executor.review.error_page import PageError, Refusal
from change_executor.review.forms import Form
from change_executor.review.frame import read_frame
from change_executor.review.own_ways import passkey_options
from change_executor.review.passkeys import list_passkeys
from change_executor.review.people import Role, list_people
from change_executor.review.preferences import KEYS_COOKIE, NOTIFY_COOKIE, OFF, ON, PREFERENCE_SECONDS
from change_executor.review.room import Room, html, see_other
from change_executor.review.sessions import Session, end_named_session, end_sessions_elsewhere, list_sessions

_SESSION_NAME: Final = re.compile(r"[0-9a-f]{16}", re.ASCII)
_SWITCH: Final = frozenset({ON, OFF})


@dataclass(frozen=True, slots=True)
class LetIn:
    """A link that was just made for somebody; shown this once."""

    name: str
    link: str = field(repr=False)


async def settings(room: Room, request: Request, session: Session) -> Response:  # noqa: ARG001 - a handler's signature
    """`GET /settings`."""
    return html(await room.in_thread(settings_page, room, session))


async def set_keys(room: Room, request: Request, session: Session, form: Form) -> Response:  # noqa: ARG001 - a handler's signature
    """`POST /settings/keys`: `switch` single-letter shortcuts on or off in this browser (WCAG 2.1.4)."""
    return _prefer(room, KEYS_COOKIE, form)


async def set_notify(room: Room, request: Request, session: Session, form: Form) -> Response:  # noqa: ARG001 - a handler's signature
    """`POST /settings/notify`: `switch` notifications on or off in this browser; the browser asks the person too."""
    return _prefer(room, NOTIFY_COOKIE, form)


async def end_one_session(room: Room, request: Request, session: Session, form: Form) -> Response:  # noqa: ARG001 - a handler's signature
    """`POST /settings/sessions/end`: end the one of this person's sessions that is called `session`."""
    name = form.text("session")
    if _SESSION_NAME.fullmatch(name) is None:
        raise PageError(Refusal.MALFORMED_FORM)
    await room.in_thread(end_named_session, room.journal, session, name)
    return see_other("/settings")


async def end_others(room: Room, request: Request, session: Session, form: Form) -> Response:  # noqa: ARG001 - a handler's signature
    """`POST /settings/sessions/end-others`: sign out everywhere else."""
    await room.in_thread(end_sessions_elsewhere, room.journal, session)
    return see_other("/settings")


def _prefer(room: Room, cookie: str, form: Form) -> Response:
    switch = form.text("switch")
    if switch not in _SWITCH:
        raise PageError(Refusal.MALFORMED_FORM)
    response = see_other("/settings")
    response.set_cookie(
        room.cookie_prefix() + cookie,
        switch,
        max_age=PREFERENCE_SECONDS,
        path="/",
        httponly=True,
        secure=room.secure,
        samesite="strict",
    )
    return response


def settings_page(room: Room, session: Session, let_in: LetIn | None = None) -> str:
    """Return the settings, with the link of somebody who was just let in."""
    with room.journal.reading() as connection:
        sessions = list_sessions(connection, session, room.clock())
        people, frame = list_people(connection), read_frame(connection)
        passkeys = list_passkeys(connection, session.person.name)
    return room.page(
        "settings.html",
        session,
        frame,
        here="settings",
        sessions=sessions,
        people=people,
        roles=list(Role),
        passkeys=passkeys,
        options=passkey_options(room, session, passkeys),
        let_in=let_in,
    )

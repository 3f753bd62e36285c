"""Asking a person again who they are, before what gives others power: tokens, people, resuming after a stop.

Whoever has shown it within five minutes is not asked. The page that asks carries the form along and sends it to where
it was going, so that nothing has to be typed twice and it works without a script.
"""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from change_executor.review.error_page import PageError, Refusal
from change_executor.review.forms import Form
from change_executor.review.passkeys import PasskeyRefused, list_passkeys, request_options
from change_executor.review.room import ActingHandler, Handler, Room, for_acting, html
from change_executor.review.sessions import How, Session, prove_session
from change_executor.review.verifying import WRONG_PASSKEY, Wrong, verify_passkey, verify_password

# The fields of the page that asks; no other form of the page has such names.
_PASSWORD_FIELD: Final = "proof-password"  # noqa: S105 - the name of a field
_CREDENTIAL_FIELD: Final = "proof-credential"

_WRONG: Final = "That is not your password."


def for_proved(room: Room, handler: ActingHandler) -> Handler:
    """Return a route that changes something and asks a person first who they are, unless they have just shown it."""

    async def handle(room: Room, request: Request, session: Session, form: Form) -> Response:
        asking = await ask_for_proof(room, request, session, form)
        return asking or await handler(room, request, session, _without_proof(form))

    return for_acting(room, handle)


def for_administering(room: Room, handler: ActingHandler) -> Handler:
    """Return a route as `for_proved` does, for administrators alone."""

    async def handle(room: Room, request: Request, session: Session, form: Form) -> Response:
        if not session.person.is_administrator:
            raise PageError(Refusal.NOT_AN_ADMINISTRATOR)
        asking = await ask_for_proof(room, request, session, form)
        return asking or await handler(room, request, session, _without_proof(form))

    return for_acting(room, handle)


async def ask_for_proof(room: Room, request: Request, session: Session, form: Form) -> Response | None:
    """Return the page that asks who is there, or None where that is known by now. Raises `PageError`."""
    if session.is_proved(room.clock()):
        return None
    if not session.person.can_prove:
        raise PageError(Refusal.NOTHING_TO_PROVE_BY)
    wrong = await _try(room, request, session, form)
    if wrong is None:
        return None
    return html(await room.in_thread(_page, room, request, session, form, wrong), wrong.status)


async def _try(room: Room, request: Request, session: Session, form: Form) -> Wrong | None:
    if credential := form.text(_CREDENTIAL_FIELD):
        return await room.in_thread(_prove_by_passkey, room, session, credential)
    if password := form.text(_PASSWORD_FIELD):
        wrong = await verify_password(room, request, session.person.name, password, _WRONG)
        if wrong is None:
            await room.in_thread(_prove_by_password, room, session)
        return wrong
    return Wrong("")


def purpose_of(session: Session) -> str:
    """Return what a challenge for this is made for: this, in this session."""
    return f"prove {session.digest}"


def _prove_by_passkey(room: Room, session: Session, credential: str) -> Wrong | None:
    try:
        with room.journal.writing() as writing:
            name = verify_passkey(room, writing, purpose_of(session), credential)
            if name == session.person.name:
                prove_session(writing, session, How.PASSKEY)
                return None
    except PasskeyRefused:
        pass
    return Wrong(WRONG_PASSKEY)


def _prove_by_password(room: Room, session: Session) -> None:
    with room.journal.writing() as writing:
        prove_session(writing, session, How.PASSWORD)


def _page(room: Room, request: Request, session: Session, form: Form, wrong: Wrong) -> str:
    options = None
    with room.journal.reading() as connection:
        known = list_passkeys(connection, session.person.name)
    if room.party is not None and known:
        options = request_options(room.party, known, room.challenges.new(purpose_of(session), room.clock()))
    return room.page(
        "prove.html",
        session,
        room.frame(),
        action=request.url.path,
        carried=_without_proof(form).fields,
        password_field=_PASSWORD_FIELD,
        credential_field=_CREDENTIAL_FIELD,
        options=options,
        wrong=wrong.says or None,
    )


def _without_proof(form: Form) -> Form:
    return Form(
        {name: value for name, value in form.fields.items() if name not in {_PASSWORD_FIELD, _CREDENTIAL_FIELD}}
    )

"""The ways in and out: password, passkey, link, signing out."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from change_executor.review.forms import Form, read_form
from change_executor.review.links import LinkRefused, spend_link
from change_executor.review.passkeys import PasskeyRefused, request_options
from change_executor.review.rendering import render
from change_executor.review.room import Room, html, see_other, way_back
from change_executor.review.sessions import How, Session, begin_session, end_session
from change_executor.review.verifying import (
    FORBIDDEN,
    MAX_NAME_CHARACTERS,
    WRONG_PASSKEY,
    Wrong,
    verify_passkey,
    verify_password,
)

_WRONG: Final = "That name and password do not go together."
# What a challenge is made for: to sign in, whoever it is.
_PURPOSE: Final = "sign in"


async def sign_in_page(room: Room, request: Request) -> Response:
    """`GET /sign-in`."""
    return _sign_in(room, way_back(request.query_params.get("next", "/")))


async def sign_in(room: Room, request: Request) -> Response:
    """`POST /sign-in`: begin a session by `name` and `password`."""
    form = await read_form(request)
    name, back = form.text("name")[:MAX_NAME_CHARACTERS], way_back(form.text("next"))
    wrong = await verify_password(room, request, name, form.text("password"), _WRONG)
    if wrong is not None:
        return _sign_in(room, back, name, wrong)
    return _come_in(room, await room.in_thread(_begin, room, name), back)


async def sign_in_by_passkey(room: Room, request: Request) -> Response:
    """`POST /sign-in/passkey`: begin a session by the `credential` that a browser answered with."""
    form = await read_form(request)
    back = way_back(form.text("next"))
    try:
        secret = await room.in_thread(_begin_by_passkey, room, form.text("credential"))
    except PasskeyRefused:
        return _sign_in(room, back, "", Wrong(WRONG_PASSKEY))
    return _come_in(room, secret, back)


async def sign_out(room: Room, request: Request, session: Session, form: Form) -> Response:  # noqa: ARG001 - a handler's signature
    """`POST /sign-out`."""
    await room.in_thread(end_session, room.journal, session)
    response = see_other("/sign-in")
    room.drop_cookie(response)
    return response


async def link_page(room: Room, request: Request) -> Response:  # noqa: ARG001 - a handler's signature
    """`GET /link`: the secret stays behind `#` and so in the browser; a script puts it into the form."""
    return html(render("link.html", refused=False))


async def link(room: Room, request: Request) -> Response:
    """`POST /link`: spend a link and begin a session."""
    form = await read_form(request)
    try:
        secret, can_prove = await room.in_thread(_spend, room, form)
    except LinkRefused:
        return html(render("link.html", refused=True), FORBIDDEN)
    return _come_in(room, secret, "/" if can_prove else "/password")


def _begin(room: Room, name: str) -> str:
    with room.journal.writing() as writing:
        return begin_session(writing, name, How.PASSWORD, room.random_octets)


def _begin_by_passkey(room: Room, credential: str) -> str:
    with room.journal.writing() as writing:
        name = verify_passkey(room, writing, _PURPOSE, credential)
        return begin_session(writing, name, How.PASSKEY, room.random_octets)


def _spend(room: Room, form: Form) -> tuple[str, bool]:
    with room.journal.writing() as writing:
        person = spend_link(writing, form.text("secret").strip(), begin_anew=form.text("forget") == "yes")
        return begin_session(writing, person.name, How.LINK, room.random_octets), person.can_prove


def _come_in(room: Room, secret: str, back: str) -> Response:
    response = see_other(back)
    room.set_cookie(response, secret)
    return response


def _sign_in(room: Room, back: str, name: str = "", wrong: Wrong | None = None) -> Response:
    options = None
    if room.party is not None:
        options = request_options(room.party, (), room.challenges.new(_PURPOSE, room.clock()))
    says, status = (None, 200) if wrong is None else (wrong.says, wrong.status)
    return html(render("sign_in.html", next_path=back, name=name[:40], wrong=says, options=options), status)

"""The ways in and out: password, link, setting a password, signing out."""

from datetime import timedelta
from typing import Final

import anyio
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from change_executor.review.error_page import PageError, Refusal
from change_executor.review.forms import Form, read_form
from change_executor.review.passwords import too_weak
from change_executor.review.people import LinkRefused, password_hash, spend_link, store_password
from change_executor.review.rendering import render
from change_executor.review.room import Room, html, see_other, way_back
from change_executor.review.sessions import Session, begin_session, end_other_sessions, end_session

# Those who wait hold their request open; past this a person is better told to come back.
_MAX_WAITING_FOR_A_CHECK: Final = 20

# Where the connection left whose process is at its other end.
_PEER_UID: Final = "mailwarrant.peer_uid"

_WRONG: Final = "That name and password do not go together."


async def sign_in_page(room: Room, request: Request) -> Response:  # noqa: ARG001 - a handler's signature
    """`GET /sign-in`."""
    return _sign_in(way_back(request.query_params.get("next", "/")))


async def sign_in(room: Room, request: Request) -> Response:
    """`POST /sign-in`: begin a session by name and password."""
    form = await read_form(request)
    # No name is longer; what guesses are remembered by must not grow with what is sent.
    name, back = form.text("name")[:41], way_back(form.text("next"))
    source, now = source_of(request), room.clock()
    wait = room.throttle.wait(source, name, now)
    if wait > timedelta(0):
        return _sign_in(back, name, _later(wait), 429)
    room.throttle.failed(source, name, now)
    if not await _check(room, name, form.text("password")):
        return _sign_in(back, name, _WRONG, 403)
    room.throttle.succeeded(source, name)
    secret = await room.in_thread(_begin, room, name)
    response = see_other(back)
    room.set_cookie(response, secret)
    return response


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
        secret, has_password = await room.in_thread(_spend, room, form)
    except LinkRefused:
        return html(render("link.html", refused=True), 403)
    response = see_other("/" if has_password else "/password")
    room.set_cookie(response, secret)
    return response


async def password_page(room: Room, request: Request, session: Session) -> Response:  # noqa: ARG001 - a handler's signature
    """`GET /password`."""
    return await _password(room, session, None)


async def set_password(room: Room, request: Request, session: Session, form: Form) -> Response:
    """`POST /password`: set a first password, or another one by the one there is; ends the person's other sessions."""
    name, source, now = session.person.name, source_of(request), room.clock()
    new = form.text("password")
    wrong = too_weak(new) or (None if new == form.text("again") else "The two are not the same.")
    if wrong is not None:
        return await _password(room, session, wrong, 422)
    if session.person.has_password:
        wait = room.throttle.wait(source, name, now)
        if wait > timedelta(0):
            return await _password(room, session, _later(wait), 429)
        room.throttle.failed(source, name, now)
        if not await _check(room, name, form.text("current")):
            return await _password(room, session, "That is not the password you have.", 403)
        room.throttle.succeeded(source, name)
    hashed = await anyio.to_thread.run_sync(room.passwords.hash, new, limiter=room.password_threads)
    await room.in_thread(_store, room, session, hashed)
    return see_other("/")


def source_of(request: Request) -> str:
    """Return where a guess comes from: the peer's uid where the gate in front told it, else its address."""
    uid = request.scope.get("extensions", {}).get(_PEER_UID)
    if uid is not None:
        return f"uid:{uid}"
    return request.client.host if request.client is not None else "local"


async def _check(room: Room, name: str, untrusted_password: str) -> bool:
    if room.password_threads.statistics().tasks_waiting >= _MAX_WAITING_FOR_A_CHECK:
        raise PageError(Refusal.TOO_MANY_SIGN_INS)
    return await anyio.to_thread.run_sync(_check_now, room, name, untrusted_password, limiter=room.password_threads)


def _check_now(room: Room, name: str, untrusted_password: str) -> bool:
    stored = password_hash(room.journal, name)
    if not room.passwords.matches(stored, untrusted_password):
        return False
    assert stored is not None, "nobody has no password"
    if room.passwords.needs_rehash(stored):
        renewed = room.passwords.hash(untrusted_password)
        with room.journal.writing() as writing:
            store_password(writing, name, renewed, rehash=True)
    return True


def _begin(room: Room, name: str) -> str:
    with room.journal.writing() as writing:
        return begin_session(writing, name, "password", room.random_octets)


def _spend(room: Room, form: Form) -> tuple[str, bool]:
    with room.journal.writing() as writing:
        person = spend_link(writing, form.text("secret").strip(), forget_password=form.text("forget") == "yes")
        return begin_session(writing, person.name, "link", room.random_octets), person.has_password


def _store(room: Room, session: Session, hashed: str) -> None:
    with room.journal.writing() as writing:
        store_password(writing, session.person.name, hashed)
        end_other_sessions(writing, session.person.name, session.digest)


def _sign_in(back: str, name: str = "", wrong: str | None = None, status: int = 200) -> HTMLResponse:
    return html(render("sign_in.html", next_path=back, name=name[:40], wrong=wrong), status)


async def _password(room: Room, session: Session, wrong: str | None, status: int = 200) -> HTMLResponse:
    frame = await room.in_thread(room.frame)
    return html(room.page("password.html", session, frame, here="password", wrong=wrong), status)


def _later(wait: timedelta) -> str:
    seconds = max(int(wait.total_seconds() + 0.999), 1)
    when = f"{seconds} seconds" if seconds < 120 else f"{(seconds + 59) // 60} minutes"  # noqa: PLR2004 - two minutes
    if seconds == 1:
        when = "1 second"
    return f"Too many guesses. Try again in {when}."

"""A person's own ways in: the password, and the passkeys. One of them is left at any time."""

import re
from typing import Final

import anyio
from starlette.requests import Request
from starlette.responses import Response

from change_executor.review.error_page import PageError, Refusal
from change_executor.review.forms import Form
from change_executor.review.passkeys import Passkey, PasskeyRefused, creation_options
from change_executor.review.passkeys import add_passkey as keep_passkey
from change_executor.review.passwords import too_weak
from change_executor.review.people import forget_password, known_person, remove_passkeys, store_password
from change_executor.review.proving import ask_for_proof
from change_executor.review.room import Room, html, see_other
from change_executor.review.sessions import How, Session, end_other_sessions, prove_session
from change_executor.review.verifying import Wrong, verify_password

_PASSKEY_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,1400}", re.ASCII)
_UNPROCESSABLE: Final = 422


async def password_page(room: Room, request: Request, session: Session) -> Response:  # noqa: ARG001 - a handler's signature
    """`GET /password`: set a password, or add a passkey instead."""
    return await _password(room, session, None)


async def set_password(room: Room, request: Request, session: Session, form: Form) -> Response:
    """`POST /password`: set a first password, or another one by the one there is; ends the person's other sessions."""
    new = form.text("password")
    weak = too_weak(new) or (None if new == form.text("again") else "The two are not the same.")
    if weak is not None:
        return await _password(room, session, Wrong(weak, _UNPROCESSABLE))
    name = session.person.name
    if session.person.has_password:
        wrong = await verify_password(room, request, name, form.text("current"), "That is not the password you have.")
        if wrong is not None:
            return await _password(room, session, wrong)
    elif session.person.has_passkey and (asking := await ask_for_proof(room, request, session, form)) is not None:
        return asking
    hashed = await anyio.to_thread.run_sync(room.passwords.hash, new, limiter=room.password_threads)
    await room.in_thread(_store, room, session, hashed)
    return see_other("/")


async def remove_password(room: Room, request: Request, session: Session, form: Form) -> Response:  # noqa: ARG001 - a handler's signature
    """`POST /password/remove`: from now on passkeys alone let this person in."""
    await room.in_thread(_forget, room, session)
    return see_other("/settings")


async def add_passkey(room: Room, request: Request, session: Session, form: Form) -> Response:
    """`POST /settings/passkeys`: keep the passkey that the browser made, a `credential`."""
    if session.person.can_prove and (asking := await ask_for_proof(room, request, session, form)) is not None:
        return asking
    try:
        await room.in_thread(_add, room, session, form.text("credential"))
    except PasskeyRefused:
        raise PageError(Refusal.PASSKEY_REFUSED) from None
    return see_other("/settings")


async def remove_passkey(room: Room, request: Request, session: Session, form: Form) -> Response:  # noqa: ARG001 - a handler's signature
    """`POST /settings/passkeys/remove`: the one called `passkey` lets nobody in any more."""
    passkey_id = form.text("passkey")
    if _PASSKEY_ID.fullmatch(passkey_id) is None:
        raise PageError(Refusal.MALFORMED_FORM)
    await room.in_thread(_remove, room, session, passkey_id)
    return see_other("/settings")


def passkey_options(room: Room, session: Session, known: list[Passkey]) -> str | None:
    """Return what a browser needs to make a passkey for this person, or None where the page's address allows none."""
    if room.party is None:
        return None
    return creation_options(
        room.party, session.person.name, known, room.challenges.new(_purpose(session), room.clock())
    )


def _purpose(session: Session) -> str:
    return f"add {session.digest}"


def _store(room: Room, session: Session, hashed: str) -> None:
    with room.journal.writing() as writing:
        store_password(writing, session.person.name, hashed)
        end_other_sessions(writing, session.person.name, session.digest)
        prove_session(writing, session, How.PASSWORD)


def _forget(room: Room, session: Session) -> None:
    with room.journal.writing() as writing:
        forget_password(writing, session.person.name)
        if not known_person(writing.connection, session.person.name).can_prove:
            raise PageError(Refusal.LAST_WAY_IN)


def _add(room: Room, session: Session, credential: str) -> None:
    if room.party is None:
        raise PasskeyRefused
    name = session.person.name
    with room.journal.writing() as writing:
        keep_passkey(writing, room.party, room.challenges, purpose=_purpose(session), name=name, untrusted=credential)
        prove_session(writing, session, How.PASSKEY)


def _remove(room: Room, session: Session, passkey_id: str) -> None:
    name = session.person.name
    with room.journal.writing() as writing:
        remove_passkeys(writing, name, f"person:{name}", passkey_id)
        if not known_person(writing.connection, name).can_prove:
            raise PageError(Refusal.LAST_WAY_IN)


async def _password(room: Room, session: Session, wrong: Wrong | None) -> Response:
    says, status = (None, 200) if wrong is None else (wrong.says, wrong.status)
    return html(await room.in_thread(_password_page, room, session, says), status)


def _password_page(room: Room, session: Session, wrong: str | None) -> str:
    options = None if session.person.has_passkey else passkey_options(room, session, [])
    return room.page("password.html", session, room.frame(), here="password", wrong=wrong, options=options)

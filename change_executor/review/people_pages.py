"""What an administrator does about people: letting one in, another role, a link for who has no way in yet, the end.

Nobody does it to themselves, so that whoever may do it never shuts the last one out by a slip.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from starlette.requests import Request
from starlette.responses import Response

from change_executor.journal.journal import Writing
from change_executor.review.error_page import PageError, Refusal
from change_executor.review.forms import Form
from change_executor.review.links import insert_link
from change_executor.review.people import (
    PersonRefused,
    Role,
    change_role,
    find_person,
    insert_person,
    known_person,
    remove_person,
)
from change_executor.review.room import Room, html, see_other
from change_executor.review.sessions import Session
from change_executor.review.settings_pages import LetIn, settings_page


async def let_in(room: Room, request: Request, session: Session, form: Form) -> Response:  # noqa: ARG001 - a handler's signature
    """`POST /settings/people`: let a person of a `name` and a `role` in; their link is shown this once."""
    made = await room.in_thread(_let_in, room, session, form.text("name").strip(), _role(form))
    return html(await room.in_thread(settings_page, room, session, made))


async def set_role(room: Room, request: Request, session: Session, form: Form) -> Response:  # noqa: ARG001 - a handler's signature
    """`POST /settings/people/role`: give the person of a `name` another `role`."""
    await room.in_thread(_set_role, room, session, form.text("name"), _role(form))
    return see_other("/settings")


async def make_link(room: Room, request: Request, session: Session, form: Form) -> Response:  # noqa: ARG001 - a handler's signature
    """`POST /settings/people/link`: a new link for the person of a `name` who has neither password nor passkey."""
    made = await room.in_thread(_make_link, room, session, form.text("name"))
    return html(await room.in_thread(settings_page, room, session, made))


async def remove(room: Room, request: Request, session: Session, form: Form) -> Response:  # noqa: ARG001 - a handler's signature
    """`POST /settings/people/remove`: the person of a `name` decides no more, from this moment."""
    await room.in_thread(_remove, room, session, form.text("name"))
    return see_other("/settings")


def _role(form: Form) -> Role:
    try:
        return Role(form.text("role"))
    except ValueError:
        raise PageError(Refusal.MALFORMED_FORM) from None


def _let_in(room: Room, session: Session, name: str, role: Role) -> LetIn:
    actor = _actor(session)
    with _refusals_shown(), room.journal.writing() as writing:
        _still_administrator(writing, session)
        insert_person(writing, name, role, actor)
        return _linked(room, name, insert_link(writing, name, room.random_octets, actor))


def _set_role(room: Room, session: Session, name: str, role: Role) -> None:
    with _refusals_shown(), room.journal.writing() as writing:
        _still_administrator(writing, session, name)
        change_role(writing, name, role, _actor(session))


def _make_link(room: Room, session: Session, name: str) -> LetIn:
    with _refusals_shown(), room.journal.writing() as writing:
        _still_administrator(writing, session, name)
        # Whoever has a way in has decided, or may have: a link to it would let an administrator sign for them.
        if known_person(writing.connection, name).can_prove:
            raise PageError(Refusal.PERSON_REFUSED)
        return _linked(room, name, insert_link(writing, name, room.random_octets, _actor(session)))


def _remove(room: Room, session: Session, name: str) -> None:
    with _refusals_shown(), room.journal.writing() as writing:
        _still_administrator(writing, session, name)
        remove_person(writing, name, _actor(session))


def _still_administrator(writing: Writing, session: Session, about: str | None = None) -> None:
    # Another administrator may have changed that between the request and this transaction.
    person = find_person(writing.connection, session.person.name)
    if person is None or not person.is_administrator:
        raise PageError(Refusal.NOT_AN_ADMINISTRATOR)
    if about == person.name:
        raise PageError(Refusal.PERSON_REFUSED)


def _linked(room: Room, name: str, secret: str) -> LetIn:
    return LetIn(name, f"{room.settings.review.url}/link#{secret}")


def _actor(session: Session) -> str:
    return f"person:{session.person.name}"


@contextmanager
def _refusals_shown() -> Iterator[None]:
    try:
        yield
    except PersonRefused:
        raise PageError(Refusal.PERSON_REFUSED) from None

"""The review page, put together: one table of routes, and the gate in front of all of them."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import Enum
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from change_executor.config import ExecutorSettings, Review
from change_executor.errors import JournalUnavailable, NoSuchProposal
from change_executor.evidence.reader_link import ReaderLink
from change_executor.journal.journal import Clock, Journal
from change_executor.review import (
    agents_pages,
    desk,
    doors,
    live,
    log_pages,
    message_views,
    own_ways,
    people_pages,
    queue_pages,
    settings_pages,
    status_page,
    taking_back,
    together,
)
from change_executor.review.error_page import PageError, Refusal, refusal_of_status, refuse
from change_executor.review.forms import MAX_FORM_OCTETS
from change_executor.review.gate import Gate
from change_executor.review.hub import Hub
from change_executor.review.passkeys import Challenges, relying_party
from change_executor.review.passwords import Passwords
from change_executor.review.people import RandomOctets
from change_executor.review.proving import for_administering, for_proved
from change_executor.review.room import Handler, Room, for_acting, for_anyone, for_looking

_STATIC_FOLDER: Final = Path(__file__).parent / "static"
_STATIC: Final = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
}


class Access(Enum):
    """Who may use a route.

    `ACTING`: a session, a form of this origin, and that session's own token in it. `PROVED`: also the password or a
    passkey within five minutes. `ADMINISTERING`: also an administrator.
    """

    ANYONE = "anyone"
    LOOKING = "looking"
    ACTING = "acting"
    PROVED = "proved"
    ADMINISTERING = "administering"


_DOORMEN: Final[dict[Access, Callable[[Room, Any], Handler]]] = {
    Access.ANYONE: for_anyone,
    Access.LOOKING: for_looking,
    Access.ACTING: for_acting,
    Access.PROVED: for_proved,
    Access.ADMINISTERING: for_administering,
}


async def static(room: Room, request: Request) -> Response:  # noqa: ARG001 - a handler's signature
    """`GET /static/{name}`: one of two files."""
    name = request.path_params["name"]
    if name not in _STATIC:
        raise PageError(Refusal.NOT_FOUND)
    return Response((_STATIC_FOLDER / name).read_bytes(), headers={"content-type": _STATIC[name]})


# Everything that the review listener answers. What is not here is a 404.
ROUTES: Final[tuple[tuple[str, str, Access, Any], ...]] = (
    ("GET", "/", Access.LOOKING, queue_pages.queue),
    ("GET", "/rows", Access.LOOKING, queue_pages.rows),
    ("GET", "/icon/{count}", Access.ANYONE, queue_pages.icon),
    ("GET", "/p/{proposal_id}", Access.LOOKING, desk.item),
    ("GET", "/p/{proposal_id}/html", Access.LOOKING, message_views.html_frame),
    ("POST", "/p/{proposal_id}/approve", Access.ACTING, desk.approve),
    ("POST", "/p/{proposal_id}/reject", Access.ACTING, desk.reject),
    ("POST", "/p/{proposal_id}/undo", Access.ACTING, desk.undo),
    ("POST", "/p/{proposal_id}/settle", Access.ACTING, desk.settle),
    ("GET", "/together", Access.LOOKING, together.together_page),
    ("POST", "/together", Access.ACTING, together.decide_together),
    ("GET", "/log", Access.LOOKING, log_pages.log),
    ("GET", "/log/export", Access.LOOKING, log_pages.export),
    ("POST", "/log/verify", Access.ACTING, log_pages.verify_chain),
    ("GET", "/agents", Access.LOOKING, agents_pages.agents),
    ("GET", "/agents/{agent}", Access.LOOKING, agents_pages.agent),
    ("POST", "/agents/tokens", Access.ADMINISTERING, agents_pages.make_token),
    ("POST", "/agents/tokens/{token}/revoke", Access.ADMINISTERING, agents_pages.end_token),
    ("POST", "/agents/{agent}/revoke", Access.ADMINISTERING, agents_pages.end_agent),
    ("GET", "/agents/{agent}/undo", Access.LOOKING, taking_back.list_moves),
    ("POST", "/agents/{agent}/undo", Access.ACTING, taking_back.take_back),
    ("GET", "/settings", Access.LOOKING, settings_pages.settings),
    ("POST", "/settings/keys", Access.ACTING, settings_pages.set_keys),
    ("POST", "/settings/notify", Access.ACTING, settings_pages.set_notify),
    ("POST", "/settings/sessions/end", Access.ACTING, settings_pages.end_one_session),
    ("POST", "/settings/sessions/end-others", Access.ACTING, settings_pages.end_others),
    ("POST", "/settings/passkeys", Access.ACTING, own_ways.add_passkey),
    ("POST", "/settings/passkeys/remove", Access.PROVED, own_ways.remove_passkey),
    ("POST", "/settings/people", Access.ADMINISTERING, people_pages.let_in),
    ("POST", "/settings/people/role", Access.ADMINISTERING, people_pages.set_role),
    ("POST", "/settings/people/link", Access.ADMINISTERING, people_pages.make_link),
    ("POST", "/settings/people/remove", Access.ADMINISTERING, people_pages.remove),
    ("GET", "/status", Access.LOOKING, status_page.status),
    ("POST", "/stop", Access.ACTING, desk.stop),
    ("POST", "/resume", Access.PROVED, desk.resume),
    ("GET", "/events", Access.LOOKING, live.events),
    ("GET", "/sign-in", Access.ANYONE, doors.sign_in_page),
    ("POST", "/sign-in", Access.ANYONE, doors.sign_in),
    ("POST", "/sign-in/passkey", Access.ANYONE, doors.sign_in_by_passkey),
    ("POST", "/sign-out", Access.ACTING, doors.sign_out),
    ("GET", "/link", Access.ANYONE, doors.link_page),
    ("POST", "/link", Access.ANYONE, doors.link),
    ("GET", "/password", Access.LOOKING, own_ways.password_page),
    ("POST", "/password", Access.ACTING, own_ways.set_password),
    ("POST", "/password/remove", Access.PROVED, own_ways.remove_password),
    ("GET", "/static/{name}", Access.ANYONE, static),
)


def make_app(
    settings: ExecutorSettings,
    journal: Journal,
    *,
    clock: Clock,
    random_octets: RandomOctets,
    separated: bool,
    hosts: frozenset[str] | None = None,
    secure: bool = False,
    passwords: Passwords | None = None,
) -> FastAPI:
    """Return the review page as an ASGI application.

    `random_octets` is `secrets.token_bytes`; `separated` is False where the agent may run as the reviewer's own user,
    and the page says so; `hosts` are the Host values that it answers to, by default those of `allowed_hosts`;
    `secure` where browsers reach it over TLS;
    `passwords` where argon2's defaults do not fit the machine. `app.state.hub.close()` ends the open streams, so
    that a server need not wait for them.
    """
    room = Room(
        settings,
        journal,
        clock,
        random_octets,
        passwords or Passwords(),
        separated,
        secure,
        Hub(),
        ReaderLink(settings.reader.socket, settings.reader.uid),
        Challenges(random_octets),
        relying_party(settings.review),
    )
    return _application(room, allowed_hosts(settings.review) if hosts is None else hosts)


def _application(room: Room, hosts: frozenset[str]) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        room.journal.listen(room.hub.wake)
        try:
            yield
        finally:
            room.hub.close()
            room.journal.unlisten(room.hub.wake)

    app = FastAPI(
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        # Forms are bounded where they are read, with a page that says so; this is for whatever else is sent.
        max_body_size=4 * MAX_FORM_OCTETS,
        lifespan=lifespan,
        exception_handlers=_error_pages(),
    )
    for method, path, access, handler in ROUTES:
        app.add_api_route(path, _DOORMEN[access](room, handler), methods=[method], response_model=None)
    app.add_middleware(Gate, hosts=hosts, secure=room.secure)
    app.state.hub = room.hub
    return app


def allowed_hosts(review: Review) -> frozenset[str]:
    """Return the Host values that the page answers to: the loopback names with its port, and the public address."""
    public = set() if review.public_url is None else {review.public_url.partition("://")[2]}
    if review.listen.startswith("unix:"):
        return frozenset(public)
    port = review.listen.rpartition(":")[2]
    return frozenset(public | {f"{name}:{port}" for name in ("localhost", "127.0.0.1", "[::1]")})


def _error_pages() -> dict[int | type[Exception], Callable[[Request, Any], Any]]:
    async def page_error(_: Request, error: PageError) -> Response:
        return refuse(error.refusal, error.next_path, error.written)

    async def http_error(_: Request, error: HTTPException) -> Response:
        return refuse(refusal_of_status(error.status_code))

    async def not_found(_: Request, __: NoSuchProposal) -> Response:
        return refuse(Refusal.NOT_FOUND)

    async def journal_unavailable(_: Request, __: JournalUnavailable) -> Response:
        return refuse(Refusal.JOURNAL_UNAVAILABLE)

    async def bug(_: Request, __: Exception) -> Response:
        return refuse(Refusal.BUG)

    return {
        PageError: page_error,
        HTTPException: http_error,
        NoSuchProposal: not_found,
        JournalUnavailable: journal_unavailable,
        Exception: bug,
    }

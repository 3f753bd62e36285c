"""What every page needs, made once by `app.py`; and the doorman that lets only a right session in."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar
from urllib.parse import quote

import anyio
from anyio import CapacityLimiter
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from change_executor.config import ExecutorSettings
from change_executor.evidence.reader_link import ReaderLink
from change_executor.journal.journal import Clock, Journal
from change_executor.review.error_page import PageError, Refusal
from change_executor.review.forms import SEEN_PREFIX, Form, read_form
from change_executor.review.frame import Frame, read_frame
from change_executor.review.hub import Hub
from change_executor.review.passkeys import Challenges, RelyingParty
from change_executor.review.passwords import CHECKS_AT_ONCE, Passwords, Throttle
from change_executor.review.people import RandomOctets
from change_executor.review.preferences import preferences_from
from change_executor.review.rendering import render
from change_executor.review.sessions import Session, csrf_matches, find_session
from shared.proposal import PROPOSAL_ID

# Journal calls block; a handful of threads serves a handful of people.
_JOURNAL_THREADS: Final = 8
# Each is a process that may take a second of processor time and 512 MiB.
_CHILDREN_AT_ONCE: Final = 2
# The __Host- prefix needs Secure, which some browsers refuse on http://localhost.
_HOST_PREFIX: Final = "__Host-"
_COOKIE: Final = "mailwarrant_session"

# The pages that signing in may lead back to, beside the queue and the proposals.
_PAGES: Final = frozenset({"log", "agents", "settings", "status", "password"})

_TOGETHER: Final = re.compile(r"/together\?p=P[0-9a-v]{20}(?:&p=P[0-9a-v]{20}){0,49}", re.ASCII)

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Room:
    """The page's dependencies. `separated` is False where the agent may run as the reviewer's own user.

    `party` is None where browsers offer no passkeys for the page's address.
    """

    settings: ExecutorSettings
    journal: Journal
    clock: Clock
    random_octets: RandomOctets
    passwords: Passwords
    separated: bool
    secure: bool
    hub: Hub
    reader: ReaderLink
    challenges: Challenges
    party: RelyingParty | None
    throttle: Throttle = field(default_factory=Throttle)
    threads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_JOURNAL_THREADS))
    child_threads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_CHILDREN_AT_ONCE))
    password_threads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(CHECKS_AT_ONCE))

    async def in_thread(self, work: Callable[..., Result], *arguments: Any) -> Result:  # noqa: ANN401 - passed on
        """Run blocking work, with the journal or a template, beside the event loop."""
        return await anyio.to_thread.run_sync(work, *arguments, limiter=self.threads)

    def cookie_name(self) -> str:
        """Return the name of the session's cookie."""
        return self.cookie_prefix() + _COOKIE

    def cookie_prefix(self) -> str:
        """Return what stands before each cookie's name: over TLS, the mark that only this very host can have set it."""
        return _HOST_PREFIX if self.secure else ""

    async def session(self, request: Request) -> Session | None:
        """Return the session that the request's cookie opens, or None. An Authorization field opens nothing."""
        secret = request.cookies.get(self.cookie_name())
        session = await self.in_thread(find_session, self.journal, secret)
        return (
            None
            if session is None
            else replace(session, preferences=preferences_from(request.cookies, self.cookie_prefix()))
        )

    def set_cookie(self, response: Response, secret: str) -> None:
        """Give the browser a session; it forgets it at its end, and the server has limits of its own."""
        response.set_cookie(self.cookie_name(), secret, path="/", httponly=True, secure=self.secure, samesite="strict")

    def drop_cookie(self, response: Response) -> None:
        """Tell the browser to forget its session."""
        response.delete_cookie(self.cookie_name(), path="/", httponly=True, secure=self.secure, samesite="strict")

    def page(self, template: str, session: Session, frame: Frame, *, here: str = "", **values: Any) -> str:  # noqa: ANN401 - passed on
        """Render a page for a signed-in person; `here` is the page's name in the navigation."""
        return render(
            template,
            session=session,
            stopped=frame.stopped,
            waiting_count=frame.waiting,
            seq=frame.seq,
            separated=self.separated,
            here=here,
            now=self.clock(),
            **values,
        )

    def frame(self) -> Frame:
        """Return what stands around a page that reads nothing else of the journal."""
        with self.journal.reading() as connection:
            return read_frame(connection)


Handler = Callable[[Request], Awaitable[Response]]
OpenHandler = Callable[[Room, Request], Awaitable[Response]]
LookingHandler = Callable[[Room, Request, Session], Awaitable[Response]]
ActingHandler = Callable[[Room, Request, Session, Form], Awaitable[Response]]


def for_anyone(room: Room, handler: OpenHandler) -> Handler:
    """Return a route that needs no session: the ways in."""

    async def handle(request: Request) -> Response:
        return await handler(room, request)

    return handle


def for_looking(room: Room, handler: LookingHandler) -> Handler:
    """Return a route that a signed-in person may look at; anybody else is led to the sign-in."""

    async def handle(request: Request) -> Response:
        session = await room.session(request)
        if session is None:
            return see_other(sign_in_path(request.url.path))
        return await handler(room, request, session)

    return handle


def for_acting(room: Room, handler: ActingHandler) -> Handler:
    """Return a route that changes something: a good session, and a form that carries that session's own token."""

    async def handle(request: Request) -> Response:
        if await room.session(request) is None:
            raise await _signed_out(request)
        form = await read_form(request)
        # A form may take its time, and meanwhile its session may have ended, or its person's role.
        session = await room.session(request)
        if session is None:
            raise _signed_out_at(request, form)
        if not csrf_matches(session, form.text("csrf")):
            raise PageError(Refusal.STALE_FORM)
        return await handler(room, request, session, form)

    return handle


async def _signed_out(request: Request) -> PageError:
    # Nothing is lost: where they were, what they had chosen, and what they had written.
    try:
        form = await read_form(request)
    except PageError:
        form = Form({})
    return _signed_out_at(request, form)


def _signed_out_at(request: Request, form: Form) -> PageError:
    return PageError(Refusal.SIGNED_OUT, place_of(request.url.path, form), form.text("reason"))


def see_other(path: str) -> RedirectResponse:
    """Return 303 to a path of ours."""
    return RedirectResponse(path, status_code=303)


def html(page: str, status: int = 200) -> HTMLResponse:
    """Return a page."""
    return HTMLResponse(page, status_code=status)


def way_back(untrusted_path: str) -> str:
    """Return the page of ours that a path leads to: a proposal, several, one of the named pages, or the queue."""
    if _TOGETHER.fullmatch(untrusted_path):
        return untrusted_path
    parts = untrusted_path.split("/")
    if len(parts) >= 3 and parts[:2] == ["", "p"] and PROPOSAL_ID.fullmatch(parts[2]):  # noqa: PLR2004 - /p/ID
        return f"/p/{parts[2]}"
    return f"/{parts[1]}" if len(parts) >= 2 and parts[0] == "" and parts[1] in _PAGES else "/"  # noqa: PLR2004 - /x


def place_of(untrusted_path: str, form: Form) -> str:
    """Return the page of ours that a form was sent from: the one that listed several, or as `way_back` has it."""
    chosen = [name.removeprefix(SEEN_PREFIX) for name in form.fields if name.startswith(SEEN_PREFIX)]
    if untrusted_path == "/together" and chosen:
        return way_back("/together?" + "&".join(f"p={proposal_id}" for proposal_id in chosen))
    return way_back(untrusted_path)


def sign_in_path(untrusted_path: str) -> str:
    """Return the address of the sign-in that leads back to where somebody was."""
    back = way_back(untrusted_path)
    return "/sign-in" if back == "/" else f"/sign-in?next={quote(back)}"

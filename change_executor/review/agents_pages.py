"""The agents' pages: who may propose, making and revoking that, and what each read, proposed and achieved."""

import re
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from change_executor.agents import is_revoked, revoke_agent
from change_executor.intake.proposer_tokens import TokenRefused, create_token, revoke_token
from change_executor.review.agents_view import Counts, agents_of, ask_reads, read_counts, read_proposed, read_tokens
from change_executor.review.error_page import PageError, Refusal
from change_executor.review.forms import Form
from change_executor.review.frame import read_frame
from change_executor.review.room import Room, html, see_other
from change_executor.review.sessions import Session
from shared.proposal import AGENT_PATTERN
from shared.tokens import DEFAULT_LIFETIME_DAYS, Token

_AGENT: Final = re.compile(AGENT_PATTERN, re.ASCII)
_DAYS: Final = re.compile(r"[0-9]{1,4}", re.ASCII)
_TOKEN_ID: Final = re.compile(r"[a-z2-7]{8}", re.ASCII)
_UNPROCESSABLE: Final = 422


async def agents(room: Room, request: Request, session: Session) -> Response:  # noqa: ARG001 - a handler's signature
    """`GET /agents`: every agent with its tokens, how often it is right, and how much it reads."""
    return html(await room.in_thread(_agents_page, room, session, None, None))


async def agent(room: Room, request: Request, session: Session) -> Response:
    """`GET /agents/{agent}`: what one agent read, what it proposed, and what became of it."""
    name = agent_name(request)
    return html(await room.in_thread(_agent_page, room, session, name))


async def make_token(room: Room, request: Request, session: Session, form: Form) -> Response:  # noqa: ARG001 - a handler's signature
    """`POST /agents/tokens`: make a proposer token for an `agent` and a `queue`, good for `days`; shown this once."""
    try:
        token = await room.in_thread(_make_token, room, session, form)
    except TokenRefused as refused:
        return html(await room.in_thread(_agents_page, room, session, None, refused), _UNPROCESSABLE)
    return html(await room.in_thread(_agents_page, room, session, token, None))


async def end_token(room: Room, request: Request, session: Session, form: Form) -> Response:  # noqa: ARG001 - a handler's signature
    """`POST /agents/tokens/{token}/revoke`: it opens nothing from now on; what it proposed stays."""
    token_id = request.path_params["token"]
    if _TOKEN_ID.fullmatch(token_id) is None:
        raise PageError(Refusal.NOT_FOUND)
    try:
        await room.in_thread(revoke_token, room.journal, token_id, f"person:{session.person.name}")
    except TokenRefused as refused:
        return html(await room.in_thread(_agents_page, room, session, None, refused), _UNPROCESSABLE)
    return see_other(f"/agents?revoked={token_id}")


async def end_agent(room: Room, request: Request, session: Session, form: Form) -> Response:  # noqa: ARG001 - a handler's signature
    """`POST /agents/{agent}/revoke`: none of its tokens opens anything, and what nobody has moved yet is taken back."""
    name = agent_name(request)
    await room.in_thread(revoke_agent, room.journal, name, f"person:{session.person.name}")
    return see_other(f"/agents/{name}")


def agent_name(request: Request) -> str:
    """Return the agent that a path names. Raises `PageError` where it cannot be one."""
    name: str = request.path_params["agent"]
    if _AGENT.fullmatch(name) is None:
        raise PageError(Refusal.NOT_FOUND)
    return name


def _make_token(room: Room, session: Session, form: Form) -> Token:
    queue, days = form.text("queue"), form.text("days")
    if room.settings.queue(queue) is None:
        raise TokenRefused("unknown_queue", "There is no such queue.", "Choose one of the list.")
    return create_token(
        room.journal,
        agent=form.text("agent").strip(),
        queue=queue,
        days=int(days) if _DAYS.fullmatch(days) else 0,
        random_octets=room.random_octets,
        actor=f"person:{session.person.name}",
    )


def _agents_page(room: Room, session: Session, made: Token | None, refused: TokenRefused | None) -> str:
    now = room.clock()
    with room.journal.reading() as connection:
        tokens, counts, frame = read_tokens(connection), read_counts(connection, now), read_frame(connection)
    return room.page(
        "agents.html",
        session,
        frame,
        here="agents",
        agents=agents_of(tokens, counts, room.reader, now),
        queues=[queue.id for queue in room.settings.queues],
        default_days=DEFAULT_LIFETIME_DAYS,
        made=made,
        refused=refused,
    )


def _agent_page(room: Room, session: Session, name: str) -> str:
    now = room.clock()
    with room.journal.reading() as connection:
        tokens = [token for token in read_tokens(connection) if token.agent == name]
        counts, proposed = read_counts(connection, now), read_proposed(connection, name)
        revoked, frame = is_revoked(connection, name), read_frame(connection)
    return room.page(
        "agent.html",
        session,
        frame,
        here="agents",
        name=name,
        tokens=tokens,
        counts=counts.get(name, Counts()),
        proposed=proposed,
        revoked=revoked,
        reads=ask_reads(room.reader, name, now),
    )

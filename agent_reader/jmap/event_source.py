"""The event source: an agent hears at once that something is new, and asks for it then (RFC 8620 §7.3).

A stream waits for the store's commits and does not poll for them. It tells states alone, and only of what its token may
see; a token that was revoked or has expired ends it within a second.
"""

import asyncio
import base64
import contextlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import anyio
import anyio.to_thread
import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agent_reader.access import Access, Agent
from agent_reader.door.keeper import Places
from agent_reader.errors import AccessUnavailable
from agent_reader.jmap import problems
from agent_reader.jmap.dispatch import Snapshots
from agent_reader.jmap.sending import REVOCATION_SECONDS
from agent_reader.state_watch import StateWatch, Subscription
from agent_reader.store import DataType
from shared.problem import Problem

# Account id to type to state, as StateChange has it (RFC 8620 §7.1).
States: TypeAlias = Mapping[str, Mapping[str, str]]

# RFC 8620 §7.3 lets a server choose; often enough for proxies, seldom enough for a thousand streams.
LEAST_PING_SECONDS: Final = 30
MOST_PING_SECONDS: Final = 300

# A first sync commits many times a second; whoever is told twice a second knows enough.
LEAST_PAUSE_SECONDS: Final = 0.5

# What one stream reads at a time is a row; all of them together use no more threads than these.
_MOST_THREADS: Final = 2

# RFC 8621 §1.5: a type without methods or objects, of which nothing is told but that mail came in.
EMAIL_DELIVERY: Final = "EmailDelivery"

_TYPE_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]{0,49}", re.ASCII)
_MOST_TYPES: Final = 50
_PING: Final = re.compile(r"\d{1,10}", re.ASCII)
# An id of ours with more accounts than anybody has.
_MOST_ID_CHARACTERS: Final = 16_384


@dataclass(frozen=True, slots=True)
class Wish:
    """The arguments of an event source; `types` is None for all, `ping_seconds` 0 for none."""

    types: frozenset[str] | None
    closes_after_state: bool
    ping_seconds: int

    def wants(self, data_type: str) -> bool:
        """Whether states of this type are to be told."""
        return self.types is None or data_type in self.types


def parse_wish(untrusted_query: Mapping[str, str]) -> Wish:
    """Return what is wished, or raise a `Problem` naming the argument at fault; types of others are no fault."""
    types = untrusted_query.get("types", "")
    names = frozenset(types.split(","))
    if types != "*" and not all(_TYPE_NAME.fullmatch(name) for name in names):
        raise problems.invalid_event_source("types", "is neither * nor a list of type names like Email,Mailbox")
    if len(names) > _MOST_TYPES:
        raise problems.invalid_event_source("types", f"names more than {_MOST_TYPES} types")
    closeafter = untrusted_query.get("closeafter")
    if closeafter not in {"state", "no"}:
        raise problems.invalid_event_source("closeafter", "is neither `state` nor `no`")
    ping = untrusted_query.get("ping", "")
    if _PING.fullmatch(ping) is None:
        raise problems.invalid_event_source("ping", "is no number of seconds")
    seconds = int(ping)
    return Wish(
        types=None if types == "*" else names,
        closes_after_state=closeafter == "state",
        ping_seconds=min(max(seconds, LEAST_PING_SECONDS), MOST_PING_SECONDS) if seconds else 0,
    )


class EventSources:
    """Answers the route of the event source; belongs to the event loop."""

    def __init__(
        self, snapshots: Snapshots, account_ids: Collection[str], access: Access, watch: StateWatch, places: Places
    ) -> None:
        self._snapshots, self._account_ids = snapshots, tuple(account_ids)
        self._access, self._watch, self._places = access, watch, places
        self._threads = anyio.CapacityLimiter(_MOST_THREADS)

    async def answer(self, request: Request, agent: Agent) -> Response:
        """Answer with a stream. Raises a `Problem`."""
        wish = parse_wish(request.query_params)
        with contextlib.ExitStack() as holding:
            holding.enter_context(self._places.place(agent))
            # Before the first look: what is committed between the two is heard.
            account_ids = tuple(each for each in self._account_ids if agent.scope.allows_account(each))
            subscription = holding.enter_context(self._watch.subscribe(account_ids))
            line = _Line(self, wish, subscription, agent, account_ids)
            known = states_of_id(request.headers.get("last-event-id"))
            if known is None:
                known = await line.states()
            return _Stream(line, known, has_body=request.method == "GET", holding=holding.pop_all())

    def still_opens(self, agent: Agent) -> bool:
        """Whether the token opens the door now, and its hour is not spent."""
        try:
            self._access.budgets.check(agent)
            return self._access.still_opens(agent.token_id)
        except (AccessUnavailable, Problem):
            return False

    async def states(self, wish: Wish, agent: Agent, account_ids: Collection[str]) -> States:
        """Return the states that are wished for, as they are now for this token."""
        return await anyio.to_thread.run_sync(self._states, wish, agent, account_ids, limiter=self._threads)

    def charge(self, agent: Agent, octets: int) -> bool:
        """Charge a token for an event; False where its hour has no room for it: then the stream ends."""
        try:
            self._access.budgets.charge(agent, octets)
        except Problem:
            return False
        return True

    def _states(self, wish: Wish, agent: Agent, account_ids: Collection[str]) -> States:
        found: dict[str, Mapping[str, str]] = {}
        types = [each.value for each in DataType if wish.wants(each.value)]
        wants_delivery = wish.wants(EMAIL_DELIVERY)
        for account_id in account_ids if types or wants_delivery else ():
            with self._snapshots.snapshot(account_id, agent.scope) as snapshot:
                delivery = {EMAIL_DELIVERY: snapshot.delivery_state()} if wants_delivery else {}
                found[account_id] = dict.fromkeys(types, snapshot.state) | delivery
        return found


class _Line:
    """One client's share of the event sources."""

    def __init__(
        self,
        sources: EventSources,
        wish: Wish,
        subscription: Subscription,
        agent: Agent,
        account_ids: Collection[str],
    ) -> None:
        self.wish = wish
        self._sources, self._subscription = sources, subscription
        self._agent, self._account_ids = agent, account_ids

    async def states(self) -> States:
        return await self._sources.states(self.wish, self._agent, self._account_ids)

    def is_open(self) -> bool:
        return self._sources.still_opens(self._agent)

    def has_room_for(self, text: str) -> bool:
        return self._sources.charge(self._agent, len(text.encode()))

    async def hears(self, until: float | None) -> bool:
        """Wait for a commit; False where none came until that moment of the loop. A token that ends ends the wait."""
        loop = asyncio.get_running_loop()
        while self.is_open():
            look_at = loop.time() + REVOCATION_SECONDS
            try:
                async with asyncio.timeout_at(look_at if until is None else min(until, look_at)):
                    await self._subscription.changed()
            except TimeoutError:
                if until is not None and loop.time() >= until:
                    return False
            else:
                return True
        return True


class _Stream(Response):
    """text/event-stream until the client goes, the token ends, or one state was told where that was the wish."""

    def __init__(self, line: _Line, known: States, *, has_body: bool, holding: contextlib.ExitStack) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self.headers["Content-Type"] = "text/event-stream; charset=utf-8"
        del self.headers["Content-Length"]
        self._line, self._known, self._has_body, self._holding = line, known, has_body, holding

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's signature
        """Stream; when the client is gone, everything that the stream held is let go at once."""
        with self._holding:
            going = asyncio.create_task(_until_gone(receive))
            telling = asyncio.create_task(self._tell(send))
            try:
                await asyncio.wait({going, telling}, return_when=asyncio.FIRST_COMPLETED)
                if telling.done():
                    telling.result()
            finally:
                for task in (going, telling):
                    task.cancel()
                await asyncio.gather(going, telling, return_exceptions=True)

    async def _tell(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        if self._has_body:
            # A comment: the client, and whatever stands between, knows that the stream is open. And an id without an
            # event, so that a client which loses the stream before the first change misses none.
            await _send_text(send, f":\n\nid: {id_of_states(self._known)}\n\n")
            await self._tell_events(send)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell_events(self, send: Send) -> None:
        loop = asyncio.get_running_loop()
        wish = self._line.wish
        ping_at = loop.time() + wish.ping_seconds if wish.ping_seconds else None
        # At once what happened since the last event that the client saw.
        heard = True
        while True:
            news = await self._news() if heard else {}
            # After the states were read, which takes its time: none of a commit later than the token's end is told.
            if not self._line.is_open():
                return
            if news:
                text = _state_event(news, self._known)
                if not self._line.has_room_for(text):
                    return
                await _send_text(send, text)
                if wish.closes_after_state:
                    return
                ping_at = loop.time() + wish.ping_seconds if wish.ping_seconds else None
                await asyncio.sleep(LEAST_PAUSE_SECONDS)
            elif not heard:
                await _send_text(send, _ping_event(wish.ping_seconds))
                ping_at = loop.time() + wish.ping_seconds
            heard = await self._line.hears(ping_at)

    async def _news(self) -> States:
        """The states that differ from what the client knows; it knows them from now on."""
        now = await self._line.states()
        news = {
            account_id: {
                name: state for name, state in states.items() if _state(self._known, account_id, name) != state
            }
            for account_id, states in now.items()
        }
        self._known = now
        return {account_id: states for account_id, states in news.items() if states}


def id_of_states(states: States) -> str:
    """Return the event id that stands for these states: ASCII, one line."""
    return base64.urlsafe_b64encode(msgspec.json.encode(states, order="deterministic")).decode().rstrip("=")


def states_of_id(untrusted_id: str | None) -> States | None:
    """Return the states that a client says it knows, None without an id.

    An id that is none of ours stands for knowing nothing: everything is told then, which is never wrong.
    """
    if not untrusted_id:
        return None
    if len(untrusted_id) > _MOST_ID_CHARACTERS or not untrusted_id.isascii():
        return {}
    try:
        octets = base64.urlsafe_b64decode(untrusted_id + "=" * (-len(untrusted_id) % 4))
        return msgspec.json.decode(octets, type=dict[str, dict[str, str]])
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return {}


def _state(states: States, account_id: str, name: str) -> str | None:
    return states.get(account_id, {}).get(name)


def _state_event(news: States, known: States) -> str:
    change = msgspec.json.encode({"@type": "StateChange", "changed": news}).decode()
    return f"event: state\nid: {id_of_states(known)}\ndata: {change}\n\n"


def _ping_event(seconds: int) -> str:
    # RFC 8620 §7.3: it sets no id.
    return f'event: ping\ndata: {{"interval": {seconds}}}\n\n'


async def _send_text(send: Send, text: str) -> None:
    await send({"type": "http.response.body", "body": text.encode(), "more_body": True})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

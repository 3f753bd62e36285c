"""Connections that are accepted and not yet requests: few enough, and not for ever.

Whoever may connect could otherwise hold every descriptor of the process, its mail server's and its database's with it;
and whoever connects often, every place.
"""

import asyncio
import ipaddress
import math
import socket
from collections.abc import Awaitable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

import h11
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from shared.absolute_form import in_origin_form
from shared.problem import MEDIA_TYPE, Problem
from shared.tcp_peer import uid_of_tcp_peer
from shared.unix_peer import uid_of_unix_peer

# uvicorn listens with it, and asyncio accepts that many connections before it looks at the first: each is a descriptor
# until it has been dropped. It also covers a burst of agents.
BACKLOG: Final = 128

# A peer may hold so many times the places that it leaves free: two thirds of all where it is alone, two fifths each of
# two. However many there are, the next one finds a place; and who comes through one proxy has enough of them.
_TIMES_WHAT_IS_FREE: Final = 2

_CLOSING: Final = (("connection", "close"), ("cache-control", "no-store"), ("x-content-type-options", "nosniff"))

# RFC 9112 §6.1: never in one request.
_BOTH_LENGTHS: Final = frozenset({b"content-length", b"transfer-encoding"})

# RFC 4291 §2.5.4: what one subscriber has of IPv6 addresses.
_SUBSCRIBERS_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class Peer:
    """Who shares the places of a listener with others: a network, and on this machine a user as far as can be told."""

    network: str
    uid: int | None


def malformed_http() -> Problem:
    """Refuse what cannot be read as a request at all."""
    return Problem(
        400, "malformed_http", "This is no request of HTTP/1.1.", "Let a library of HTTP/1.1 write the request."
    )


def peer_of(connection: Any) -> Peer:  # noqa: ANN401 - a socket, or asyncio's wrapper of one
    """Return whose an accepted connection is, Unix or TCP."""
    if connection.family == socket.AF_UNIX:
        return Peer("unix", uid_of_unix_peer(connection))
    try:
        peer, ours = connection.getpeername()[:2], connection.getsockname()[:2]
    except OSError:
        return Peer("gone", None)
    address = ipaddress.ip_address(peer[0].partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    if address.is_loopback:
        return Peer("loopback", uid_of_tcp_peer(peer, ours))
    if address.version == 4:  # noqa: PLR2004 - IPv4
        return Peer(str(address), None)
    return Peer(str(ipaddress.ip_network((address, _SUBSCRIBERS_BITS), strict=False)), None)


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 protocol that closes what is one connection too many, and what has no request for too long."""

    # Per listener, streams of open pages too; two listeners stay well below the usual limit of 1,024 descriptors.
    max_connections: ClassVar[int] = 300

    # A request's head over loopback or from a proxy takes milliseconds. Longer than the five seconds for which many
    # clients keep a connection that rests: whoever closes it first must be the client, or its next request meets an
    # end that is under way and is lost.
    head_seconds: ClassVar[float] = 10.0

    # So many looks in a row at an answer of which nothing is taken: a minute, then the client is as good as gone, and
    # what its answer holds (a file, a place) is given back.
    most_stalled_looks: ClassVar[int] = 6

    _timer: asyncio.TimerHandle | None = None
    _stalled_looks = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Take the connection, or drop it before anything else is spent on it."""
        super().connection_made(transport)
        # uvicorn takes the target for the path, whatever its form.
        self.app: Any = self._framed_once(in_origin_form(self.app))
        # uvicorn's own is as short as the clients' (5 s).
        self.timeout_keep_alive = math.ceil(self.head_seconds)
        if self._has_place():
            self.taken()
        else:
            self.drop()

    def _framed_once(self, app: ASGIApp) -> ASGIApp:
        """Refuse a body whose end is told in two ways.

        RFC 9112 §6.3, stricter: whoever stands in front may go by the other one, and take the rest of the body for the
        next request.
        """

        def answered(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
            if scope["type"] != "http" or not {name for name, _ in scope["headers"]} >= _BOTH_LENGTHS:
                return app(scope, receive, send)
            problem = malformed_http()
            self.refused(problem)
            return Response(problem.encoded(), problem.status, dict(_CLOSING), MEDIA_TYPE)(scope, receive, send)

        return answered

    @cached_property
    def peer(self) -> Peer:
        """Whose this connection is; asked for only where places are short."""
        return peer_of(self.transport.get_extra_info("socket"))

    def _has_place(self) -> bool:
        taken = len(self.connections)
        free = self.max_connections - taken
        share = _TIMES_WHAT_IS_FREE * free
        if taken <= share:
            # Whoever's they are.
            return True
        of_this_peer = sum(isinstance(each, BoundedProtocol) and each.peer == self.peer for each in self.connections)
        return free >= 0 and of_this_peer <= max(1, share)

    def taken(self) -> None:
        """Begin to wait for a first request; the connection has its place."""
        _send_at_once(self.transport)
        self._wait()

    def drop(self) -> None:
        """End the connection, and give its place back at once: its end is told in a later round of the loop."""
        self.connections.discard(self)
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words say less
        """Refuse what is no HTTP/1.1, and close; where an answer has begun there is no telling any more."""
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            problem = malformed_http()
            self.refused(problem)
            body = problem.encoded()
            headers = [("content-type", MEDIA_TYPE), ("content-length", str(len(body))), *_CLOSING]
            head = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
            for event in (head, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def refused(self, problem: Problem) -> None:
        """Hear of a request that was none; whoever counts them overrides this."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of the timer too."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request; what is left of this one's body is nobody's any more."""
        super().on_response_complete()
        if not self.transport.is_closing() or self.transport.get_write_buffer_size():
            self._wait()

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        unsent = self.transport.get_write_buffer_size()
        # `cycle` is the request at work, or the last one.
        self._timer = self.loop.call_later(self.head_seconds, self._look, self.cycle, unsent)

    def _look(self, before: RequestResponseCycle | None, unsent_before: int) -> None:
        answered = before is None or before.response_complete
        unsent = self.transport.get_write_buffer_size()
        # A long answer may still be on its way through a slow tunnel, as long as it moves.
        moves = 0 < unsent < unsent_before
        is_stalled = self.cycle is before and not answered and 0 < unsent == unsent_before
        self._stalled_looks = self._stalled_looks + 1 if is_stalled else 0
        is_over = self.cycle is before and answered and not moves
        if is_over or self._stalled_looks >= self.most_stalled_looks:
            self.transport.abort()
        else:
            self._wait()


def _send_at_once(transport: asyncio.Transport) -> None:
    # An answer is written in pieces, its head first. Where asyncio does not know a listener for TCP (one that was made
    # without naming the protocol, or was handed over), the second piece would wait 40 ms for the client's word on the
    # first.
    connection = transport.get_extra_info("socket")
    if connection is not None and connection.family in {socket.AF_INET, socket.AF_INET6}:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

"""What stands before every route: whose address was called, what every answer carries, and how a body is read."""

import asyncio
import re
from collections.abc import Collection
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_reader.door import problems
from shared.problem import MEDIA_TYPE, Problem

# Loopback by any port: a tunnel (`ssh -L`) changes the port and nothing else.
_LOOPBACK: Final = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?", re.ASCII | re.IGNORECASE)

# After a refusal in the middle of a body the client may still be sending. Closing at once would reset the connection
# and could lose the refusal on its way; so a little more is taken in and thrown away.
_LINGER_SECONDS: Final = 2.0
_LINGER_OCTETS: Final = 32 * 1024 * 1024

_AUTHENTICATE: Final = ('Bearer realm="mailwarrant"', 'Basic realm="mailwarrant", charset="UTF-8"')

# RFC 9110 §12.5.3: no content coding.
_PLAIN: Final = "identity"

_HEADERS: Final = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
)


def refusal(problem: Problem) -> Response:
    """Return the response for a problem."""
    response = Response(problem.encoded(), problem.status, media_type=MEDIA_TYPE)
    if "retryAfter" in problem.extra:
        response.headers["Retry-After"] = str(problem.extra["retryAfter"])
    if problem.status == 415:  # noqa: PLR2004 - RFC 9110 §15.5.16: it says which codings are taken
        response.headers["Accept-Encoding"] = _PLAIN
    if problem.status == 401:  # noqa: PLR2004 - RFC 9110 §11.6.1: a 401 says how to authenticate
        for challenge in _AUTHENTICATE:
            response.headers.append("WWW-Authenticate", challenge)
    return response


def wrong_method(allowed: str) -> Response:
    """Return the refusal of another HTTP method than the one that a path takes."""
    response = refusal(problems.method_not_allowed(allowed))
    # RFC 9110 §15.5.6: a 405 says what is taken.
    response.headers["Allow"] = allowed
    return response


class HostGate:
    """Refuses requests for another host than ours, and gives every answer the same cautious header fields.

    Without it a web page could lead a browser here by a name of its own (DNS rebinding). `hosts` are allowed besides
    the loopback names, with their port if they have one.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS:
                    headers.setdefault(name, value)
            await send(message)

        hosts = Headers(scope=scope).getlist("host")
        if len(hosts) == 1 and (_LOOPBACK.fullmatch(hosts[0]) or hosts[0].lower() in self._hosts):
            await self._app(scope, receive, send_with_headers)
        else:
            await refusal(problems.unknown_host())(scope, receive, send_with_headers)


class ClosingRefusal(Response):
    """A refusal that ends the connection, since the rest of the body is not wanted."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.encoded(), problem.status, {"Connection": "close"}, MEDIA_TYPE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's signature
        """Send the refusal, wait a little for what is still on its way, then let the connection close."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        await _drain(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _drain(receive: Receive) -> None:
    left = _LINGER_OCTETS
    try:
        async with asyncio.timeout(_LINGER_SECONDS):
            while left > 0:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
                left -= len(message.get("body", b""))
    except TimeoutError:
        return


async def read_body(request: Request, most_octets: int, most_seconds: float) -> bytes:
    """Return the body, or raise a `Problem`; what is over the limit is not read.

    Raises `starlette.requests.ClientDisconnect` where the client went away.
    """
    codings = ",".join(request.headers.getlist("content-encoding")).lower()
    if any(coding.strip() not in {"", _PLAIN} for coding in codings.split(",")):
        raise problems.encoded_body()
    declared = request.headers.get("content-length", "0")
    # h11 has refused what is no number; twelve digits are past any limit.
    if len(declared) > 12 or int(declared) > most_octets:  # noqa: PLR2004 - see above
        raise problems.too_large(most_octets)
    body = bytearray()
    try:
        async with asyncio.timeout(most_seconds):
            async for piece in request.stream():
                body += piece
                if len(body) > most_octets:
                    raise problems.too_large(most_octets)
    except TimeoutError:
        raise problems.too_slow() from None
    return bytes(body)

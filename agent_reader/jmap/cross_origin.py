"""Which web pages may read answers: those of configured origins, and no others (Fetch standard, CORS protocol).

A page of another origin can still send a simple request, as any program can; it holds no token, and no answer names
its origin, so the browser shows it none.
"""

from collections.abc import Collection
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ALLOWED: Final = (
    ("Access-Control-Allow-Methods", "GET, HEAD, POST"),
    (
        "Access-Control-Allow-Headers",
        "Authorization, Content-Type, Last-Event-ID, Range, If-Range, If-Match, If-None-Match",
    ),
    # Two hours: longer than any browser believes it, and short enough for an origin that is taken off the list.
    ("Access-Control-Max-Age", "7200"),
)
_SHOWN: Final = "Content-Disposition, Content-Range, ETag, Retry-After, WWW-Authenticate"


class CrossOrigin:
    """Answers preflights of the origins on the list, and names them in what they are answered."""

    def __init__(self, app: ASGIApp, origins: Collection[str]) -> None:
        self._app = app
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, with what a browser wants to read; a preflight carries no token and ends here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin", "")
        is_configured = origin in self._origins

        async def send_with_origin(message: Message) -> None:
            if message["type"] == "http.response.start":
                named = MutableHeaders(scope=message)
                # Whoever asks: what a cache keeps without leave is of no use to a page that has it.
                named.add_vary_header("Origin")
                if is_configured:
                    named["Access-Control-Allow-Origin"] = origin
                    named["Access-Control-Expose-Headers"] = _SHOWN
            await send(message)

        if is_configured and scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            allowed = [(name.lower().encode(), value.encode()) for name, value in _ALLOWED]
            await send_with_origin({"type": "http.response.start", "status": 204, "headers": allowed})
            await send_with_origin({"type": "http.response.body", "body": b""})
        else:
            await self._app(scope, receive, send_with_origin)

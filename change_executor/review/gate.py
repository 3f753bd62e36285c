"""The gate in front of every page: the Host, the origin of every unsafe request, and the headers of every answer.

A name that an attacker points at this machine (DNS rebinding) has a Host that is not ours; a page of another site has
an origin that is not ours. Pure ASGI, so that nothing behind it can forget it.
"""

from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from change_executor.review.error_page import Refusal, refuse
from change_executor.review.headers import SECURITY_HEADERS

_SAFE_METHODS: Final = frozenset({"GET", "HEAD"})


class Gate:
    """Lets through what names this page as its host and, where it would change something, as its origin."""

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str], secure: bool) -> None:
        self._app = app
        self._hosts = hosts
        self._scheme = "https" if secure else "http"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Judge one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                # An answer may state a stricter policy of its own; nothing goes out without one.
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._judge(scope["method"], Headers(scope=scope))
        if refusal is None:
            await self._app(scope, receive, send_with_headers)
        else:
            await refuse(refusal)(scope, receive, send_with_headers)

    def _judge(self, method: str, headers: Headers) -> Refusal | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return Refusal.WRONG_HOST
        if method in _SAFE_METHODS:
            return None
        return None if self._is_same_origin(hosts[0].lower(), headers) else Refusal.OTHER_ORIGIN

    def _is_same_origin(self, host: str, headers: Headers) -> bool:
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if origin not in {None, "null"} and origin != f"{self._scheme}://{host}":
            return False
        # Our Referrer-Policy makes browsers send `Origin: null` with forms; then Sec-Fetch-Site has to say it.
        if site is not None:
            return site == "same-origin"
        return origin == f"{self._scheme}://{host}"

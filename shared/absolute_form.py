"""Requests whose target is a whole address (`GET http://host/path`), answered as those that name the path alone.

A server has to take them (RFC 9112 §3.2.2), and what the target names counts for the Host field: whoever checks Host
afterwards checks the address that is really asked for.
"""

import re
from collections.abc import Awaitable
from typing import Any, Final
from urllib.parse import unquote

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from shared.problem import MEDIA_TYPE, Problem

# What an authority may hold is not judged here: whoever checks Host knows the few that are ours.
_ABSOLUTE: Final = re.compile(
    rb"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/]*)(?P<path>(?:/.*)?)", re.DOTALL
)

_HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def misdirected() -> Problem:
    """Refuse an address of another scheme than the connection's: it was not meant to come this way (RFC 9110 §7.4)."""
    return Problem(
        421,
        "misdirected",
        "The request's target is an address of another scheme than this connection's.",
        "Connect to the address that is asked for, or send the path alone as the target.",
    )


def in_origin_form(app: ASGIApp) -> ASGIApp:
    """Return an app that gives requests on as if their target were the path, and Host the target's authority."""

    def answered(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http" or scope["path"].startswith("/"):
            return app(scope, receive, send)
        found = _ABSOLUTE.fullmatch(scope["raw_path"])
        if found is None:
            return app(scope, receive, send)
        if found["scheme"].decode("ascii").lower() != scope["scheme"]:
            problem = misdirected()
            return Response(problem.encoded(), problem.status, _HEADERS, MEDIA_TYPE)(scope, receive, send)
        raw_path = found["path"] or b"/"
        headers = [(name, value) for name, value in scope["headers"] if name != b"host"]
        origin: dict[str, Any] = {
            "path": unquote(raw_path.decode("ascii")),
            "raw_path": raw_path,
            "headers": [(b"host", found["authority"]), *headers],
        }
        return app({**scope, **origin}, receive, send)

    return answered

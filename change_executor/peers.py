"""Whose process is at the other end of a connection, told by the kernel: nothing is trusted because it is local.

Any local process can connect to loopback TCP, so the kernel is asked for the uid of the peer's socket when the
connection is accepted (`shared/tcp_peer.py`; Unix sockets: SO_PEERCRED). What cannot be told is refused.
"""

import socket
from collections.abc import Callable
from typing import Any, Final

from starlette.types import ASGIApp, Receive, Scope, Send

from change_executor.peer_refusal import PeerRefusal
from shared.bounded_http import BoundedProtocol
from shared.sock_diag import Address
from shared.tcp_peer import uid_of_tcp_peer
from shared.unix_peer import uid_of_unix_peer

# Where the protocol leaves what it found, in the extensions of an ASGI scope.
_EXTENSION: Final = "mailwarrant.peer_uid"


def uid_of_socket(connection: Any) -> int | None:  # noqa: ANN401 - a socket, or asyncio's wrapper of one
    """Return the uid behind the other end of an accepted connection, Unix or loopback TCP, or None."""
    try:
        if connection.family == socket.AF_UNIX:
            return uid_of_unix_peer(connection)
        return uid_of_tcp_peer(connection.getpeername()[:2], connection.getsockname()[:2])
    except OSError:
        return None


class PeerProtocol(BoundedProtocol):
    """Asks for the peer's uid once, when the connection is accepted."""

    uid: int | None = None

    def taken(self) -> None:
        """Look the peer up before anything of it is read."""
        super().taken()
        uid = self.uid = uid_of_socket(self.transport.get_extra_info("socket"))
        behind = self.app

        async def with_uid(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - uvicorn's types and starlette's
            scope.setdefault("extensions", {})[_EXTENSION] = uid
            await behind(scope, receive, send)

        self.app = with_uid


class PeerUidGate:
    """Refuses every request whose peer is not one of `allow_uids`, before anything of it is parsed.

    `refused` counts; `key` is the one of the configuration that lists them. Behind another server than `PeerProtocol`
    the uid is looked up by the addresses of the scope, which must then come from the socket (no proxy headers).
    """

    def __init__(
        self,
        app: ASGIApp,
        allow_uids: frozenset[int],
        uid_of: Callable[[Address, Address], int | None] = uid_of_tcp_peer,
        *,
        key: str = "allow_uids",
    ) -> None:
        self._app = app
        self._allow_uids = allow_uids
        self._uid_of = uid_of
        self._refusal = PeerRefusal(key)
        self.refused = 0

    def allows(self, uid: int | None) -> bool:
        """Whether the requests of this uid are let through."""
        return uid in self._allow_uids

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request through, or answer it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        uid = self._uid(scope)
        if self.allows(uid):
            await self._app(scope, receive, send)
            return
        self.refused += 1
        self._refusal.log(uid)
        if scope["type"] == "http":
            await _refuse(send, self._refusal, scope, uid)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _uid(self, scope: Scope) -> int | None:
        extensions = scope.get("extensions") or {}
        if _EXTENSION in extensions:
            found = extensions[_EXTENSION]
            return found if isinstance(found, int) else None
        client, server = scope.get("client"), scope.get("server")
        if client is None or server is None or server[1] is None:
            return None
        try:
            return self._uid_of((client[0], client[1]), (server[0], server[1]))
        except ValueError:
            return None


async def _refuse(send: Send, refusal: PeerRefusal, scope: Scope, uid: int | None) -> None:
    status, headers, body = refusal.answer(scope, uid)
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

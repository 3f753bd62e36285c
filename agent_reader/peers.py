"""Whose process is at the other end of a Unix socket, told by the kernel: nothing is trusted because it is local."""

from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from shared.bounded_http import BoundedProtocol
from shared.problem import MEDIA_TYPE, Problem
from shared.unix_peer import uid_of_unix_peer

# Where the protocol leaves what it found, in the state of an ASGI scope.
_PEER_UID: Final = "mailwarrant.peer_uid"

_REFUSAL: Final = Problem(
    403,
    "peer_not_allowed",
    "The process that connects belongs to an operating-system user that is not allowed here, or cannot be told.",
    "Set `[server] executor_uid` in reader.toml to the executor's uid.",
)


def allowed_uids(executor_uid: int | None, own_uid: int) -> frozenset[int]:
    """Return whom the private socket answers: ourselves and the executor; with none configured ourselves and root."""
    return frozenset({own_uid, 0 if executor_uid is None else executor_uid})


class PeerProtocol(BoundedProtocol):
    """Asks for the peer's uid once, when the connection is accepted."""

    def taken(self) -> None:
        """Look the peer up before anything of it is read."""
        super().taken()
        # uvicorn gives every request's scope a copy of this.
        self.app_state = {**self.app_state, _PEER_UID: uid_of_unix_peer(self.transport.get_extra_info("socket"))}


class PeerGate:
    """Refuses every request whose peer is not one of `allow_uids`, before anything of it is parsed.

    Works behind `PeerProtocol` alone; behind anything else every peer is unknown, and so refused.
    """

    def __init__(self, app: ASGIApp, allow_uids: frozenset[int]) -> None:
        self._app, self._allow_uids = app, allow_uids

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request through, or answer it."""
        if scope["type"] == "lifespan" or (scope.get("state") or {}).get(_PEER_UID) in self._allow_uids:
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await _refuse(send)
        else:
            await send({"type": "websocket.close", "code": 1008})


async def _refuse(send: Send) -> None:
    body = _REFUSAL.encoded()
    headers = [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": _REFUSAL.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

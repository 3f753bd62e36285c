"""Whose process is at the other end of a connection, told by the kernel: nothing is trusted because it is local.

Any local process can connect to loopback TCP, so the kernel is asked for the uid of the peer's socket when the
connection is accepted: by sock_diag, else by /proc/net/tcp and tcp6 (Unix sockets: SO_PEERCRED). What cannot be told is
refused; where there is no /proc (macOS) nothing about TCP can be told, and `can_tell_tcp_peers` says so.
"""

import contextlib
import ipaddress
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from starlette.types import ASGIApp, Receive, Scope, Send

from change_executor.peer_refusal import PeerRefusal
from change_executor.sock_diag import Address, tcp_socket
from shared.bounded_http import BoundedProtocol

_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))

# Columns of a line of those tables, after its number.
_UID, _INODE = 7, 9
_COLUMNS: Final = 10

# RFC 4291 §2.5.5.2: what stands before an IPv4 address in one of IPv6.
_MAPPED: Final = bytes(10) + b"\xff\xff"

# Where the protocol leaves what it found, in the extensions of an ASGI scope.
_EXTENSION: Final = "mailwarrant.peer_uid"


def can_tell_tcp_peers() -> bool:
    """Whether this system has the tables that name the uid of a TCP peer on the same machine."""
    return _TABLES[0].exists()


def uid_in_tables(tables: list[str], peer: Address, ours: Address) -> int | None:
    """Return the uid of the socket whose own address is `peer` and whose remote one is `ours`, or None.

    `tables` are the texts of /proc/net/tcp and tcp6. A socket that its process closed has neither an owner nor an
    inode there (and shows uid 0), so it counts as unknown; so do two sockets of different uids.
    """
    wanted = [f" {local} {remote} " for local, remote in zip(_columns(peer), _columns(ours), strict=False)]
    uids: set[int] = set()
    # Whoever opens many connections makes these tables long, and every accept reads them: a search, and no parsing
    # but of what it finds.
    for line in (line for table in tables for columns in wanted for line in _lines_with(columns, table)):
        parts = line.split()
        if len(parts) >= _COLUMNS and parts[_INODE] != "0":
            uids.add(int(parts[_UID]))
    return uids.pop() if len(uids) == 1 else None


def _lines_with(columns: str, table: str) -> Iterator[str]:
    found = table.find(columns)
    while found >= 0:
        end = table.find("\n", found)
        end = len(table) if end < 0 else end
        yield table[table.rfind("\n", 0, found) + 1 : end]
        found = table.find(columns, end)


def uid_of_tcp_peer(peer: Address, ours: Address) -> int | None:
    """Return the uid of the process that made the peer's socket, or None where it cannot be told."""
    try:
        with contextlib.suppress(OSError):
            found = tcp_socket(peer, ours)
            if found is not None:
                return found.uid if found.inode else None
        # A kernel without sock_diag, or a sandbox that forbids asking it.
        return uid_in_tables([table.read_text(encoding="ascii") for table in _TABLES if table.exists()], peer, ours)
    except (OSError, ValueError):
        return None


def uid_of_socket(connection: Any) -> int | None:  # noqa: ANN401 - a socket, or asyncio's wrapper of one
    """Return the uid behind the other end of an accepted connection, Unix or loopback TCP, or None."""
    try:
        if connection.family == socket.AF_UNIX:
            return _uid_of_unix_peer(connection)
        return uid_of_tcp_peer(connection.getpeername()[:2], connection.getsockname()[:2])
    except OSError:
        return None


def _uid_of_unix_peer(connection: socket.socket) -> int | None:
    if sys.platform != "linux":
        return None
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, uid, _ = struct.unpack("3i", credentials)
    # -1, unsigned: the peer lives in another user namespace or is gone.
    return int(uid) if uid >= 0 else None


def _columns(address: Address) -> list[str]:
    """How the tables write an address: an IPv4 one also as that of a socket that speaks IPv6."""
    parsed = ipaddress.ip_address(address[0].partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    written = [parsed.packed]
    if parsed.version == 4:  # noqa: PLR2004 - IPv4
        written.append(_MAPPED + parsed.packed)
    return [f"{_words(packed)}:{address[1]:04X}" for packed in written]


def _words(packed: bytes) -> str:
    # The kernel prints each 32-bit word of the address as a number of its own byte order.
    return "".join(
        f"{int.from_bytes(packed[start : start + 4], sys.byteorder):08X}" for start in range(0, len(packed), 4)
    )


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

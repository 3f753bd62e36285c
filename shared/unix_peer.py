"""Whose process is at the other end of a Unix socket, told by the kernel when it was connected (SO_PEERCRED)."""

import socket
import struct
import sys
from typing import Any


def uid_of_unix_peer(connection: Any) -> int | None:  # noqa: ANN401 - a socket, or asyncio's wrapper of one
    """Return the uid behind the other end of an accepted Unix connection, or None where it cannot be told."""
    if sys.platform != "linux" or connection.family != socket.AF_UNIX:
        return None
    try:
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    except OSError:
        return None
    _, uid, _ = struct.unpack("3i", credentials)
    # -1, unsigned: the peer lives in another user namespace or is gone.
    return int(uid) if uid >= 0 else None

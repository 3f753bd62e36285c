"""Who may knock at the gate: any process of this machine reaches loopback, and the reader alone has business here."""

import contextlib
import os
import pwd
from typing import Final

from shared.sock_diag import Address
from shared.tcp_peer import can_tell_tcp_peers, uid_of_tcp_peer

_READER: Final = "agent-reader"


def allowed_uids(named: frozenset[int]) -> frozenset[int]:
    """Return whose processes may connect: those named, else the reader's user; root's and the gate's own always."""
    with contextlib.suppress(KeyError):
        named = named or frozenset({pwd.getpwnam(_READER).pw_uid})
    return named | {0, os.geteuid()}


def stranger(peer: Address, ours: Address, allowed: frozenset[int]) -> str | None:
    """Return who has no business here, by uid; None for who has, and where this system tells nothing."""
    uid = uid_of_tcp_peer(peer, ours)
    return f"uid {'unknown' if uid is None else uid}" if can_tell_tcp_peers() and uid not in allowed else None

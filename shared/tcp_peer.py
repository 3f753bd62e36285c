"""Whose process is at the other end of a loopback TCP connection, told by the kernel.

Any local process can connect to loopback, so the uid of the peer's socket is asked for when a connection is accepted:
by sock_diag, else by /proc/net/tcp and tcp6. Where there is no /proc (macOS) nothing can be told, and
`can_tell_tcp_peers` says so.
"""

import contextlib
import ipaddress
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from shared.sock_diag import Address, tcp_socket

_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))

# Columns of a line of those tables, after its number.
_UID, _INODE = 7, 9
_COLUMNS: Final = 10

# RFC 4291 §2.5.5.2: what stands before an IPv4 address in one of IPv6.
_MAPPED: Final = bytes(10) + b"\xff\xff"


def can_tell_tcp_peers() -> bool:
    """Whether this system names the uid of a TCP peer on the same machine: Linux does, with or without its tables."""
    # A confined service sees no /proc/net (ProcSubset=pid), and asks by sock_diag all the same.
    return sys.platform == "linux" or _TABLES[0].exists()


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

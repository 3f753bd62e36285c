"""Asks Linux for one TCP socket of this machine by its two addresses: sock_diag(7), some microseconds.

The tables in /proc/net hold the same, but list every socket there is: whoever opens thousands makes each look slow.
"""

import ipaddress
import socket
import struct
import sys
from dataclasses import dataclass
from typing import Final

Address = tuple[str, int]

# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h
_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_NLM_F_REQUEST: Final = 1
_HEADER: Final = struct.Struct("=IHHII")
# Family, protocol, extensions, padding, states (all).
_QUESTION: Final = struct.Struct("=BBBBI")
# Both ports and both addresses, in the order of the network; then the interface and a cookie.
_PORTS: Final = struct.Struct("!HH")
_ANY_INTERFACE_NO_COOKIE: Final = struct.pack("=I", 0) + b"\xff" * 8
_ADDRESS_OCTETS: Final = 16
# Family, state, timer, retransmissions; then ports, addresses, interface, cookie as above; then five numbers.
_PORTS_AT: Final = _HEADER.size + 4
_NUMBERS: Final = struct.Struct("=IIIII")
_NUMBERS_AT: Final = _PORTS_AT + _PORTS.size + 2 * _ADDRESS_OCTETS + len(_ANY_INTERFACE_NO_COOKIE)
_MAX_ANSWER_OCTETS: Final = 8192

# The kernel answers within the call.
_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Found:
    """A socket: who made it, and its inode, 0 where no process has it any more (the uid means nothing then)."""

    uid: int
    inode: int


def tcp_socket(own: Address, remote: Address) -> Found | None:
    """Return the connected socket whose own address is `own`, or None where the kernel names none.

    Raises `OSError` where it cannot be asked, `ValueError` for what is no address.
    """
    if sys.platform != "linux":
        return None
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(_SECONDS)
        kernel.send(_question(own, remote))
        answer = kernel.recv(_MAX_ANSWER_OCTETS)
    if len(answer) < _NUMBERS_AT + _NUMBERS.size or _HEADER.unpack_from(answer)[1] != _SOCK_DIAG_BY_FAMILY:
        return None
    if _PORTS.unpack_from(answer, _PORTS_AT) != (own[1], remote[1]):
        # Where there is no such connection the kernel names a listener on the port of `own`, perhaps another user's.
        return None
    _, _, _, uid, inode = _NUMBERS.unpack_from(answer, _NUMBERS_AT)
    return Found(uid, inode)


def _question(own: Address, remote: Address) -> bytes:
    addresses = [_plain(own[0]), _plain(remote[0])]
    family = socket.AF_INET if all(address.version == 4 for address in addresses) else socket.AF_INET6  # noqa: PLR2004 - IPv4
    asked = (
        _QUESTION.pack(family, socket.IPPROTO_TCP, 0, 0, 0xFFFF_FFFF)
        + _PORTS.pack(own[1], remote[1])
        + b"".join(address.packed.ljust(_ADDRESS_OCTETS, b"\0") for address in addresses)
        + _ANY_INTERFACE_NO_COOKIE
    )
    return _HEADER.pack(_HEADER.size + len(asked), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0) + asked


def _plain(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    parsed = ipaddress.ip_address(address.partition("%")[0])
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return parsed if mapped is None else mapped

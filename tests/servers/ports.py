"""Ports that stay free between two starts of a server: a slice for each worker of a parallel run."""

from __future__ import annotations

import itertools
import os
import secrets
import socket
from typing import Final

# Below the kernel's range for outgoing connections (32768 and up), so that no client's socket takes one in between.
_FIRST: Final = 20_000
_SLICE: Final = 1_500
_WORKERS: Final = 8

WORKER: Final = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
# Another run on the same machine has the same slices, so each begins somewhere else and asks.
_offsets: Final = itertools.count(secrets.randbelow(_SLICE))


def free_port() -> int:
    """A port that nothing listens on, on neither loopback address; no port is given twice in a row."""
    while True:
        port = _FIRST + WORKER % _WORKERS * _SLICE + next(_offsets) % _SLICE
        if all(_is_free(family, address, port) for family, address in _LOOPBACK):
            return port


_LOOPBACK: Final = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))


def _is_free(family: socket.AddressFamily, address: str, port: int) -> bool:
    try:
        with socket.create_server((address, port), family=family):
            return True
    except OSError:
        # A machine without IPv6 has no such address; then nobody listens there.
        return family is socket.AF_INET6 and not _has_ipv6()


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False

"""Taking everything away from the child before it reads a hostile octet; the child calls this on itself.

What is taken: new descriptors (so no file, socket or pipe can be opened), processes, growth of files, most memory and
processor time, any gain of privilege, and where the kernel has Landlock all paths, TCP and signals to others. What it
keeps is the octets that it was given and the one pipe that it answers on.
"""

import ctypes
import os
import resource
import struct
import sys
from dataclasses import dataclass
from typing import Final

MEMORY_OCTETS: Final = 512 * 1024 * 1024
# A hundred times what the slowest honest message takes.
CPU_SECONDS: Final = 10

_LIMITS: Final = (
    # A fault must not write what it read to a disk.
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_FSIZE, 0),
    (resource.RLIMIT_CPU, CPU_SECONDS),
    # Root is exempt from this one; the executor does not run as root.
    (resource.RLIMIT_NPROC, 0),
    # What is open stays open; nothing more can be.
    (resource.RLIMIT_NOFILE, 0),
    (resource.RLIMIT_AS, MEMORY_OCTETS),
)

# linux/prctl.h
_PR_SET_DUMPABLE: Final = 4
_PR_SET_NO_NEW_PRIVS: Final = 38

# The numbers are the same on every architecture that Python runs on (asm-generic/unistd.h).
_SYS_LANDLOCK_CREATE_RULESET: Final = 444
_SYS_LANDLOCK_RESTRICT_SELF: Final = 446
_LANDLOCK_CREATE_RULESET_VERSION: Final = 1

# linux/landlock.h: every right of the file system, by the version of the interface that brought it.
_FILE_SYSTEM_RIGHTS: Final = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 5: 0xFFFF}
_NETWORK_SINCE: Final = 4
_SCOPES_SINCE: Final = 6
_BIND_AND_CONNECT_TCP: Final = 3
_ABSTRACT_SOCKETS_AND_SIGNALS: Final = 3


@dataclass(frozen=True, slots=True)
class Confinement:
    """What holds now; `landlock` is the version of the kernel's interface, 0 where it has none."""

    no_new_privs: bool
    landlock: int


def confine() -> Confinement:
    """Take everything away, for good. Whatever is needed later must be imported and open already.

    Limits that the system does not have (Landlock and prctl outside Linux) are left out, and the answer says so.
    Raises OSError where a limit of every Unix cannot be set.
    """
    confinement = _confine_on_linux() if sys.platform == "linux" else Confinement(no_new_privs=False, landlock=0)
    for limit, amount in _LIMITS:
        _, ceiling = resource.getrlimit(limit)
        lowered = amount if ceiling == resource.RLIM_INFINITY else min(amount, ceiling)
        resource.setrlimit(limit, (lowered, lowered))
    return confinement


def landlock_version() -> int:
    """Return the version of the kernel's Landlock interface, 0 where there is none or it is switched off."""
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    return max(int(libc.syscall(_SYS_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_CREATE_RULESET_VERSION)), 0)


def _confine_on_linux() -> Confinement:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    no_new_privs = libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    return Confinement(no_new_privs, _shut_with_landlock(libc) if no_new_privs else 0)


def _shut_with_landlock(libc: ctypes.CDLL) -> int:
    version = landlock_version()
    if version == 0:
        return 0
    rights = max(bits for since, bits in _FILE_SYSTEM_RIGHTS.items() if since <= version)
    attributes = struct.pack("=Q", rights)
    if version >= _NETWORK_SINCE:
        attributes += struct.pack("=Q", _BIND_AND_CONNECT_TCP)
    if version >= _SCOPES_SINCE:
        attributes += struct.pack("=Q", _ABSTRACT_SOCKETS_AND_SIGNALS)
    ruleset = libc.syscall(_SYS_LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    if ruleset < 0:
        return 0
    # No rule follows: what the ruleset handles and no rule allows is refused.
    shut = libc.syscall(_SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0) == 0
    os.close(ruleset)
    return version if shut else 0

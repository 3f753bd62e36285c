"""Taking everything away from the child before it reads a hostile octet; the child calls this on itself.

What is taken: new descriptors (so no file, socket or pipe can be opened), processes, growth of files, most memory and
processor time, any gain of privilege, and where the kernel has Landlock all paths, TCP and signals to others. What it
keeps is the octets that it was given and the one pipe that it answers on.
"""

import ctypes
import resource
import sys
from dataclasses import dataclass
from typing import Final

from shared.landlock import give_up_privileges, shut

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


def _confine_on_linux() -> Confinement:
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    # Nothing is readable: all that is needed is loaded.
    return Confinement(give_up_privileges(), shut())

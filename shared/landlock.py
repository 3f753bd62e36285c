"""Landlock: a process gives up paths, TCP and signals to others by itself, for good (landlock(7)).

It needs no privilege and no unit, and keeps from each other what one user owns: a process that reads hostile mail runs
as whoever holds the index, and is not let near it. A kernel without it is told (`landlock_version`), not worked around.
"""

import ctypes
import os
import struct
import sys
import sysconfig
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

# linux/prctl.h
_PR_SET_NO_NEW_PRIVS: Final = 38

# The numbers are the same on every architecture that Python runs on (asm-generic/unistd.h).
_SYS_CREATE_RULESET: Final = 444
_SYS_ADD_RULE: Final = 445
_SYS_RESTRICT_SELF: Final = 446
_CREATE_RULESET_VERSION: Final = 1
_RULE_PATH_BENEATH: Final = 1

# linux/landlock.h: every right of the file system, by the version of the interface that brought it.
_FILE_SYSTEM_RIGHTS: Final = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 5: 0xFFFF}
_READ_FILE_AND_FOLDER: Final = 0xC
_NETWORK_SINCE: Final = 4
_SCOPES_SINCE: Final = 6
_BIND_AND_CONNECT_TCP: Final = 3
_ABSTRACT_SOCKETS_AND_SIGNALS: Final = 3


def landlock_version() -> int:
    """Return the version of the kernel's Landlock interface, 0 where there is none or it is switched off."""
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    return max(int(libc.syscall(_SYS_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)), 0)


def give_up_privileges() -> bool:
    """Gain none by any program that is run from now on; whether that holds. Landlock asks for it."""
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)


def shut(readable: Iterable[Path] = ()) -> int:
    """Give up everything that Landlock takes but reading below `readable`; what is open stays open.

    Returns the version that holds now, 0 where nothing does. The calling thread, and what it starts, are shut in.
    """
    version = landlock_version()
    if version == 0 or not give_up_privileges():
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    rights = max(bits for since, bits in _FILE_SYSTEM_RIGHTS.items() if since <= version)
    attributes = struct.pack("=Q", rights)
    if version >= _NETWORK_SINCE:
        attributes += struct.pack("=Q", _BIND_AND_CONNECT_TCP)
    if version >= _SCOPES_SINCE:
        attributes += struct.pack("=Q", _ABSTRACT_SOCKETS_AND_SIGNALS)
    ruleset = libc.syscall(_SYS_CREATE_RULESET, attributes, len(attributes), 0)
    if ruleset < 0:
        return 0
    try:
        # What the ruleset handles and no rule allows is refused.
        for folder in readable:
            _allow_reading(libc, ruleset, folder)
        return version if libc.syscall(_SYS_RESTRICT_SELF, ruleset, 0) == 0 else 0
    finally:
        os.close(ruleset)


def folders_of_code() -> list[Path]:
    """Return where this interpreter finds modules and the libraries that they are linked with."""
    # A relative place, as `python -c` has, is wherever the process stands: that may be the whole machine.
    places = {Path(each) for each in sys.path if each.startswith("/")}
    places |= {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    places.add(Path(sys.base_prefix) / "lib")
    return sorted(each for each in places if each.is_dir())


def _allow_reading(libc: ctypes.CDLL, ruleset: int, folder: Path) -> None:
    # What cannot be opened stays shut.
    with suppress(OSError):
        below = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        try:
            rule = struct.pack("=Qi", _READ_FILE_AND_FOLDER, below)
            libc.syscall(_SYS_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0)
        finally:
            os.close(below)

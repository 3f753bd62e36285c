"""Servers that conflict with Dovecot as packages: unpacked by deploy/test_servers, never installed."""

from __future__ import annotations

import os
import platform
import subprocess
import sysconfig
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

UNPACK: Final = "deploy/test_servers"
# Where that puts them for root, and for anybody else.
ROOTS: Final = (
    Path("/var/cache/mailwarrant-test-servers"),
    Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mailwarrant-test-servers",
)


class ServerUnusableError(RuntimeError):
    """A server of the tests is not unpacked, or did not start; the text says what to do."""


class Unpacked:
    """The packages' tree: `file` finds in it, `environment` lets its programs find their libraries."""

    def __init__(self) -> None:
        self.root = _unpacked_root()

    def file(self, path: str) -> Path:
        """A file of the packages by its path in the system. Raises ServerUnusableError where it is missing."""
        found = self.root / path.removeprefix("/")
        if not found.exists():
            raise ServerUnusableError(f"{found} is missing; remove {self.root} and type: {UNPACK}")
        return found

    def environment(self, more: Iterable[Path] = ()) -> dict[str, str]:
        """What a program of the tree needs to start."""
        triplet = sysconfig.get_config_var("MULTIARCH") or f"{platform.machine()}-linux-gnu"
        folders = [*more, *(self.root / at for at in (f"usr/lib/{triplet}", f"lib/{triplet}", "usr/lib"))]
        # SASL's plugins are no libraries of any program, and perhaps in the tree alone.
        plugins = f"{self.root}/usr/lib/{triplet}/sasl2:/usr/lib/{triplet}/sasl2"
        libraries = ":".join(map(str, folders))
        return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LD_LIBRARY_PATH": libraries, "SASL_PATH": plugins}


def run_as(account: tuple[int, int], command: list[str], environment: dict[str, str], said: bytes = b"") -> None:
    """A program of the tree, to its end, as the server's account. Raises ServerUnusableError."""
    with started_as(account, command, environment, subprocess.PIPE, Path("/tmp")) as process:
        out, _ = process.communicate(said)
    if process.returncode:
        raise ServerUnusableError(f"{' '.join(command)}: {out.decode(errors='replace')}")


def started_as(
    account: tuple[int, int], command: list[str], environment: dict[str, str], output: IO[bytes] | int, folder: Path
) -> subprocess.Popen[bytes]:
    """A program of the tree, in a session of its own, as the server's account."""
    as_root = os.geteuid() == 0
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE if output == subprocess.PIPE else subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=environment,
        start_new_session=True,
        user=account[0] if as_root else None,
        group=account[1] if as_root else None,
        extra_groups=[] if as_root else None,
    )


def _unpacked_root() -> Path:
    for root in ROOTS:
        if list(root.glob(".unpacked-*")):
            return root
    raise ServerUnusableError(f"Cyrus and Courier are not unpacked; type: {UNPACK}")

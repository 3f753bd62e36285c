"""How much memory a service may have, and how many of its processes the kernel ended for want of more.

By the unit's own `MemoryMax=` where the container's systemd limits memory. Where this machine has the first version of
control groups for it, a container gets none of its own: there the service is begun in a group of this machine's with
the same limit, and the kernel does the same.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from tests.system.machine import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.system.machine import Machine

_FIRST_VERSION: Final = Path("/sys/fs/cgroup/memory")
ROOMY: Final = 4 * 1024**3


class Memory(Protocol):
    """What a service may have, to be made less while it runs."""

    def allow(self, octets: int) -> None:
        """Let it have so many octets in all."""

    def used(self) -> int:
        """How many octets it has now."""

    def ended(self) -> int:
        """How many of its processes the kernel ended so far."""


@contextmanager
def memory_of(machine: Machine, service: str, octets: int = ROOMY) -> Iterator[Memory]:
    """Start a service anew that may have so many octets, children included; as before afterwards."""
    limited = _OfThisMachine if (_FIRST_VERSION / "memory.limit_in_bytes").exists() else _OfTheUnit
    memory = limited(machine, service)
    try:
        memory.allow(octets)
        machine.said("systemctl", "stop", service)
        with memory.begun():
            machine.said("systemctl", "start", service)
        yield memory
    finally:
        memory.lift()
        machine.said("systemctl", "restart", service)
        memory.close()


class _OfThisMachine:
    def __init__(self, machine: Machine, service: str) -> None:
        self._leader = machine.leader
        lines = Path(f"/proc/{self._leader}/cgroup").read_text().splitlines()
        (own,) = [line.split(":", 2)[2] for line in lines if line.split(":", 2)[1] == "memory"]
        self._above = _FIRST_VERSION / own.lstrip("/")
        self._group = self._above / f"mailwarrant-{os.getpid()}-{service}"
        self._group.mkdir()

    def allow(self, octets: int) -> None:
        (self._group / "memory.limit_in_bytes").write_text(str(octets))

    def used(self) -> int:
        return int((self._group / "memory.usage_in_bytes").read_text())

    def ended(self) -> int:
        said = dict(line.split() for line in (self._group / "memory.oom_control").read_text().splitlines())
        return int(said["oom_kill"])

    @contextmanager
    def begun(self) -> Iterator[None]:
        # What the container's first process begins is in its group; itself it goes back.
        (self._group / "cgroup.procs").write_text(str(self._leader))
        try:
            yield
        finally:
            (self._above / "cgroup.procs").write_text(str(self._leader))

    def lift(self) -> None:
        self.allow(ROOMY)

    def close(self) -> None:
        for line in (self._group / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                (self._above / "cgroup.procs").write_text(line)
        eventually(self._removed, f"{self._group} to be empty")

    def _removed(self) -> bool:
        try:
            self._group.rmdir()
        except OSError:
            return False
        return True


class _OfTheUnit:
    def __init__(self, machine: Machine, service: str) -> None:
        self._machine, self._service = machine, service
        self._before = 0
        self._before = self.ended()

    def allow(self, octets: int) -> None:
        self._machine.said("systemctl", "set-property", "--runtime", self._service, f"MemoryMax={octets}")

    def used(self) -> int:
        return int(self._machine.said("systemctl", "show", "--property=MemoryCurrent", "--value", self._service))

    def ended(self) -> int:
        # Of the slice, which counts what is below it, and outlives the unit's own group.
        said = self._machine.said("cat", "/sys/fs/cgroup/system.slice/memory.events")
        return int(dict(line.split() for line in said.splitlines())["oom_kill"]) - self._before

    @contextmanager
    def begun(self) -> Iterator[None]:
        yield

    def lift(self) -> None:
        self._machine.shell(f"rm -rf /run/systemd/system.control/{self._service}.service.d; systemctl daemon-reload")

    def close(self) -> None:
        """It has nothing of its own."""

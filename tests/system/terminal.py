"""A person at a terminal inside the container: reads what is asked, and types."""

from __future__ import annotations

import os
import pty
import select
import signal
import time
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from tests.system.machine import Machine

# Seconds: an installer makes environments before it asks.
PATIENCE: Final = 300.0


class Terminal:
    """A command of root's with a terminal of its own; ended at the end of the with block if it still runs."""

    def __init__(self, machine: Machine, *command: str) -> None:
        enter = ["nsenter", f"--target={machine.leader}", *("-m", "-u", "-i", "-n", "-p", "-C")]
        clean = [
            "env",
            "-i",
            "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME=/root",
            "LANG=C.UTF-8",
            "TERM=dumb",
        ]
        self.said = ""
        self._read_up_to = 0
        self._pid, self._end = pty.fork()
        if self._pid == 0:
            os.execvp(enter[0], [*enter, *clean, *command])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._end)
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)

    def answer(self, question: str, line: str) -> None:
        """Wait until it asks this, and type a line."""
        until = time.monotonic() + PATIENCE
        while (found := self.said.find(question, self._read_up_to)) < 0:
            assert self._hear(until), f"waited for {question!r}; it said:\n{self.said[-3000:]}"
        self._read_up_to = found + len(question)
        os.write(self._end, line.encode() + b"\n")

    def finish(self) -> int:
        """Wait until it has ended, and return its status."""
        until = time.monotonic() + PATIENCE
        while self._hear(until):
            pass
        pid, self._pid = self._pid, 0
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def _hear(self, until: float) -> bool:
        if not select.select([self._end], [], [], max(0.0, until - time.monotonic()))[0]:
            return False
        try:
            octets = os.read(self._end, 65_536)
        except OSError:
            # What a terminal says when nobody has it open any more (EIO).
            return False
        self.said += octets.decode("utf-8", "replace")
        return bool(octets)

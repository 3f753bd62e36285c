"""A booted container over a tree: commands run inside it, and it ends with its test."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

# Seconds. It boots in two on an idle machine.
PATIENCE: Final = 90.0

Found = TypeVar("Found")


def eventually(look: Callable[[], Found | None], what: str) -> Found:
    """Look until something is found; bounded."""
    deadline, pause = time.monotonic() + PATIENCE, threading.Event()
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"waited {PATIENCE:.0f} s for: {what}"
        pause.wait(0.2)


class Machine:
    """A container with its own systemd and no network but loopback."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self._process: subprocess.Popen[bytes] | None = None
        self.leader = 0

    def __enter__(self) -> Self:
        self.boot()
        return self

    def __exit__(self, *_: object) -> None:
        self.power_off()

    def boot(self) -> None:
        """Start it, and wait until it runs."""
        options = ["--quiet", "--boot", "--register=no", "--keep-unit", "--private-network", f"--directory={self.tree}"]
        # A machine of its own has it; a container's filter knows it from systemd 256 on only.
        options.append("--system-call-filter=landlock_create_ruleset landlock_add_rule landlock_restrict_self")
        with (self.tree.parent / "console").open("ab") as console:
            self._process = subprocess.Popen(
                ["systemd-nspawn", *options],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                start_new_session=True,
            )
        eventually(self._is_up, "boot")

    def _is_up(self) -> bool:
        # Looked up each time: at first systemd-nspawn has a child that only makes the container's first process.
        leader = self._child()
        if leader is None:
            return False
        self.leader = leader
        return self.run("systemctl", "is-system-running").stdout.strip() in {"running", "degraded"}

    def _child(self) -> int | None:
        assert self._process is not None
        assert self._process.poll() is None, (self.tree.parent / "console").read_text(errors="replace")[-3000:]
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        return int(children[0]) if children else None

    def run(
        self, *command: str, user: str = "root", stdin: str = "", seconds: float = PATIENCE * 2
    ) -> subprocess.CompletedProcess[str]:
        """Run a command inside, as a user without a way back to root."""
        enter = ["nsenter", f"--target={self.leader}", *("-m", "-u", "-i", "-n", "-p", "-C")]
        become = []
        if user != "root":
            become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--no-new-privs"]
            become += ["--bounding-set=-all", "--inh-caps=-all"]
        clean = ["env", "-i", "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", f"HOME=/home/{user}", "LANG=C.UTF-8"]
        return subprocess.run(
            [*enter, *clean, *become, *command],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def said(self, *command: str, user: str = "root", stdin: str = "") -> str:
        """What a command printed; it must succeed."""
        done = self.run(*command, user=user, stdin=stdin)
        assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout

    def shell(self, script: str, user: str = "root") -> str:
        """What a shell script printed; it must succeed."""
        return self.said("bash", "-euo", "pipefail", "-c", script, user=user)

    def cut_the_power(self) -> None:
        """Kill everything inside at once, as a power cut does."""
        assert self._process is not None
        os.kill(self.leader, signal.SIGKILL)
        self._process.wait(PATIENCE)
        self._process = None

    def power_off(self) -> None:
        """End it in good order; by force where that does not come."""
        if self._process is None:
            return
        # systemd as the first process of a container: SIGRTMIN+4 is poweroff (systemd(1)).
        os.kill(self.leader, signal.SIGRTMIN + 4)
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

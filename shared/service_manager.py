"""What a service manager hands over and is told: sockets, readiness, signs of life (sd_listen_fds(3), sd_notify(3)).

Started by hand, nothing is handed over and nothing is told.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from shared.settings import ConfigurationError

_FIRST_DESCRIPTOR: Final = 3  # SD_LISTEN_FDS_START
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1"})


def handed_over(environment: Mapping[str, str] | None = None) -> dict[str, list[socket.socket]]:
    """Return the listening sockets that systemd opened for this process, by FileDescriptorName; none by hand.

    Raises `ConfigurationError` where one is no listener of this machine only: whoever wrote the unit is told, nobody
    off the machine is let in.
    """
    said = os.environ if environment is None else environment
    if said.get("LISTEN_PID") != str(os.getpid()):
        return {}
    names = said.get("LISTEN_FDNAMES", "").split(":")
    found: dict[str, list[socket.socket]] = {}
    for number in range(int(said.get("LISTEN_FDS", "0"))):
        descriptor = _FIRST_DESCRIPTOR + number
        os.set_inheritable(descriptor, False)
        name = names[number] if number < len(names) else ""
        found.setdefault(name, []).append(_checked(socket.socket(fileno=descriptor), name))
    return found


def _checked(listener: socket.socket, name: str) -> socket.socket:
    is_local = listener.family == socket.AF_UNIX or listener.getsockname()[0] in _LOOPBACK
    if not is_local or not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        raise ConfigurationError(
            f"the socket `{name}`",
            "the service manager handed over one that is no listener on this machine only.",
            "In its .socket unit: ListenStream= with 127.0.0.1:PORT, [::1]:PORT or a path, and Accept=no.",
        )
    listener.setblocking(False)
    return listener


class ServiceManager:
    """Tells systemd how this process is. One line each; without a `NOTIFY_SOCKET` nothing is sent."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        said = os.environ if environment is None else environment
        self._address = said.get("NOTIFY_SOCKET", "")
        microseconds = said.get("WATCHDOG_USEC", "")
        mine = said.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self.watchdog_seconds = int(microseconds) / 1_000_000 if microseconds.isdigit() and mine else None

    def ready(self, status: str) -> None:
        """Say that requests are answered from now on."""
        self._tell(f"READY=1\nSTATUS={status}")

    def alive(self) -> None:
        """Give the watchdog its sign of life; wanted at least each `watchdog_seconds`."""
        self._tell("WATCHDOG=1")

    def stopping(self) -> None:
        """Say that the end has begun."""
        self._tell("STOPPING=1")

    def _tell(self, state: str) -> None:
        if not self._address:
            return
        # An address that begins with @ is in the abstract namespace (unix(7)).
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as to:
                to.connect(address)
                to.sendall(state.encode())
        except OSError:
            # The manager is gone, or its queue is full; the next sign of life tells as much.
            return


@contextlib.contextmanager
def signs_of_life(manager: ServiceManager, is_alive: Callable[[], bool]) -> Iterator[None]:
    """Tell the watchdog from the running event loop, as long as `is_alive` says so; a loop that hangs tells nothing."""
    if manager.watchdog_seconds is None:
        yield
        return
    telling = asyncio.get_running_loop().create_task(_tell_on(manager, manager.watchdog_seconds / 2, is_alive))
    try:
        yield
    finally:
        telling.cancel()


async def _tell_on(manager: ServiceManager, seconds: float, is_alive: Callable[[], bool]) -> None:
    while is_alive():
        manager.alive()
        await asyncio.sleep(seconds)

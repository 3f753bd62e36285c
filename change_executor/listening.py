"""The sockets of the executor's two listeners, bound by us before anything is served.

A page called `localhost` is reached over 127.0.0.1 or ::1, as the browser likes; whoever else held the other one could
ask for passwords there. So the review page has both or does not start.
"""

import contextlib
import errno
import socket
import stat
from pathlib import Path
from typing import Final

from shared.settings import ConfigurationError

_BOTH: Final = ("127.0.0.1", "::1")
_UNIX: Final = "unix:"
_LAST_PORT: Final = 65_535

# A proxy is let in by the socket's group; who is behind it is asked of the kernel all the same.
_SOCKET_MODE: Final = 0o660

# A machine without IPv6: nobody can hold ::1 there.
_NO_SUCH_ADDRESS: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


def listeners(address: str, key: str, *, both: bool) -> list[socket.socket]:
    """Bind what a `listen` key says: `HOST:PORT` on loopback (`both`: on either family), or `unix:PATH`.

    Raises `ConfigurationError`, which names `key`.
    """
    if address.startswith(_UNIX):
        return [_unix(Path(address.removeprefix(_UNIX)), key)]
    host, _, port = address.rpartition(":")
    number = int(port)
    if not 1 <= number <= _LAST_PORT:
        raise ConfigurationError(key, f"{number} is no TCP port.", "Give one from 1 to 65535.")
    hosts = _BOTH if both or host == "localhost" else (host.strip("[]"),)
    with contextlib.ExitStack() as bound:
        found = [bound.enter_context(listener) for name in hosts if (listener := _tcp(name, number, key)) is not None]
        bound.pop_all()
    if not found:
        raise ConfigurationError(key, f"no loopback address for {address}.", "Bring the loopback interface up.")
    return found


def _tcp(host: str, port: int, key: str) -> socket.socket | None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        if family == socket.AF_INET6 and error.errno in _NO_SUCH_ADDRESS:
            return None
        raise ConfigurationError(
            key,
            f"{host} port {port} cannot be listened on: {error.strerror or error}.",
            "Choose another port, or end the program that holds it (on 127.0.0.1 or on ::1).",
        ) from None


def _unix(path: Path, key: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    try:
        _remove_what_nobody_listens_on(path, key)
        listener.bind(str(path))
        path.chmod(_SOCKET_MODE)
        listener.listen()
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            key, f"{path} cannot be listened on: {error.strerror or error}.", "Mend the path, its folder or its owner."
        ) from None
    except ConfigurationError:
        listener.close()
        raise
    return listener


def _remove_what_nobody_listens_on(path: Path, key: str) -> None:
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise ConfigurationError(key, f"{path} is there and is no socket.", "Choose another path.")
    except FileNotFoundError:
        return
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as asking:
        try:
            asking.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
        else:
            raise ConfigurationError(key, f"another program listens on {path}.", "End it, or choose another path.")

"""The places where the reader listens, and the one lock on its folder: taken, checked, given back."""

import contextlib
import errno
import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agent_reader.config import Server
from shared.settings import ConfigurationError

LOCK_NAME: Final = "reader.lock"
_FOLDER_MODE: Final = 0o700
_SOCKET_MODE: Final = 0o660
# Agents keep connections open; a queue of this many new ones covers a burst.
_BACKLOG: Final = 128


@contextmanager
def sole_use_of(folder: Path) -> Iterator[None]:
    """Hold the folder of the index for one reader. Raises `ConfigurationError` where another holds it."""
    try:
        folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)
        descriptor = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigurationError(
            "[store] url",
            f"the folder {folder} cannot be used: {error.strerror}.",
            "Make it, and let the reader's user own it (mode 0700).",
        ) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigurationError(
                "[store] url",
                f"another agent-reader is running on {folder}.",
                "Stop it first (systemctl status agent-reader), or give this one a folder of its own.",
            ) from None
        yield
    finally:
        os.close(descriptor)


def check_owner(folder: Path) -> None:
    """Refuse to touch a folder of another user: files made there would shut its owner out."""
    if folder.exists() and folder.stat().st_uid != os.geteuid():
        raise ConfigurationError(
            "[store] url",
            f"{folder} belongs to another user (uid {folder.stat().st_uid}).",
            "Run this as that user, e.g. `sudo -u agent-reader agent-reader ...`.",
        )


def bind_tcp(server: Server) -> list[socket.socket]:
    """Listen on every address of `listen` (localhost has two). Raises `ConfigurationError`."""
    sockets: list[socket.socket] = []
    try:
        port = server.port
        for family, address in _addresses(server):
            listener = socket.socket(family, socket.SOCK_STREAM)
            sockets.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind((address, port))
            # Port 0: the second address takes what the first was given.
            port = listener.getsockname()[1]
            listener.listen(_BACKLOG)
    except OSError as error:
        for listener in sockets:
            listener.close()
        raise ConfigurationError(
            "[server] listen",
            f"{server.listen} cannot be listened on: {error.strerror or error}.",
            "Another program has it, or it is not an address of this machine: choose another port.",
        ) from None
    return sockets


def _addresses(server: Server) -> list[tuple[int, str]]:
    if server.host == "::1":
        return [(socket.AF_INET6, "::1")]
    if server.host == "localhost" and _has_ipv6_loopback():
        # Whoever took only one of the two would answer for the reader on the other.
        return [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
    return [(socket.AF_INET, "127.0.0.1")]


def _has_ipv6_loopback() -> bool:
    if not socket.has_ipv6:
        return False
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@contextmanager
def bound_unix(path: Path) -> Iterator[socket.socket]:
    """Listen on the private socket, mode 0660, and take it away at the end. Raises `ConfigurationError`.

    What lies there is removed only if it is a socket on which nobody listens.
    """
    _check_folder(path.parent)
    _remove_stale(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        inode = path.stat().st_ino
        # Nobody can connect before listen(), so the mode is right from the first connection on.
        path.chmod(_SOCKET_MODE)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            "[server] socket",
            f"{path} cannot be listened on: {error.strerror or error}.",
            "Mend the path, or the owner and mode of its folder.",
        ) from None
    try:
        yield listener
    finally:
        listener.close()
        with contextlib.suppress(OSError):
            # Not what somebody put there since.
            if path.stat().st_ino == inode:
                path.unlink()


def _check_folder(folder: Path) -> None:
    fix = f"install -d -o agent-reader -g mailwarrant-link -m 2750 {folder}"
    try:
        found = folder.stat()
    except OSError as error:
        raise ConfigurationError("[server] socket", f"its folder {folder}: {error.strerror}.", fix) from None
    if not stat.S_ISDIR(found.st_mode):
        raise ConfigurationError("[server] socket", f"{folder} is no folder.", fix)
    if found.st_uid not in {os.geteuid(), 0}:
        raise ConfigurationError("[server] socket", f"its folder {folder} belongs to another user.", fix)
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ConfigurationError(
            "[server] socket",
            f"others may write in its folder {folder}, and could put a socket of their own there.",
            f"chmod go-w {folder}",
        )


def _remove_stale(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise ConfigurationError(
            "[server] socket", f"{path} is there and is no socket.", "Name another path, or remove it."
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        refused = probe.connect_ex(str(path))
    if refused != errno.ECONNREFUSED:
        raise ConfigurationError(
            "[server] socket", f"another program listens on {path}.", "Stop it first, or name another path."
        )
    path.unlink()

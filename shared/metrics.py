"""Numbers for a monitor, in Prometheus' text format, and how a program is, on a listener of their own.

The format is that of Prometheus' documentation ("text-based format", version 0.0.4): a HELP and a TYPE line for each
name, then a line for each set of labels. No number has a label from mail, and none names an agent or a person.
"""

import asyncio
import contextlib
import json
import os
import socket
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Protocol

from pydantic import StringConstraints
from starlette.types import ASGIApp, Receive, Scope, Send

from shared.imap_guard import refused_lines
from shared.settings import ConfigurationError, Section

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_UNIX: Final = "unix:"
# The group of the folder decides who gets as far as the socket.
_SOCKET_MODE: Final = 0o660
_BACKLOG: Final = 16
# A page that a browser was told to open under a name of its own must not read what answers here.
_OWN_NAMES: Final = frozenset({b"localhost", b"127.0.0.1", b"[::1]"})
_LAST_PORT: Final = 65_535


class Metrics(Section):
    """`[metrics]`: where a monitor asks; left out, nobody can.

    A TCP port of loopback is open to every local process; `unix:PATH` to those who can open its folder.
    """

    listen: Annotated[str, StringConstraints(pattern=r"^(127\.0\.0\.1|\[::1\]):\d{1,5}$|^unix:/.{1,100}$")] | None = (
        None
    )


class Measured(Protocol):
    """One number: a name in Prometheus' style, labels, a value (seconds where it is a time)."""

    @property
    def name(self) -> str: ...  # noqa: D102 - the class says it
    @property
    def labels(self) -> tuple[tuple[str, str], ...]: ...  # noqa: D102 - the class says it
    @property
    def value(self) -> float: ...  # noqa: D102 - the class says it


@dataclass(frozen=True, slots=True)
class Measure:
    """A number as `Measured` says."""

    name: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Health:
    """Whether a program does what it is for; `details` are codes and numbers, no content."""

    is_well: bool
    details: Mapping[str, str | int | float | bool | None]


def exposition(measures: Iterable[Measured], helps: Mapping[str, str]) -> bytes:
    """Return numbers as text; names that end with `_total` are counters, all others gauges.

    `helps` has a sentence for each name; one without it is a mistake of ours.
    """
    by_name: dict[str, list[Measured]] = {}
    for measure in measures:
        by_name.setdefault(measure.name, []).append(measure)
    lines = []
    for name, found in by_name.items():
        lines += [f"# HELP {name} {_escaped(helps[name])}", f"# TYPE {name} {_kind(name)}"]
        lines += [f"{name}{_labelled(each.labels)} {_number(each.value)}" for each in found]
    return "".join(f"{line}\n" for line in lines).encode()


def of_the_process() -> tuple[Measure, ...]:
    """Return what is known of this process on Linux: descriptors, memory, and lines that its guards refused."""
    found = [
        Measure("mailwarrant_refused_lines_total", float(count), (("table", table),))
        for table, count in refused_lines().items()
    ]
    with contextlib.suppress(OSError, ValueError, IndexError):
        found.append(Measure("process_open_fds", float(len(os.listdir("/proc/self/fd")))))  # noqa: PTH208 - counts
        # proc(5), statm: the second number is the resident set, in pages.
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        found.append(Measure("process_resident_memory_bytes", float(pages * os.sysconf("SC_PAGE_SIZE"))))
    return tuple(found)


PROCESS_HELPS: Final = {
    "mailwarrant_refused_lines_total": "Lines to a mail server that were not in this program's table; never sent.",
    "process_open_fds": "Open descriptors.",
    "process_resident_memory_bytes": "Resident memory.",
}


def listener_of(metrics: Metrics) -> socket.socket | None:
    """Bind what `[metrics] listen` says; None where it says nothing. Raises `ConfigurationError`."""
    if metrics.listen is None:
        return None
    try:
        if metrics.listen.startswith(_UNIX):
            return _unix(Path(metrics.listen.removeprefix(_UNIX)))
        host, _, port = metrics.listen.rpartition(":")
        if int(port) > _LAST_PORT:
            raise ConfigurationError("[metrics] listen", f"{port} is no TCP port.", "Give one from 0 to 65535.")
        family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
        return socket.create_server((host.strip("[]"), int(port)), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ConfigurationError(
            "[metrics] listen", f"{metrics.listen} cannot be listened on: {error.strerror}.", "Choose another place."
        ) from None


def _unix(path: Path) -> socket.socket:
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise ConfigurationError("[metrics] listen", f"{path} is there, and no socket.", "Name another path.")
        path.unlink()
    listener = socket.socket(socket.AF_UNIX)
    try:
        # Nobody may connect before its mode is what it should be.
        before = os.umask(0o177)
        try:
            listener.bind(str(path))
        finally:
            os.umask(before)
        path.chmod(_SOCKET_MODE)
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def metrics_app(metrics: Callable[[], bytes], health: Callable[[], Health]) -> ASGIApp:
    """Return the app that answers `GET /metrics` and `GET /health` (503 where it is not well), and nothing else.

    Both run in a thread, one at a time; what they raise is answered as not well, by the name of its type.
    """
    turn = asyncio.Lock()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001 - no body is read
        if scope["type"] == "lifespan":
            return
        assert scope["type"] == "http", "this listener has no other protocol"
        names = [value for name, value in scope["headers"] if name == b"host"]
        if any(name.rpartition(b":")[0] not in _OWN_NAMES and name not in _OWN_NAMES for name in names):
            await _answer(send, 421, b"not a name of this listener\n")
        elif scope["method"] != "GET" or scope["path"] not in {"/metrics", "/health"}:
            await _answer(send, 404, b"GET /metrics or /health\n")
        else:
            async with turn:
                status, body, kind = await asyncio.to_thread(_asked, scope["path"], metrics, health)
            await _answer(send, status, body, kind)

    return app


def _asked(path: str, metrics: Callable[[], bytes], health: Callable[[], Health]) -> tuple[int, bytes, str]:
    try:
        if path == "/metrics":
            return 200, metrics(), MEDIA_TYPE
        found = health()
    except Exception as error:  # noqa: BLE001 - whatever is broken, the monitor is told and asks again
        found = Health(is_well=False, details={"error": type(error).__name__})
    body = json.dumps({"status": "ok" if found.is_well else "failing", **found.details}).encode() + b"\n"
    return 200 if found.is_well else 503, body, "application/json"


async def _answer(send: Send, status: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
    headers = [
        (b"content-type", kind.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _kind(name: str) -> str:
    return "counter" if name.endswith("_total") else "gauge"


def _labelled(labels: tuple[tuple[str, str], ...]) -> str:
    return "{" + ",".join(f'{name}="{_quoted(value)}"' for name, value in labels) + "}" if labels else ""


def _quoted(value: str) -> str:
    return _escaped(value).replace('"', '\\"')


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)

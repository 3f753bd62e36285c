"""What a doctor is to look at: one program's files, users, units and processes, as a value."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from shared.doctor.units import credential_files
from shared.doctor.users import User, user_named, user_of

UNITS: Final = Path("/etc/systemd/system")
AGENTS_GROUP: Final = "mailwarrant-agents"

# Keys of either program's settings that name a file with something to keep.
_SECRET_KEYS: Final = frozenset({"secret_file", "token_file", "client_secret_file"})


@dataclass(frozen=True, slots=True)
class House:
    """One of the two programs as the machine has it: `secrets` are files, `state` the folder that it keeps."""

    command: str
    user: User | None
    config: Path
    secrets: tuple[Path, ...]
    state: Path | None


@dataclass(frozen=True, slots=True)
class Installation:
    """All that is looked at on the machine for one program.

    `packages` are the folders that hold its code, `prefix` its environment; `foreign` are packages that must not be
    there. `peer_uid` is the uid of the other program as the settings have it. `mail_hosts` are the mail servers' names.
    `socket` is the private socket, and `is_reader` says whose side of it this is.
    """

    own: House
    other: House
    is_reader: bool
    prefix: Path
    interpreter: Path
    packages: tuple[Path, ...]
    foreign: tuple[str, ...]
    agents: tuple[User, ...]
    agents_are_named: bool
    reviewers: tuple[User, ...]
    peer_uid: int | None
    socket: Path
    mail_hosts: tuple[str, ...]
    units: Path
    sockets: tuple[str, ...]

    @property
    def service(self) -> str:
        """The name of the program's unit."""
        return f"{self.own.command}.service"


def house_on(command: str, user: User | None, config: Path, units: Path) -> House:
    """Return what a program's settings and unit say of where its secrets and its state lie.

    What cannot be read says nothing; the other program's settings are read as any file.
    """
    try:
        settings = tomllib.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        settings = {}
    named = {path for path in _secrets_named(settings) if path.is_absolute()}
    return House(
        command,
        user,
        config,
        tuple(sorted(named | set(credential_files(units, f"{command}.service")))),
        _state_named(settings),
    )


def user_by(uid: int | None, name: str) -> User | None:
    """Return the user that the settings name by uid, or else the one of the usual name."""
    return user_named(name) if uid is None else user_of(uid)


def _secrets_named(value: Any) -> Iterator[Path]:  # noqa: ANN401 - any TOML
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in _SECRET_KEYS and isinstance(inner, str):
                yield Path(inner)
            else:
                yield from _secrets_named(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _secrets_named(inner)


def _state_named(settings: dict[str, Any]) -> Path | None:
    for table, is_file in (("store", False), ("journal", True)):
        url = settings.get(table, {}).get("url") if isinstance(settings.get(table), dict) else None
        if isinstance(url, str) and url.startswith("sqlite:////"):
            path = Path(url.removeprefix("sqlite:///"))
            return path.parent if is_file else path
    return None

"""What a doctor is to look at: one program's files, users, units and processes, as a value."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from shared.doctor.unit_files import credential_files
from shared.doctor.users import User, user_named, user_of

UNITS: Final = Path("/etc/systemd/system")
AGENTS_GROUP: Final = "mailwarrant-agents"

# Keys of a program's settings that name a file with something to keep.
_SECRET_KEYS: Final = frozenset({"secret_file", "local_secret_file", "token_file", "client_secret_file"})


@dataclass(frozen=True, slots=True)
class House:
    """One of the programs as the machine has it: `secrets` are files, `state` the folder that it keeps."""

    command: str
    user: User | None
    config: Path
    secrets: tuple[Path, ...]
    state: Path | None


@dataclass(frozen=True, slots=True)
class Login:
    """A mail login as settings name it."""

    id: str
    host: str
    port: int
    user: str


@dataclass(frozen=True, slots=True)
class Gate:
    """The program that holds the reader's mail login for it.

    `listens` is where the reader comes in, `logins` are those behind the gate; `real_secrets` open the mailbox, and
    `local_secrets` the gate alone, by the id of the login. `prefix` is its environment, None where its unit names none.
    """

    house: House
    listens: tuple[str, int]
    logins: tuple[Login, ...]
    real_secrets: tuple[Path, ...]
    local_secrets: dict[str, Path]
    prefix: Path | None


@dataclass(frozen=True, slots=True)
class Installation:
    """All that is looked at on the machine for one program.

    `packages` are the folders that hold its code, `prefix` its environment; `foreign` are packages that must not be
    there. `peer_uid` is the uid of the other program as the settings have it. `logins` are its own at mail servers.
    `socket` is the private socket, and `is_reader` says whose side of it this is. `units_beside` are units without
    which the service does not do its work; `gate` is what the reader comes through, where it is installed.
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
    logins: tuple[Login, ...]
    units: Path
    sockets: tuple[str, ...]
    units_beside: tuple[str, ...]
    gate: Gate | None = None

    @property
    def service(self) -> str:
        """The name of the program's unit."""
        return f"{self.own.command}.service"

    @property
    def mail_hosts(self) -> tuple[str, ...]:
        """The mail servers' names, those behind the gate too."""
        behind = () if self.gate is None else self.gate.logins
        return tuple(login.host for login in (*self.logins, *behind))


def house_on(command: str, user: User | None, config: Path, units: Path, service: str = "") -> House:
    """Return what a program's settings and unit (`COMMAND.service` if not named) say of its secrets and its state.

    What cannot be read says nothing; the other program's settings are read as any file.
    """
    settings = settings_in(config)
    named = {path for path in _secrets_named(settings) if path.is_absolute()}
    return House(
        command,
        user,
        config,
        tuple(sorted(named | set(credential_files(units, service or f"{command}.service")))),
        _state_named(settings),
    )


def settings_in(config: Path) -> dict[str, Any]:
    """Return what a settings file says, {} where it cannot be read."""
    try:
        return tomllib.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


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

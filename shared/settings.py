"""Configuration: read once, frozen, and every mistake named with its file, its key and its mend."""

import json
import os
import stat
import subprocess
import tomllib
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path, PurePath
from typing import Annotated, Any, Final, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, SecretStr, ValidationError
from pydantic_core import ErrorDetails

from shared.wrong_forms import wrong_form

# A password manager that asks a person takes seconds; one that hangs must not hang the start.
SECRET_COMMAND_SECONDS: Final = 30
# No password or token is longer; a wrong path (a log, a device) is found before it fills the memory.
MAX_SECRET_OCTETS: Final = 16 * 1024

# What pydantic calls the mistakes that have words of their own here.
_UNKNOWN: Final = "extra_forbidden"
_MISSING: Final = "missing"
_NO_LIST: Final = "tuple_type"
# A key of a table that lacks one is most likely that one, even where they are as short as `i` and `id`.
_LIKE_A_MISSING_ONE: Final = 0.5

Settings = TypeVar("Settings", bound="Section")


class ConfigurationError(Exception):
    """The operator's mistake: what is wrong, where, and how to mend it. Ends a start with exit status 2."""

    def __init__(self, where: str, what: str, fix: str) -> None:
        super().__init__(f"{where}: {what}\n  {fix}")
        self.where, self.what, self.fix = where, what, fix


def _absolute(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError("write the whole path, from /; `~` is not expanded")
    return path


AbsolutePath = Annotated[Path, AfterValidator(_absolute)]


def absolute_sqlite_url(url: str) -> str:
    """Return the address of a file or folder. Raises ValueError for a relative one: no two commands agree on it."""
    if not url.startswith("sqlite:////") or len(url) == len("sqlite:////"):
        raise ValueError("write it as sqlite:////whole/path, with four slashes; `~` is not expanded")
    return url


class Section(BaseModel):
    """A table of a configuration file; an unknown key stops the start, and no value is repeated in an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def load_settings(path: Path, kind: type[Settings]) -> Settings:
    """Read a TOML file into frozen settings, or raise `ConfigurationError`."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigurationError(
            str(path),
            "there is no such file.",
            "Name the file with --config, or copy one from deploy/examples/.",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(str(path), f"cannot be read: {error}.", "Mend its owner, mode or encoding.") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(str(path), f"is not TOML: {error}.", "Mend the line it names.") from None
    return settings_from(raw, kind, str(path))


def settings_from(raw: dict[str, Any], kind: type[Settings], where: str) -> Settings:
    """Return a table as its kind, or raise `ConfigurationError`; `where` names the file in it."""
    try:
        # TOML says of what kind a value is, and pydantic would take `dangerous = "on"` and `max_moves_per_hour = true`.
        # As JSON, in which a path and a list have the one form that a file can give them, it can be held to it.
        return kind.model_validate_json(json.dumps(raw, default=_in_json), strict=True)
    except ValidationError as error:
        mistakes = _own_mistakes(error)
        # A key that is missing and one that is unknown are most often one, misspelled: the unknown one is in the file.
        first = min(mistakes, key=lambda mistake: mistake["type"] != _UNKNOWN)
        key = ".".join(str(step) for step in first["loc"])
        others = len(mistakes) - 1
        also = f" ({others} more after this)" if others else ""
        if first["type"] == _UNKNOWN:
            what = f"unknown key `{key}`{also}."
            fix = (
                f"{_spelling(first, mistakes, kind)}Remove it, or mend its spelling: deploy/examples/ shows every key."
            )
        elif first["type"] == _MISSING:
            what, fix = f"the key `{key}` is missing{also}.", "Add it: deploy/examples/ shows every key."
        elif not key:
            what, fix = f"{wrong_form(first)}{also}.", "Mend it: deploy/examples/ shows every key."
        elif first["type"] == _NO_LIST and isinstance(raw.get(key), dict):
            what, fix = f"`{key}` is one table, and there may be several{also}.", f"Write [[{key}]], in two brackets."
        else:
            what = f"`{key}`: {wrong_form(first)}{also}."
            fix = "Mend the value: deploy/examples/ shows each key's form."
        raise ConfigurationError(where, what, fix) from None


def _in_json(value: object) -> object:
    # A path is text in a file; TOML's dates and times are the form of no key.
    return str(value) if isinstance(value, PurePath) else {"": ""}


def _spelling(unknown: ErrorDetails, mistakes: list[ErrorDetails], kind: type[BaseModel]) -> str:
    table, name = unknown["loc"][:-1], str(unknown["loc"][-1])
    missing = [str(other["loc"][-1]) for other in mistakes if other["type"] == _MISSING and other["loc"][:-1] == table]
    known = _keys_of(kind) if not table else {key for section in _sections(Section) for key in _keys_of(section)}
    close = get_close_matches(name, missing, 1, _LIKE_A_MISSING_ONE) or get_close_matches(name, sorted(known), 1)
    return f"Did you mean `{close[0]}`? " if close else ""


def _keys_of(kind: type[BaseModel]) -> set[str]:
    return set(kind.model_fields)


def _sections(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for section in kind.__subclasses__():
        yield section
        yield from _sections(section)


def _own_mistakes(error: ValidationError) -> list[ErrorDetails]:
    # A list whose only entry is wrong is reported as too short as well; that is no second mistake.
    found = error.errors(include_url=False, include_input=False)
    inner = {mistake["loc"] for mistake in found}
    return [
        mistake
        for mistake in found
        if not any(len(loc) > len(mistake["loc"]) and loc[: len(mistake["loc"])] == mistake["loc"] for loc in inner)
    ]


def read_secret(
    secret_file: Path | None, secret_command: tuple[str, ...] | None, where: str, *, credential: str | None = None
) -> SecretStr:
    """Return a secret from a file, a command's standard output or a service manager, without its last line end.

    The command is an argument list, run without a shell; `credential` is the name of a systemd credential.
    Raises `ConfigurationError`.
    """
    if credential is not None:
        secret_file = _credential_file(credential, where)
    if secret_file is not None:
        octets = _file_octets(secret_file, where)
    elif secret_command:
        octets = _command_octets(secret_command, where)
    else:
        raise ConfigurationError(
            where, "has no secret.", "Give `secret_file`, `secret_command` or `secret_credential`."
        )
    try:
        text = octets.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise ConfigurationError(where, "the secret is not UTF-8 text.", "Write it anew as text.") from None
    if not text or any(ord(character) < 0x20 for character in text):  # noqa: PLR2004 - C0 controls
        raise ConfigurationError(
            where,
            "the secret is empty or has control characters.",
            "It is one line; a last line end is left off.",
        )
    return SecretStr(text)


def _credential_file(name: str, where: str) -> Path:
    # systemd.exec(5), CREDENTIALS_DIRECTORY: a folder that only this service's processes can open.
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if not folder:
        raise ConfigurationError(
            where,
            f"the credential `{name}` was not handed over: no service manager started this.",
            f"Start the unit, with LoadCredential={name}:PATH in it; by hand, use `secret_file`. "
            "To try the logins: sudo mailwarrant-doctor.",
        )
    return Path(folder, name)


def _file_octets(path: Path, where: str) -> bytes:
    try:
        with path.open("rb") as file:
            _refuse_public_file(file.fileno(), path, where)
            octets = file.read(MAX_SECRET_OCTETS + 1)
    except OSError as error:
        raise ConfigurationError(
            where,
            f"the secret file {path} cannot be read: {error.strerror}.",
            "Mend the path, its owner or its mode (0400).",
        ) from None
    if len(octets) > MAX_SECRET_OCTETS:
        raise ConfigurationError(
            where, f"the secret file {path} is over 16 KiB.", "Name the file that holds the password."
        )
    return octets


def _refuse_public_file(descriptor: int, path: Path, where: str) -> None:
    # A group may be meant (a service manager's); everybody never is.
    if os.fstat(descriptor).st_mode & stat.S_IRWXO:
        raise ConfigurationError(
            where, f"the secret file {path} can be read by every user of this machine.", f"Close it: chmod 400 {path}"
        )


def _command_octets(command: tuple[str, ...], where: str) -> bytes:
    try:
        # S603: the operator's own command, an argument list without a shell.
        done = subprocess.run(  # noqa: S603 - see above
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECRET_COMMAND_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(
            where,
            f"the secret command {command[0]} failed: {type(error).__name__}.",
            "Run it by hand as this user.",
        ) from None
    if done.returncode != 0 or len(done.stdout) > MAX_SECRET_OCTETS:
        raise ConfigurationError(
            where,
            f"the secret command {command[0]} ended with status {done.returncode}.",
            "Run it by hand as this user.",
        )
    return done.stdout

"""What the unit files say now, as systemd puts each and its drop-ins together (systemd.unit(5))."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

# A list: each line adds, an empty one begins anew (systemd.syntax(7)).
_LISTS: Final = frozenset(
    {"LoadCredential", "Environment", "ListenStream", "SystemCallFilter", "RestrictAddressFamilies"}
    | {"ReadWritePaths", "TemporaryFileSystem"}
)


def settings_of(units: Path, name: str) -> dict[str, list[str]]:
    """Return what a unit says, by key, as systemd puts the file and its drop-ins together; {} where there is none."""
    said: dict[str, list[str]] = {}
    file = units / name
    if not file.is_file():
        return said
    for key, value in (pair for each in (file, *drop_ins(units, name)) for pair in _pairs(each)):
        if key not in _LISTS or not value:
            said[key] = [value] if value or key not in _LISTS else []
        else:
            said.setdefault(key, []).append(value)
    return said


def credential_files(units: Path, name: str) -> list[Path]:
    """Return the files whose content systemd hands over to a service (LoadCredential=NAME:PATH)."""
    return list(credentials_of(units, name).values())


def credentials_of(units: Path, name: str) -> dict[str, Path]:
    """Return those files by the name under which the service gets each."""
    found = [line.partition(":") for line in settings_of(units, name).get("LoadCredential", [])]
    return {credential: Path(path) for credential, _, path in found if path.startswith("/")}


def drop_ins(units: Path, name: str) -> list[Path]:
    """Return a unit's drop-ins in the order in which they count."""
    # Those of the running system (systemctl edit --runtime) count as well; a test's own folder has none.
    folders = [units / f"{name}.d"]
    if units == Path("/etc/systemd/system"):
        folders.append(Path(f"/run/systemd/system/{name}.d"))
    return sorted((file for folder in folders for file in folder.glob("*.conf")), key=lambda file: file.name)


def _pairs(file: Path) -> Iterator[tuple[str, str]]:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.replace("\\\n", " ").splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.lstrip().startswith(("#", ";")):
            yield key.strip(), value.strip()

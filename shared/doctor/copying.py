"""Copies of what a program keeps: where its units put them, since when, and whether they are there."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from shared.doctor.finding import Fault, Looking
from shared.doctor.unit_files import settings_of

# A daily copy that failed once.
OLDEST_BACKUP: Final = timedelta(hours=50)


@dataclass(frozen=True, slots=True)
class Copying:
    """How copies are made: `folder` where they are not put beside the original, and since when a timer makes them."""

    folder: Path | None = None
    timer_since: datetime | None = None

    def is_due(self, now: datetime) -> bool:
        """Whether there should be a copy by now; where no timer is on, whoever makes them knows."""
        return self.timer_since is None or now - self.timer_since > OLDEST_BACKUP


BY_HAND: Final = Copying()


def copying_by(units: Path, name: str, named: Path | None = None) -> Copying:
    """Return how the units `name`.service and `name`.timer make copies; a folder that was named goes before theirs."""
    return Copying(named or _told_to(units, f"{name}.service"), _enabled_since(units, f"{name}.timer"))


def look_at_copies(copying: Copying, state: Path, make: str, now: Callable[[], datetime], looking: Looking) -> None:
    """Look at the copies of what lies in `state`; that nobody makes any is worth a note. `make` is the mend."""
    folder = copying.folder or state / "backups"
    if copying.folder is None and copying.timer_since is None and not folder.exists():
        looking.notes.append(f"no copy was ever made in {folder}: {make}")
    elif copying.is_due(now()) or _copies_in(folder):
        look_at_backup(folder, make, now, looking)


def look_at_backup(folder: Path, make: str, now: Callable[[], datetime], looking: Looking) -> None:
    """Look at the folder that copies are put into: there, private, and the newest not too old."""
    try:
        mode = folder.stat().st_mode
        ages = [entry.stat().st_mtime for entry in _copies_in(folder)]
    except OSError as error:
        looking.find(Fault.BACKUP_MISSING, f"{folder}: {error.strerror}", make)
        return
    if mode & 0o077:
        looking.find(Fault.BACKUP_READABLE, f"{folder} has mode {mode & 0o7777:04o}", f"chmod 0700 {folder}")
    if not ages:
        looking.find(Fault.BACKUP_MISSING, f"there is no copy in {folder}", make)
        return
    age = now() - datetime.fromtimestamp(max(ages), now().tzinfo)
    if age > OLDEST_BACKUP:
        looking.find(Fault.BACKUP_OLD, f"the newest copy in {folder} is {age.days} days old", make)


def _copies_in(folder: Path) -> list[Path]:
    try:
        return [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
    except OSError:
        return []


def _told_to(units: Path, service: str) -> Path | None:
    command = settings_of(units, service).get("ExecStart", [""])[-1]
    try:
        words = shlex.split(command.replace("--to=", "--to "))
    except ValueError:
        return None
    following = words[words.index("--to") + 1 :] if "--to" in words else []
    return Path(following[0]) if following else None


def _enabled_since(units: Path, timer: str) -> datetime | None:
    """When `systemctl enable` made the link: the timer's first copy comes within a day of that."""
    try:
        return datetime.fromtimestamp((units / "timers.target.wants" / timer).lstat().st_mtime, UTC)
    except OSError:
        return None

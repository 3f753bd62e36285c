"""What wears out by itself: the disk, the clock, tokens."""

import os
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from shared.doctor.finding import Fault, Looking

# A message of the largest size that is taken, several times over, and the database's own log.
LEAST_FREE_OCTETS: Final = 512 * 1024 * 1024
# Some folders of a service, and the manager's own files; any user of the machine can fill these places.
_TEMPORARY: Final = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - nothing is made there
LEAST_TEMPORARY_OCTETS: Final = 16 * 1024 * 1024
LEAST_TEMPORARY_INODES: Final = 100
# A person has a week to make a new one, and a week-end in between.
EXPIRES_SOON: Final = timedelta(days=14)
# Clocks of two machines that keep time differ by seconds.
CLOCK_TOLERANCE: Final = timedelta(minutes=5)


def look_at_disk(folder: Path, looking: Looking, least: int = LEAST_FREE_OCTETS) -> None:
    """Look at how much room is left where a program keeps its state, in octets."""
    try:
        found = os.statvfs(folder)
    except OSError as error:
        looking.unseen.append(f"{folder}: {error.strerror}")
        return
    free = found.f_bavail * found.f_frsize
    if free < least:
        what = f"{free // 1_048_576} MiB are free for {folder}, fewer than {least // 1_048_576}"
        looking.find(Fault.DISK, what, f"df -h {folder}   # then make room, or keep less: `keep`, `keep_days`")
    if found.f_files and not found.f_favail:
        looking.find(Fault.DISK, f"no inode is free for {folder}", f"df -i {folder}")


def look_at_temporary(
    looking: Looking, folders: Iterable[Path] = _TEMPORARY, least: int = LEAST_TEMPORARY_OCTETS
) -> None:
    """Look at how much room is left where every user may write, in octets and in files."""
    for folder in folders:
        found = os.statvfs(folder)
        has_inodes = not found.f_files or found.f_favail >= LEAST_TEMPORARY_INODES
        if found.f_bavail * found.f_frsize < least or not has_inodes:
            fix = (
                f"df -h {folder}; df -i {folder}; find {folder} -xdev -printf '%u\\n' | sort | uniq -c   # whose it is"
            )
            looking.find(Fault.TEMPORARY_FULL, f"{folder} is full", fix)


def look_at_tokens(tokens: Iterable[tuple[str, str, datetime]], now: datetime, make: str, looking: Looking) -> None:
    """Look at tokens that are not revoked, each (id, agent, end); `make` is the command that makes another.

    One that ended is worth a word as long as its agent has none that opens.
    """
    known = list(tokens)
    lasting = {agent for _, agent, end in known if end > now + EXPIRES_SOON}
    for token_id, agent, end in known:
        if agent in lasting:
            continue
        if end <= now:
            if not any(other == agent and until > now for _, other, until in known):
                looking.find(Fault.TOKEN_EXPIRED, f"token {token_id} of {agent} ended {end:%Y-%m-%d}", make)
        else:
            looking.find(Fault.TOKEN_EXPIRING, f"token {token_id} of {agent} ends {end:%Y-%m-%d}", make)


def look_at_clock(latest: datetime | None, whose: str, now: datetime, looking: Looking) -> None:
    """Compare the clock with the latest moment that is on record somewhere."""
    if latest is not None and latest > now + CLOCK_TOLERANCE:
        what = f"the clock says {now:%Y-%m-%d %H:%M}, and {whose} {latest:%Y-%m-%d %H:%M} (UTC)"
        looking.find(Fault.CLOCK, what, "timedatectl set-ntp true; timedatectl")


def look_at_date(untrusted_date: str | None, whose: str, now: datetime, looking: Looking) -> None:
    """Compare the clock with the Date field of an HTTP answer (RFC 9110 §6.6.1)."""
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - only where a provider answered

    try:
        said = None if untrusted_date is None else parsedate_to_datetime(untrusted_date)
    except ValueError:
        return
    if said is not None and said.tzinfo is not None and abs(said - now) > CLOCK_TOLERANCE:
        what = f"the clock says {now:%Y-%m-%d %H:%M}, and {whose} {said:%Y-%m-%d %H:%M} (UTC)"
        looking.find(Fault.CLOCK, what, "timedatectl set-ntp true; timedatectl")

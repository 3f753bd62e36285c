"""The unit files as they are now, drop-ins included: do they still confine what they start?"""

import re
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from shared.doctor.finding import Fault, Looking
from shared.doctor.installation import UNITS, Installation
from shared.doctor.unit_files import drop_ins, settings_of
from shared.doctor.users import User

# What each service's unit says (systemd.exec(5)); a value of None: anything but nothing.
REQUIRED: Final[tuple[tuple[str, str | None], ...]] = (
    ("NoNewPrivileges", "yes"),
    ("CapabilityBoundingSet", ""),
    ("AmbientCapabilities", ""),
    ("ProtectSystem", "strict"),
    ("ProtectHome", "yes"),
    ("PrivateTmp", "yes"),
    ("TemporaryFileSystem", "/dev:ro,mode=755"),
    ("DevicePolicy", "closed"),
    ("ProtectKernelTunables", "yes"),
    ("ProtectKernelModules", "yes"),
    ("ProtectControlGroups", "yes"),
    ("ProtectProc", "invisible"),
    ("RestrictNamespaces", "yes"),
    ("RestrictSUIDSGID", "yes"),
    ("LockPersonality", "yes"),
    ("MemoryDenyWriteExecute", "yes"),
    ("RestrictAddressFamilies", None),
    ("SystemCallFilter", None),
    ("SystemCallArchitectures", "native"),
    ("UMask", "0077"),
    ("LimitCORE", "0"),
    ("WatchdogSec", None),
)
_NO: Final = frozenset({"", "no", "false", "off", "0"})
_YES: Final = frozenset({"yes", "true", "on", "1"})
_LOOPBACK: Final = re.compile(r"(/|@|127\.0\.0\.1:|\[::1\]:)")
_SECRET_NAME: Final = re.compile(r"pass|secret|token|credential|key", re.IGNORECASE)
_AGAIN: Final = "sudo deploy/install"


# The service manager of this machine, where there is one (sd_booted(3)).
_BOOTED: Final = Path("/run/systemd/system")
_STATE_SECONDS: Final = 20.0


def look_at_units(installation: Installation, looking: Looking) -> None:
    """Look at the service's unit, at its sockets' and at those beside it."""
    names = (installation.service, *installation.sockets, *installation.units_beside)
    look_at_units_of(installation.own.user, installation.units, names, looking)
    if installation.units == UNITS and _BOOTED.is_dir():
        look_at_states(names, looking)


def state_of(unit: str) -> dict[str, str]:
    """Return how a unit stands, as the service manager says; {} where it does not say."""
    # S603, S607: the machine's own systemctl, an argument list without a shell.
    command = ["systemctl", "show", "--property=ActiveState,SubState", "--", unit]
    try:
        done = subprocess.run(  # noqa: S603 - see above
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_STATE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def look_at_states(names: Iterable[str], looking: Looking, state: Callable[[str], dict[str, str]] = state_of) -> None:
    """Look whether a unit failed, or begins again and again; one that was stopped is not our business."""
    for name in (each for each in names if "@" not in each):
        said = state(name)
        if said.get("ActiveState") == "failed" or said.get("SubState") == "auto-restart":
            fix = f"journalctl -u {name} -n 20; then: systemctl restart {name}"
            looking.find(Fault.SERVICE_FAILED, f"{name} failed", fix)


def look_at_units_of(user: User | None, units: Path, names: Iterable[str], looking: Looking) -> None:
    """Look at units of one user: there, root's, services confined, sockets on this machine only."""
    for name in names:
        file = units / name
        if not file.is_file():
            looking.find(Fault.UNIT_MISSING, f"there is no {file}", _AGAIN)
            continue
        for each in (file, *drop_ins(units, name)):
            _look_at_file(each, looking)
        said = settings_of(units, name)
        if file.suffix == ".service":
            _look_at_service(name, user, said, looking)
        for address in said.get("ListenStream", []):
            if not _LOOPBACK.match(address):
                fix = f"In {file}: ListenStream=127.0.0.1:PORT; then: systemctl daemon-reload"
                looking.find(Fault.UNIT_ADDRESS, f"{name} listens on {address}", fix)


def _look_at_file(file: Path, looking: Looking) -> None:
    found = file.stat()
    if found.st_uid != 0 or found.st_mode & 0o022:
        fix = f"chown root:root {file}; chmod 0644 {file}"
        looking.find(Fault.UNIT_OWNER, f"{file} can be written by others than root", fix)


def _look_at_service(name: str, user: User | None, said: dict[str, list[str]], looking: Looking) -> None:
    mend = f"{_AGAIN}   # and look for drop-ins: systemctl cat {name}"
    # What runs once and ends has nothing for a watchdog to watch.
    runs_once = said.get("Type", [""])[-1] == "oneshot"
    for key, wanted in REQUIRED:
        if key == "WatchdogSec" and runs_once:
            continue
        values = said.get(key, [])
        value = " ".join(values)
        right = bool(value) if wanted is None else wanted in values or (bool(values) and _same(value, wanted))
        if not right:
            looking.find(
                Fault.UNIT_WEAKENED, f"{name} does not say {key}={wanted if wanted is not None else '...'}", mend
            )
    if said.get("PrivateUsers", ["no"])[-1].lower() not in _NO:
        looking.find(Fault.UNIT_WEAKENED, f"{name} has PrivateUsers: every peer looks like the same user", mend)
    if user is not None and said.get("User", [""])[-1] not in {user.name, str(user.uid)}:
        looking.find(Fault.UNIT_WEAKENED, f"{name} does not say User={user.name}", mend)
    for line in said.get("Environment", []):
        if any(_SECRET_NAME.search(word.partition("=")[0]) for word in line.split()):
            looking.find(
                Fault.UNIT_SECRET, f"{name} has a secret in Environment=", "Use LoadCredential=; then change it."
            )


def _same(value: str, wanted: str) -> bool:
    return value.lower() in _YES if wanted == "yes" else value == wanted

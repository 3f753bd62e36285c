"""The running processes: no secret in an argument or an environment, and the daemons as the unit means them."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from shared.doctor.finding import Fault, Looking
from shared.doctor.installation import House, Installation

_PROC: Final = Path("/proc")
_TOKEN: Final = re.compile(rb"mw[rp]_[a-z2-7]{8}_[a-z2-7]{32}_[0-9a-f]{8}")
_MAIL_PASSWORD: Final = re.compile(
    r"(?=.*(IMAP|SMTP|MAIL|GMAIL|OUTLOOK|FASTMAIL|JMAP))(?=.*(PASS|SECRET|TOKEN|KEY))[A-Z0-9_]+"
)
# A shorter one stands in texts by chance.
_LEAST_OCTETS: Final = 8
_MOST_OCTETS: Final = 16 * 1024
_UNIT_OF: Final = {"read-gate": "mailwarrant-gate"}
_FILTERED: Final = "2"  # proc(5): Seccomp, mode filter


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    uid: int
    arguments: bytes
    environment: bytes


def look_at_processes(installation: Installation, looking: Looking) -> None:
    """Look through the processes of this machine, as far as this user may."""
    daemons = [(installation.prefix, installation.own)]
    if installation.gate is not None and installation.gate.prefix is not None and installation.is_reader:
        daemons.append((installation.gate.prefix, installation.gate.house))
    secrets = [secret for _, house in daemons for path in house.secrets if (secret := _read(path))]
    houses = {user.uid for user in (installation.own.user, installation.other.user) if user is not None}
    agents = {user.uid for user in installation.agents}
    for process in _processes():
        for where, fault in (
            (process.arguments, Fault.SECRET_IN_ARGUMENTS),
            (process.environment, Fault.SECRET_IN_ENVIRONMENT),
        ):
            if any(secret in where for secret in secrets):
                place = "arguments" if fault is Fault.SECRET_IN_ARGUMENTS else "environment"
                fix = f"kill {process.pid}; give it `secret_file`; then change the password"
                looking.find(fault, f"process {process.pid} has the mail password in its {place}", fix)
        if process.uid in houses | agents and _TOKEN.search(process.arguments):
            fix = f"kill {process.pid}; use --token-file; then revoke the token"
            looking.find(Fault.TOKEN_IN_ARGUMENTS, f"process {process.pid} has a token in its arguments", fix)
        if process.uid in agents:
            _look_at_agents_environment(process, looking)
        for prefix, house in daemons:
            _look_at_daemon(process, prefix, house, looking)


def _look_at_agents_environment(process: _Process, looking: Looking) -> None:
    for line in process.environment.split(b"\0"):
        name = line.partition(b"=")[0].decode("ascii", "replace")
        if _MAIL_PASSWORD.fullmatch(name):
            what = f"process {process.pid} of an agent has {name} in its environment"
            looking.find(Fault.SECOND_WAY, what, f"Start the agent without {name}.")


def _look_at_daemon(process: _Process, prefix: Path, house: House, looking: Looking) -> None:
    words = process.arguments.split(b"\0")
    own = f"{prefix}/bin/{house.command}".encode()
    if b"serve" not in words or own not in words or house.user is None:
        return
    again = f"systemctl restart {_UNIT_OF.get(house.command, house.command)}"
    if process.uid != house.user.uid:
        what = f"process {process.pid} ({house.command} serve) runs as uid {process.uid}"
        looking.find(Fault.PROCESS_USER, what, f"kill {process.pid}; {again}")
    said = _status_of(process.pid)
    if said and (said.get("NoNewPrivs") != "1" or said.get("Seccomp") != _FILTERED or int(said.get("CapEff", "0"), 16)):
        what = f"process {process.pid} ({house.command} serve) was started without the unit's confinement"
        looking.find(Fault.PROCESS_UNCONFINED, what, f"kill {process.pid}; {again}")


def _processes() -> Iterator[_Process]:
    for entry in sorted(_PROC.iterdir()):
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            uid = entry.stat().st_uid
        except OSError:
            continue
        yield _Process(int(entry.name), uid, _octets(entry / "cmdline"), _octets(entry / "environ"))


def _octets(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _status_of(pid: int) -> dict[str, str]:
    lines = _octets(_PROC / str(pid) / "status").decode("utf-8", "replace").splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            secret = file.read(_MOST_OCTETS).strip()
    except OSError:
        return b""
    return secret if len(secret) >= _LEAST_OCTETS else b""

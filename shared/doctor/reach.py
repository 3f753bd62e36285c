"""What each user can reach of what is not its own: tried, not deduced from modes."""

import os
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from shared.doctor.finding import Fault, Looking
from shared.doctor.installation import House, Installation
from shared.doctor.users import User, distinct, tried_as

# Seconds; finding a package is the start of an interpreter.
_LOOK_SECONDS: Final = 60.0
# Says which of the packages this interpreter would import, and from where; nothing of them is run.
_FINDS: Final = (
    "import importlib.util,sys\n"
    "for name in sys.argv[1:]:\n"
    "    found = importlib.util.find_spec(name)\n"
    "    if found: print(name, *(found.submodule_search_locations or [found.origin]), sep='\\t')\n"
)


def look_at_reach(installation: Installation, looking: Looking) -> None:
    """Try, as every user that this process can become, to read and write what belongs to others."""
    own, other = installation.own, installation.other
    gate = installation.gate
    houses = (own, other) if gate is None else (own, other, gate.house)
    everybody = distinct([*(house.user for house in houses), *installation.agents, *installation.reviewers])
    for user in everybody:
        if not user.may_be_tried:
            continue
        for house in houses:
            if house.user is None or user.uid != house.user.uid:
                _try_secrets(user, house, looking)
        _try_code(user, installation, looking)
        _try_socket(user, installation, looking)
    _look_for_foreign_packages(installation, looking)
    if not all(user.may_be_tried for user in everybody):
        looking.notes.append("tried as this user only; root tries as every user: sudo mailwarrant-doctor")


def _try_secrets(user: User, house: House, looking: Looking) -> None:
    secrets = [str(path) for path in house.secrets]
    for path in tried_as(user, lambda: [secret for secret in secrets if _can_read(secret)]):
        looking.find(
            Fault.SECRET_READABLE, f"{user.name} can read {path}", f"chown root:root {path}; chmod 0400 {path}"
        )
    if house.state is None:
        return
    state = str(house.state)
    for path in tried_as(user, lambda: _readable_in(state)):
        fix = f"chmod 0700 {house.state}; chmod 0600 {path}"
        looking.find(Fault.STATE_READABLE, f"{user.name} can look into {path}", fix)


def _try_code(user: User, installation: Installation, looking: Looking) -> None:
    roots = {str(installation.prefix), *map(str, installation.packages)}
    extra = [str(installation.own.config), str(installation.interpreter.resolve())]
    if installation.gate is not None:
        extra.append(str(installation.gate.house.config))
        roots |= {str(installation.gate.prefix)} - {"None"}
    for path in tried_as(user, lambda: _writable_among(sorted(roots), extra)):
        if path == extra[0] and user == installation.own.user:
            continue
        looking.find(Fault.CODE_WRITABLE, f"{user.name} can write {path}", f"chown root:root {path}; chmod go-w {path}")


def _try_socket(user: User, installation: Installation, looking: Looking) -> None:
    path = str(installation.socket)
    executor = installation.other.user if installation.is_reader else installation.own.user
    reader = installation.own.user if installation.is_reader else installation.other.user
    opened = tried_as(user, lambda: _connects(path))
    if opened is True and user not in {executor, reader}:
        fix = f"chmod 2750 {installation.socket.parent}; chmod 0660 {path}"
        looking.find(Fault.SOCKET_OPEN, f"{user.name} can connect to {path}", fix)
    if opened is False and user == executor:
        fix = f"usermod --append --groups mailwarrant-link {user.name}; systemctl restart change-executor"
        looking.find(Fault.SOCKET_CLOSED, f"{user.name} cannot connect to {path}", fix)


def _look_for_foreign_packages(installation: Installation, looking: Looking) -> None:
    command = [str(installation.interpreter), "-I", "-c", _FINDS, *installation.foreign]
    try:
        # S603: the environment's own interpreter, an argument list without a shell.
        done = subprocess.run(  # noqa: S603 - see above
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LOOK_SECONDS,
            env={},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        looking.unseen.append(f"{installation.interpreter} does not run: {type(error).__name__}")
        return
    if done.returncode != 0:
        looking.unseen.append(f"{installation.interpreter} does not run: exit status {done.returncode}")
    for line in done.stdout.splitlines():
        name, _, place = line.partition("\t")
        what = f"{installation.interpreter} can import {name}, from {place}"
        # Never a command that removes what was found: in a try it is the person's own checkout.
        mend = "deploy/install --uninstall && deploy/install   # an environment for each; a try has one for both"
        looking.find(Fault.FOREIGN_PACKAGE, what, mend)


def _can_read(path: str) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    os.close(descriptor)
    return True


def _readable_in(folder: str) -> list[str]:
    try:
        inside = list(Path(folder).iterdir())
    except OSError:
        return []
    return [folder, *(str(path) for path in inside if path.is_file() and _can_read(str(path)))]


def _writable_among(roots: Sequence[str], extra: Sequence[str]) -> list[str]:
    found = [path for path in extra if os.access(path, os.W_OK)]
    for root in roots:
        for at, _, files in os.walk(root):
            if os.access(at, os.W_OK):
                found.append(at)
            # Through links as well: what such a one leads to is run.
            found += [path for path in (f"{at}/{name}" for name in files) if os.access(path, os.W_OK)]
    return found


def _connects(path: str) -> bool | None:
    """Whether a connection is let in; None where there is nobody to let in."""
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(5)
            client.connect(path)
    except PermissionError:
        return False
    except OSError:
        return None
    return True

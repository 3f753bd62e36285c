"""Owners and modes of every file and folder on the path, and of every folder above them."""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from shared.doctor.finding import Fault, Looking
from shared.doctor.installation import House, Installation
from shared.doctor.users import User, group_name, members_of, user_of

_ROOT: Final = 0
_OTHERS_WRITE: Final = 0o022
_NOT_MINE: Final = 0o077
# As many links as the kernel follows (path_resolution(7)).
_MOST_LINKS: Final = 40


def look_at_places(installation: Installation, looking: Looking) -> None:
    """Look at settings, secrets, state, code and the private socket."""
    look_at_house(installation.own, looking)
    roots = {installation.prefix, *installation.packages}
    look_at_code(sorted(roots), installation.interpreter, looking)
    _look_at_socket(installation, looking)


def look_at_house(house: House, looking: Looking) -> None:
    """Look at what one program keeps: settings, secrets, state."""
    _look_at_config(house, looking)
    _look_at_secrets(house, looking)
    _look_at_state(house, looking)


def _look_at_config(house: House, looking: Looking) -> None:
    path = house.config
    found = _status(path, looking)
    if found is None:
        return
    if found.st_uid not in _root_and(house.user):
        looking.find(Fault.CONFIG_OWNER, f"{path} belongs to {_name(found.st_uid)}", f"chown root:root {path}")
    if found.st_mode & _OTHERS_WRITE:
        looking.find(Fault.CONFIG_MODE, f"{path} has mode {_mode(found)}", f"chmod go-w {path}")
    look_above(path, looking)


def _look_at_secrets(house: House, looking: Looking) -> None:
    for path in house.secrets:
        try:
            found = path.stat()
        except FileNotFoundError:
            looking.find(Fault.SECRET_MISSING, f"there is no {path}", f"Write it again, mode 0400: {path}")
            continue
        except OSError:
            # A folder of root's, as it should be; the doctor that root runs looks inside.
            continue
        if found.st_uid not in _root_and(house.user):
            looking.find(Fault.SECRET_OWNER, f"{path} belongs to {_name(found.st_uid)}", f"chown root:root {path}")
        if found.st_mode & _NOT_MINE:
            looking.find(Fault.SECRET_MODE, f"{path} has mode {_mode(found)}", f"chmod 0400 {path}")
        look_above(path, looking, _root_and(house.user))


def _look_at_state(house: House, looking: Looking) -> None:
    folder, user = house.state, house.user
    if folder is None or user is None:
        return
    try:
        found = folder.stat()
    except FileNotFoundError:
        fix = f"install -d -m 0700 -o {user.name} -g {user.name} {folder}"
        looking.find(Fault.STATE_MISSING, f"there is no {folder}", fix)
        return
    except OSError:
        looking.unseen.append(f"{folder}: run this as root")
        return
    _look_at_kept(folder, found, user, looking)
    try:
        for path in _below(folder):
            _look_at_kept(path, path.lstat(), user, looking)
    except OSError as error:
        looking.unseen.append(f"{folder}: {error.strerror}")
    look_above(folder, looking)


def _look_at_kept(path: Path, found: os.stat_result, user: User, looking: Looking) -> None:
    if found.st_uid != user.uid:
        fix = f"chown {user.name}:{user.name} {path}"
        looking.find(Fault.STATE_OWNER, f"{path} belongs to {_name(found.st_uid)}, not to {user.name}", fix)
    if found.st_mode & _NOT_MINE and not stat.S_ISLNK(found.st_mode) and not _is_within_private(path, user):
        mode = "0700" if stat.S_ISDIR(found.st_mode) else "0600"
        looking.find(Fault.STATE_MODE, f"{path} has mode {_mode(found)}", f"chmod {mode} {path}")


def _is_within_private(path: Path, user: User) -> bool:
    """Whether a file that could be read lies behind a folder that nobody else can pass: sockets are made so."""
    found = path.lstat()
    return stat.S_ISSOCK(found.st_mode) and path.parent.stat().st_uid == user.uid


def look_at_code(roots: Iterable[Path], interpreter: Path, looking: Looking) -> None:
    """Look at every file of an environment, and at the interpreter that runs it."""
    for root in roots:
        try:
            for path in (root, *_below(root)):
                _look_at_code_file(path, looking)
        except OSError as error:
            looking.unseen.append(f"{root}: {error.strerror}")
        look_above(root, looking)
    look_above(interpreter, looking, fault=(Fault.CODE_OWNER, Fault.CODE_MODE))
    _look_at_code_file(interpreter.resolve(), looking)


def _look_at_code_file(path: Path, looking: Looking) -> None:
    found = path.lstat()
    if found.st_uid != _ROOT:
        looking.find(Fault.CODE_OWNER, f"{path} belongs to {_name(found.st_uid)}", f"chown -h root:root {path}")
    if stat.S_ISLNK(found.st_mode):
        look_above(path, looking, fault=(Fault.CODE_OWNER, Fault.CODE_MODE))
    elif found.st_mode & _OTHERS_WRITE:
        looking.find(Fault.CODE_MODE, f"{path} has mode {_mode(found)}", f"chmod go-w {path}")


def _look_at_socket(installation: Installation, looking: Looking) -> None:
    path = installation.socket
    reader, executor = _both(installation)
    if reader is None or executor is None:
        return
    try:
        folder, found = path.parent.stat(), path.stat()
    except FileNotFoundError:
        looking.unseen.append(f"{path} is not there: is the reader running? (systemctl status agent-reader.socket)")
        return
    except PermissionError:
        # The folder is closed to this user, as it is to all but two.
        return
    again = f"install -d -m 2750 -o {reader.name} -g mailwarrant-link {path.parent}"
    if folder.st_uid not in {_ROOT, reader.uid} or folder.st_mode & 0o027:
        what = f"{path.parent} belongs to {_name(folder.st_uid)} and has mode {_mode(folder)}"
        looking.find(Fault.SOCKET_FOLDER, what, again)
    if found.st_mode & 0o007 or found.st_uid != reader.uid:
        what = f"{path} belongs to {_name(found.st_uid)} and has mode {_mode(found)}"
        looking.find(Fault.SOCKET_MODE, what, f"chown {reader.name} {path}; chmod 0660 {path}")
    for gid, at in ((folder.st_gid, path.parent), (found.st_gid, path)):
        allowed = {reader.uid, executor.uid, _ROOT}
        strangers = sorted(user.name for user in members_of(gid) if user.uid not in allowed)
        if strangers:
            what = f"{at} is open to the group {group_name(gid)}, with {', '.join(strangers)} in it"
            looking.find(Fault.SOCKET_GROUP, what, f"chgrp mailwarrant-link {at}")
    look_above(path.parent, looking)


def _both(installation: Installation) -> tuple[User | None, User | None]:
    """The reader's user and the executor's."""
    own, other = installation.own.user, installation.other.user
    return (own, other) if installation.is_reader else (other, own)


def look_above(
    path: Path,
    looking: Looking,
    owners: frozenset[int] = frozenset({_ROOT}),
    fault: tuple[Fault, Fault] = (Fault.PARENT_OWNER, Fault.PARENT_MODE),
) -> None:
    """Look at every folder that leads to a path, through every link: only root (or `owners`) may change one."""
    for step in _steps_to(path):
        try:
            found = step.lstat()
        except OSError:
            continue
        if found.st_uid not in owners:
            looking.find(
                fault[0], f"{step}, on the way to {path}, belongs to {_name(found.st_uid)}", f"chown root {step}"
            )
        # In a sticky folder nobody but its owner can replace what is root's (unlink(2)).
        is_open = stat.S_ISDIR(found.st_mode) and found.st_mode & _OTHERS_WRITE and not found.st_mode & stat.S_ISVTX
        if is_open:
            what = f"{step}, on the way to {path}, has mode {_mode(found)}"
            looking.find(fault[1], what, f"chmod go-w {step}")


def _steps_to(path: Path) -> Iterator[Path]:
    """Yield each folder and each link that the kernel passes on its way to a path, the path itself left out."""
    waiting, seen = [path.absolute()], set[Path]()
    for _ in range(_MOST_LINKS):
        if not waiting:
            return
        current = waiting.pop()
        for step in [*reversed(current.parents), current]:
            if step != path and step not in seen:
                seen.add(step)
                if step.is_symlink() or step != current or current != path:
                    yield step
            if step.is_symlink():
                target = step.parent / step.readlink()
                if target not in seen:
                    waiting.append(Path(os.path.normpath(target)))


def _below(folder: Path) -> Iterator[Path]:
    for at, folders, files in os.walk(folder, onerror=_raised):
        for name in (*folders, *files):
            yield Path(at, name)


def _raised(error: OSError) -> None:
    # What came and went meanwhile (a database's -wal file) is nothing.
    if not isinstance(error, FileNotFoundError):
        raise error


def _status(path: Path, looking: Looking) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError as error:
        looking.unseen.append(f"{path}: {error.strerror}")
        return None


def _root_and(user: User | None) -> frozenset[int]:
    return frozenset({_ROOT} if user is None else {_ROOT, user.uid})


def _mode(found: os.stat_result) -> str:
    return f"{stat.S_IMODE(found.st_mode):04o}"


def _name(uid: int) -> str:
    return user_of(uid).name

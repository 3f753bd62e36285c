"""Users of the machine, and trying things as each of them: in a child that has become the user, when root runs this."""

import contextlib
import grp
import json
import os
import pwd
import select
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

_CHUNK: Final = 65_536
# Seconds. Looking through a home and an environment takes a few; what has the agent's uid the agent can stop.
_MOST_SECONDS: Final = 180.0
# What is found in a home is the agent's to make; a hundred thousand paths say no more than a few.
_MOST_OCTETS: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class User:
    """A user of the machine; `groups` are the ids of all groups that a process of it is in."""

    name: str
    uid: int
    gid: int
    groups: frozenset[int]
    home: Path
    shell: str

    @property
    def may_be_tried(self) -> bool:
        """Whether this process can act as the user: it is the user, or root, who can become anybody."""
        return os.geteuid() in {0, self.uid}


def user_named(name: str) -> User | None:
    """Return the user of a name, None where there is none."""
    try:
        return _user(pwd.getpwnam(name))
    except KeyError:
        return None


def user_of(uid: int) -> User:
    """Return the user of a uid; one without an entry has its number for a name and no group but its own."""
    try:
        return _user(pwd.getpwuid(uid))
    except KeyError:
        return User(str(uid), uid, uid, frozenset({uid}), Path("/nonexistent"), "")


def members(group: str) -> tuple[User, ...]:
    """Return the users that are listed in a group; none where there is no such group."""
    try:
        names = grp.getgrnam(group).gr_mem
    except KeyError:
        return ()
    return tuple(user for user in map(user_named, names) if user is not None)


def members_of(gid: int) -> tuple[User, ...]:
    """Return every user whose processes are in a group: listed in it, or with it as their own."""
    try:
        listed = set(grp.getgrgid(gid).gr_mem)
    except KeyError:
        listed = set()
    return tuple(_user(each) for each in pwd.getpwall() if each.pw_gid == gid or each.pw_name in listed)


def group_name(gid: int) -> str:
    """Return a group's name, its number where it has none."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def distinct(users: Iterable[User | None]) -> tuple[User, ...]:
    """Return the users that are there, each once, root left out: root is kept from nothing."""
    return tuple({user.uid: user for user in users if user is not None and user.uid != 0}.values())


class NoAnswer(OSError):  # noqa: N818 - an attempt that was ended is no fault of ours
    """A try as a user gave no answer: that user's processes can stop it and end it."""


def tried_as(user: User, attempt: Callable[[], Any], seconds: float = _MOST_SECONDS) -> Any:  # noqa: ANN401 - JSON
    """Do something as a user and return what it returned (JSON); as this process's own user it is done here.

    Raises `PermissionError` where this process can become nobody, and `NoAnswer` where the child gave none in time.
    """
    if os.geteuid() == user.uid:
        return attempt()
    if os.geteuid() != 0:
        raise PermissionError(f"only root can try as {user.name}")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _answer_as(user, attempt, writing)
    os.close(writing)
    try:
        said = _heard(reading, seconds)
    finally:
        os.close(reading)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    try:
        return json.loads(said)
    except ValueError:
        raise NoAnswer(f"trying as {user.name} gave no answer") from None


def _heard(reading: int, seconds: float) -> bytes:
    """All that is said until the other end is closed, as far as time and size go."""
    said, until = bytearray(), time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and len(said) <= _MOST_OCTETS:
        if not select.select([reading], [], [], left)[0]:
            break
        octets = os.read(reading, _CHUNK)
        if not octets:
            return bytes(said)
        said += octets
    return b""


def _answer_as(user: User, attempt: Callable[[], Any], writing: int) -> NoReturn:
    # Nothing of the parent's may run here: neither its handlers nor what it does at its end.
    with contextlib.suppress(BaseException):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.setgroups(sorted(user.groups))
        os.setresgid(user.gid, user.gid, user.gid)
        os.setresuid(user.uid, user.uid, user.uid)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(json.dumps(attempt()).encode())
    os._exit(0)


def _user(entry: pwd.struct_passwd) -> User:
    groups = frozenset(os.getgrouplist(entry.pw_name, entry.pw_gid))
    return User(entry.pw_name, entry.pw_uid, entry.pw_gid, groups, Path(entry.pw_dir), entry.pw_shell)

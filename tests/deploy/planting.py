"""How a mistake is planted in a right installation, and taken back at the end."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from shared.doctor.finding import Fault
from tests.deploy.doctor_world import ADA, AGENT, EXECUTOR, READER, World, owned, user

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    Do = Callable[[World], AbstractContextManager[None]]

PATIENCE: Final = 20.0


@dataclass(frozen=True)
class Plant:
    """One mistake: in words, whose doctor finds it, as which fault, and how it is made."""

    words: str
    house: str
    fault: Fault
    do: Do


def mode(path: Callable[[World], Path], bits: int) -> Do:
    @contextmanager
    def planted(world: World) -> Iterator[None]:
        at = path(world)
        before = at.stat().st_mode & 0o7777
        at.chmod(bits)
        try:
            yield
        finally:
            at.chmod(before)

    return planted


def owner(path: Callable[[World], Path], name: str, group: str | None = None) -> Do:
    @contextmanager
    def planted(world: World) -> Iterator[None]:
        at = path(world)
        before = at.lstat()
        os.chown(at, user(name).uid, user(name).gid if group is None else -1, follow_symlinks=False)
        if group is not None:
            os.chown(at, -1, user(group).gid, follow_symlinks=False)
        at.chmod(before.st_mode & 0o7777)
        try:
            yield
        finally:
            os.chown(at, before.st_uid, before.st_gid, follow_symlinks=False)
            at.chmod(before.st_mode & 0o7777)

    return planted


def group_of(path: Callable[[World], Path], name: str) -> Do:
    @contextmanager
    def planted(world: World) -> Iterator[None]:
        at = path(world)
        before = at.stat()
        os.chown(at, -1, user(name).gid)
        at.chmod(before.st_mode & 0o7777)
        try:
            yield
        finally:
            os.chown(at, -1, before.st_gid)
            at.chmod(before.st_mode & 0o7777)

    return planted


def gone(path: Callable[[World], Path]) -> Do:
    @contextmanager
    def planted(world: World) -> Iterator[None]:
        at = path(world)
        aside = at.with_name(f"{at.name}.aside")
        at.rename(aside)
        try:
            yield
        finally:
            aside.rename(at)

    return planted


def added(path: Callable[[World], Path], text: str = "x\n", name: str = "root", bits: int = 0o644) -> Do:
    @contextmanager
    def planted(world: World) -> Iterator[None]:
        at = path(world)
        made = [folder for folder in at.parents if not folder.exists()]
        at.parent.mkdir(parents=True, exist_ok=True)
        for folder in made:
            owned(folder, name, 0o755)
        at.write_text(text)
        owned(at, name, bits)
        try:
            yield
        finally:
            at.unlink()
            for folder in made:
                folder.rmdir()

    return planted


def edited(path: Callable[[World], Path], old: str, new: str) -> Do:
    @contextmanager
    def planted(world: World) -> Iterator[None]:
        at = path(world)
        before = at.read_text()
        text = old.format(
            reader=user(READER).uid, executor=user(EXECUTOR).uid, agent=user(AGENT).uid, ada=user(ADA).uid
        )
        assert text in before, text
        now = new.format(reader=user(READER).uid, executor=user(EXECUTOR).uid, agent=user(AGENT).uid, ada=user(ADA).uid)
        at.write_text(before.replace(text, now))
        try:
            yield
        finally:
            at.write_text(before)

    return planted


def member(name: str, group: str) -> Do:
    @contextmanager
    def planted(_: World) -> Iterator[None]:
        subprocess.run(["gpasswd", "--add", name, group], check=True, capture_output=True)
        try:
            yield
        finally:
            subprocess.run(["gpasswd", "--delete", name, group], check=True, capture_output=True)

    return planted


@contextmanager
def shell_given(_: World) -> Iterator[None]:
    subprocess.run(["usermod", "--shell", "/bin/bash", READER], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["usermod", "--shell", "/usr/sbin/nologin", READER], check=True, capture_output=True)


@contextmanager
def link_to_home(world: World) -> Iterator[None]:
    """The interpreter of the environment is a link to what the agent may replace."""
    python, theirs = world.prefix("reader") / "bin" / "python3", world.home / "python"
    before = python.readlink()
    theirs.symlink_to(before)
    python.unlink()
    python.symlink_to(theirs)
    try:
        yield
    finally:
        python.unlink()
        python.symlink_to(before)
        theirs.unlink()


@contextmanager
def copied_in(world: World) -> Iterator[None]:
    """A .pth file brings the other house in by another way than its folder."""
    file = world.packages("reader") / "more.pth"
    file.write_text(f"{world.packages('executor')}\n")
    try:
        yield
    finally:
        file.unlink()


def running(
    words: Callable[[World], list[str]], variables: Callable[[World], dict[str, str]] = lambda _: {}, name: str = AGENT
) -> Do:
    """A process of a user, whose arguments and environment are there before the doctor looks."""

    @contextmanager
    def planted(world: World) -> Iterator[None]:
        arguments = words(world)
        process = subprocess.Popen(
            [arguments[0], "-c", "read line", *arguments[1:]],
            executable="/bin/sh",
            stdin=subprocess.PIPE,
            env=variables(world),
            cwd="/",
            user=name,
            group=user(name).gid,
            extra_groups=[],
        )
        try:
            deadline = time.monotonic() + PATIENCE
            while b"read line" not in _arguments_of(process.pid):
                assert time.monotonic() < deadline
            yield
        finally:
            process.communicate(b"\n", timeout=PATIENCE)

    return planted


def _arguments_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def config(house: str) -> Callable[[World], Path]:
    return lambda world: world.config(house)


def code(house: str, name: str) -> Callable[[World], Path]:
    return lambda world: world.packages(house) / name


def unit(name: str) -> Callable[[World], Path]:
    return lambda world: world.units / name


def at_home(name: str) -> Callable[[World], Path]:
    return lambda world: world.home / name


def secret_of(house: str) -> Callable[[World], Path]:
    return lambda world: world.secret(house)


def state_of(house: str) -> Callable[[World], Path]:
    return lambda world: world.state(house)

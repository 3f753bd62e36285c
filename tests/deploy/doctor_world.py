"""A right installation of both programs in a tree of its own, with real users: a doctor finds nothing wrong."""

from __future__ import annotations

import grp
import os
import secrets
import shutil
import socket
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_reader.config import ReaderSettings
from agent_reader.doctor.installed import reader_installation
from change_executor.config import ExecutorSettings
from change_executor.doctor.installed import executor_installation
from shared.doctor.finding import Report
from shared.doctor.machine import look_at_machine
from shared.doctor.users import User, user_named
from shared.settings import load_settings
from tests.end_to_end.os_users import CHECKOUT, common_ground, make_user
from tests.servers.ports import WORKER
from tests.servers.processes import alone_with

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shared.doctor.installation import Installation

# Mistakes are planted in the users themselves, so each worker of a parallel run has its own.
_USERS: Final = f"mw-doctor-{WORKER}"
READER, EXECUTOR, AGENT, ADA, GATE, LINK = (
    f"{_USERS}-{role}" for role in ("reader", "mover", "agent", "ada", "gate", "link")
)
PACKAGES: Final = {"reader": "agent_reader", "executor": "change_executor"}
COMMANDS: Final = {"reader": "agent-reader", "executor": "change-executor", "gate": "read-gate"}
UNITS: Final = CHECKOUT / "deploy" / "systemd"


@dataclass
class World:
    """Where everything lies, and who is who."""

    ground: Path
    password: str

    @property
    def etc(self) -> Path:
        return self.ground / "etc"

    @property
    def units(self) -> Path:
        return self.ground / "units"

    @property
    def home(self) -> Path:
        return self.ground / "home"

    @property
    def socket(self) -> Path:
        return self.ground / "run" / "reader.sock"

    def secret(self, house: str) -> Path:
        return (
            self.etc
            / "secrets"
            / {"reader": "reader", "executor": "move", "gate": "gate", "gate-local": "gate-local"}[house]
        )

    def state(self, house: str) -> Path:
        return self.ground / "var" / COMMANDS[house]

    def prefix(self, house: str) -> Path:
        return self.ground / "opt" / house

    def config(self, house: str) -> Path:
        return self.etc / f"{house}.toml"

    def packages(self, house: str) -> Path:
        return next(self.prefix(house).glob("lib/python3*/site-packages"))

    def installation(self, house: str) -> Installation:
        """What the program's doctor would be looking at, were it installed here."""
        if house == "reader":
            settings = load_settings(self.config(house), ReaderSettings)
            found = reader_installation(settings, self.config(house), user(READER), self.units, (AGENT,))
        else:
            chosen = load_settings(self.config(house), ExecutorSettings)
            found = executor_installation(chosen, self.config(house), user(EXECUTOR), self.units, ())
        site = self.packages(house)
        return replace(
            found,
            prefix=self.prefix(house),
            interpreter=self.prefix(house) / "bin" / "python",
            packages=(site / PACKAGES[house], site / "shared"),
            agents=tuple(replace(agent, home=self.home) if agent.name == AGENT else agent for agent in found.agents),
        )

    def look(self, house: str) -> Report:
        return look_at_machine(self.installation(house))


def user(name: str) -> User:
    found = user_named(name)
    assert found is not None, name
    return found


def owned(path: Path, owner: str, mode: int, group: str | None = None) -> Path:
    """Give a file or folder its owner and mode, and make the folder where there is nothing."""
    if not path.exists():
        made = [folder for folder in path.parents if not folder.exists()]
        path.mkdir(parents=True)
        for folder in made:
            # Whatever the umask of whoever runs the tests.
            folder.chmod(0o755)
    gid = user(owner).gid if group is None else grp.getgrnam(group).gr_gid
    os.chown(path, user(owner).uid, gid)
    path.chmod(mode)
    return path


@contextmanager
def installed_tree() -> Iterator[World]:
    """The whole tree, with a listening private socket; removed afterwards, the users stay for the next run."""
    with alone_with(_USERS), common_ground() as ground, socket.socket(socket.AF_UNIX) as listener:
        for name, groups in ((READER, ()), (EXECUTOR, (LINK,)), (AGENT, ()), (ADA, ())):
            make_right_user(name, *groups)
        world = World(ground, f"password-{secrets.token_hex(16)}")
        write_settings(world)
        for house, package in PACKAGES.items():
            make_prefix(world, house, package)
        write_units(world)
        owned(world.home, AGENT, 0o700)
        owned(world.socket.parent, READER, 0o2750, LINK)
        listener.bind(str(world.socket))
        # Whoever knocks is never answered; the queue holds all the knocks there are.
        listener.listen(4096)
        owned(world.socket, READER, 0o660, LINK)
        yield world


def make_right_user(name: str, *groups: str) -> None:
    """Make a user who signs in nowhere, in these groups and no other, whatever an earlier run left of it."""
    make_user(name, *groups)
    right = ["--shell", "/usr/sbin/nologin", "--groups", ",".join(groups)]
    subprocess.run(["usermod", *right, name], check=True, capture_output=True)


def write_settings(world: World) -> None:
    """Both houses' folders, secrets and files, and their settings."""
    _make_files(world)
    _write_configs(world)


def _make_files(world: World) -> None:
    owned(world.etc, "root", 0o755)
    owned(world.etc / "secrets", "root", 0o700)
    for house, owner, names in (
        ("reader", READER, ("access.db", "reader.lock")),
        ("executor", EXECUTOR, ("journal.db",)),
    ):
        world.secret(house).write_text(f"{world.password}-{house}")
        owned(world.secret(house), "root", 0o400)
        owned(world.state(house), owner, 0o700)
        for name in names:
            (world.state(house) / name).touch()
            owned(world.state(house) / name, owner, 0o600)


def _write_configs(world: World) -> None:
    world.config("reader").write_text(
        f"""[server]
socket = "{world.socket}"
executor_uid = {user(EXECUTOR).uid}
[store]
url = "sqlite:///{world.state("reader")}"
[[accounts]]
id = "shop"
host = "mail.shop.example"
user = "reader"
secret_credential = "reader"
"""
    )
    world.config("executor").write_text(
        f"""[intake]
allow_uids = [{user(AGENT).uid}]
[review]
allow_uids = [{user(ADA).uid}]
[reader]
socket = "{world.socket}"
uid = {user(READER).uid}
[journal]
url = "sqlite:///{world.state("executor")}/journal.db"
[[credentials]]
id = "move"
host = "mail.shop.example"
user = "mover"
secret_credential = "move"
[[queues]]
id = "support"
credential = "move"
account = "shop"
incoming = "Incoming"
[queues.to.processed]
mailbox = "Processed"
"""
    )
    for house in PACKAGES:
        owned(world.config(house), "root", 0o644)


def make_prefix(world: World, house: str, package: str) -> None:
    """An environment as the installer makes it: our packages without the other house's, root's, and no pip."""
    python = Path("/usr/bin/python3")
    subprocess.run([python, "-m", "venv", "--without-pip", world.prefix(house)], check=True, capture_output=True)
    for name in (package, "shared"):
        shutil.copytree(CHECKOUT / name, world.packages(house) / name, ignore=shutil.ignore_patterns("__pycache__"))
    (world.prefix(house) / "bin" / COMMANDS[house]).write_text("#!/bin/sh\n")
    subprocess.run(["chown", "-hR", "root:root", world.ground / "opt"], check=True)
    subprocess.run(["chmod", "-R", "go-w,a+rX", world.ground / "opt"], check=True)


def write_units(world: World, of: tuple[str, ...] = ("agent-reader", "change-executor")) -> None:
    """Those of the two programs, or of those whose unit's name begins so."""
    owned(world.units, "root", 0o755)
    for unit in UNITS.iterdir():
        if not unit.name.startswith(of):
            continue
        text = unit.read_text()
        for name, ours in (("agent-reader", READER), ("change-executor", EXECUTOR), ("read-gate", GATE)):
            text = text.replace(f"\nUser={name}\n", f"\nUser={ours}\n")
        text = text.replace("/etc/mailwarrant/secrets", str(world.etc / "secrets"))
        text = text.replace("/opt/mailwarrant/gate", str(world.prefix("gate")))
        (world.units / unit.name).write_text(text)
        owned(world.units / unit.name, "root", 0o644)

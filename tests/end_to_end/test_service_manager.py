"""Both houses under a service manager: they serve on sockets that were handed over, and tell how they are."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from typing import TYPE_CHECKING

import pytest

from shared.service_manager import ServiceManager, signs_of_life
from tests.end_to_end.houses import House, MailServer, write_executor, write_reader
from tests.servers.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers.dovecot import Dovecot

# What systemd does between fork and exec: descriptors from 3 on, and their names in the environment.
AS_SYSTEMD_DOES = """
import json, os, socket, sys
wanted, module, arguments = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3:]
made = []
for name, address in wanted:
    listener = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    listener.bind(address if isinstance(address, str) else tuple(address))
    listener.listen()
    made.append(os.dup(listener.fileno()))
for number, descriptor in enumerate(made):
    os.dup2(descriptor, 3 + number)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(made))}
os.environ |= {"LISTEN_FDNAMES": ":".join(name for name, _ in wanted), "WATCHDOG_PID": str(os.getpid())}
os.execv(sys.executable, [sys.executable, "-m", module, *arguments])
"""


class Manager:
    """A house started as a unit is, and the socket where it says how it is."""

    def __init__(self, folder: Path, house: House, wanted: list[tuple[str, object]]) -> None:
        self.told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.told.bind(str(folder / "notify"))
        self.told.settimeout(40)
        self.house = house
        house.entry = (sys.executable, "-c", AS_SYSTEMD_DOES, json.dumps(wanted), house.module)
        house.environment = {"NOTIFY_SOCKET": str(folder / "notify"), "WATCHDOG_USEC": "200000"}

    def await_word(self, word: bytes) -> None:
        for _ in range(1000):
            if self.told.recv(500).startswith(word):
                return
        raise AssertionError(f"{word!r} was never said: {self.house.log}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.fixture
def server(dovecot: Dovecot) -> MailServer:
    return MailServer(dovecot.port, dovecot.passwords["reader"], dovecot.passwords["executor"])


@pytest.fixture
def reader(folder: Path, server: MailServer) -> Iterator[Manager]:
    house = House("agent_reader", folder, free_port())
    link = str(folder / "link.sock")
    write_reader(house, server, folder / "never-made.sock")
    manager = Manager(folder, house, [("jmap", ["127.0.0.1", house.port]), ("link", link)])
    yield manager
    house.close()
    manager.told.close()


@pytest.fixture
def executor(folder: Path, server: MailServer) -> Iterator[Manager]:
    house = House("change_executor", folder, free_port())
    review = free_port()
    write_executor(house, review, server, folder / "no-reader.sock", [0])
    wanted: list[tuple[str, object]] = [("intake", ["127.0.0.1", house.port]), ("review", ["127.0.0.1", review])]
    manager = Manager(folder, house, wanted)
    yield manager
    house.close()
    manager.told.close()


@pytest.mark.parametrize("which", ["reader", "executor"])
def test_it_serves_on_what_it_was_given_and_says_ready_alive_and_stopping(
    which: str, request: pytest.FixtureRequest, folder: Path
) -> None:
    manager: Manager = request.getfixturevalue(which)
    manager.house.start()
    manager.await_word(b"READY=1\nSTATUS=")
    manager.await_word(b"WATCHDOG=1")
    manager.await_word(b"WATCHDOG=1")
    assert manager.house.stop() == 0, manager.house.log
    manager.await_word(b"STOPPING=1")
    # A path of its own it would have made, and what was handed over is the manager's to remove.
    assert not (folder / "never-made.sock").exists()
    assert (which == "executor") or (folder / "link.sock").exists()


def test_who_does_not_live_gives_no_sign_of_it(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(folder / "notify"))
        told.settimeout(20)
        manager = ServiceManager({"NOTIFY_SOCKET": str(folder / "notify"), "WATCHDOG_USEC": "2000"})
        answers = iter([True, True, False])

        async def live() -> None:
            with signs_of_life(manager, lambda: next(answers)):
                others = asyncio.all_tasks() - {asyncio.current_task()}
                await asyncio.wait(others, timeout=20)

        asyncio.run(live())
        manager.stopping()
        assert [b"WATCHDOG=1", b"WATCHDOG=1", b"STOPPING=1"] == [told.recv(100) for _ in range(3)]

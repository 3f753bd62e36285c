"""A real gate beside the right installation, through which its reader comes; behind it a scripted mail server."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final

from shared.doctor.gate import HARMLESS_WRITE
from tests.deploy.doctor_world import AGENT, GATE, World, make_prefix, make_right_user, owned, user, write_units
from tests.deploy.planting import mode, secret_of
from tests.fakes.gate_process import GateProcess
from tests.fakes.imap_server import ScriptedImapServer
from tests.servers.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCAL_SECRET: Final = "0123456789abcdef" * 4


@contextmanager
def gate_beside(world: World) -> Iterator[ScriptedImapServer]:
    """Install it and let it run; yields the mail server behind it. Taken away afterwards, but for its user."""
    make_right_user(GATE)
    port, reader = free_port(), world.config("reader")
    before, secret_before = reader.read_text(), world.secret("reader").read_text()
    with ScriptedImapServer() as server:
        for name, text in (("gate", f"{world.password}-gate"), ("gate-local", LOCAL_SECRET), ("reader", LOCAL_SECRET)):
            world.secret(name).write_text(text)
            owned(world.secret(name), "root", 0o400)
        world.config("gate").write_text(
            f"""[gate]
listen = "127.0.0.1:{port}"
[[accounts]]
id = "shop"
host = "127.0.0.1"
port = {server.port}
tls = "none"
user = "owner"
secret_file = "{world.secret("gate")}"
local_secret_file = "{world.secret("gate-local")}"
"""
        )
        owned(world.config("gate"), "root", 0o644)
        there = f'host = "127.0.0.1"\nport = {port}\ntls = "none"\nuser = "shop"\n'
        reader.write_text(before.replace('host = "mail.shop.example"\nuser = "reader"\n', there))
        make_prefix(world, "gate", "read_gate")
        write_units(world, of=("mailwarrant-gate",))
        serving = [sys.executable, "-m", "read_gate", "serve", "--config", str(world.config("gate"))]
        try:
            with GateProcess(serving) as gate:
                assert port == gate.port()
                yield server
        finally:
            reader.write_text(before)
            world.secret("reader").write_text(secret_before)
            for path in (world.config("gate"), world.secret("gate"), world.secret("gate-local")):
                path.unlink()
            for path in world.units.glob("mailwarrant-gate.*"):
                path.unlink()


@contextmanager
def elsewhere(world: World, port: int) -> Iterator[None]:
    """Both sides of the gate name another port."""
    texts = {path: path.read_text() for path in (world.config("gate"), world.config("reader"))}
    there = texts[world.config("gate")].split('listen = "127.0.0.1:')[1].split('"')[0]
    for path, text in texts.items():
        path.write_text(text.replace(there, str(port)))
    try:
        yield
    finally:
        for path, text in texts.items():
            path.write_text(text)


@contextmanager
def nobody_listens(world: World) -> Iterator[None]:
    with elsewhere(world, free_port()):
        yield


@contextmanager
def the_agent_listens(world: World) -> Iterator[None]:
    os.seteuid(user(AGENT).uid)
    try:
        listener = socket.create_server(("127.0.0.1", 0))
    finally:
        os.seteuid(0)
    with closing(listener), elsewhere(world, listener.getsockname()[1]):
        yield


@contextmanager
def it_passes_everything(world: World) -> Iterator[None]:
    with ScriptedImapServer() as server, elsewhere(world, server.port):
        yield


@contextmanager
def it_answers_nothing_that_a_gate_says(world: World) -> Iterator[None]:
    """To a command that writes: it neither passes it on nor hangs up with the gate's word."""
    said = HARMLESS_WRITE.split()[0]
    with (
        ScriptedImapServer(lambda command: None if command.startswith(said) else ([], b"")) as server,
        elsewhere(world, server.port),
    ):
        yield


@contextmanager
def the_reader_has_the_password(world: World) -> Iterator[None]:
    before = world.secret("reader").read_text()
    world.secret("reader").write_text(world.secret("gate").read_text())
    try:
        yield
    finally:
        world.secret("reader").write_text(before)


@contextmanager
def the_reader_goes_past(world: World) -> Iterator[None]:
    """The first account goes through the gate, and another one to the mail server itself, as the same user."""
    path, port = world.config("reader"), world.config("gate").read_text().split("port = ")[1].split("\n")[0]
    before = path.read_text()
    path.write_text(
        f'{before}[[accounts]]\nid = "more"\nhost = "127.0.0.1"\nport = {port}\ntls = "none"\nuser = "owner"\n'
        f'secret_credential = "reader"\n'
    )
    try:
        yield
    finally:
        path.write_text(before)


@contextmanager
def another_local_secret(world: World) -> Iterator[None]:
    path = world.secret("gate-local")
    path.write_text("f" * 64)
    try:
        yield
    finally:
        path.write_text(LOCAL_SECRET)


@contextmanager
def the_gates_user_signs_in(_: World) -> Iterator[None]:
    subprocess.run(["usermod", "--shell", "/bin/bash", GATE], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["usermod", "--shell", "/usr/sbin/nologin", GATE], check=True, capture_output=True)


@contextmanager
def the_secrets_lie_open(world: World) -> Iterator[None]:
    with mode(lambda w: w.etc / "secrets", 0o755)(world), mode(secret_of("gate"), 0o444)(world):
        yield

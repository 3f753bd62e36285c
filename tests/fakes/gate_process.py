"""The gate as a process of its own, before a mail server; and one who speaks to it by hand."""

from __future__ import annotations

import json
import socket
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

from tests.fakes.reader_process import DEADLINE, ReaderProcess

if TYPE_CHECKING:
    from pathlib import Path

LOCAL_SECRET: Final = "local-" + "s" * 40


@dataclass
class GateFolder:
    """A configuration for one account, `shop`; `settings` are its lines, `gate` those of `[gate]`."""

    folder: Path
    settings: dict[str, object]
    password: str
    gate: dict[str, object] = field(default_factory=dict)

    @property
    def local_secret(self) -> Path:
        return self.folder / "local.secret"

    def config(self) -> Path:
        """Write the files and return the path of gate.toml."""
        secret = self.folder / "real.secret"
        for path, text in ((secret, self.password), (self.local_secret, LOCAL_SECRET)):
            path.write_text(text)
            path.chmod(0o600)
        own = {"id": "shop", "secret_file": str(secret), "local_secret_file": str(self.local_secret)}
        lines = ["[gate]", *_lines({"listen": "127.0.0.1:0"} | self.gate)]
        lines += ["[[accounts]]", *_lines(own | self.settings)]
        path = self.folder / "gate.toml"
        path.write_text("\n".join(lines) + "\n")
        return path

    def serve(self) -> GateProcess:
        return GateProcess([sys.executable, "-m", "read_gate", "serve", "--config", str(self.config())])


def _lines(values: dict[str, object]) -> list[str]:
    return [f"{key} = {json.dumps(value)}" for key, value in values.items()]


class GateProcess(ReaderProcess):
    """`read-gate serve`; killed at the end of the with block if it still runs."""

    def port(self) -> int:
        """Wait until it listens, and return where."""
        return int(self.await_event("gate:ready")["port"])


class ByHand:
    """One connection to the gate, whose lines a test writes itself."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
        self._file = self.sock.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self.sock.close()

    def say(self, octets: bytes) -> None:
        self.sock.sendall(octets)

    def hear(self) -> bytes:
        """The next line with its end; b"" at the connection's end."""
        try:
            return self._file.readline()
        except ConnectionResetError:
            return b""

    def rest(self) -> bytes:
        """All that comes until the connection's end."""
        heard = b""
        while line := self.hear():
            heard += line
        return heard

    def ask(self, command: bytes, tag: bytes = b"t1") -> list[bytes]:
        """Say one command, and return the lines up to its completion, or to the connection's end."""
        self.say(tag + b" " + command + b"\r\n")
        lines = []
        while line := self.hear():
            lines.append(line)
            if line.startswith(tag + b" "):
                break
        return lines

    def sign_in(self, user: str = "shop", secret: str = LOCAL_SECRET) -> list[bytes]:
        assert self.hear().startswith(b"* OK")
        return self.ask(f'LOGIN "{user}" "{secret}"'.encode(), b"t0")

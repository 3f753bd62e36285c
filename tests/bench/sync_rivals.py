"""What a mirror is measured beside: mbsync, imapclient alone, and a socket that only counts what comes.

`python -m tests.bench.sync_rivals KIND PORT` with the login's password on standard input runs `bare` or `imapclient` as
a process of its own, so that its CPU and memory are its own; it prints how many messages and octets it took.
"""

import json
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from imapclient import IMAPClient

from tests.servers.processes import HOST

BATCH: Final = 200
USER: Final = "reader"
_LITERAL: Final = re.compile(rb"\{([0-9]+)\}\r\n$")


def mbsync_config(folder: Path, port: int, password_file: Path, *, fsync: bool) -> str:
    """Pull INBOX into a Maildir in `folder`."""
    return f"""\
FSync {"yes" if fsync else "no"}
IMAPAccount bench
Host {HOST}
Port {port}
User {USER}
PassCmd "cat {password_file}"
SSLType None
AuthMechs LOGIN

IMAPStore far
Account bench

MaildirStore near
Path {folder}/
Inbox {folder}/INBOX

Channel bench
Far :far:
Near :near:
Sync Pull
Create Near
SyncState *
"""


class BareReader:
    """A connection that finds where literals end and reads nothing of what they say."""

    def __init__(self, port: int, password: str) -> None:
        self._socket = socket.create_connection((HOST, port))
        self._stream = self._socket.makefile("rb")
        self.octets = 0
        self._line()
        self.ask(f"LOGIN {USER} {password}")

    def close(self) -> None:
        """Drop the connection."""
        self._stream.close()
        self._socket.close()

    def ask(self, command: str) -> tuple[list[bytes], list[bytes]]:
        """Say a command; return the lines of the answer and its literals."""
        self._socket.sendall(f"x {command}\r\n".encode())
        lines, literals = [], []
        while not (line := self._line()).startswith(b"x "):
            lines.append(line)
            if found := _LITERAL.search(line):
                literals.append(self._stream.read(int(found[1])))
                self.octets += len(literals[-1])
        if not line.startswith(b"x OK"):
            raise RuntimeError(line.decode())
        return lines, literals

    def send(self, octets: bytes) -> None:
        """Send octets as they are."""
        self._socket.sendall(octets)

    def line(self) -> bytes:
        """Return the next line."""
        return self._line()

    def _line(self) -> bytes:
        line = self._stream.readline()
        self.octets += len(line)
        return line


def read_bare(port: int, password: str) -> tuple[int, int]:
    """Fetch every message of INBOX; how many, and the octets that came."""
    reader = BareReader(port, password)
    lines, _ = reader.ask("EXAMINE INBOX")
    exists = next(int(line.split()[1]) for line in lines if line.endswith(b"EXISTS\r\n"))
    count = 0
    for batch in _batches(exists):
        count += len(reader.ask(f"FETCH {batch} (UID FLAGS INTERNALDATE RFC822.SIZE BODY.PEEK[])")[1])
    reader.close()
    return count, reader.octets


def read_by_imapclient(port: int, password: str) -> tuple[int, int]:
    """Fetch every message of INBOX by the library; how many, and the octets of the bodies."""
    with IMAPClient(HOST, port, ssl=False) as client:
        client.login(USER, password)
        # As the reader does: the library's trace formatting costs half of a fetch.
        client._imap.debug = 0
        client.select_folder("INBOX", readonly=True)
        uids = client.search("ALL")
        count = octets = 0
        for begin in range(0, len(uids), BATCH):
            found = client.fetch(uids[begin : begin + BATCH], ["FLAGS", "INTERNALDATE", "RFC822.SIZE", "BODY.PEEK[]"])
            count += len(found)
            octets += sum(len(items[b"BODY[]"]) for items in found.values())
    return count, octets


def _batches(exists: int) -> Iterator[str]:
    return (f"{low}:{min(exists, low + BATCH - 1)}" for low in range(1, exists + 1, BATCH))


def _main() -> None:
    read = {"bare": read_bare, "imapclient": read_by_imapclient}[sys.argv[1]]
    sys.stdout.write(json.dumps(read(int(sys.argv[2]), sys.stdin.readline().strip())) + "\n")


if __name__ == "__main__":
    _main()

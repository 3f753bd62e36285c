"""A scripted IMAP server on loopback: it records every octet that it got, and answers as a test says."""

from __future__ import annotations

import re
import socket
import threading
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable

HOST: Final = "127.0.0.1"
_WAIT: Final = 20.0
_OK: Final = b"OK done"

# Everything there is to offer, so that no refusal comes from the library's own check of capabilities.
ALL_CAPABILITIES: Final = (
    b"IMAP4rev1 STARTTLS AUTH=PLAIN ENABLE CONDSTORE QRESYNC IDLE ID NAMESPACE UNSELECT UIDPLUS MOVE ACL QUOTA SORT"
    b" THREAD=REFERENCES LITERAL+ MULTIAPPEND X-GM-EXT-1 XLIST ESEARCH"
)

# A command without its tag gives the untagged lines and the tagged answer; None ends the connection.
Answer = "Callable[[bytes], tuple[list[bytes], bytes] | None]"


class ScriptedImapServer:
    """Serves until the end of the with block. `answer` gets `VERB arguments`; without it everything is OK.

    `received` holds all octets of all connections, `commands` the lines without their tags; `sign_in` is the answer to
    AUTHENTICATE.
    """

    def __init__(
        self,
        answer: Callable[[bytes], tuple[list[bytes], bytes] | None] | None = None,
        capabilities: bytes = ALL_CAPABILITIES,
        greeting: bytes = b"* OK ready",
    ) -> None:
        self.received = bytearray()
        self.commands: list[bytes] = []
        self.connections = 0
        self.sign_in = _OK
        self._answer = answer
        self._capabilities = capabilities
        self._greeting = greeting
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._clients: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._closing = False

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._closing = True
        # A connection of our own wakes accept().
        socket.create_connection((HOST, self.port)).close()
        for client in self._clients:
            try:
                client.shutdown(socket.SHUT_RDWR)
            except OSError:
                client.close()
        for thread in self._threads:
            thread.join(_WAIT)
            assert not thread.is_alive()
        self._listener.close()

    def _spawn(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            if self._closing:
                client.close()
                return
            self.connections += 1
            self._clients.append(client)
            self._spawn(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        try:
            with client, client.makefile("rb") as lines:
                client.sendall(self._greeting + b"\r\n")
                for line in lines:
                    self.received += line
                    if not self._respond(client, lines.readline, line.rstrip(b"\r\n")):
                        return
        except OSError:
            return

    def _respond(self, client: socket.socket, next_line: Callable[[], bytes], line: bytes) -> bool:
        tag, _, command = line.partition(b" ")
        self.commands.append(command)
        untagged, tagged = self._standard(command)
        if command.startswith(b"AUTHENTICATE"):
            client.sendall(b"+ \r\n")
            self.received += next_line()
            tagged = self.sign_in
        elif self._answer is not None:
            special = self._answer(command)
            if special is None:
                return False
            if special != ([], b""):
                untagged, tagged = special
        client.sendall(b"".join(b"* " + text + b"\r\n" for text in untagged) + tag + b" " + tagged + b"\r\n")
        return not command.startswith(b"LOGOUT")

    def _standard(self, command: bytes) -> tuple[list[bytes], bytes]:
        if command == b"CAPABILITY":
            return [b"CAPABILITY " + self._capabilities], _OK
        if command == b"LOGOUT":
            return [b"BYE"], _OK
        return [], _OK


class ScriptedMailbox:
    """Answers for one INBOX of given messages by UID; `refuse` and `break_at` name UIDs that cannot be fetched.

    `refuse_over`: a fetch of more bodies than that is refused. `silent`: UIDs whose body is left out of the answer.
    """

    def __init__(self, messages: dict[int, bytes]) -> None:
        self.messages = messages
        self.uidvalidity = 7
        self.refuse: set[int] = set()
        self.break_at: set[int] = set()
        self.silent: set[int] = set()
        self.hidden_from_search: set[int] = set()
        self.refuse_over: int | None = None
        self.refusal = b"NO [UNAVAILABLE] UID FETCH Server error - Please try again later"
        self.examine = b"OK [READ-ONLY] done"
        self.flags = b"\\Seen \\Recent"

    def __call__(self, command: bytes) -> tuple[list[bytes], bytes] | None:
        if command.startswith(b"LIST"):
            return [b'LIST (\\HasNoChildren) "/" INBOX'], _OK
        if command.startswith(b"EXAMINE"):
            state = [
                b"%d EXISTS" % len(self.messages),
                b"OK [UIDVALIDITY %d] here" % self.uidvalidity,
                b"OK [UIDNEXT %d] here" % (max(self.messages, default=0) + 1),
            ]
            return state, self.examine
        if command.startswith(b"UID SEARCH"):
            listed = [b"%d" % uid for uid in self.messages if uid not in self.hidden_from_search]
            return [b" ".join([b"SEARCH", *listed])], _OK
        if fetch := re.fullmatch(rb"UID FETCH ([0-9:,*]+) \((.*)\)", command):
            return self._fetch(self._uids(fetch[1]), fetch[2])
        return [], b""

    def _uids(self, uid_set: bytes) -> list[int]:
        wanted: set[int] = set()
        for part in uid_set.split(b","):
            low, _, high = part.partition(b":")
            top = max(self.messages, default=0) if high == b"*" else int(high or low)
            wanted |= set(range(int(low), top + 1))
        return sorted(wanted & self.messages.keys())

    def _fetch(self, uids: list[int], items: bytes) -> tuple[list[bytes], bytes] | None:
        with_body = b"BODY.PEEK[]" in items
        if with_body and self.break_at & set(uids):
            return None
        too_many = self.refuse_over is not None and len(uids) > self.refuse_over
        if with_body and (too_many or self.refuse & set(uids)):
            return [], self.refusal
        return [self._response(uid, items, with_body=with_body) for uid in uids], _OK

    def _response(self, uid: int, items: bytes, *, with_body: bool) -> bytes:
        octets = self.messages[uid]
        sequence = sorted(self.messages).index(uid) + 1
        parts = [b"FLAGS (" + self.flags + b")"]
        if b"RFC822.SIZE" in items:
            parts.append(b"RFC822.SIZE %d" % len(octets))
        if b"INTERNALDATE" in items:
            parts.append(b'INTERNALDATE "29-Nov-2026 10:00:00 +0100"')
        partial = re.search(rb"BODY\.PEEK\[\]<(\d+)\.(\d+)>", items)
        if partial and uid not in self.silent:
            piece = octets[int(partial[1]) :][: int(partial[2])]
            parts.append(b"BODY[]<%s> {%d}\r\n" % (partial[1], len(piece)) + piece)
        elif with_body and uid not in self.silent:
            parts.append(b"BODY[] {%d}\r\n" % len(octets) + octets)
        # UID last: nothing may be read by its position.
        parts.append(b"UID %d" % uid)
        return b"%d FETCH (" % sequence + b" ".join(parts) + b")"

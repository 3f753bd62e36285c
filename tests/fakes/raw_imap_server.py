"""A scripted server whose test writes the octets of an answer itself: split, unasked, slow, or none at all."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

from tests.fakes.imap_server import ALL_CAPABILITIES, ScriptedImapServer

if TYPE_CHECKING:
    from collections.abc import Callable


class Conversation:
    """One connection, from the server's side."""

    def __init__(self, client: socket.socket, next_line: Callable[[], bytes], ended: threading.Event) -> None:
        self._client, self._next_line, self._ended = client, next_line, ended

    def say(self, octets: bytes) -> None:
        self._client.sendall(octets)

    def hear(self) -> bytes:
        """The client's next line, without its end."""
        return self._next_line().rstrip(b"\r\n")

    def trickle(self, octets: bytes, seconds: float) -> None:
        """Say it octet by octet, until the client has gone."""
        for octet in octets:
            if self._ended.wait(seconds):
                return
            self.say(bytes([octet]))

    def say_nothing(self) -> None:
        """Until the test is over."""
        self._ended.wait(60.0)


class RawImapServer(ScriptedImapServer):
    """`raw` gets the conversation, the tag and the command; True where it has answered, None where it hangs up."""

    def __init__(
        self,
        raw: Callable[[Conversation, bytes, bytes], bool | None],
        answer: Callable[[bytes], tuple[list[bytes], bytes] | None] | None = None,
        capabilities: bytes = ALL_CAPABILITIES,
    ) -> None:
        super().__init__(answer, capabilities)
        self._raw = raw
        self._ended = threading.Event()

    def __exit__(self, *details: object) -> None:
        self._ended.set()
        super().__exit__(*details)

    def _respond(self, client: socket.socket, next_line: Callable[[], bytes], line: bytes) -> bool:
        tag, _, command = line.partition(b" ")
        answered = self._raw(Conversation(client, next_line, self._ended), tag, command)
        if answered is None:
            return False
        if answered:
            self.commands.append(command)
            return True
        return super()._respond(client, next_line, line)

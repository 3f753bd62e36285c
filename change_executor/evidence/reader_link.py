"""The client of the reader's private socket: where is this message, and did the agent open it? Every answer is a hint.

The reader is exposed to hostile mail all day, so its answers are bounded in time and size, checked for their shape,
and used only to know where to look.
"""

import http.client
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError

from shared import ijson
from shared.link import ANSWER_SECONDS, MAX_ANSWER_OCTETS, Locate, Located, Opened, WasOpened

# struct ucred of SO_PEERCRED: pid, uid, gid.
_UCRED: Final = struct.Struct("iII")

_OK: Final = 200

Answer = TypeVar("Answer", bound=BaseModel)


class ReaderUnreachable(Exception):  # noqa: N818 - the state of things
    """The reader did not answer in time, or not as agreed, or another program answered in its place."""


class ReaderLink:
    """Asks the reader at a Unix socket, one connection a question; `uid` is who must be behind it, None for anyone."""

    def __init__(self, path: Path, uid: int | None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._uid = uid
        self._monotonic = monotonic

    def locate(self, account: str, email_id: str) -> Located:
        """Return where the reader saw a message. Raises `ReaderUnreachable`."""
        return self._ask("/locate", Locate(account=account, emailId=email_id), Located)

    def opened(self, agent: str, account: str, email_id: str) -> WasOpened:
        """Return whether the reader says that the agent read the message's body. Raises `ReaderUnreachable`."""
        return self._ask("/opened", Opened(agent=agent, account=account, emailId=email_id), WasOpened)

    def _ask(self, target: str, question: BaseModel, kind: type[Answer]) -> Answer:
        try:
            octets = self._exchange(target, question.model_dump_json(by_alias=True).encode())
            ijson.load(octets)
            return kind.model_validate_json(octets)
        except (OSError, http.client.HTTPException, ValidationError, ijson.NotIJson) as error:
            raise ReaderUnreachable(type(error).__name__) from error

    def _exchange(self, target: str, body: bytes) -> bytes:
        with _BoundedSocket(self._monotonic, self._monotonic() + ANSWER_SECONDS) as peer:
            peer.connect(str(self._path))
            if self._uid is not None and _peer_uid(peer) != self._uid:
                raise PermissionError("another user is behind the reader's socket")
            connection = http.client.HTTPConnection("reader")
            connection.sock = peer
            headers = {"Content-Type": "application/json", "Connection": "close"}
            connection.request("POST", target, body=body, headers=headers)
            with connection.getresponse() as response:
                octets = response.read(MAX_ANSWER_OCTETS + 1)
                if response.status != _OK or len(octets) > MAX_ANSWER_OCTETS:
                    raise http.client.HTTPException
                return octets


class _BoundedSocket(socket.socket):
    """A Unix socket whose every wait ends at one deadline, so that an answer in drops takes no longer than another."""

    def __init__(self, monotonic: Callable[[], float], deadline: float) -> None:
        super().__init__(socket.AF_UNIX, socket.SOCK_STREAM)
        self._monotonic = monotonic
        self._deadline = deadline
        self._bound()

    def recv_into(self, *arguments: object) -> int:
        self._bound()
        return super().recv_into(*arguments)  # type: ignore[arg-type]  # passed on as they are

    def _bound(self) -> None:
        left = self._deadline - self._monotonic()
        if left <= 0:
            raise TimeoutError
        self.settimeout(left)


def _peer_uid(peer: socket.socket) -> int:
    # Linux's; where there is none (macOS), a configured uid cannot be checked and nothing counts as the reader.
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        raise PermissionError("the system does not tell who is behind a socket")
    _, uid, _ = _UCRED.unpack(peer.getsockopt(socket.SOL_SOCKET, option, _UCRED.size))
    return int(uid)

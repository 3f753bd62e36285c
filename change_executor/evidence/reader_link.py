"""The client of the reader's private socket: where is this message, and did the agent open it? Every answer is a hint.

The reader is exposed to hostile mail all day, so its answers are bounded in time and size, checked for their shape,
and used only to know where to look.
"""

import http.client
import socket
import struct
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar

import structlog
from pydantic import BaseModel, ValidationError

from change_executor.outcomes import Waiting
from shared import ijson
from shared.link import (
    ANSWER_SECONDS,
    MAX_ANSWER_OCTETS,
    Agents,
    Locate,
    Located,
    Opened,
    Reads,
    ReadsPage,
    Status,
    WasOpened,
)

_log = structlog.get_logger()

# struct ucred of SO_PEERCRED: pid, uid, gid.
_UCRED: Final = struct.Struct("iII")

_OK: Final = 200

Answer = TypeVar("Answer", bound=BaseModel)


class ReaderFailure(Exception):  # noqa: N818 - the state of things
    """The reader gave no answer that is one; `waiting` is why a proposal waits then, `fix` the operator's mend."""

    waiting = Waiting.READER_UNREACHABLE
    fix = "Start agent-reader, and name its socket in [reader] socket of executor.toml (and its user in uid)."


class ReaderUnreachable(ReaderFailure):
    """It did not answer in time, or not as agreed, or another program answered in its place."""


class ReaderRefused(ReaderFailure):
    """It, or the mode of its socket, does not let the executor's user in."""

    waiting = Waiting.READER_REFUSED
    fix = "Set [server] executor_uid in reader.toml to the executor's uid; put that user into the socket's group."


class AccountUnknown(ReaderFailure):
    """The account that it was asked about is none of its own."""

    waiting = Waiting.ACCOUNT_UNKNOWN
    fix = "Give the queue in executor.toml the `account` that [[accounts]] of reader.toml has as its id."


class ReaderLink:
    """Asks the reader at a Unix socket, one connection a question; `uid` is who must be behind it, None for anyone.

    The log tells when the answers begin to fail and when they come again. Threads may share it: they ask in turn.
    """

    def __init__(self, path: Path, uid: int | None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._uid = uid
        self._monotonic = monotonic
        self._failing: Waiting | None = None
        self._turn = threading.Lock()

    def locate(self, account: str, email_id: str) -> Located:
        """Return where the reader saw a message. Raises `ReaderFailure`."""
        return self._ask("POST", "/locate", Locate(account=account, emailId=email_id), Located)

    def opened(self, agent: str, account: str, email_id: str) -> WasOpened:
        """Return whether the reader says that the agent read the message's body. Raises `ReaderFailure`."""
        return self._ask("POST", "/opened", Opened(agent=agent, account=account, emailId=email_id), WasOpened)

    def status(self) -> Status:
        """Return the reader's accounts and how fresh they are. Raises `ReaderFailure`."""
        return self._ask("GET", "/status", None, Status)

    def agents(self) -> Agents:
        """Return the names that hold a reader token. Raises `ReaderFailure`."""
        return self._ask("GET", "/agents", None, Agents)

    def reads(self, agent: str, since: datetime | None, cursor: int | None = None) -> ReadsPage:
        """Return a page of what an agent read since then, oldest first. Raises `ReaderFailure`."""
        return self._ask("POST", "/reads", Reads(agent=agent, since=since, cursor=cursor), ReadsPage)

    def _ask(self, method: str, target: str, question: BaseModel | None, kind: type[Answer]) -> Answer:
        with self._turn:
            return self._ask_now(method, target, question, kind)

    def _ask_now(self, method: str, target: str, question: BaseModel | None, kind: type[Answer]) -> Answer:
        try:
            answer = self._answer(method, target, question, kind)
        except ReaderFailure as failure:
            if self._failing is not failure.waiting:
                _log.warning("reader:failed", code=failure.waiting.value, detail=str(failure), fix=failure.fix)
            self._failing = failure.waiting
            raise
        if self._failing is not None:
            _log.info("reader:answers")
        self._failing = None
        return answer

    def _answer(self, method: str, target: str, question: BaseModel | None, kind: type[Answer]) -> Answer:
        body = b"" if question is None else question.model_dump_json(by_alias=True).encode()
        try:
            status, octets = self._exchange(method, target, body)
            content = ijson.load(octets)
            if status == _OK:
                return kind.model_validate_json(octets)
        except (OSError, http.client.HTTPException, ValidationError, ijson.NotIJson) as error:
            raise ReaderUnreachable(f"no answer as agreed ({type(error).__name__})") from error
        raise _refusal(status, content)

    def _exchange(self, method: str, target: str, body: bytes) -> tuple[int, bytes]:
        with _BoundedSocket(self._monotonic, self._monotonic() + ANSWER_SECONDS) as peer:
            try:
                peer.connect(str(self._path))
            except PermissionError:
                raise ReaderRefused("its socket may not be opened by the executor's user") from None
            if self._uid is not None and _peer_uid(peer) != self._uid:
                raise ReaderUnreachable("another user is behind the reader's socket")
            connection = http.client.HTTPConnection("reader")
            connection.sock = peer
            headers = {"Content-Type": "application/json", "Connection": "close"}
            connection.request(method, target, body=body, headers=headers)
            with connection.getresponse() as response:
                octets = response.read(MAX_ANSWER_OCTETS + 1)
                if len(octets) > MAX_ANSWER_OCTETS:
                    raise http.client.HTTPException
                return response.status, octets


def _refusal(status: int, untrusted_content: object) -> ReaderFailure:
    code = untrusted_content.get("code") if isinstance(untrusted_content, dict) else None
    if (status, code) == (403, "peer_not_allowed"):
        return ReaderRefused("it does not answer the executor's user")
    if (status, code) == (404, "unknown_account"):
        return AccountUnknown("it has no account of the name that a queue gives")
    return ReaderUnreachable(f"it answered with HTTP status {status}")


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

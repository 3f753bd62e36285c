"""The parent's side of the child: start it with nothing, bound it in time and output, and believe none of what it says.

Whatever goes wrong with the child, a hang, a crash, a flood or nonsense, is evidence too: the message cannot be shown.
"""

import json
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import IO, Final

from pydantic import ValidationError
from rfc8785 import CanonicalizationError

from change_executor.evidence.reading import READING_VERSION, Reading, unreadable
from shared import ijson
from shared.bare_process import bare_process
from shared.fence import clean

CHILD: Final = (sys.executable, "-I", "-B", "-m", "change_executor.evidence.child")

# The child's own limit is 10 s of processor time. A machine with a dozen busy programs for each core takes two minutes
# for that; only a child that does nothing at all is ended by this clock.
WALL_SECONDS: Final = 120.0

# Text and hidden text of 200,000 characters each, at most 12 octets a character, and the lists: an honest answer fits.
MAX_ANSWER_OCTETS: Final = 8 * 1024 * 1024

_PIECE: Final = 64 * 1024
# How often a child that has closed nothing is asked whether it has ended.
_POLL_SECONDS: Final = 0.05


class Cancelled(Exception):  # noqa: N818 - what happened to the work
    """The executor ends; nothing was found out about the message."""


class _Gone(Exception):  # noqa: N818 - what happened to the child
    pass


def read_in_child(
    octets: bytes,
    *,
    cut: bool,
    names: Sequence[str],
    authserv_id: str | None = None,
    known_hosts: Sequence[str] = (),
    command: Sequence[str] = CHILD,
    seconds: float = WALL_SECONDS,
    cancelled: Callable[[], bool] = lambda: False,
) -> Reading:
    """Return the child's reading of a message, or one that says why it cannot be shown. Never raises for a child.

    `cut` says that the message goes on after these octets; `names` are the queue's roles and mailboxes; `authserv_id`
    is whose Authentication-Results are believed; `known_hosts` are what a look-alike would imitate. Raises `Cancelled`
    soon after `cancelled()` is true.
    """
    asked = {"cut": cut, "names": list(names), "authservId": authserv_id, "knownHosts": list(known_hosts)}
    request = json.dumps(asked).encode() + b"\n"
    try:
        return _believed(_answer(command, request + octets, seconds, cancelled))
    except _Gone as gone:
        return unreadable(str(gone))


def clean_html_in_child(octets: bytes, *, command: Sequence[str] = CHILD, seconds: float = WALL_SECONDS) -> str | None:
    """Return the message's HTML as the child cleaned it, or None where it has none or the child gave none.

    What comes back is fit for a sandboxed frame under a policy of its own, and for nothing else.
    """
    try:
        answer = ijson.load(_answer(command, b'{"html": true}\n' + octets, seconds, lambda: False))
    except (_Gone, ijson.NotIJson):
        return None
    html = answer.get("html") if isinstance(answer, dict) else None
    return html if isinstance(html, str) else None


def _answer(command: Sequence[str], given: bytes, seconds: float, cancelled: Callable[[], bool]) -> bytes:
    child = bare_process(command)
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        with child.stdin, child.stdout:
            answer = _exchange(child.pid, child.stdin, child.stdout, given, _bounds(seconds, cancelled))
    finally:
        # Not reaped yet, so the number is still its own: the group dies whole, what it may have forked included.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        status = child.wait()
    # SIGKILL was ours, for a child that had closed its output; what it said before then is judged as it is.
    if status not in (0, -signal.SIGKILL):
        raise _Gone(f"the reading process ended with status {status}")
    return answer


def _bounds(seconds: float, cancelled: Callable[[], bool]) -> Callable[[], None]:
    deadline = time.monotonic() + seconds

    def check() -> None:
        if cancelled():
            raise Cancelled
        if time.monotonic() > deadline:
            raise _Gone("the reading process took too long")

    return check


def _exchange(pid: int, stdin: IO[bytes], stdout: IO[bytes], given: bytes, check: Callable[[], None]) -> bytes:
    os.set_blocking(stdin.fileno(), False)
    os.set_blocking(stdout.fileno(), False)
    left, answer = memoryview(given), bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(stdin, selectors.EVENT_WRITE)
        selector.register(stdout, selectors.EVENT_READ)
        while True:
            check()
            ready = {key.fileobj for key, _ in selector.select(_POLL_SECONDS)}
            if stdin in ready:
                left = _write(stdin, left)
                if not left:
                    selector.unregister(stdin)
                    stdin.close()
            if stdout in ready:
                piece = os.read(stdout.fileno(), _PIECE)
                if not piece:
                    return bytes(answer)
                answer += piece
                if len(answer) > MAX_ANSWER_OCTETS:
                    raise _Gone("the reading process said too much")
            elif _has_ended(pid):
                # Somebody else may hold the pipe open for ever; what the child itself wrote before its end, perhaps
                # after the look above, lies in the pipe.
                return bytes(answer + _what_is_left(stdout))


def _what_is_left(stdout: IO[bytes]) -> bytes:
    left = bytearray()
    with suppress(BlockingIOError):
        # One piece past the cap is enough to be refused.
        while len(left) <= MAX_ANSWER_OCTETS and (piece := os.read(stdout.fileno(), _PIECE)):
            left += piece
    return bytes(left)


def _write(stdin: IO[bytes], left: memoryview) -> memoryview:
    try:
        return left[os.write(stdin.fileno(), left[:_PIECE]) :]
    except BrokenPipeError:
        # It ended or stopped reading; its answer, if any, tells.
        return left[:0]


def _has_ended(pid: int) -> bool:
    # WNOWAIT: the child stays unreaped, so that its number cannot become another's before the kill.
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _believed(untrusted: bytes) -> Reading:
    try:
        reading = Reading.model_validate(ijson.load(untrusted))
        canonical = reading.canonical()
    except (ijson.NotIJson, ValidationError, CanonicalizationError):
        raise _Gone("the reading process gave no reading") from None
    if reading.reading_version != READING_VERSION or any(clean(text).removed for text in _texts(reading)):
        raise _Gone("the reading process gave a reading that is not clean")
    assert canonical, "what can be kept has a canonical form"
    return reading


def _texts(reading: Reading) -> Iterable[str]:
    yield from (reading.cause, reading.subject, reading.date, reading.text, reading.hidden_text)
    yield from (*reading.sender, *reading.recipients, *reading.hosts)
    for attachment in reading.attachments:
        yield from (attachment.name, attachment.type)
    if reading.authentication is not None:
        yield from (reading.authentication.source, reading.authentication.results)
    for warning in reading.warnings:
        yield warning.detail

"""The loop over standard input and output: lines of JSON, each request answered by a thread of its own."""

import json
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import BinaryIO, Final

from agent_reader.relay.relay import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Malformed,
    Message,
    Relay,
    error_response,
    failed,
    parsed,
)

# As many as the reader answers for one agent at once.
_THREADS: Final = 8

# What waits for one of the threads is held in memory. Nobody waits for so much at once; the end of the lines would wait
# for all of it.
_MAX_WAITING: Final = 64

# Arguments are short; a longer line is refused, and read to its end.
_MAX_LINE_OCTETS: Final = 1024 * 1024


@contextmanager
def wire() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Give the client's two streams, and lead whatever else is printed to standard error meanwhile."""
    sys.stdout.flush()
    with os.fdopen(os.dup(0), "rb") as lines, os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        yield lines, answers


def run(relay: Relay, lines: BinaryIO, answers: BinaryIO) -> None:
    """Answer until the client closes its side; what is being answered then is still written."""
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="relay") as threads:
        _Conversation(relay, answers).read(lines, threads)


_TOO_MANY: Final = (
    f"too_many_requests: {_MAX_WAITING} requests wait already. Wait for their answers, then send this one again."
)


class _Conversation:
    def __init__(self, relay: Relay, answers: BinaryIO) -> None:
        self._relay, self._answers = relay, answers
        self._writing = threading.Lock()
        # As JSON: 1 and "1" are two requests.
        self._waiting: set[str] = set()
        self._is_gone = False

    def read(self, lines: BinaryIO, threads: ThreadPoolExecutor) -> None:
        while line := lines.readline(_MAX_LINE_OCTETS + 1):
            try:
                self._hear(_whole(line, lines), threads)
            except Malformed as error:
                self._write(error.response)

    def _hear(self, line: bytes, threads: ThreadPoolExecutor) -> None:
        """Requests are answered; a cancellation drops an answer; nothing else that a client says needs us."""
        if not line.strip():
            return
        message = parsed(line)
        if "method" in message and "id" in message:
            self._take(message, threads)
        elif message.get("method") == "notifications/cancelled":
            params = message.get("params")
            with self._writing:
                self._waiting.discard(json.dumps(params.get("requestId")) if isinstance(params, dict) else "")

    def _take(self, request: Message, threads: ThreadPoolExecutor) -> None:
        with self._writing:
            has_room = len(self._waiting) < _MAX_WAITING
            if has_room:
                self._waiting.add(json.dumps(request["id"]))
        if not has_room:
            self._write(failed(request, _TOO_MANY))
        elif request["method"] == "initialize":
            # What it agrees on holds for the next line.
            self._answer(request)
        else:
            threads.submit(self._answer, request)

    def _is_waited_for(self, request: Message) -> bool:
        return not self._is_gone and json.dumps(request["id"]) in self._waiting

    def _answer(self, request: Message) -> None:
        with self._writing:
            # It waited for a thread, and meanwhile was cancelled, or its client went.
            if not self._is_waited_for(request):
                return
        try:
            answer = self._relay.answer(request)
        except Exception as error:  # noqa: BLE001 - a bug in one answer is that answer's alone
            print(f"agent-reader mcp: {type(error).__name__}", file=sys.stderr)  # noqa: T201 - the client's log
            answer = error_response(request["id"], INTERNAL_ERROR, "relay_fault: The relay failed at this message.")
        with self._writing:
            is_waited_for = self._is_waited_for(request)
            self._waiting.discard(json.dumps(request["id"]))
        if is_waited_for:
            self._write(answer)

    def _write(self, message: Message) -> None:
        # ASCII: no line end of Unicode's is taken for one of the protocol's.
        line = json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"
        with self._writing:
            try:
                self._answers.write(line)
                self._answers.flush()
            except BrokenPipeError:
                # The client has gone; the end of its lines follows, and what still waits is for nobody.
                self._is_gone = True


def _whole(line: bytes, lines: BinaryIO) -> bytes:
    """The line, if it is short enough; else what is left of it is read away. Raises `Malformed`."""
    if len(line) <= _MAX_LINE_OCTETS:
        return line
    while line and not line.endswith(b"\n"):
        line = lines.readline(_MAX_LINE_OCTETS)
    raise Malformed(None, INVALID_REQUEST, "The line is over 1 MiB.")

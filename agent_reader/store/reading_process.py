"""Messages read by processes beside the reader while a long backlog comes in: more cores, and faults that stay there.

Such a process is given octets and nothing else: no environment, no credential, no descriptor but its three. It is begun
for a backlog and ended after it (`reading_pool.py`). A message that it dies of, or has not read within a minute, is
tried again in a new process, and the third time told from the others; nothing else is lost.
"""

import fcntl
import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from agent_reader.errors import ReadingEnded
from agent_reader.store.reading_wire import LENGTH_OCTETS, Answer, Asked, frame
from shared.bare_process import bare_process

CHILD: Final = (sys.executable, "-I", "-B", "-m", "agent_reader.store.reading_child")

# The name of what a message did that a process died of, beside the names of errors.
DIED: Final = "ReadingProcessDied"
MOST_DEATHS: Final = 3

# Of 64 MiB a message takes some seconds; on a machine that is busy with other things, ten times that.
ANSWER_SECONDS: Final = 60.0
# It loads what it reads with, which takes less than one.
START_SECONDS: Final = 60.0
# Between tries to begin one: what a machine is short of for a moment is there again after seconds.
START_PAUSES_SECONDS: Final = (0.5, 4.0)
# The most that an unprivileged process gets: both sides can then be a batch ahead of each other.
_PIPE_OCTETS: Final = 1024 * 1024
_PIECE: Final = 1024 * 1024
# The largest message, and its words and its document besides.
_MOST_ANSWER_OCTETS: Final = 512 * 1024 * 1024

_WRITTEN: Final = msgspec.msgpack.Encoder()
_READ: Final = msgspec.msgpack.Decoder(Answer)


class CannotRead(Exception):  # noqa: N818 - what is the case
    """No such process can be started now, though it was tried some times.

    `is_of_deaths`: one was there before, and died over what it was to read.
    """

    def __init__(self, *, is_of_deaths: bool = False) -> None:
        super().__init__()
        self.is_of_deaths = is_of_deaths


class _Died(Exception):  # noqa: N818 - what happened to the process
    pass


class ReadingProcess:
    """One process that reads, begun anew when it died. One thread reads by it; any may end it."""

    def __init__(
        self,
        command: Sequence[str] = CHILD,
        seconds: float = ANSWER_SECONDS,
        pauses: Sequence[float] = START_PAUSES_SECONDS,
    ) -> None:
        self._command, self._seconds, self._pauses = command, seconds, pauses
        self._child: subprocess.Popen[bytes] | None = None
        self._buffer = bytearray()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._is_ready = False

    @property
    def pid(self) -> int | None:
        """The number of the process, None where it does not run."""
        child = self._child
        return None if child is None or child.poll() is not None else child.pid

    @property
    def is_stopped(self) -> bool:
        """Whether it was stopped for good."""
        return self._ended.is_set()

    def begin(self) -> None:
        """Start it where it does not run; it gets ready meanwhile."""
        with self._lock:
            if self._child is None and not self._ended.is_set():
                with suppress(OSError):
                    self._child = self._started()

    def read(self, asked: Sequence[Asked]) -> list[Answer]:
        """Return an answer for each. Raises `CannotRead`, `ReadingEnded`."""
        answers: list[Answer] = []
        deaths = 0
        has_died = False
        while len(answers) < len(asked):
            before = len(answers)
            try:
                self._exchange(asked[before:], answers.append)
            except CannotRead:
                raise CannotRead(is_of_deaths=has_died) from None
            except _Died:
                has_died = True
                self._bury()
                # The one that it was at when it died.
                deaths = deaths + 1 if len(answers) == before else 1
                if deaths == MOST_DEATHS:
                    answers.append(Answer(None, (), DIED))
                    deaths = 0
        return answers

    def stop(self) -> None:
        """Kill it, for good; whoever reads by it finds it dead. Its descriptors stay until `close`."""
        with self._lock:
            self._ended.set()
            if self._child is not None:
                self._child.kill()

    def close(self) -> None:
        """Let go of it, once nobody reads by it."""
        self.stop()
        with suppress(ReadingEnded):
            self._bury()

    def _exchange(self, asked: Sequence[Asked], take: Callable[[Answer], object]) -> None:
        self._get_ready()
        self._write(frame(_WRITTEN.encode(asked)))
        for _ in asked:
            take(self._answer())

    def _get_ready(self) -> None:
        if self._is_ready and self._child is not None:
            return
        for pause in (*self._pauses, None):
            self.begin()
            try:
                self._answer()
            except _Died:
                self._bury()
            else:
                self._is_ready = True
                return
            if pause is not None and self._ended.wait(pause):
                raise ReadingEnded
        raise CannotRead

    def _started(self) -> subprocess.Popen[bytes]:
        child = bare_process(self._command, bufsize=0)
        for pipe in (child.stdin, child.stdout):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            with suppress(OSError, AttributeError):
                fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_OCTETS)
        self._is_ready = False
        self._buffer.clear()
        return child

    def _bury(self) -> None:
        with self._lock:
            child, self._child = self._child, None
            self._is_ready = False
            ended = self._ended.is_set()
        if child is not None:
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                assert pipe is not None
                pipe.close()
        if ended:
            raise ReadingEnded

    def _write(self, octets: bytes) -> None:
        left = memoryview(octets)
        while left:
            descriptor = self._await(select.POLLOUT)
            try:
                left = left[os.write(descriptor, left) :]
            except BlockingIOError:
                continue
            except OSError:
                raise _Died from None

    def _answer(self) -> Answer:
        self._have(LENGTH_OCTETS)
        length = int.from_bytes(self._buffer[:LENGTH_OCTETS])
        if length > _MOST_ANSWER_OCTETS:
            raise _Died
        self._have(LENGTH_OCTETS + length)
        payload = bytes(memoryview(self._buffer)[LENGTH_OCTETS : LENGTH_OCTETS + length])
        del self._buffer[: LENGTH_OCTETS + length]
        try:
            return _READ.decode(payload)
        except msgspec.MsgspecError:
            raise _Died from None

    def _have(self, octets: int) -> None:
        while len(self._buffer) < octets:
            descriptor = self._await(select.POLLIN)
            try:
                piece = os.read(descriptor, _PIECE)
            except BlockingIOError:
                continue
            except OSError:
                raise _Died from None
            if not piece:
                raise _Died
            self._buffer += piece

    def _await(self, event: int) -> int:
        child = self._child
        if child is None:
            raise _Died
        pipe = child.stdin if event == select.POLLOUT else child.stdout
        assert pipe is not None
        descriptor = pipe.fileno()
        poll = select.poll()
        poll.register(descriptor, event)
        if not poll.poll((self._seconds if self._is_ready else START_SECONDS) * 1000):
            raise _Died
        return descriptor

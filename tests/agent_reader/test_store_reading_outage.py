"""No process can be started that reads: it is tried again, it is said, and what one died of is never read here."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from structlog.testing import CapturingLogger

from agent_reader.doctor.reading import look_at_reading
from agent_reader.errors import NoReadingProcess, ReadingEnded
from agent_reader.keep import Keep
from agent_reader.store.reader import (
    FIRST_PAUSE_SECONDS,
    LARGE_OCTETS,
    LONG_BACKLOG,
    LONGEST_PAUSE_SECONDS,
    MessageReader,
)
from agent_reader.store.reading_pool import ReadingPool
from agent_reader.store.reading_process import DIED, CannotRead, ReadingProcess
from agent_reader.store.reading_wire import AskedHeader
from agent_reader.sync.reading_notice import IN_READER, ReadingNotice
from shared.doctor.finding import Fault
from tests.agent_reader.mirrored import fetched, letter
from tests.agent_reader.on_loopback import await_true
from tests.fakes.mirror import FakeMirror

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_KILLER = "this one kills"
# What it does before it is ready, and the process as it is with a fault such as a library may have.
_MOODY = f"""
import os, pathlib, signal
folder = pathlib.Path(FOLDER)
fails = folder / "fails"
(folder / "tries").open("ab").write(b".")
left = len(fails.read_bytes())
if left or (folder / "never").exists():
    fails.write_bytes(b"." * (left - 1))
    os._exit(1)
from agent_reader.store import reading_child as child
read = child.read
def deadly(fetched, *rest):
    if {_KILLER.encode()!r} in fetched.octets:
        os.kill(os.getpid(), signal.SIGSEGV)
    return read(fetched, *rest)
child.read = deadly
child.main()
"""
_HEADER = AskedHeader(b"Subject: hello\r\n\r\n")


@dataclass
class Machine:
    """One where a process starts, or not: as many times as `fails` has octets, or while there is a file `never`.

    Each try leaves an octet in `tries`. A process dies of some messages.
    """

    folder: Path

    @property
    def command(self) -> Sequence[str]:
        return sys.executable, "-c", _MOODY.replace("FOLDER", repr(str(self.folder)))

    def starts(self, *, after: int = 0) -> None:
        (self.folder / "never").unlink(missing_ok=True)
        (self.folder / "fails").write_bytes(b"." * after)

    def starts_no_more(self) -> None:
        (self.folder / "never").touch()

    @property
    def tries(self) -> int:
        return len((self.folder / "tries").read_bytes())


@dataclass
class Reader:
    """A reader of one account on it, at a time of the test's own."""

    messages: MessageReader
    pool: ReadingPool
    now: float = 1_000.0

    def read(self, *texts: str) -> tuple[set[int], dict[int, str]]:
        """The UIDs that were read, and what prevented the others."""
        given = [fetched(uid, letter(text)) for uid, text in enumerate(texts, 1)]
        taken, aside = self.messages.readings_of(given, "F1", 1, lambda _: Keep.EVERYTHING)()
        return {uid for uid, *_ in taken}, {each.uid: each.cause for each in aside}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    (tmp_path / "tries").touch()
    made.starts()
    return made


@contextmanager
def reading(machine: Machine) -> Iterator[Reader]:
    pool = ReadingPool(1, machine.command, pauses=())
    reader = Reader(MessageReader(pool.share, monotonic=lambda: reader.now), pool)
    try:
        yield reader
    finally:
        reader.messages.end()


def test_a_start_that_fails_is_tried_again_at_once_and_some_times_only(machine: Machine) -> None:
    for fails, answered in ((2, True), (3, False)):
        machine.starts(after=fails)
        process = ReadingProcess(machine.command, pauses=(0.0, 0.0))
        if answered:
            assert 1 == len(process.read([_HEADER]))
        else:
            with pytest.raises(CannotRead):
                process.read([_HEADER])
        process.close()


def test_whoever_ends_it_does_not_wait_for_the_next_try(machine: Machine) -> None:
    machine.starts_no_more()
    pool = ReadingPool(1, machine.command, pauses=(86_400.0,))
    share = pool.share()
    future = share.read([_HEADER])
    await_true(lambda: machine.tries > 0)
    share.end()
    assert isinstance(future.exception(60), ReadingEnded)


def test_processes_come_back_by_themselves_and_are_asked_for_ever_more_rarely(machine: Machine) -> None:
    machine.starts_no_more()
    with reading(machine) as reader:
        # What comes in meanwhile is read here, and the account says so.
        assert reader.messages.await_backlog(LONG_BACKLOG) > 0
        pause = FIRST_PAUSE_SECONDS
        for _ in range(8):
            assert ({1, 2}, {}) == reader.read("one", "two")
            assert (True, False) == (reader.messages.is_in_place_of_processes, reader.messages.is_beside)
            tries = machine.tries
            reader.now += pause - 0.1
            assert 0 == reader.messages.await_backlog(LONG_BACKLOG)
            assert ({1}, {}) == reader.read("three")
            assert tries == machine.tries
            reader.now += 0.1
            assert reader.messages.await_backlog(LONG_BACKLOG) > 0
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        assert LONGEST_PAUSE_SECONDS == pause
        machine.starts()
        assert ({1}, {}) == reader.read("four")
        assert (False, True) == (reader.messages.is_in_place_of_processes, reader.messages.is_beside)
        assert 1 == len(reader.pool.pids())
        # And the next time the pause is short again.
        reader.messages.end()
        machine.starts_no_more()
        reader.messages.await_backlog(LONG_BACKLOG)
        assert ({1}, {}) == reader.read("five")
        assert (True, False) == (reader.messages.is_in_place_of_processes, reader.messages.is_beside)
        machine.starts()
        reader.now += FIRST_PAUSE_SECONDS
        assert reader.messages.await_backlog(LONG_BACKLOG) > 0
        assert ({1}, {}) == reader.read("six")
        assert (False, True) == (reader.messages.is_in_place_of_processes, reader.messages.is_beside)


def test_what_a_process_died_of_is_not_read_in_the_reader_where_no_other_starts(machine: Machine) -> None:
    with reading(machine) as reader:
        reader.messages.await_backlog(LONG_BACKLOG)
        assert ({1}, {}) == reader.read("one")
        machine.starts_no_more()
        with pytest.raises(NoReadingProcess):
            reader.read(_KILLER, "two")
        # Neither by and by, nor in a look at few messages, nor after the next try that fails.
        with pytest.raises(NoReadingProcess):
            reader.read(_KILLER)
        reader.messages.await_backlog(0)
        with pytest.raises(NoReadingProcess):
            reader.messages.await_backlog(1)
        reader.now += FIRST_PAUSE_SECONDS
        assert reader.messages.await_backlog(1) > 0
        with pytest.raises(NoReadingProcess):
            reader.read(_KILLER, "two")
        # It waits, and is not said to be read here.
        assert not reader.messages.is_in_place_of_processes
        machine.starts()
        reader.now += LONGEST_PAUSE_SECONDS
        assert reader.messages.await_backlog(1) > 0
        assert ({2}, {1: DIED}) == reader.read(_KILLER, "two")
        # Few messages are read here again.
        reader.messages.await_backlog(0)
        assert 0 == reader.messages.await_backlog(1)


def test_a_large_message_is_read_by_a_process_though_it_comes_alone_and_never_in_the_reader(machine: Machine) -> None:
    large = "x" * LARGE_OCTETS
    with reading(machine) as reader:
        assert 0 == reader.messages.await_backlog(1)
        assert ({1, 2}, {}) == reader.read("one", "x" * (LARGE_OCTETS - 10_000))
        assert 0 == machine.tries
        assert ({1, 2}, {}) == reader.read(large, "two")
        # It ends with what it was for, and new mail is read here as before.
        assert (1, [], False) == (machine.tries, reader.pool.pids(), reader.messages.is_beside)
        machine.starts_no_more()
        for _ in range(2):
            with pytest.raises(NoReadingProcess):
                reader.read(large)
            assert 2 == machine.tries
        assert ({1}, {}) == reader.read("three")
        machine.starts()
        reader.now += FIRST_PAUSE_SECONDS
        assert ({1}, {}) == reader.read(large)
        # A process of which it is the end is told from it, as in a backlog.
        assert ({2}, {1: DIED}) == reader.read(large + _KILLER, "two")


def test_it_is_said_once_in_the_log_and_in_the_status_and_so_is_its_end() -> None:
    mirror, log = FakeMirror(), CapturingLogger()
    notice = ReadingNotice(mirror, structlog.wrap_logger(log, processors=[_as_keywords]))
    for is_so in (False, True, True, False, False, True):
        mirror.is_without_processes = is_so
        notice.look()
    assert ["reading:in_reader", "reading:in_reader_ended", "reading:in_reader"] == [
        call.kwargs["event"] for call in log.calls
    ]
    assert ([IN_READER] * 2, [IN_READER]) == (mirror.failures, mirror.overs)


def test_the_doctor_tries_one(machine: Machine) -> None:
    assert () == look_at_reading().findings
    (found,) = look_at_reading(("/nonexistent",), pauses=()).findings
    assert Fault.READING_PROCESS is found.fault
    failing = "from agent_reader.store import reading_child as child\nchild.read = None\nchild.main()\n"
    (found,) = look_at_reading((sys.executable, "-c", failing)).findings
    assert (Fault.READING_PROCESS, True) == (found.fault, "TypeError" in found.what)


def _as_keywords(_logger: Any, _name: str, event: Any) -> Any:
    return event

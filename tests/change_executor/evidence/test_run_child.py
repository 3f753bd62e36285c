"""Whatever the child says or does, the parent has a reading in bounded time, and believes nothing of it unchecked."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any, cast

import pytest

from change_executor.evidence.reading import READING_VERSION, Readable, Reading
from change_executor.evidence.run_child import CHILD, MAX_ANSWER_OCTETS, Cancelled, _exchange, read_in_child
from shared.bare_process import bare_process

HONEST: dict[str, Any] = {"reading_version": READING_VERSION, "readable": "readable", "subject": "an order"}


def _child(code: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-c", "import sys, os, time, json\nsys.stdin.buffer.read()\n" + code)


def _read(code: str, *, seconds: float = 20.0) -> Reading:
    return read_in_child(b"x" * 300_000, cut=False, names=[], command=_child(code), seconds=seconds)


def test_where_memory_runs_out_the_kernel_takes_the_child_and_not_the_executor() -> None:
    with bare_process(CHILD) as child:
        deadline, score = time.monotonic() + 60, Path(f"/proc/{child.pid}/oom_score_adj")
        while score.read_text().strip() != "1000":
            assert time.monotonic() < deadline
            select.select([], [], [], 0.02)
        child.kill()


def test_an_honest_answer_is_taken() -> None:
    assert _read(f"print({json.dumps(json.dumps(HONEST))})").subject == "an order"


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("print('not json')", "no reading"),
        ("", "no reading"),
        ("sys.exit(3)", "status 3"),
        ("os.kill(os.getpid(), 11)", "status -11"),
        ("os.close(1); time.sleep(100)", "no reading"),
        (f"while True: sys.stdout.write('x' * {MAX_ANSWER_OCTETS})", "too much"),
        ("time.sleep(100)", "too long"),
        ("print('[' * 100000)", "no reading"),
        ('print(\'{"readable": "readable", "readable": "readable"}\')', "no reading"),
        ('print(\'{"readable": "readable", "subject": "\\\\ud800"}\')', "no reading"),
        ('print(\'{"readable": "readable", "approve": true}\')', "no reading"),
        ('print(json.dumps({"readable": "readable", "subject": "x" * 1001}))', "no reading"),
        ('print(json.dumps({"readable": "readable", "attachments_left_out": 2 ** 60}))', "no reading"),
        ('print(json.dumps({"readable": "readable", "subject": "\\u202egnp.exe"}))', "not clean"),
        ('print(json.dumps({"readable": "readable", "warnings": [{"code": "a", "detail": "\\x1b[2J"}]}))', "not clean"),
        ('print(json.dumps({"readable": "readable", "reading_version": "0"}))', "not clean"),
    ],
)
def test_anything_else_means_that_the_message_cannot_be_shown(code: str, cause: str) -> None:
    # Only what says nothing and does not end either is waited for to the end.
    reading = _read(code, seconds=1.0 if cause == "too long" else 20.0)
    assert reading.readable is Readable.CANNOT_BE_SHOWN
    assert cause in reading.cause


def test_what_the_child_forked_dies_with_it(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    code = (
        "pid = os.fork()\n"
        f"if pid == 0:\n    open({str(told)!r}, 'w').write(str(os.getpid())); time.sleep(100)\n"
        f"while not os.path.exists({str(told)!r}) or not open({str(told)!r}).read(): pass\n"
        f"print({json.dumps(json.dumps(HONEST))}, flush=True)\n"
    )
    assert _read(code).subject == "an order"
    assert _has_ended(int(told.read_text()))


def _has_ended(pid: int) -> bool:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], 20)[0])
    finally:
        os.close(handle)


def test_a_child_that_reads_nothing_is_no_reason_to_hang() -> None:
    command = (sys.executable, "-I", "-c", f"print({json.dumps(json.dumps(HONEST))})")
    assert read_in_child(b"x" * 1_000_000, cut=False, names=[], command=command).subject == "an order"


def test_the_child_gets_no_environment_and_no_descriptor(tmp_path: Path) -> None:
    held = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(held, True)
    os.environ["MAILWARRANT_TEST_SECRET"] = "secret"
    try:
        code = (
            "said = {'fds': sorted(int(fd) for fd in os.listdir('/proc/self/fd')), 'env': sorted(os.environ)}\n"
            "print(json.dumps({'readable': 'readable', 'subject': json.dumps(said)}))"
        )
        said = json.loads(_read(code).subject)
    finally:
        del os.environ["MAILWARRANT_TEST_SECRET"]
        os.close(held)
    # The fourth is the listing's own.
    assert [0, 1, 2, 3] == said["fds"]
    assert "MAILWARRANT_TEST_SECRET" not in said["env"]


def test_an_executor_that_ends_does_not_wait_for_the_child() -> None:
    asked = iter([False, False, True])
    with pytest.raises(Cancelled):
        read_in_child(b"", cut=False, names=[], command=_child("time.sleep(100)"), cancelled=lambda: next(asked, True))


def test_no_child_is_left_behind() -> None:
    # Other tests of this process may have some.
    before = _children()
    _read("time.sleep(100)", seconds=0.2)
    assert _children() <= before


def _children() -> set[str]:
    """The pids of this process's children, of those too that ended and were not waited for."""
    return {pid for each in Path("/proc/self/task").glob("*/children") for pid in each.read_text().split()}


class _SlowToClose:
    """The child's standard input, whose closing takes until the child has answered and ended."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        assert child.stdin is not None
        self._pipe, self._pid = child.stdin, child.pid

    def fileno(self) -> int:
        return self._pipe.fileno()

    def close(self) -> None:
        self._pipe.close()
        os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)


def test_an_answer_that_comes_between_the_look_at_the_pipe_and_the_look_at_the_process_is_read() -> None:
    command = _child("print('the answer')")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        answer = _exchange(child.pid, cast("IO[bytes]", _SlowToClose(child)), child.stdout, b"x", lambda: None)
    assert b"the answer\n" == answer

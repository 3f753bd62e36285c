"""Lives that are processes: the kernel kills the first one at a chosen moment, and the next takes up what it left.

Nothing of a process that gets SIGKILL runs any more: no handler, no rollback, no goodbye to the mail server.
"""

from __future__ import annotations

import os
import signal
import traceback
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.change_executor.breaking.points import Points
    from tests.change_executor.breaking.rig import Rig


def in_processes(rig: Rig, due: int, act: Callable[[], object]) -> tuple[list[str], bool]:
    """Let `act` go on in one process after the other until it is through; the first gets SIGKILL at its moment `due`.

    Returns the moments that the first one passed, and whether it was killed.
    """
    passed, status = _life(rig, due, act)
    if not os.WIFSIGNALED(status):
        assert 0 == os.waitstatus_to_exitcode(status), "\n".join(passed)
        return passed, False
    assert signal.SIGKILL == os.WTERMSIG(status)
    # What the clock of the dead one said is not known; its command, if it sent one, has run by then.
    rig.clock.advance(hours=1)
    said, status = _life(rig, -1, act)
    assert 0 == os.waitstatus_to_exitcode(status), "\n".join(said)
    rig.clock.advance(hours=1)
    return passed, True


def _life(rig: Rig, due: int, act: Callable[[], object]) -> tuple[list[str], int]:
    # No connection to the database may pass from one process into another (https://sqlite.org/howtocorrupt.html §2.6).
    rig.journal.close()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _live(rig, due, act, writing)
    os.close(writing)
    with os.fdopen(reading) as said:
        lines = said.read().splitlines()
    return lines, os.waitpid(pid, 0)[1]


def _live(rig: Rig, due: int, act: Callable[[], object], tell: int) -> NoReturn:
    def moment(_points: Points, position: int, name: str) -> None:
        os.write(tell, f"{name}\n".encode())
        if position == due:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        rig.restart()
        rig.points.arm(moment)
        act()
        rig.journal.close()
        os._exit(0)
    except BaseException:  # noqa: BLE001 - nothing of the parent may run on in its child
        os.write(tell, traceback.format_exc().encode())
        os._exit(1)

"""Killed before and after every commit and every command: each life after it ends with one move, of that message."""

from __future__ import annotations

import re
import resource
from typing import TYPE_CHECKING

import pytest

from change_executor.journal.open import journal_path
from tests.change_executor.breaking.conftest import LONG, without_move
from tests.change_executor.breaking.points import Act, Points, at_position, die
from tests.change_executor.breaking.rig import MailServer, Rig
from tests.change_executor.breaking.street import Street
from tests.servers.dovecot import Dovecot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Every moment on Dovecot; on the others, in the ordinary form, every so many.
STRIDE = 1 if LONG else 6


@pytest.fixture
def any_rig(any_server: MailServer, tmp_path: Path) -> Iterator[Rig]:
    opened = Rig(any_server, tmp_path, **without_move(any_server))
    yield opened
    opened.close()


@pytest.fixture
def any_street(any_server: MailServer) -> Iterator[Street]:
    opened = Street(any_server)
    yield opened
    opened.close()


def run(rig: Rig, street: Street, position: int, act: Act) -> tuple[list[str], list[str]]:
    """A move in which something breaks at this moment, and its undo in which it breaks at the same one."""
    trial = street.deliver(rig)
    rig.points.arm(at_position(position, act))
    moved = rig.carry(trial.octets, "processed")
    of_move = list(rig.points.passed)
    assert "applied" == moved.state.value, (position, of_move, moved)
    street.check(trial, "Processed")
    rig.points.arm(at_position(position, act))
    undone = rig.take_back(moved.id)
    of_undo = list(rig.points.passed)
    rig.points.disarm()
    rig.heal()
    assert "undone" == undone.state.value, (position, of_undo, undone)
    street.check(trial, "Incoming")
    street.clear(trial)
    return of_move, of_undo


def whole_run(rig: Rig, street: Street) -> list[str]:
    """Nothing breaks: the moments of the longer of both."""
    of_move, of_undo = run(rig, street, -1, die)
    for passed in (of_move, of_undo):
        assert 1 == passed.count("sent UID MOVE") + passed.count("sent UID EXPUNGE")
        assert passed.count("before a commit") == passed.count("committed") >= 3
    return max(of_move, of_undo, key=len)


def test_g6_killed_at_any_moment_of_a_move_and_of_its_undo(any_rig: Rig, any_street: Street) -> None:
    stride = 1 if isinstance(any_rig.server, Dovecot) else STRIDE
    for position in range(0, len(whole_run(any_rig, any_street)), stride):
        run(any_rig, any_street, position, die)


def test_g6_the_connection_breaks_at_any_command_of_a_move_and_of_its_undo(any_rig: Rig, any_street: Street) -> None:
    passed = whole_run(any_rig, any_street)
    positions = [position for position, name in enumerate(passed) if name.startswith("sent ")]
    for position in positions[:: 2 if isinstance(any_rig.server, Dovecot) and not LONG else STRIDE]:
        run(any_rig, any_street, position, Points.break_off)


def test_g7_the_disk_is_full_at_any_commit_and_nothing_is_done_unrecorded(rig: Rig, street: Street) -> None:
    """The kernel refuses to let the journal's log grow, as a full disk does, from before the commit on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    log = journal_path(rig.settings.journal.url)
    log = log.with_name(log.name + "-wal")
    refused: list[int] = []

    def fill(_points: Points) -> None:
        refused.append(log.stat().st_size)
        resource.setrlimit(resource.RLIMIT_FSIZE, (refused[-1], hard))

    rig.heal = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    passed = whole_run(rig, street)
    positions = [position for position, name in enumerate(passed) if name == "before a commit"]
    for position in positions:
        run(rig, street, position, fill)
    assert len(refused) >= len(positions)


# Written here anew: what the guard permits is not asked.
COMMAND = re.compile(rb"^\S+ ((?:UID )?[A-Z]+)", re.IGNORECASE)
SAID = {
    "CAPABILITY",
    "LOGIN",
    "AUTHENTICATE",
    "SELECT",
    "EXAMINE",
    "STATUS",
    "LIST",
    "MYRIGHTS",
    "UID FETCH",
    "UID SEARCH",
}
BY_MOVE, BY_COPY = {"UID MOVE"}, {"UID COPY", "UID STORE", "UID EXPUNGE"}


def test_g3_the_servers_own_log_holds_the_verbs_of_the_table_and_no_other(any_rig: Rig, any_street: Street) -> None:
    """Over all that this module did to the server before, too."""
    whole_run(any_rig, any_street)
    commands = any_rig.server.commands("executor")
    said = {verb[1].decode().upper() for line in commands if (verb := COMMAND.match(line))}
    moving = BY_COPY if without_move(any_rig.server) else BY_MOVE
    assert moving <= said
    assert said <= SAID | moving

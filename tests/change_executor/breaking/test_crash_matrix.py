"""Killed before and after every commit and every command: each life after it ends with one move, of that message."""

from __future__ import annotations

import random
import re
import resource
from typing import TYPE_CHECKING

import pytest

from change_executor.journal.file import journal_path
from tests.change_executor.breaking.conftest import LONG, SERVERS, without_move
from tests.change_executor.breaking.killed import in_processes
from tests.change_executor.breaking.points import Act, Points, at_position, die
from tests.change_executor.breaking.rig import MailServer, Rig
from tests.change_executor.breaking.street import Street, Trial
from tests.servers.dovecot import Dovecot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from change_executor.journal.journal import Proposal

# In the ordinary form not every moment is tried, and others each time; a process costs more than a life within one.
STRIDE = 1 if LONG else 6
ON_DOVECOT = {"in this process": 1 if LONG else 2, "by the kernel": 1 if LONG else 12}
ON_OTHERS = {"in this process": 1 if LONG else 12, "by the kernel": 1 if LONG else 24}
NEVER = -1


def positions(rig: Rig, way: str, passed: list[str]) -> range:
    stride = (ON_DOVECOT if isinstance(rig.server, Dovecot) else ON_OTHERS)[way]
    return range(random.SystemRandom().randrange(stride), len(passed), stride)


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
    moved = finished_by_a_person(rig, street, trial, moved)
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


def finished_by_a_person(rig: Rig, street: Street, trial: Trial, moved: Proposal) -> Proposal:
    """What may be the twin's copy, as nobody noted one: a person takes the source away."""
    if moved.waiting_code != "settle":
        return moved
    rig.points.disarm()
    assert [("Incoming", trial.uid), "Processed"] == [
        place if place[0] == "Incoming" else place[0] for place in sorted(street.places(trial))
    ]
    street.take_away("Incoming", trial.uid)
    rig.work()
    return rig.proposal(moved.id)


def whole_run(rig: Rig, street: Street) -> list[str]:
    """Nothing breaks: the moments of the longer of both."""
    of_move, of_undo = run(rig, street, -1, die)
    for passed in (of_move, of_undo):
        assert 1 == passed.count("sent UID MOVE") + passed.count("sent UID EXPUNGE")
        assert passed.count("before a commit") == passed.count("committed") >= 3
    return max(of_move, of_undo, key=len)


def test_g6_killed_at_any_moment_of_a_move_and_of_its_undo(any_rig: Rig, any_street: Street) -> None:
    for position in positions(any_rig, "in this process", whole_run(any_rig, any_street)):
        run(any_rig, any_street, position, die)


def killed(rig: Rig, street: Street, position: int) -> tuple[bool, list[str]]:
    """A move in a process that is killed at this moment, and its undo in another that is; and what passed in both."""
    trial = street.deliver(rig)
    of_move, move_was_killed = in_processes(rig, position, lambda: rig.carry(trial.octets, "processed"))
    proposal_id = rig.known(trial.octets)
    assert proposal_id is not None
    moved = finished_by_a_person(rig, street, trial, rig.proposal(proposal_id))
    assert "applied" == moved.state.value, (position, of_move, moved)
    street.check(trial, "Processed")
    of_undo, undo_was_killed = in_processes(rig, position, lambda: rig.take_back(proposal_id))
    assert "undone" == rig.proposal(proposal_id).state.value, (position, of_undo, rig.proposal(proposal_id))
    street.check(trial, "Incoming")
    street.clear(trial)
    return move_was_killed or undo_was_killed, max(of_move, of_undo, key=len)


def test_g6_the_process_gets_sigkill_before_and_after_commits_and_exchanges_of_a_move_and_of_its_undo(
    any_rig: Rig, any_street: Street
) -> None:
    _, names = killed(any_rig, any_street, NEVER)
    assert {"before a commit", "committed", "before UID FETCH", "sent UID FETCH"} <= set(names)
    for position in positions(any_rig, "by the kernel", names):
        was_killed, _ = killed(any_rig, any_street, position)
        assert was_killed, (position, names)


def test_g6_the_connection_breaks_at_any_command_of_a_move_and_of_its_undo(any_rig: Rig, any_street: Street) -> None:
    passed = whole_run(any_rig, any_street)
    positions = [position for position, name in enumerate(passed) if name.startswith("sent ")]
    for position in positions[:: 2 if isinstance(any_rig.server, Dovecot) and not LONG else STRIDE]:
        run(any_rig, any_street, position, Points.break_off)


@pytest.mark.parametrize("any_server", list(SERVERS) if LONG else ["dovecot"], indirect=True)
def test_g7_the_disk_is_full_at_any_commit_and_nothing_is_done_unrecorded(any_rig: Rig, any_street: Street) -> None:
    """The kernel refuses to let the journal's log grow, as a full disk does, from before the commit on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    log = journal_path(any_rig.settings.journal.url)
    log = log.with_name(log.name + "-wal")
    refused: list[int] = []

    def fill(_points: Points) -> None:
        refused.append(log.stat().st_size)
        resource.setrlimit(resource.RLIMIT_FSIZE, (refused[-1], hard))

    any_rig.heal = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    passed = whole_run(any_rig, any_street)
    positions = [position for position, name in enumerate(passed) if name == "before a commit"]
    for position in positions:
        run(any_rig, any_street, position, fill)
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

"""What `doctor` finds on the machine: each of many planted mistakes, and nothing on a right installation."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from shared.doctor.finding import WHY, Fault, Finding, Report
from shared.doctor.separation import too_wide
from shared.doctor.users import NoAnswer, tried_as
from shared.landlock import landlock_version
from tests.deploy.doctor_plants import PLANTS
from tests.deploy.doctor_world import AGENT, World, user

if TYPE_CHECKING:
    from tests.deploy.planting import Plant


@pytest.mark.parametrize("house", ["reader", "executor"])
def test_nothing_is_found_on_a_right_installation(world: World, house: str) -> None:
    report = world.look(house)
    assert ((), ()) == (report.findings, report.unseen)
    assert 0 == report.status


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.words.replace(" ", "_"))
def test_a_planted_mistake_is_found(world: World, plant: Plant) -> None:
    with plant.do(world):
        report = world.look(plant.house)
    found = [each for each in report.findings if each.fault is plant.fault]
    assert found, [str(each.fault) for each in report.findings]
    assert all(each.what and each.fix and each.why for each in report.findings)
    assert 1 == report.status


def test_at_least_forty_mistakes_are_planted_and_each_was_taken_back(world: World) -> None:
    assert len(PLANTS) >= 40
    for house in ("reader", "executor"):
        assert () == world.look(house).findings


def test_every_fault_says_why_it_matters_and_a_report_says_it_all() -> None:
    assert set(Fault) == WHY.keys()
    report = Report((Finding(Fault.DISK, "full", "df"),) * 9, ("a place",), ("a note",))
    text = "\n".join(report.lines("x"))
    assert "... and 4 more" in text
    assert "not looked at: a place" in text
    read = json.loads(report.json("x"))
    assert {"code": "disk", "what": "full", "why": WHY[Fault.DISK], "fix": "df"} == read["findings"][8]
    assert (1, 2, 0) == (report.status, Report(unseen=("a",)).status, Report(notes=("a",)).status)


def test_an_attempt_is_made_as_the_user_and_a_broken_one_is_an_error(world: World) -> None:
    agent = user(AGENT)
    assert [agent.uid] * 2 == tried_as(agent, lambda: [os.getuid(), os.geteuid()])
    assert os.geteuid() == tried_as(user("root"), os.geteuid)
    with pytest.raises(OSError, match="gave no answer"):
        tried_as(agent, Path("/etc/shadow").read_text)
    # An agent can stop and end whatever runs as itself; it is not waited for, and the other looks are made.
    with pytest.raises(NoAnswer):
        tried_as(agent, lambda: os.kill(os.getpid(), signal.SIGSTOP), seconds=0.3)
    with pytest.raises(NoAnswer):
        tried_as(agent, lambda: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(NoAnswer):
        tried_as(agent, lambda: "x" * 5_000_000)
    # As the agent nobody else can be tried, and nothing is pretended.
    assert "PermissionError" == tried_as(agent, _tried_as_root)


def _tried_as_root() -> str:
    try:
        tried_as(user("root"), os.geteuid)
    except PermissionError as error:
        return type(error).__name__
    return ""


LISTING = """Matching Defaults entries for agent on host:
    env_reset

User agent may run the following commands on host:
"""


def test_sudo_may_give_what_our_file_gives_and_nothing_else() -> None:
    ours = (
        "    (mailwarrant-agent) NOPASSWD: /usr/local/bin/mailwarrant-agent mcp, "
        "/usr/local/bin/mailwarrant-agent digest --peek\n"
        '    (root) NOPASSWD: /usr/local/bin/mailwarrant-doctor ""\n'
    )
    assert [] == too_wide(LISTING + ours)
    # Wrapped, as sudo does where it takes the terminal to be narrow.
    assert [] == too_wide(LISTING + ours.replace("mcp, ", "mcp,\n        "))
    for wide in (
        "(ALL : ALL) ALL",
        "(mailwarrant-agent) NOPASSWD: /usr/local/bin/mailwarrant-agent mcp, /bin/sh",
        "(root) NOPASSWD: /usr/local/bin/mailwarrant-doctor",
        "(root) NOPASSWD: /usr/local/bin/mailwarrant-agent mcp",
    ):
        assert [wide] == too_wide(f"{LISTING}{ours}    {wide}\n")
    assert [] == too_wide("User agent is not allowed to run sudo on host.\n")


def test_a_kernel_without_landlock_is_told_and_is_nobodys_mistake(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> list[str]:
        report = world.look("reader")
        assert () == report.findings
        return [note for note in report.notes if "Landlock" in note]

    assert (landlock_version() == 0) is bool(told())
    monkeypatch.setattr("shared.doctor.machine.landlock_version", lambda: 0)
    assert 1 == len(told())


def test_what_a_user_who_is_not_root_cannot_try_is_said(world: World) -> None:
    code = (
        "import json,os,sys\n"
        "from tests.deploy.doctor_world import World, user\n"
        "from pathlib import Path\n"
        "world = World(Path(sys.argv[1]), 'x')\n"
        "installation = world.installation('executor')\n"
        "from shared.doctor.machine import look_at_machine\n"
        "look_at_machine(installation)\n"
        "os.setgroups([]); os.setgid(user(sys.argv[2]).gid); os.setuid(user(sys.argv[2]).uid)\n"
        "report = look_at_machine(installation)\n"
        "print(json.dumps([report.notes, [each.fault for each in report.findings]]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(world.ground), AGENT], capture_output=True, text=True, check=False, timeout=60
    )
    assert 0 == done.returncode, done.stderr
    notes, faults = json.loads(done.stdout)
    assert any("root tries as every user" in note for note in notes)
    assert [] == faults

"""The unit files: systemd takes them, they confine what they start, and they agree with the programs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from agent_reader.app import JMAP_SOCKET, LINK_SOCKET

DEPLOY: Final = Path(__file__).parents[2] / "deploy"
UNITS: Final = sorted((DEPLOY / "systemd").iterdir())
SERVICES: Final = [unit for unit in UNITS if unit.suffix == ".service"]

# systemd's own scale: 10 is unconfined, a usual daemon has 9.2.
MOST_EXPOSURE: Final = 1.6


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", "--no-pager", *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def test_systemd_finds_nothing_wrong_but_that_nothing_is_installed_here() -> None:
    done = analyze("verify", *map(str, UNITS))
    said = [
        line for line in f"{done.stdout}{done.stderr}".splitlines() if "mailwarrant" in line.lower() or ".s" in line
    ]
    assert [] == [line for line in said if not re.search(r"Command /opt/mailwarrant/\S+ is not executable", line)]


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.name)
def test_a_service_is_confined(unit: Path, tmp_path: Path) -> None:
    assert exposure(unit) <= MOST_EXPOSURE
    # The measure measures: without its confinement the same unit is as open as any.
    loose = tmp_path / unit.name
    loose.write_text(
        re.sub(r"^(Protect|Private|Restrict|SystemCall|Capab)\w+=.*\n", "", unit.read_text(), flags=re.MULTILINE)
    )
    assert exposure(loose) > MOST_EXPOSURE


def exposure(unit: Path) -> float:
    done = analyze("security", "--offline=yes", str(unit))
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert found, done.stderr
    return float(found[1])


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.name)
def test_no_service_hides_who_its_peers_are_or_shows_a_secret(unit: Path) -> None:
    text = unit.read_text()
    # SO_PEERCRED says 65534 for everybody otherwise.
    assert "\nPrivateUsers=" not in text
    assert "\nEnvironment" not in text
    # A copy of what lies on the disk needs no password, and no network.
    assert ("LoadCredential=" in text) is ("backup" not in unit.name)
    assert ("PrivateNetwork=yes" in text) is ("backup" in unit.name)


def test_every_socket_has_the_name_and_the_address_that_its_program_expects() -> None:
    given = {
        re.findall(r"^FileDescriptorName=(.*)$", unit.read_text(), re.MULTILINE)[0]: re.findall(
            r"^ListenStream=(.*)$", unit.read_text(), re.MULTILINE
        )
        for unit in UNITS
        if unit.suffix == ".socket"
    }
    assert {
        JMAP_SOCKET: ["127.0.0.1:8620"],
        LINK_SOCKET: ["/run/mailwarrant/reader.sock"],
        "intake": ["127.0.0.1:8621"],
        "review": ["127.0.0.1:8622", "[::1]:8622"],
        "gate": ["127.0.0.1:8623"],
    } == given


def test_the_users_and_folders_are_what_systemd_makes(tmp_path: Path) -> None:
    for kind in ("sysusers.d", "tmpfiles.d"):
        (tmp_path / "usr/lib" / kind).mkdir(parents=True)
        shutil.copy(DEPLOY / kind / "mailwarrant.conf", tmp_path / "usr/lib" / kind)
    (tmp_path / "etc").mkdir()
    in_tree = (f"--root={tmp_path}", "mailwarrant.conf")
    subprocess.run(["systemd-sysusers", *in_tree], check=True, capture_output=True)
    groups = {line.split(":")[0]: line.split(":")[3] for line in (tmp_path / "etc/group").read_text().splitlines()}
    assert {"agent-reader": "", "change-executor": "", "mailwarrant-agents": ""}.items() <= groups.items()
    assert "change-executor" == groups["mailwarrant-link"]
    subprocess.run(["systemd-tmpfiles", "--create", *in_tree], check=True, capture_output=True)
    uids = {line.split(":")[0]: int(line.split(":")[2]) for line in (tmp_path / "etc/passwd").read_text().splitlines()}
    for path, mode, owner in (
        ("run/mailwarrant", 0o2750, "agent-reader"),
        ("var/lib/agent-reader", 0o700, "agent-reader"),
        ("var/lib/change-executor", 0o700, "change-executor"),
    ):
        found = (tmp_path / path).stat()
        assert (mode, uids[owner]) == (found.st_mode & 0o7777, found.st_uid), path
    assert 0o700 == (tmp_path / "etc/mailwarrant/secrets").stat().st_mode & 0o7777

"""Whoever has the agent's account and a shell is in the way as far as that goes: it goes on, and nothing opens."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest

from tests.system import installation as installed
from tests.system.machine import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.system.machine import Machine

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture
def machine(besieged: Machine) -> Iterator[Machine]:
    """Whatever the agent still runs is ended after each."""
    yield besieged
    besieged.run("bash", "-c", "kill -KILL -1", user="agent")


def page(machine: Machine) -> str:
    return machine.shell("curl -s -m 30 -o /dev/null -w '%{http_code}' http://localhost:8622/sign-in", user="ada")


def still_the_same(machine: Machine) -> None:
    for service in installed.SERVICES:
        assert "active" == machine.said("systemctl", "is-active", service).strip()
        assert "0" == machine.said("systemctl", "show", "--property=NRestarts", "--value", service).strip()


def approved(machine: Machine, subject: str) -> None:
    installed.deliver(machine, subject)
    proposal = installed.propose(machine, subject)
    installed.as_person(machine, "decide", proposal, "approve")
    installed.await_state(machine, proposal, "applied")


# As many as its user may have: of a machine's that is a third (user-.slice, TasksMax), and here prlimit says it.
BOMB: Final = """
import os, time
until = time.time() + 12
while time.time() < until:
    try:
        if os.fork() == 0:
            while time.time() < until:
                time.sleep(0.2)
            os._exit(0)
    except OSError:
        print('full', flush=True)
        time.sleep(0.05)
"""


def test_a_bomb_of_processes_leaves_the_page_to_the_person(machine: Machine) -> None:
    enter = ["nsenter", f"--target={machine.leader}", *("-m", "-u", "-i", "-n", "-p", "-C"), "runuser", "-u", "agent"]
    with subprocess.Popen(
        [*enter, "--", "prlimit", "--nproc=1500", "python3", "-c", BOMB], stdout=subprocess.PIPE, text=True
    ) as bomb:
        assert bomb.stdout is not None
        assert "full" == bomb.stdout.readline().strip()
        assert int(machine.shell("pgrep -c -u agent")) > 1000
        for _ in range(3):
            assert "200" == page(machine)
        machine.run("bash", "-c", "kill -KILL -1", user="agent")
    still_the_same(machine)


FILL: Final = """
import itertools, os, sys
for folder in sys.argv[1:]:
    with open(folder + '/octets', 'wb') as file:
        try:
            while True: file.write(b'0' * 65536); file.flush()
        except OSError: pass
    try:
        for number in itertools.count(): os.close(os.open(f'{folder}/{number}', os.O_CREAT))
    except OSError: pass
    print(sum(1 for _ in os.scandir(folder)))
"""
SHARED: Final = ("/tmp", "/dev/shm", "/dev/mqueue")


@contextmanager
def small(machine: Machine, *folders: str) -> Iterator[None]:
    """So small that it is filled soon; emptied and as large as before afterwards."""
    for folder in folders:
        machine.said("mount", "-o", "remount,size=8M,nr_inodes=2000", folder)
    try:
        yield
    finally:
        for folder in folders:
            machine.run("find", folder, "-xdev", "-mindepth", "1", "-user", "agent", "-delete")
            machine.said("mount", "-o", "remount,size=1G,nr_inodes=100000", folder)


def test_with_every_shared_folder_full_what_a_person_signs_is_done(machine: Machine) -> None:
    with small(machine, "/tmp", "/dev/shm"):
        made = machine.said("python3", "-c", FILL, *SHARED, user="agent").split()
        assert all(int(each) > 1 for each in made)
        assert machine.run("touch", "/tmp/one-more").returncode != 0
        approved(machine, "full-folders")
        machine.said("sudo", "-u", "change-executor", "change-executor", "audit", "verify")
        assert "temporary_full" in installed.doctor_of_machine(machine)
        # What ends meanwhile comes back, and so does what is started now and then.
        for service in installed.SERVICES:
            machine.said("systemctl", "restart", service)
            machine.said("systemctl", "start", f"{service}-backup")
        approved(machine, "started-in-full-folders")
        assert {"temporary_full"} == installed.doctor(machine)[1]
    machine.run("find", "/dev/mqueue", "-mindepth", "1", "-user", "agent", "-delete")
    still_the_same(machine)


# As the agent each fails; as root each works, so there is something to be kept from.
LINKS: Final = (
    "ln /etc/mailwarrant/executor.toml /var/tmp/l && rm /var/tmp/l",
    "ln /var/lib/change-executor/journal.db /var/tmp/l && rm /var/tmp/l",
    "ln /etc/sudoers.d/mailwarrant /var/tmp/l && rm /var/tmp/l",
    "ln -sfn /etc/shadow /opt/mailwarrant/l && rm /opt/mailwarrant/l",
    "mv /run/mailwarrant /run/l && mv /run/l /run/mailwarrant",
    "mv /run/mailwarrant-doctor /run/l && mv /run/l /run/mailwarrant-doctor",
    "ls /proc/$(systemctl show --property=MainPID --value change-executor)/root/tmp/",
    "mount --bind /tmp /var/lib/change-executor && umount /var/lib/change-executor",
)


def test_no_link_and_no_folder_of_the_agents_takes_the_place_of_ours(machine: Machine) -> None:
    for attempt in LINKS:
        assert machine.run("bash", "-c", attempt, user="agent").returncode != 0, attempt
        assert machine.run("bash", "-c", attempt).returncode == 0, attempt
    # What root's own commands put into a shared folder cannot be known before, and is not followed.
    machine.shell("cd /tmp; for n in $(seq 300); do ln -sf /etc/passwd mw-$n; done", user="agent")
    before = machine.said("md5sum", "/etc/passwd", "/etc/shadow")
    machine.said("/root/mailwarrant/deploy/install", "--answers", "/root/answers")
    assert (0, set()) == installed.doctor(machine)[:2]
    assert before == machine.said("md5sum", "/etc/passwd", "/etc/shadow")


# Each as a unit of the agent's own service manager, which is the agent, whatever the unit says; and of root's, where
# each works (and says nothing: it would stand in the journal). The page opens to its people alone, so there it is one
# of theirs.
UNITS: Final = (
    ("User=root", "", "true"),
    ("User=change-executor", "", "true"),
    ("LoadCredential=move:/etc/mailwarrant/secrets/move", "", "cat %d/move >/dev/null"),
    ("", "", "cat /etc/mailwarrant/secrets/move >/dev/null"),
    ("", "", "ls /var/lib/change-executor"),
    ("", "User=ada", "test $(curl -s -o /dev/null -w %%{http_code} http://localhost:8622/sign-in) = 200"),
    ("AmbientCapabilities=CAP_DAC_OVERRIDE", "", "cat /etc/mailwarrant/secrets/move >/dev/null"),
    ("", "", "systemctl restart agent-reader"),
)


def started(machine: Machine, folder: str, control: str, user: str, more: str, attempt: str) -> bool:
    """Whether a service manager starts a unit of this text."""
    # Without the last line the sixth within ten seconds is refused for having come too quickly, and nothing is tried.
    unit = f"[Service]\nType=oneshot\n{more}\nExecStart=/bin/bash -c '{attempt}'\n[Unit]\nStartLimitIntervalSec=0\n"
    machine.said("bash", "-c", f"mkdir -p {folder}; cat > {folder}/attempt.service", user=user, stdin=unit)
    return machine.run("bash", "-c", f"{control} daemon-reload && {control} start attempt", user=user).returncode == 0


def test_a_service_manager_of_the_agents_own_is_the_agent_and_no_more(machine: Machine) -> None:
    machine.shell(
        # Debian starts it through PAM for whoever signs in, or lingers; the tree has no pam_systemd.
        "mkdir -p /run/systemd/system/user@.service.d\n"
        "printf '[Service]\\nPAMName=\\nEnvironment=XDG_RUNTIME_DIR=/run/user/%%i\\n'"
        " > /run/systemd/system/user@.service.d/without-pam.conf\n"
        f"systemctl daemon-reload; systemctl start user-runtime-dir@{installed.AGENT} user@{installed.AGENT}"
    )
    agents = ("~/.config/systemd/user", f"env XDG_RUNTIME_DIR=/run/user/{installed.AGENT} systemctl --user", "agent")
    try:
        for more, as_whom, attempt in UNITS:
            assert not started(machine, *agents, more, attempt), (more, attempt)
            assert started(machine, *agents, "", "true"), f"nothing starts any more after: {more} {attempt}"
            assert started(machine, "/run/systemd/system", "systemctl", "root", more or as_whom, attempt), attempt
    finally:
        machine.said("systemctl", "stop", f"user@{installed.AGENT}", f"user-runtime-dir@{installed.AGENT}")
        machine.said("rm", "-r", "/run/systemd/system/user@.service.d", "/home/agent/.config/systemd")
        machine.said("rm", "-f", "/run/systemd/system/attempt.service")
        machine.said("systemctl", "daemon-reload")
    eventually(lambda: machine.run("systemctl", "is-active", "agent-reader").returncode == 0, "the reader")


def test_what_a_watch_runs_is_the_agent_with_nothing_of_its_environment(machine: Machine) -> None:
    watch = (
        "cd /; IMAP_PASSWORD=x MAILWARRANT_TOKEN_FILE=$HOME/reader.token LD_PRELOAD= PYTHONPATH=/home/agent"
        " agent-reader watch --token-file ~/reader.token --once --interval 0 --admit-automatic"
        " --run bash -c 'id; env; ls -l /proc/self/fd; echo $PPID'"
    )
    machine.run("bash", "-c", watch, user="agent")
    installed.deliver(machine, "watched")
    installed.email_id_of(machine, "watched")
    said = machine.said("bash", "-c", watch, user="agent")
    assert f"uid={installed.AGENT}(agent)" in said
    for word in ("IMAP_PASSWORD", "MAILWARRANT_TOKEN", "PYTHONPATH", "mwr_", "socket:"):
        assert word not in said, said

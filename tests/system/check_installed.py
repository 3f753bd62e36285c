"""Installed on a real systemd: the whole path, what each user cannot do, and that it all comes back."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from shared.landlock import landlock_version
from tests.system import installation as installed
from tests.system.machine import Machine, eventually
from tests.system.tree import fresh_tree, install_code

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    tree = installed.tree_with_mail(fresh_tree(tmp_path_factory.mktemp("system")))
    with Machine(tree) as running:
        running.said("systemctl", "enable", "--now", "test-imap.service")
        yield running
        if request.session.testsfailed:
            # What the services said is gone with the container.
            said = running.run("journalctl", "-o", "cat", "-n", "200", "-u", "agent-reader", "-u", "change-executor")
            sys.stderr.write(said.stdout)
    shutil.rmtree(tree, ignore_errors=True)


def test_it_installs_sets_up_and_serves(machine: Machine) -> None:
    said = machine.run("/root/mailwarrant/deploy/install", "--answers", "/root/answers")
    assert said.returncode == 0, said.stderr
    for service in ("agent-reader", "change-executor"):
        assert "active" == machine.said("systemctl", "is-active", service).strip()
    # The second time nothing is different.
    before = machine.said("bash", "-c", "ls -lR --time-style=+ /opt/mailwarrant /etc/mailwarrant | md5sum")
    machine.said("/root/mailwarrant/deploy/install", "--answers", "/root/answers")
    assert before == machine.said("bash", "-c", "ls -lR --time-style=+ /opt/mailwarrant /etc/mailwarrant | md5sum")


def test_the_whole_path_with_four_users(machine: Machine) -> None:
    installed.walk_the_path(machine)
    assert {"first"} == installed.subjects_in(machine, "Processed")
    assert set() == installed.subjects_in(machine, "Incoming")


@pytest.mark.parametrize("user", ["agent", "ada", "agent-reader", "change-executor"])
def test_no_user_reads_what_is_not_its_own(machine: Machine, user: str) -> None:
    for secret in ("reader", "move"):
        assert machine.run("cat", f"/etc/mailwarrant/secrets/{secret}", user=user).returncode != 0, secret
    for owner in ("agent-reader", "change-executor"):
        assert (machine.run("ls", f"/var/lib/{owner}", user=user).returncode == 0) is (user == owner)
    for service in ("agent-reader", "change-executor"):
        pid = installed.main_pid(machine, service)
        if user != service:
            for secret in ("environ", "mem", "maps"):
                assert machine.run("cat", f"/proc/{pid}/{secret}", user=user).returncode != 0
            assert machine.run("kill", "-0", str(pid), user=user).returncode != 0
    # The control: root may, so there is something to be kept from.
    assert installed.PASSWORDS["reader"] == machine.said("cat", "/etc/mailwarrant/secrets/reader")


def test_no_user_can_write_to_code_units_or_settings(machine: Machine) -> None:
    for user in ("agent", "ada", "agent-reader", "change-executor"):
        for place in ("/opt/mailwarrant", "/etc/mailwarrant", "/etc/systemd/system", "/usr/local/bin"):
            found = machine.run("find", place, "-not", "-type", "l", "-writable", user=user).stdout
            assert "" == found, f"{user} may write {found[:500]}"


def test_each_environment_has_its_own_house_only(machine: Machine) -> None:
    for house, own, foreign in (
        ("reader", "agent_reader", "change_executor"),
        ("executor", "change_executor", "agent_reader"),
    ):
        python = f"/opt/mailwarrant/{house}/bin/python"
        machine.said(python, "-I", "-c", f"import {own}, shared")
        missing = machine.run(python, "-I", "-c", f"import {foreign}")
        assert "ModuleNotFoundError" in missing.stderr
        assert machine.run(python, "-I", "-m", "pip", "--version").returncode != 0
    assert machine.run("/opt/mailwarrant/executor/bin/python", "-I", "-c", "import mcp").returncode != 0


# Each is refused inside, and works for root outside: so there is something to be kept from.
ATTEMPTS: Final = (
    # Writing outside its own folder, and looking at what is another user's.
    "touch /etc/x",
    "touch /opt/mailwarrant/x",
    "touch /home/x",
    "ls /home/ada",
    "ls /root/answers",
    "ls /etc/mailwarrant/secrets/",
    "ls /var/lib/OTHER",
    "kill -0 OTHERPID",
    "cat /proc/OTHERPID/environ",
    # Other processes' memory, raw sockets, code made while it runs.
    "python3 -c 'import ctypes; assert ctypes.CDLL(None).ptrace(0, 0, 0, 0) == 0'",
    "python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)'",
    "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)'",
    "python3 -c 'import mmap; mmap.mmap(-1, 4096, prot=mmap.PROT_WRITE | mmap.PROT_EXEC)'",
    # New privileges.
    "sudo -n true",
    "grep -q ^NoNewPrivs:.0 /proc/self/status",
    "touch /var/lib/SERVICE/y && chmod 4755 /var/lib/SERVICE/y",
    "python3 -c 'import os; os.setuid(0)'",
    # System calls that no service of ours needs.
    "unshare --user true",
    """python3 -c 'import os; os.chroot("/")'""",
    "mount --bind /srv /mnt && umount /mnt",
    "setarch linux32 true",
    'hostname "$(cat /proc/sys/kernel/hostname)"',
)


@pytest.mark.parametrize("service", ["agent-reader", "change-executor"])
def test_a_service_cannot_leave_its_confinement(machine: Machine, service: str) -> None:
    other = {"agent-reader": "change-executor", "change-executor": "agent-reader"}[service]
    inside, pid = installed.service_shell(machine, service), str(installed.main_pid(machine, other))
    for named in ATTEMPTS:
        attempt = named.replace("OTHERPID", pid).replace("OTHER", other).replace("SERVICE", service)
        assert machine.run(*inside, attempt).returncode != 0, attempt
        assert machine.run("bash", "-c", attempt).returncode == 0, attempt
    machine.said("rm", "-f", "/etc/x", "/opt/mailwarrant/x", "/home/x", f"/var/lib/{service}/y")
    assert machine.run(*inside, f"touch /var/lib/{service}/x && rm /var/lib/{service}/x").returncode == 0
    # Nor is a process of it that reads hostile mail let near what is its own, where the kernel has Landlock.
    python = f"/opt/mailwarrant/{service.rpartition('-')[2]}/bin/python"
    shut = f"from shared.landlock import shut; import os; print(shut(), flush=True); os.listdir('/var/lib/{service}')"
    tried = machine.run(*inside, f'{python} -I -c "{shut}"')
    assert str(landlock_version()) == tried.stdout.strip(), tried.stderr
    assert ("PermissionError" in tried.stderr) is (landlock_version() > 0), tried.stderr


def test_the_doctor_finds_nothing_and_tries_both_logins(machine: Machine) -> None:
    status, found, said = installed.doctor(machine)
    assert (0, set()) == (status, found), said
    assert machine.run("mailwarrant-doctor", "--probe-rights").returncode == 0
    assert "read-only enforced by the server" in machine.said("mailwarrant-doctor")
    # By hand, as the service's own user, no password is handed over: that is said, with the command that has one.
    by_hand = machine.run("agent-reader", "doctor", "--part", "program", user="agent-reader")
    assert by_hand.returncode == 2
    assert "sudo mailwarrant-doctor" in by_hand.stdout


_DROP_IN: Final = "/run/systemd/system/change-executor.service.d"
BREAK: Final = (
    f"mkdir {_DROP_IN}; printf '[Service]\\nRestart=no\\nExecStartPre=/bin/false\\n' >{_DROP_IN}/x.conf;"
    "systemctl daemon-reload"
)
UNBREAK: Final = f"rm -r {_DROP_IN}; systemctl daemon-reload"


def test_the_doctor_finds_what_was_loosened(machine: Machine) -> None:
    secrets, command = "/etc/mailwarrant/secrets", "/opt/mailwarrant/reader/bin/agent-reader"
    for loosen, mend, code in (
        (
            f"chmod 755 {secrets}; chmod 444 {secrets}/move",
            f"chmod 400 {secrets}/move; chmod 700 {secrets}",
            "secret_readable",
        ),
        (f"chmod 777 {command}", f"chmod 755 {command}", "code_writable"),
        ("usermod -aG mailwarrant-link agent", "gpasswd -d agent mailwarrant-link", "link_group"),
        ("systemctl stop test-imap", "systemctl start test-imap", "login"),
        ("touch /var/lib/agent-reader/z.db", "rm /var/lib/agent-reader/z.db", "state_owner"),
        (
            f"{BREAK}; systemctl restart change-executor || true",
            f"{UNBREAK}; systemctl restart change-executor",
            "service_failed",
        ),
        ("echo 'agent ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/wide", "rm /etc/sudoers.d/wide", "agent_sudo"),
    ):
        machine.shell(loosen)
        try:
            status, found, said = installed.doctor(machine)
        finally:
            machine.shell(mend)
        assert (1, True) == (status, code in found), said
    eventually(lambda: installed.doctor(machine)[0] == 0, "nothing to be wrong any more")


def test_by_sudo_an_agent_runs_four_commands_and_reads_no_token(machine: Machine) -> None:
    machine.said("/root/mailwarrant/deploy/install", "--answers", "/root/answers", "--sudoers", "agent")
    machine.shell(
        "install -m 400 -o mailwarrant-agent -g mailwarrant-agent /home/agent/reader.token"
        " /var/lib/mailwarrant-agent/reader-token"
    )

    def by_sudo(*words: str) -> subprocess.CompletedProcess[str]:
        return machine.run("runuser", "-u", "agent", "--", "sudo", "-n", *words)

    told = by_sudo("-u", "mailwarrant-agent", "mailwarrant-agent", "digest", "--peek")
    assert told.returncode == 0, told.stderr
    assert by_sudo("mailwarrant-doctor").returncode == 0
    for refused in (
        ("-u", "mailwarrant-agent", "mailwarrant-agent", "mcp", "--token-file=/etc/shadow"),
        ("-u", "mailwarrant-agent", "cat", "/var/lib/mailwarrant-agent/reader-token"),
        ("-u", "agent-reader", "agent-reader", "token", "list"),
        ("mailwarrant-doctor", "--json"),
        ("-E", "-u", "mailwarrant-agent", "mailwarrant-agent", "digest"),
        ("true",),
    ):
        assert by_sudo(*refused).returncode != 0, refused
    assert installed.doctor(machine)[:2] == (0, set())


# Past what the reader reads by itself (`LONG_BACKLOG`), and at work long enough to be caught at it.
BACKLOG: Final = 900

BRING_A_BACKLOG: Final = f"""
import imaplib
client = imaplib.IMAP4('127.0.0.1', {installed.PORT})
client.login('owner', '{installed.PASSWORDS["owner"]}')
for number in range({BACKLOG}):
    head = 'Subject: old\\r\\nMessage-ID: <old-%d@x>\\r\\nContent-Type: text/html\\r\\n\\r\\n' % number
    assert client.append('Archive', '', '', (head + '<p>much <b>of it</b></p>\\r\\n' * 100).encode())[0] == 'OK'
"""

# Started beside, or it would be over when the service says that it is ready; and seen once it has limited itself, which
# is done before the first message is there.
CATCH_ONE_THAT_READS: Final = """
systemctl start --no-block agent-reader
for _ in $(seq 6000); do
    for each in $(pgrep -u agent-reader -f agent_reader.store.reading_child); do
        if grep -q '^Max file size  *0  *0 ' /proc/$each/limits; then
            kill -STOP $each && echo $each
            exit
        fi
    done
    sleep 0.01
done
exit 1
"""


def test_a_backlog_is_read_beside_the_reader_and_what_kills_one_that_reads_ends_nothing_else(machine: Machine) -> None:
    machine.said("systemctl", "stop", "agent-reader")
    machine.said("python3", "-c", BRING_A_BACKLOG)
    since = machine.said("journalctl", "-n", "0", "--show-cursor", "-q").split()[-1]
    pid = machine.shell(CATCH_ONE_THAT_READS).strip()
    reader = installed.main_pid(machine, "agent-reader")
    status = dict(line.split(":\t", 1) for line in machine.said("cat", f"/proc/{pid}/status").splitlines())
    user = machine.said("id", "-u", "agent-reader").strip()
    assert {str(reader)} == {status["PPid"]}
    assert [user] * 4 == status["Uid"].split()
    # No privileges, a filter of system calls, no capability: the unit's confinement is its own.
    assert ("1", "2", 0) == (status["NoNewPrivs"], status["Seccomp"], int(status["CapBnd"], 16))
    assert "" == machine.said("cat", f"/proc/{pid}/environ")
    assert {"0", "1", "2"} == set(machine.said("ls", f"/proc/{pid}/fd").split())
    limits = machine.said("cat", f"/proc/{pid}/limits")
    assert re.search(r"^Max core file size +0 +0 ", limits, re.MULTILINE), limits
    assert re.search(r"^Max address space +\d+ ", limits, re.MULTILINE), limits
    assert re.search(r"^Max processes +0 +0 ", limits, re.MULTILINE), limits
    # Counted with the reader, for its unit's MemoryMax and TasksMax; what the kernel ends is not the unit's end.
    assert "agent-reader.service" in machine.said("cat", f"/proc/{pid}/cgroup")
    assert "continue" == machine.said("systemctl", "show", "--property=OOMPolicy", "--value", "agent-reader").strip()
    machine.said("kill", "-KILL", pid)
    told = f"{BACKLOG} of {BACKLOG}"
    eventually(lambda: told in machine.run("sudo", "-u", "agent-reader", "agent-reader", "status").stdout, told)
    assert reader == installed.main_pid(machine, "agent-reader")
    eventually(lambda: machine.run("pgrep", "-P", str(reader)).returncode, "nobody to read beside it any more")
    lines = machine.said("journalctl", "-q", "-o", "cat", "-u", "agent-reader", f"--after-cursor={since}").splitlines()
    said = [json.loads(line) for line in lines if line.startswith("{")]
    assert any(each["event"] == "sync:round" for each in said)
    assert {"info"} == {each["level"] for each in said}, lines
    assert [] == [line for line in lines if not line.startswith(("{", "Starting ", "Started "))]
    assert "" == machine.said("journalctl", "-q", "-p", "warning", "-u", "agent-reader", f"--after-cursor={since}")
    assert (0, set()) == installed.doctor(machine)[:2]


@pytest.mark.parametrize("service", ["agent-reader", "change-executor"])
def test_the_watchdog_restarts_what_hangs(machine: Machine, service: str) -> None:
    machine.said("mkdir", "-p", f"/run/systemd/system/{service}.service.d")
    machine.shell(f"printf '[Service]\\nWatchdogSec=2\\n' > /run/systemd/system/{service}.service.d/soon.conf")
    machine.said("systemctl", "daemon-reload")
    machine.said("systemctl", "restart", service)
    before = installed.main_pid(machine, service)
    machine.said("kill", "-STOP", str(before))
    eventually(lambda: installed.main_pid(machine, service) not in {0, before}, f"systemd to start {service} anew")
    eventually(lambda: machine.run("systemctl", "is-active", service).returncode == 0, f"{service} to be there")
    machine.said("rm", "-r", f"/run/systemd/system/{service}.service.d")
    machine.said("systemctl", "daemon-reload")
    machine.said("systemctl", "restart", service)


def test_a_power_cut_after_an_approval_loses_nothing_and_moves_once(machine: Machine) -> None:
    installed.deliver(machine, "second")
    proposal = installed.propose(machine, "second")
    installed.as_person(machine, "decide", proposal, "approve")
    machine.cut_the_power()
    machine.boot()
    eventually(lambda: machine.run("systemctl", "is-active", "change-executor").returncode == 0, "the executor")
    installed.await_state(machine, proposal, "applied")
    assert {"first", "second"} == installed.subjects_in(machine, "Processed")
    assert set() == installed.subjects_in(machine, "Incoming")
    machine.said("sudo", "-u", "change-executor", "change-executor", "audit", "verify")


def test_an_upgrade_keeps_everything_and_the_release_before_is_still_there(machine: Machine) -> None:
    before = machine.said("readlink", "-f", "/opt/mailwarrant/reader")
    # Its dependencies come from the package index, which is outside: installed as an image is made.
    install_code(machine.tree, also={"shared/release_marker.py": '"""A newer release."""\n'})
    machine.said("/root/mailwarrant/deploy/install", "--answers", "/root/answers")
    after = machine.said("readlink", "-f", "/opt/mailwarrant/reader")
    assert before != after
    assert machine.run("test", "-d", before.strip()).returncode == 0
    assert {"first", "second"} == installed.subjects_in(machine, "Processed")
    eventually(lambda: "2 messages" in machine.run("sudo", "-u", "agent-reader", "agent-reader", "status").stdout, "it")


def test_it_is_taken_away_and_what_was_kept_stays_until_told(machine: Machine) -> None:
    machine.said("/root/mailwarrant/deploy/install", "--uninstall")
    assert machine.run("systemctl", "is-active", "agent-reader").returncode != 0
    # The timers that it turned off are turned on again by the next installation.
    for place in ("/opt/mailwarrant", "/etc/mailwarrant/.timers"):
        assert machine.run("test", "-e", place).returncode != 0, place
    assert machine.run("test", "-e", "/var/lib/change-executor/journal.db").returncode == 0
    machine.said("/root/mailwarrant/deploy/install", "--uninstall", "--purge")
    for place in ("/etc/mailwarrant", "/var/lib/agent-reader", "/var/lib/change-executor"):
        assert machine.run("test", "-e", place).returncode != 0, place
    assert machine.run("id", "agent-reader").returncode != 0

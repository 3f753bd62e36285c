"""Installed on a real systemd, with sudo for the agent: what that user does with a shell, and that all goes on."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Final

import pytest

from tests.system import installation as installed
from tests.system.machine import Machine, eventually

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture
def machine(besieged: Machine) -> Machine:
    return besieged


# As the agent each fails; as root each works, so there is something to be kept from.
KEPT_FROM: Final = (
    "ls /etc/mailwarrant/secrets",
    "cat /etc/mailwarrant/secrets/move",
    "cat /run/credentials/change-executor.service/move",
    "ls /run/credentials/agent-reader.service",
    "ls /var/lib/agent-reader /var/lib/change-executor",
    "cat /var/lib/mailwarrant-agent/reader-token",
    "ls /run/mailwarrant /run/mailwarrant-doctor",
    "curl -s --fail --unix-socket /run/mailwarrant/reader.sock http://localhost/status; test $? -ne 7",
    "cat /proc/PID/environ",
    "ls /proc/PID/fd /proc/PID/root/ /proc/PID/cwd/",
    "head -c1 /proc/PID/maps | grep -q .",
    "cat /proc/PID/stack /proc/PID/syscall",
    "kill -0 PID",
    "journalctl -q -n 1 -u change-executor | grep -q .",
    "systemctl restart agent-reader-doctor@text",
    "systemctl set-property --runtime agent-reader.service CPUWeight=100",
    "touch /etc/systemd/system/agent-reader.service.d-x && rm /etc/systemd/system/agent-reader.service.d-x",
    "ln -s /etc/shadow /run/mailwarrant/x && rm /run/mailwarrant/x",
    "ln -s /etc/shadow /var/lib/change-executor/x && rm /var/lib/change-executor/x",
    "renice -n 0 PID",
)


def test_the_agents_shell_reads_and_touches_nothing_of_ours(machine: Machine) -> None:
    for service in ("agent-reader", "change-executor"):
        pid = str(installed.main_pid(machine, service))
        for named in KEPT_FROM:
            attempt = named.replace("PID", pid)
            assert machine.run("bash", "-c", attempt, user="agent").returncode != 0, attempt
            assert machine.run("bash", "-c", attempt).returncode == 0, attempt


def test_the_page_is_closed_to_every_process_of_the_agent(machine: Machine) -> None:
    ask = "curl -s -o /dev/null -w '%{http_code}' "
    for more in (
        "http://localhost:8622/",
        "http://127.0.0.1:8622/sign-in",
        "-g http://[::1]:8622/",
        "-H 'X-Forwarded-For: 127.0.0.1' -H 'Forwarded: for=127.0.0.1' http://localhost:8622/",
        "-X POST -d 'user=ada&password=x' http://localhost:8622/sign-in",
        "-H 'Authorization: Bearer '$(cat ~/proposer.token) http://localhost:8622/",
    ):
        assert "403" == machine.shell(ask + more, user="agent"), more
    # Root in a user namespace of its own is the agent all the same.
    inside = machine.run(
        "unshare", "--user", "--map-root-user", "bash", "-c", f"{ask}http://localhost:8622/", user="agent"
    )
    assert inside.returncode != 0 or "403" == inside.stdout
    assert "200" == machine.shell(f"{ask}http://localhost:8622/sign-in", user="ada")
    # Nor is there a place that the executor would listen at, and the agent holds.
    for address in ("127.0.0.1:8620", "127.0.0.1:8621", "127.0.0.1:8622", "::1:8622"):
        host, _, port = address.rpartition(":")
        family = "AF_INET6" if host == "::1" else "AF_INET"
        # With every option that lets a second one in.
        bind = f"import socket\ns = socket.socket(socket.{family})\nfor each in (2, 15): s.setsockopt(1, each, 1)\n"
        bind += f"s.bind(('{host}', {port}))"
        assert machine.run("python3", "-c", bind, user="agent").returncode != 0, address


BY_SUDO: Final = (
    "id",
    "-u change-executor id",
    "-u agent-reader agent-reader token create --agent x",
    "-u change-executor change-executor resume",
    "-u mailwarrant-agent id",
    "-u mailwarrant-agent mailwarrant-agent digest --peek --token-file=/etc/shadow",
    "-u mailwarrant-agent mailwarrant-agent mcp --help",
    "-u mailwarrant-agent mailwarrant-agent 'digest --peek'",
    "-u mailwarrant-agent mailwarrant-agent",
    "-u mailwarrant-agent sh /usr/local/bin/mailwarrant-agent mcp",
    "-s -u mailwarrant-agent mailwarrant-agent mcp",
    "mailwarrant-doctor --probe-rights",
    "mailwarrant-doctor --json",
    "-E mailwarrant-doctor",
    "-D /tmp mailwarrant-doctor",
    "-R / mailwarrant-doctor",
    "-C 99 mailwarrant-doctor",
    "-g mailwarrant-link mailwarrant-doctor",
    "-u '#0' mailwarrant-agent mcp",
    "-u '#-1' mailwarrant-doctor",
    "-e /etc/mailwarrant/reader.toml",
    *(
        f"{name}=/home/agent/evil {more}"
        for name in ("PYTHONPATH", "PYTHONHOME", "LD_PRELOAD", "BASH_ENV", "ENV", "PATH", "HOME", "SSL_CERT_FILE")
        for more in ("mailwarrant-doctor", "-u mailwarrant-agent mailwarrant-agent digest --peek")
    ),
)


def test_sudo_gives_no_more_than_its_four_commands(machine: Machine) -> None:
    machine.shell(
        'mkdir -p ~/evil && echo \'open("/tmp/owned", "w")\' | tee ~/evil/sitecustomize.py >~/evil/typer.py',
        user="agent",
    )
    for words in BY_SUDO:
        tried = machine.run("runuser", "-u", "agent", "--", "bash", "-c", f"cd ~/evil; sudo -n {words} </dev/null")
        assert tried.returncode != 0, words
    # The environment that sudo was called in, and the folder, come no further than sudo.
    for words in ("mailwarrant-doctor", "-u mailwarrant-agent mailwarrant-agent digest --peek"):
        calling = f"cd ~/evil; PYTHONPATH=$PWD BASH_ENV=$PWD/x HTTP_PROXY=http://127.0.0.1:9 sudo -n {words} </dev/null"
        done = machine.run("runuser", "-u", "agent", "--", "bash", "-c", calling)
        assert done.returncode == 0, done.stdout + done.stderr
    assert machine.run("test", "-e", "/tmp/owned").returncode != 0


def test_a_doctor_whose_answer_nobody_reads_holds_up_no_other(machine: Machine) -> None:
    stuck = "exec 3> >(sleep 300); sudo -n mailwarrant-doctor >&3 2>&1 & sleep 300"
    enter = ["nsenter", f"--target={machine.leader}", *("-m", "-u", "-i", "-n", "-p", "-C"), "runuser", "-u", "agent"]
    with subprocess.Popen(
        [*enter, "--", "bash", "-c", stuck], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as held:
        try:
            status, found, said = installed.doctor(machine)
            assert (0, set()) == (status, found), said
        finally:
            machine.run("pkill", "-u", "agent", "sleep")
            held.kill()


FLOOD: Final = """
import resource, socket, sys, threading, time
port, kind, until = int(sys.argv[1]), sys.argv[2], time.time() + 8
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4000), hard))
token = open('/home/agent/flooding.token', 'rb').read().strip()
body = b'{"emailId":"M' + b'a' * 32 + b'","from":"incoming","to":"processed","queue":"support"}'
asked = (b'POST /v1/proposals HTTP/1.1\\r\\nHost: localhost:%d\\r\\nAuthorization: Bearer %s\\r\\n'
    b'Content-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n' % (port, token, len(body))) + body
held = []
def run():
    while time.time() < until:
        try:
            s = socket.create_connection(('127.0.0.1', port), 3)
            s.settimeout(3)
            if kind == 'hold':
                s.sendall(asked[:40])
                held.append(s)
                if len(held) > 2500: time.sleep(0.2)
            else:
                for _ in range(20):
                    s.sendall(asked)
                    if not s.recv(4096): break
                s.close()
        except OSError:
            time.sleep(0.02)
threads = [threading.Thread(target=run) for _ in range(40)]
for each in threads: each.start()
for each in threads: each.join()
"""


@pytest.mark.parametrize(
    ("port", "kind"), [(8621, "ask"), (8621, "hold"), (8622, "ask"), (8622, "hold"), (8620, "hold")]
)
def test_flooded_by_the_agent_the_page_answers_the_person(machine: Machine, port: int, kind: str) -> None:
    enter = ["nsenter", f"--target={machine.leader}", *("-m", "-u", "-i", "-n", "-p", "-C"), "runuser", "-u", "agent"]
    with subprocess.Popen([*enter, "--", "python3", "-c", FLOOD, str(port), kind]) as flood:
        answered = 0
        while flood.poll() is None:
            asked = "curl -s -m 30 -o /dev/null -w '%{http_code}' http://localhost:8622/sign-in"
            assert "200" == machine.shell(asked, user="ada")
            answered += 1
        assert answered >= 3
    for service in ("agent-reader", "change-executor"):
        assert "active" == machine.said("systemctl", "is-active", service).strip()
        assert "0" == machine.said("systemctl", "show", "--property=NRestarts", "--value", service).strip()


def test_a_bomb_of_the_agents_leaves_the_services_their_tasks(machine: Machine) -> None:
    for service, tasks in (("agent-reader", "512"), ("change-executor", "128")):
        limits = dict(
            line.split("=")
            for line in machine.said("systemctl", "show", "-p", "TasksMax", "-p", "MemoryMax", service).split()
        )
        assert {"TasksMax": tasks, "MemoryMax": str(2 * 1024**3)} == limits


def test_on_a_full_disk_nothing_is_done_unrecorded_and_it_goes_on_afterwards(machine: Machine) -> None:
    services = ("change-executor", "agent-reader")
    installed.deliver(machine, "roomy")
    email_id = installed.email_id_of(machine, "roomy")
    machine.said("systemctl", "stop", *services)
    for service in services:
        machine.shell(
            f"cp -a /var/lib/{service} /root/kept-{service}; u=$(id -u {service}); "
            f"mount -t tmpfs -o size=24M,mode=700,uid=$u,gid=$(id -g {service}) full /var/lib/{service}; "
            f"cp -a /root/kept-{service}/. /var/lib/{service}/"
        )
    machine.said("systemctl", "start", *services)
    for service in services:
        machine.run("bash", "-c", f"cat /dev/zero > /var/lib/{service}/fill")
    asked = {"emailId": email_id, "from": "incoming", "to": "processed", "queue": "support"}
    url = "http://127.0.0.1:8621/v1/proposals"
    refused = installed.agent_says(machine, url, "proposer.token", asked)
    assert ("journal_unavailable", True) == (refused["code"], refused["retryable"])
    query = {"using": ["urn:ietf:params:jmap:core", "urn:ietf:params:jmap:mail"], "methodCalls": []}
    query["methodCalls"] = [["Email/query", {"accountId": "shop"}, "q"]]  # type: ignore[list-item]  # JMAP's own shape
    unread = installed.agent_says(machine, "http://127.0.0.1:8620/jmap/api", "reader.token", query)
    assert "read_log_unavailable" == unread["code"]
    assert "disk" in installed.doctor(machine)[1]
    machine.shell("rm /var/lib/*/fill")
    taken = eventually(
        lambda: (said := installed.agent_says(machine, url, "proposer.token", asked)).get("id") and said, "a proposal"
    )
    assert taken["state"] in {"pending", "stale"}
    assert "methodResponses" in installed.agent_says(machine, "http://127.0.0.1:8620/jmap/api", "reader.token", query)
    machine.said("sudo", "-u", "change-executor", "change-executor", "audit", "verify")
    machine.said("systemctl", "stop", *services)
    for service in services:
        # Back to the disk that was there before, with what was written since.
        machine.shell(
            f"rm -r /root/kept-{service}; cp -a /var/lib/{service} /root/kept-{service}; umount /var/lib/{service}; "
            f"find /var/lib/{service} -mindepth 1 -delete; cp -a /root/kept-{service}/. /var/lib/{service}/"
        )
    machine.said("systemctl", "start", *services)


def test_after_all_that_the_path_is_walked_again_and_no_log_has_a_word_of_mail(machine: Machine) -> None:
    installed.deliver(machine, "canarysubject")
    proposal = installed.propose(machine, "canarysubject")
    installed.as_person(machine, "decide", proposal, "approve")
    installed.await_state(machine, proposal, "applied")
    machine.said("systemctl", "start", "agent-reader-backup", "change-executor-backup")
    status, found, said = installed.doctor(machine)
    assert (0, set()) == (status, found), said
    logs = machine.said("journalctl", "-o", "export", "--no-pager") + said
    assert "agent-reader" in logs
    secrets = [machine.said("cat", f"/etc/mailwarrant/secrets/{name}") for name in ("reader", "move")]
    for word in ("canarysubject", *secrets, machine.said("cat", "/home/agent/reader.token").strip()):
        assert word not in logs, word


def test_copies_come_by_timers_and_stay_private(machine: Machine) -> None:
    for program in ("agent-reader", "change-executor"):
        assert "enabled" == machine.said("systemctl", "is-enabled", f"{program}-backup.timer").strip()
        made = machine.said("bash", "-c", f"ls -d /var/lib/{program}/backups/2*").split()
        assert made
        manifest = json.loads(machine.said("cat", f"{made[-1]}/manifest.json"))
        assert program == manifest["program"]
        assert machine.run("ls", f"/var/lib/{program}/backups", user="agent").returncode != 0
    # Turned off by whoever looks after the machine, an upgrade leaves them off.
    machine.said("systemctl", "disable", "--now", "agent-reader-backup.timer")
    machine.said("/root/mailwarrant/deploy/install", "--answers", "/root/answers")
    assert machine.run("systemctl", "is-enabled", "agent-reader-backup.timer").returncode != 0

"""Installed on a real systemd: the whole path, what each user cannot do, and that it all comes back."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.servers.dovecot_config import (
    LOGINS,
    ExecutorRights,
    Layout,
    Server,
    acl_file,
    config_2_3,
    config_2_4,
    oauth_file,
    users_file,
)
from tests.servers.throw_away_ca import make_certificates
from tests.system.machine import Machine, eventually
from tests.system.tree import CHECKOUT, fresh_tree, install_code

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(1200)

MAIL: Final = Layout(Path("/srv/imap"))
PORT, TLS_PORT = 1143, 1993
PASSWORDS: Final = {login: f"password-of-{login}" for login in LOGINS}
ADA, AGENT = 1500, 1501


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    tree = tree_with_mail(fresh_tree(tmp_path_factory.mktemp("system")))
    with Machine(tree) as running:
        running.said("systemctl", "enable", "--now", "test-imap.service")
        yield running
        if request.session.testsfailed:
            # What the services said is gone with the container.
            said = running.run("journalctl", "-o", "cat", "-n", "200", "-u", "agent-reader", "-u", "change-executor")
            sys.stderr.write(said.stdout)
    shutil.rmtree(tree, ignore_errors=True)


def tree_with_mail(tree: Path) -> Path:
    """Give a tree its people, its mail server and the answers of a set-up."""
    for name, uid in (("ada", ADA), ("agent", AGENT)):
        in_tree(tree, "useradd", "--create-home", "--uid", str(uid), name)
    in_tree(tree, "useradd", "--system", "--no-create-home", "mailwarrant-test")
    write_mail_server(tree)
    write_answers(tree)
    return tree


def in_tree(tree: Path, *command: str) -> str:
    return subprocess.run(["chroot", str(tree), *command], capture_output=True, text=True, check=True).stdout


def write_mail_server(tree: Path) -> None:
    """The mail server of the other tests, as a unit."""
    server = Server(MAIL, "mailwarrant-test", "mailwarrant-test", PORT, TLS_PORT, ExecutorRights.WIDE, PASSWORDS)
    at = Layout(tree / "srv" / "imap")
    for folder in at.folders():
        folder.mkdir(parents=True)
    make_certificates(at.tls)
    at.users.write_text(users_file(server))
    at.acl.write_text(acl_file(server))
    at.oauth.write_text(oauth_file(server))
    version = in_tree(tree, "dovecot", "--version").split()[0].split("-")[0].split(".")
    generate = config_2_4 if (int(version[0]), int(version[1])) >= (2, 4) else config_2_3
    at.config.write_text(generate(server), encoding="utf-8")
    in_tree(tree, "chown", "-R", "mailwarrant-test:mailwarrant-test", "/srv/imap")
    (tree / "etc/systemd/system/test-imap.service").write_text(
        "[Service]\nUser=mailwarrant-test\nExecStart=/usr/sbin/dovecot -F -c /srv/imap/dovecot.conf\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )


def write_answers(tree: Path) -> None:
    folder = tree / "root" / "answers"
    folder.mkdir(mode=0o700)
    server = f'host = "127.0.0.1"\ntls = "none"\nport = "{PORT}"\n'
    (folder / "reader.answers").write_text(f'{server}user = "reader"\nid = "shop"\n')
    (folder / "executor.answers").write_text(
        f'{server}user = "executor"\naccount = "shop"\nagent_uids = "{AGENT}"\nreviewer_uids = "{ADA}"\n'
    )
    for name, login in (("reader", "reader"), ("move", "executor")):
        (folder / f"{name}.secret").write_text(PASSWORDS[login])


def deliver(machine: Machine, subject: str) -> None:
    octets = f"From: a@example.org\\r\\nSubject: {subject}\\r\\nMessage-ID: <{subject}@x>\\r\\n\\r\\nbody\\r\\n"
    machine.said(
        "python3",
        "-c",
        "import imaplib\n"
        f"client = imaplib.IMAP4('127.0.0.1', {PORT})\n"
        f"client.login('owner', '{PASSWORDS['owner']}')\n"
        f"assert client.append('Incoming', '', '', b'{octets}')[0] == 'OK'\n",
    )


def subjects_in(machine: Machine, mailbox: str) -> set[str]:
    said = machine.said(
        "python3",
        "-c",
        "import imaplib\n"
        f"client = imaplib.IMAP4('127.0.0.1', {PORT})\n"
        f"client.login('owner', '{PASSWORDS['owner']}')\n"
        f"count = int(client.select('{mailbox}', readonly=True)[1][0])\n"
        "found = client.fetch('1:*', '(BODY.PEEK[HEADER.FIELDS (SUBJECT)])')[1] if count else []\n"
        "print('\\n'.join(each[1].decode().strip() for each in found if isinstance(each, tuple)))\n",
    )
    return {line.removeprefix("Subject: ") for line in said.splitlines() if line}


def as_person(machine: Machine, *words: str) -> str:
    """The person's browser: this machine's Python in the container's network, as the person's uid."""
    done = subprocess.run(
        ["nsenter", f"--target={machine.leader}", "-n", sys.executable, "-m", "tests.system.person", str(ADA), *words],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def agent_says(machine: Machine, url: str, token: str, body: dict[str, Any] | None = None) -> Any:
    more = [] if body is None else ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
    said = machine.said(
        "bash", "-c", f'exec curl -s -H "Authorization: Bearer $(cat ~/{token})" "$@"', "-", *more, url, user="agent"
    )
    return json.loads(said)


def email_id_of(machine: Machine, subject: str) -> str:
    def look() -> str | None:
        asked = {
            "using": ["urn:ietf:params:jmap:core", "urn:ietf:params:jmap:mail"],
            "methodCalls": [["Email/query", {"accountId": "shop", "filter": {"subject": subject}}, "q"]],
        }
        ids = agent_says(machine, "http://127.0.0.1:8620/jmap/api", "reader.token", asked)["methodResponses"][0][1]
        return ids["ids"][0] if ids.get("ids") else None

    return eventually(look, f"the reader to have {subject!r}")


def propose(machine: Machine, subject: str) -> str:
    body = {"emailId": email_id_of(machine, subject), "from": "incoming", "to": "processed", "queue": "support"}
    answer = agent_says(machine, "http://127.0.0.1:8621/v1/proposals", "proposer.token", body)
    assert isinstance(answer.get("id"), str), answer
    return str(answer["id"])


def await_state(machine: Machine, proposal: str, state: str) -> None:
    url = f"http://127.0.0.1:8621/v1/proposals/{proposal}"
    eventually(lambda: agent_says(machine, url, "proposer.token")["state"] == state, f"{proposal} to be {state}")


def main_pid(machine: Machine, service: str) -> int:
    return int(machine.said("systemctl", "show", "--property=MainPID", "--value", service))


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
    machine.shell(
        "sudo -u agent-reader agent-reader token create --agent triage | tail -1 > /home/agent/reader.token\n"
        "sudo -u change-executor change-executor token create --agent triage --queue support"
        " | tail -1 > /home/agent/proposer.token\n"
        "chown agent:agent /home/agent/*.token; chmod 400 /home/agent/*.token\n"
        "sudo -u change-executor change-executor user add ada"
    )
    link = machine.said("sudo", "-u", "change-executor", "change-executor", "user", "link", "ada").split()[-1]
    as_person(machine, "link", link)
    deliver(machine, "first")
    proposal = propose(machine, "first")
    as_person(machine, "decide", proposal, "approve")
    await_state(machine, proposal, "applied")
    assert {"first"} == subjects_in(machine, "Processed")
    assert set() == subjects_in(machine, "Incoming")


@pytest.mark.parametrize("user", ["agent", "ada", "agent-reader", "change-executor"])
def test_no_user_reads_what_is_not_its_own(machine: Machine, user: str) -> None:
    for secret in ("reader", "move"):
        assert machine.run("cat", f"/etc/mailwarrant/secrets/{secret}", user=user).returncode != 0, secret
    for owner in ("agent-reader", "change-executor"):
        assert (machine.run("ls", f"/var/lib/{owner}", user=user).returncode == 0) is (user == owner)
    for service in ("agent-reader", "change-executor"):
        pid = main_pid(machine, service)
        if user != service:
            for secret in ("environ", "mem", "maps"):
                assert machine.run("cat", f"/proc/{pid}/{secret}", user=user).returncode != 0
            assert machine.run("kill", "-0", str(pid), user=user).returncode != 0
    # The control: root may, so there is something to be kept from.
    assert PASSWORDS["reader"] == machine.said("cat", "/etc/mailwarrant/secrets/reader")


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
    inside, pid = service_shell(machine, service), str(main_pid(machine, other))
    for named in ATTEMPTS:
        attempt = named.replace("OTHERPID", pid).replace("OTHER", other).replace("SERVICE", service)
        assert machine.run(*inside, attempt).returncode != 0, attempt
        assert machine.run("bash", "-c", attempt).returncode == 0, attempt
    machine.said("rm", "-f", "/etc/x", "/opt/mailwarrant/x", "/home/x", f"/var/lib/{service}/y")
    assert machine.run(*inside, f"touch /var/lib/{service}/x && rm /var/lib/{service}/x").returncode == 0


def doctor(machine: Machine) -> tuple[int, set[str], str]:
    """Exit status, the codes that were found, and all that was said."""
    done = machine.run("mailwarrant-doctor", "--json")
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(reports) == 4, done.stdout + done.stderr
    return done.returncode, {each["code"] for report in reports for each in report["findings"]}, done.stdout


def test_the_doctor_finds_nothing_and_tries_both_logins(machine: Machine) -> None:
    status, found, said = doctor(machine)
    assert (0, set()) == (status, found), said
    assert machine.run("mailwarrant-doctor", "--probe-rights").returncode == 0
    assert "read-only enforced by the server" in machine.said("mailwarrant-doctor")
    # By hand, as the service's own user, no password is handed over: that is said, with the command that has one.
    by_hand = machine.run("agent-reader", "doctor", "--part", "program", user="agent-reader")
    assert by_hand.returncode == 2
    assert "sudo mailwarrant-doctor" in by_hand.stdout


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
        ("echo 'agent ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/wide", "rm /etc/sudoers.d/wide", "agent_sudo"),
    ):
        machine.shell(loosen)
        try:
            status, found, said = doctor(machine)
        finally:
            machine.shell(mend)
        assert (1, True) == (status, code in found), said
    eventually(lambda: doctor(machine)[0] == 0, "nothing to be wrong any more")


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
    assert doctor(machine)[:2] == (0, set())


def service_shell(machine: Machine, service: str) -> list[str]:
    """A shell under just what the unit says, beside the service."""
    kept = ("ExecStart", "Type", "NotifyAccess", "Restart", "WatchdogSec", "LoadCredential", "Timeout", "RestartSec")
    unit = machine.said("cat", f"/etc/systemd/system/{service}.service").split("[Service]")[1].split("[Install]")[0]
    properties = [line for line in unit.splitlines() if "=" in line and not line.startswith(("#", *kept))]
    return [
        "systemd-run",
        "--quiet",
        "--wait",
        "--pipe",
        "--collect",
        *(f"-p{each}" for each in properties),
        "bash",
        "-c",
    ]


@pytest.mark.parametrize("service", ["agent-reader", "change-executor"])
def test_the_watchdog_restarts_what_hangs(machine: Machine, service: str) -> None:
    machine.said("mkdir", "-p", f"/run/systemd/system/{service}.service.d")
    machine.shell(f"printf '[Service]\\nWatchdogSec=2\\n' > /run/systemd/system/{service}.service.d/soon.conf")
    machine.said("systemctl", "daemon-reload")
    machine.said("systemctl", "restart", service)
    before = main_pid(machine, service)
    machine.said("kill", "-STOP", str(before))
    eventually(lambda: main_pid(machine, service) not in {0, before}, f"systemd to start {service} anew")
    eventually(lambda: machine.run("systemctl", "is-active", service).returncode == 0, f"{service} to be there")
    machine.said("rm", "-r", f"/run/systemd/system/{service}.service.d")
    machine.said("systemctl", "daemon-reload")
    machine.said("systemctl", "restart", service)


def test_a_power_cut_after_an_approval_loses_nothing_and_moves_once(machine: Machine) -> None:
    deliver(machine, "second")
    proposal = propose(machine, "second")
    as_person(machine, "decide", proposal, "approve")
    machine.cut_the_power()
    machine.boot()
    eventually(lambda: machine.run("systemctl", "is-active", "change-executor").returncode == 0, "the executor")
    await_state(machine, proposal, "applied")
    assert {"first", "second"} == subjects_in(machine, "Processed")
    assert set() == subjects_in(machine, "Incoming")
    machine.said("sudo", "-u", "change-executor", "change-executor", "audit", "verify")


def test_an_upgrade_keeps_everything_and_the_release_before_is_still_there(machine: Machine) -> None:
    before = machine.said("readlink", "-f", "/opt/mailwarrant/reader")
    # Its dependencies come from the package index, which is outside: installed as an image is made.
    install_code(machine.tree, also={"shared/release_marker.py": '"""A newer release."""\n'})
    machine.said("/root/mailwarrant/deploy/install", "--answers", "/root/answers")
    after = machine.said("readlink", "-f", "/opt/mailwarrant/reader")
    assert before != after
    assert machine.run("test", "-d", before.strip()).returncode == 0
    assert {"first", "second"} == subjects_in(machine, "Processed")
    eventually(lambda: "2 messages" in machine.run("sudo", "-u", "agent-reader", "agent-reader", "status").stdout, "it")


def test_it_is_taken_away_and_what_was_kept_stays_until_told(machine: Machine) -> None:
    machine.said("/root/mailwarrant/deploy/install", "--uninstall")
    assert machine.run("systemctl", "is-active", "agent-reader").returncode != 0
    assert machine.run("test", "-e", "/opt/mailwarrant").returncode != 0
    assert machine.run("test", "-e", "/var/lib/change-executor/journal.db").returncode == 0
    machine.said("/root/mailwarrant/deploy/install", "--uninstall", "--purge")
    for place in ("/etc/mailwarrant", "/var/lib/agent-reader", "/var/lib/change-executor"):
        assert machine.run("test", "-e", place).returncode != 0, place
    assert machine.run("id", "agent-reader").returncode != 0

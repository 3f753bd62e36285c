"""What is installed in a container, and what its people do there: for the checks of this folder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

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
from tests.system.tree import CHECKOUT

MAIL: Final = Layout(Path("/srv/imap"))
PORT, TLS_PORT = 1143, 1993
PASSWORDS: Final = {login: f"password-of-{login}" for login in LOGINS}
ADA, AGENT = 1500, 1501
SERVICES: Final = ("agent-reader", "change-executor")


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
    return set(all_subjects_in(machine, mailbox))


def all_subjects_in(machine: Machine, mailbox: str) -> list[str]:
    """The subjects of a mailbox, each as often as it is there."""
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
    return [line.removeprefix("Subject: ") for line in said.splitlines() if line]


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


def walk_the_path(machine: Machine) -> None:
    """Make tokens and a person, and go the whole way of one message: read, proposed, approved, moved."""
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


def doctor(machine: Machine) -> tuple[int, set[str], str]:
    """Exit status, the codes that were found, and all that was said."""
    done = machine.run("mailwarrant-doctor", "--json")
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(reports) == 4, done.stdout + done.stderr
    return done.returncode, {each["code"] for report in reports for each in report["findings"]}, done.stdout


def doctor_of_machine(machine: Machine) -> set[str]:
    """The codes that are found from outside, without a unit that starts."""
    done = machine.run("agent-reader", "doctor", "--part", "machine", "--json")
    return {each["code"] for each in json.loads(done.stdout)["findings"]}


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

"""Installed with `--gate` on a real systemd: the reader reads through it, and nobody but root reads the real secret."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from tests.system import installation as installed
from tests.system.machine import Machine, eventually
from tests.system.terminal import Terminal
from tests.system.tree import fresh_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    tree = installed.tree_with_mail(fresh_tree(tmp_path_factory.mktemp("gate")))
    answers = tree / "root" / "answers"
    for name in ("reader.answers", "reader.secret"):
        (answers / name).unlink()
    # The owner's login: with it everything could be done.
    (answers / "gate.answers").write_text(
        f'host = "127.0.0.1"\ntls = "none"\nport = {installed.PORT}\nuser = "owner"\n'
    )
    (answers / "gate.secret").write_text(installed.PASSWORDS["owner"])
    # The reader's account is called `mail` behind the gate.
    executor = answers / "executor.answers"
    executor.write_text(executor.read_text().replace('account = "shop"', 'account = "mail"'))
    with Machine(tree) as running:
        running.said("systemctl", "enable", "--now", "test-imap.service")
        yield running
        if request.session.testsfailed:
            said = running.run("journalctl", "-o", "cat", "-n", "100", "-u", "mailwarrant-gate", "-u", "agent-reader")
            sys.stderr.write(said.stdout)
    shutil.rmtree(tree, ignore_errors=True)


def test_asked_at_a_terminal_it_installs_once_the_password_is_right(machine: Machine) -> None:
    install = ("/root/mailwarrant/deploy/install", "--gate")
    with Terminal(machine, *install) as person:
        say_the_mail_login(person, "mistyped")
        assert person.finish() == 2
    assert "login_refused" in person.said
    assert "asks for the password again" in person.said
    with Terminal(machine, *install) as person:
        say_the_mail_login(person, installed.PASSWORDS["owner"])
        person.answer("Password of the move login", installed.PASSWORDS["executor"])
        person.answer("IMAP server", "127.0.0.1")
        person.answer("Security", "none")
        person.answer("Port", str(installed.PORT))
        # Whoever mistypes the name is asked again, and what was right is offered.
        person.answer("User name", "executer")
        person.answer("CA file", "")
        person.answer("again", "again")
        person.answer("IMAP server (host name) [127.0.0.1]", "")
        person.answer("Security: tls, starttls or none [none]", "")
        person.answer("Port", str(installed.PORT))
        person.answer("User name of this login [executer]", "executor")
        for question in (
            "CA file",
            "name for the queue",
            "short name in reader.toml",
            "out of",
            "done goes",
            "person goes",
        ):
            person.answer(question, "")
        person.answer("agents run as", "nobody-of-this-name")
        person.answer("agents run as", "agent")
        person.answer("people who decide", "ada")
        assert person.finish() == 0, person.said[-3000:]
    for password in installed.PASSWORDS.values():
        assert password not in person.said
    assert f"allow_uids = [{installed.AGENT}]" in machine.said("cat", "/etc/mailwarrant/executor.toml")
    assert (0, set()) == installed.doctor(machine)[:2]


def say_the_mail_login(person: Terminal, password: str) -> None:
    person.answer("Password of the real login", password)
    person.answer("IMAP server", "127.0.0.1")
    person.answer("Security", "none")
    person.answer("Port", str(installed.PORT))
    person.answer("User name", "owner")


def test_it_installs_from_answers_and_the_reader_reads_through_it(machine: Machine) -> None:
    machine.said("systemctl", "stop", "agent-reader", "change-executor", "mailwarrant-gate")
    machine.shell("rm -r /etc/mailwarrant/*.toml /etc/mailwarrant/secrets/* /var/lib/agent-reader/*")
    said = machine.run("/root/mailwarrant/deploy/install", "--gate", "--answers", "/root/answers")
    assert said.returncode == 0, said.stderr
    for service in ("mailwarrant-gate", "agent-reader", "change-executor"):
        assert "active" == machine.said("systemctl", "is-active", service).strip()
    assert "port = 8623" in machine.said("cat", "/etc/mailwarrant/reader.toml")
    before = machine.said("bash", "-c", "ls -lR --time-style=+ /opt/mailwarrant /etc/mailwarrant | md5sum")
    # Once installed it is kept up to date without being named.
    machine.said("/root/mailwarrant/deploy/install", "--answers", "/root/answers")
    assert before == machine.said("bash", "-c", "ls -lR --time-style=+ /opt/mailwarrant /etc/mailwarrant | md5sum")
    eventually(
        lambda: "mail: fresh" in machine.run("sudo", "-u", "agent-reader", "agent-reader", "status").stdout, "a sync"
    )
    assert "gate:open" in machine.said("journalctl", "-o", "cat", "-u", "mailwarrant-gate")


def test_the_real_secret_is_the_gates_alone(machine: Machine) -> None:
    secrets = "/etc/mailwarrant/secrets"
    assert installed.PASSWORDS["owner"] == machine.said("cat", f"{secrets}/gate")
    assert machine.said("cat", f"{secrets}/gate-local") == machine.said("cat", f"{secrets}/reader")
    assert installed.PASSWORDS["owner"] != machine.said("cat", f"{secrets}/reader")
    pid = installed.main_pid(machine, "mailwarrant-gate")
    for user in ("agent", "ada", "agent-reader", "change-executor", "read-gate"):
        for secret in ("gate", "gate-local", "reader"):
            assert machine.run("cat", f"{secrets}/{secret}", user=user).returncode != 0
        if user != "read-gate":
            for secret in ("environ", "mem", "maps", "fd"):
                assert machine.run("ls", f"/proc/{pid}/{secret}/", user=user).returncode != 0
            assert machine.run("kill", "-0", str(pid), user=user).returncode != 0
    # Not in the reader's credentials either.
    reader = installed.main_pid(machine, "agent-reader")
    folder = machine.said(
        "bash", "-c", f"tr '\\0' '\\n' < /proc/{reader}/environ | sed -n 's/^CREDENTIALS_DIRECTORY=//p'"
    )
    held = machine.said("bash", "-c", f"cat /proc/{reader}/root{folder.strip()}/*")
    assert held == machine.said("cat", f"{secrets}/gate-local")


def test_through_it_nothing_is_changed_with_the_owners_login_behind_it(machine: Machine) -> None:
    installed.deliver(machine, "stays")
    # Said by the reader's own user with the reader's own secret, after it signed in.
    speak = (
        "import socket, sys\n"
        "s = socket.create_connection(('127.0.0.1', 8623), 30); f = s.makefile('rb'); f.readline()\n"
        "def ask(tag, words):\n"
        "    s.sendall(tag + b' ' + words + b'\\r\\n')\n"
        "    for line in f:\n"
        "        if line.startswith((tag, b'* BYE')): return line\n"
        "secret = sys.stdin.readline().strip().encode()\n"
        "assert ask(b'a', b'LOGIN mail ' + secret).startswith(b'a OK')\n"
        "assert ask(b'b', b'EXAMINE Incoming').startswith(b'b OK')\n"
        "print(ask(b'c', sys.argv[1].encode()).decode())\n"
    )
    secret = machine.said("cat", "/etc/mailwarrant/secrets/gate-local")
    for words in (
        "UID STORE 1 +FLAGS (\\Deleted)",
        "STORE 1 +FLAGS (\\Seen)",
        "EXPUNGE",
        "UID MOVE 1 Trash",
        "UID COPY 1 Trash",
        "APPEND Incoming {3}",
        "SELECT Incoming",
        "CREATE evil",
        "DELETE Archive",
        "RENAME Archive x",
        "SETACL Incoming reader lrswipkxtea",
        "CLOSE",
        "UID FETCH 1 (BODY[])",
        "LOGIN owner x",
    ):
        said = machine.said("python3", "-c", speak, words, user="agent-reader", stdin=secret)
        assert "* BYE refused by the gate" in said, words
    assert {"stays"} == installed.subjects_in(machine, "Incoming")
    # The control: what reads is answered.
    said = machine.said("python3", "-c", speak, "UID FETCH 1:* (UID FLAGS)", user="agent-reader", stdin=secret)
    assert said.startswith("c OK")


HOLD: Final = """
import socket, sys
held = [socket.create_connection(('127.0.0.1', 8623), 30) for _ in range(300)]
print({each.makefile('rb').readline() for each in held}, flush=True)
sys.stdin.read()
"""


def test_the_agent_holds_no_place_at_it(machine: Machine) -> None:
    enter = ["nsenter", f"--target={machine.leader}", *("-m", "-u", "-i", "-n", "-p", "-C"), "runuser", "-u", "agent"]
    with subprocess.Popen(
        [*enter, "--", "python3", "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as held:
        assert held.stdout is not None
        assert (
            "{b'* BYE [UNAVAILABLE] your user may not connect: [gate] allow_uids\\r\\n'}"
            == held.stdout.readline().strip()
        )
        # The reader comes back through it, and so does the doctor.
        machine.said("systemctl", "restart", "agent-reader")
        status = ("sudo", "-u", "agent-reader", "agent-reader", "status")
        eventually(lambda: "mail: fresh" in machine.run(*status).stdout, "the reader")
        assert (0, set()) == installed.doctor(machine)[:2]
        held.communicate("")
    assert f"uid {installed.AGENT}" in machine.said("journalctl", "-o", "cat", "-u", "mailwarrant-gate")


def test_the_doctor_looks_at_it(machine: Machine) -> None:
    status, found, said = installed.doctor(machine)
    assert (0, set()) == (status, found), said
    secrets = "/etc/mailwarrant/secrets"
    for loosen, mend, code in (
        (f"chmod 444 {secrets}/gate", f"chmod 400 {secrets}/gate", "secret_mode"),
        ("usermod -aG read-gate agent-reader", "gpasswd -d agent-reader read-gate", "house_group"),
        (
            f"cp -p {secrets}/reader {secrets}/kept; cat {secrets}/gate > {secrets}/reader",
            f"mv {secrets}/kept {secrets}/reader",
            "gate_bypassed",
        ),
        (
            "systemctl stop mailwarrant-gate.socket mailwarrant-gate.service",
            "systemctl start mailwarrant-gate.socket mailwarrant-gate.service",
            "gate_closed",
        ),
    ):
        machine.shell(loosen)
        try:
            status, found, said = installed.doctor(machine)
        finally:
            machine.shell(mend)
        assert (1, True) == (status, code in found), said


def test_its_environment_has_no_house_in_it(machine: Machine) -> None:
    python = "/opt/mailwarrant/gate/bin/python"
    machine.said(python, "-I", "-c", "import read_gate, shared")
    for foreign in ("agent_reader", "change_executor", "mcp", "apsw", "pip"):
        assert machine.run(python, "-I", "-c", f"import {foreign}").returncode != 0
    for house in ("reader", "executor"):
        assert machine.run(f"/opt/mailwarrant/{house}/bin/python", "-I", "-c", "import read_gate").returncode != 0


def test_it_goes_with_the_rest(machine: Machine) -> None:
    machine.said("/root/mailwarrant/deploy/install", "--uninstall", "--purge")
    for place in ("/opt/mailwarrant", "/etc/mailwarrant", "/var/lib/read-gate", "/usr/local/bin/read-gate"):
        assert machine.run("test", "-e", place).returncode != 0, place
    assert machine.run("id", "read-gate").returncode != 0
    assert "mailwarrant-gate" not in machine.said("systemctl", "list-unit-files")

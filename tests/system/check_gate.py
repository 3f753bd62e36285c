"""Installed with `--gate` on a real systemd: the reader reads through it, and nobody but root reads the real secret."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from tests.system import check_installed as installed
from tests.system.machine import Machine
from tests.system.tree import fresh_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    tree = fresh_tree(tmp_path_factory.mktemp("gate"))
    for name, uid in (("ada", installed.ADA), ("agent", installed.AGENT)):
        installed.in_tree(tree, "useradd", "--create-home", "--uid", str(uid), name)
    installed.in_tree(tree, "useradd", "--system", "--no-create-home", "mailwarrant-test")
    installed.write_mail_server(tree)
    installed.write_answers(tree)
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


def test_it_installs_and_the_reader_reads_through_it(machine: Machine) -> None:
    said = machine.run("/root/mailwarrant/deploy/install", "--gate", "--answers", "/root/answers")
    assert said.returncode == 0, said.stderr
    for service in ("mailwarrant-gate", "agent-reader", "change-executor"):
        assert "active" == machine.said("systemctl", "is-active", service).strip()
    assert "port = 8623" in machine.said("cat", "/etc/mailwarrant/reader.toml")
    before = machine.said("bash", "-c", "ls -lR --time-style=+ /opt/mailwarrant /etc/mailwarrant | md5sum")
    # Once installed it is kept up to date without being named.
    machine.said("/root/mailwarrant/deploy/install", "--answers", "/root/answers")
    assert before == machine.said("bash", "-c", "ls -lR --time-style=+ /opt/mailwarrant /etc/mailwarrant | md5sum")
    status = machine.said("sudo", "-u", "agent-reader", "agent-reader", "status")
    assert "mail: fresh" in status
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

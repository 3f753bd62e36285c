"""The command line: what the operator does on the machine, and what is said to a mistake."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from change_executor.__main__ import app
from tests.end_to_end.houses import House, MailServer, write_executor

if TYPE_CHECKING:
    from collections.abc import Callable

REVIEW_PORT = 8622


class Machine:
    """A configured executor that does not run; no mail server is needed for any of this."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.house = House("change_executor", folder, 8621)
        server = MailServer(1, "reader", "executor")
        write_executor(self.house, REVIEW_PORT, server, folder / "reader.sock", [os.geteuid()])

    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments, "--config", str(self.house.config)])

    def said(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.exit_code == 0, done.output
        return done.stdout

    def refuses(self, *arguments: str) -> str:
        """What it says on standard error as it ends with status 2, and nothing on standard output."""
        done = self.run(*arguments)
        assert (2, "") == (done.exit_code, done.stdout)
        assert "Traceback" not in done.stderr
        return done.stderr


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_tokens_are_made_listed_and_revoked_on_the_machine(machine: Machine) -> None:
    made = machine.run("token", "create", "--agent", "triage", "--queue", "support", "--days", "7")
    text = made.stdout.strip()
    assert (0, 1) == (made.exit_code, len(text.splitlines()))
    token_id = text.split("_")[1]
    listed = machine.said("token", "list")
    assert token_id in listed
    assert text not in listed
    assert "opens nothing" in machine.said("token", "revoke", token_id)
    assert "revoked" in machine.said("token", "list")
    for arguments, named in (
        (("token", "revoke", token_id), "revoked already"),
        (("token", "revoke", "aaaaaaaa"), "No token"),
        (("token", "create", "--agent", "Triage!", "--queue", "support"), "not a name"),
        (("token", "create", "--agent", "triage", "--queue", "elsewhere"), "It has: support"),
        (("token", "create", "--agent", "triage", "--queue", "support", "--days", "0"), "days"),
    ):
        assert named in machine.refuses(*arguments)


def test_people_are_added_and_let_in_on_the_machine(machine: Machine) -> None:
    machine.said("user", "add", "bob")
    assert "user add ada" in machine.refuses("user", "link", "ada")
    assert f"user link ada --config {machine.house.config}" in machine.said("user", "add", "ada")
    assert "already" in machine.refuses("user", "add", "ada")
    link = machine.said("user", "link", "ada").strip()
    address, _, secret = link.partition("#")
    assert f"http://localhost:{REVIEW_PORT}/link" == address
    assert len(secret) == 43
    assert secret not in machine.said("audit", "verify")


def test_the_stop_button_is_pressed_once_and_released_once(machine: Machine) -> None:
    machine.said("user", "add", "ada")
    assert "Stopped." in machine.said("stop")
    assert "already" in machine.said("stop")
    assert "Released." in machine.said("resume")
    assert "was not" in machine.said("resume")
    assert machine.said("audit", "verify").startswith("3 events")


@pytest.mark.parametrize(
    "command", [("stop",), ("resume",), ("audit", "verify"), ("token", "list"), ("user", "link", "x")]
)
def test_no_command_stops_or_verifies_a_journal_that_is_not_there(machine: Machine, command: tuple[str, ...]) -> None:
    assert "there is no journal" in machine.refuses(*command)
    assert not (machine.folder / "journal.db").exists()


def test_a_new_journal_is_said_to_be_new(machine: Machine) -> None:
    assert "new journal" in machine.run("user", "add", "ada").stderr
    assert "new journal" not in machine.run("user", "add", "bob").stderr


def test_a_changed_journal_is_found_on_the_machine(machine: Machine) -> None:
    machine.said("user", "add", "ada")
    with contextlib.closing(sqlite3.connect(machine.folder / "journal.db")) as connection, connection:
        connection.execute("DROP TRIGGER events_refuse_update")
        connection.execute("UPDATE events SET actor = 'somebody' WHERE seq = 1")
    found = machine.run("audit", "verify")
    assert found.exit_code == 1
    assert "wrong_hash: event 1" in found.stdout


@pytest.mark.parametrize("command", [("serve",), ("token", "list"), ("audit", "verify"), ("stop",)])
@pytest.mark.parametrize(
    ("mistake", "named"),
    [
        (lambda text: text.replace("[intake]", "[intake]\ncolour = 1"), "intake.colour"),
        (lambda text: text.replace('credential = "move"', 'credential = "none"'), "`none`"),
        (lambda text: text.replace("quiet_seconds = 2", "quiet_seconds = "), "is not TOML"),
        (lambda text: text.replace("[review]", "[revue]"), "review"),
    ],
)
def test_a_mistake_in_the_file_is_named_by_every_command(
    machine: Machine, command: tuple[str, ...], mistake: Callable[[str], str], named: str
) -> None:
    machine.house.config.write_text(mistake(machine.house.config.read_text()))
    assert named in machine.refuses(*command)
    assert not (machine.folder / "journal.db").exists()


def test_a_file_or_a_folder_that_is_missing_is_named(machine: Machine) -> None:
    text = machine.house.config.read_text()
    machine.house.config.write_text(text.replace("/journal.db", "/nowhere/journal.db"))
    assert f"{machine.folder}/nowhere" in machine.refuses("token", "list")
    machine.house.config.unlink()
    assert "there is no such file" in machine.refuses("serve")


def test_a_journal_that_cannot_be_written_does_nothing_and_says_so(machine: Machine) -> None:
    machine.said("user", "add", "ada")
    with contextlib.closing(sqlite3.connect(machine.folder / "journal.db")) as connection:
        connection.execute("DROP TABLE switches")
        done = machine.run("stop")
    assert done.exit_code == 1
    assert "Nothing was done" in done.stderr

"""The command line: what the operator does on the machine, and what is said to a mistake."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import rfc8785
from typer.testing import CliRunner, Result

from change_executor.__main__ import app
from change_executor.journal.journal import NewProposal
from change_executor.journal.open import open_journal
from tests.end_to_end.houses import House, MailServer, write_executor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


def test_people_have_roles_and_an_administrator_is_always_left(machine: Machine) -> None:
    assert "administrator" in machine.refuses("user", "add", "ada", "--role", "reviewer")
    assert "as administrator" in machine.said("user", "add", "ada")
    machine.said("user", "add", "bob")
    assert "reviewer, administrator" in machine.refuses("user", "role", "bob", "owner")
    assert "only administrator" in machine.refuses("user", "remove", "ada")
    machine.said("user", "role", "bob", "administrator")
    machine.said("user", "remove", "ada")
    assert ["bob", "administrator", "no", "way", "in", "yet"] == machine.said("user", "list").split()


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


def test_the_audit_is_exported_and_shown(machine: Machine) -> None:
    machine.said("user", "add", "ada")
    machine.said("stop")
    exported = [json.loads(line) for line in machine.said("audit", "export").splitlines()]
    assert ["person:added", "stop:press"] == [event["kind"] for event in exported]
    assert exported[0]["hash"] == exported[1]["previous"]
    assert exported[1:] == [json.loads(line) for line in machine.said("audit", "export", "--after", "1").splitlines()]
    for event in exported:
        content = {name: value for name, value in event.items() if name != "hash"}
        assert event["hash"] == hashlib.sha256(rfc8785.dumps(content)).hexdigest()
    assert "Nothing is on record" in machine.refuses("audit", "show", "P" + "0" * 20)
    made = _propose(machine)
    for named in (made, "M" + "0" * 32):
        shown = machine.said("audit", "show", named)
        assert shown.startswith(f"{made}  pending  support: incoming to processed")
        assert "proposal:propose  agent:mailbot" in shown
        assert "texts kept: reason" in shown
        assert "A receipt" not in shown


def test_the_audit_compares_with_heads_that_were_told_elsewhere(machine: Machine) -> None:
    machine.said("user", "add", "ada")
    heads = machine.folder / "heads"
    text = machine.house.config.read_text()
    machine.house.config.write_text(text.replace("[journal]", f'[journal]\nheads_file = "{heads}"'))
    assert "cannot be read" in machine.refuses("audit", "verify")
    heads.write_text("nothing of ours\n")
    assert "tells no head" in machine.refuses("audit", "verify")
    head = json.loads(machine.said("audit", "export").splitlines()[0])["hash"]
    heads.write_text(json.dumps({"events": 1, "head": head}) + "\n")
    assert "Compared with 1 published heads" in machine.run("audit", "verify").stderr
    log = machine.folder / "log"
    log.write_text(json.dumps({"event": "journal:close", "events": 9, "head": "f" * 64}) + "\n")
    found = machine.run("audit", "verify", "--heads", str(log))
    assert (1, True) == (found.exit_code, "head_missing: event 9" in found.stdout)


def test_an_agent_is_revoked_on_the_machine_with_all_that_it_asked_for(machine: Machine) -> None:
    machine.said("token", "create", "--agent", "mailbot", "--queue", "support")
    made = _propose(machine)
    assert "1 tokens, 1 proposals ended" in machine.said("agent", "revoke", "mailbot")
    assert "0 tokens, 0 proposals ended" in machine.said("agent", "revoke", "mailbot")
    assert "withdrawn" in machine.said("audit", "show", made)
    assert machine.said("audit", "verify").startswith("5 events")


def test_a_name_that_no_agent_ever_had_is_told_from_one_that_has_nothing_left(machine: Machine) -> None:
    machine.said("token", "create", "--agent", "mailbot", "--queue", "support")
    for words in (("agent", "revoke", "{}"), ("undo", "--agent", "{}", "--since", "2026-11-29")):
        assert "" == machine.run(*(word.format("mailbot") for word in words)).stderr
        mistyped = machine.run(*(word.format("mialbot") for word in words))
        assert (0, True) == (mistyped.exit_code, "It has: mailbot." in mistyped.stderr)


def test_a_token_that_the_queue_does_not_let_propose_is_made_and_said_to_open_nothing(machine: Machine) -> None:
    text = machine.house.config.read_text()
    machine.house.config.write_text(text.replace('id = "support"', 'id = "support"\nagents = ["mailbot"]', 1))
    for agent, is_said in (("mailbot", False), ("triage", True)):
        made = machine.run("token", "create", "--agent", agent, "--queue", "support")
        assert (0, is_said) == (made.exit_code, "opens nothing" in made.stderr)


@pytest.fixture
def far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose own time is not UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_east")
def test_undo_wants_proposals_or_an_agent_and_a_moment(machine: Machine) -> None:
    made = _propose(machine)
    for arguments in ((), ("--agent", "mailbot"), ("--since", "2026-11-29"), (made, "--agent", "mailbot")):
        assert "--since" in machine.refuses("undo", *arguments)
    assert "0 asked for, 0 refused." in machine.said("undo", "--agent", "mailbot", "--since", "2026-11-29T08:00")
    asked = [json.loads(line) for line in machine.said("audit", "export").splitlines()][-1]
    since = datetime(2026, 11, 29, 8, tzinfo=UTC)
    assert ("undo:ask", int(since.timestamp()) * 1_000_000) == (asked["kind"], asked["details"]["since"])
    refused = machine.run("undo", made)
    assert (1, True) == (refused.exit_code, f"{made}: not moved back: not_applied" in refused.stdout)


def test_a_stop_says_what_is_held_and_a_stop_file_keeps_a_person_from_resuming(machine: Machine) -> None:
    _propose(machine)
    assert "0 in flight, 0 held." in machine.said("stop")
    file = machine.folder / "stop-everything"
    text = machine.house.config.read_text()
    machine.house.config.write_text(f'stop_file = "{file}"\n{text}')
    file.touch()
    assert "Remove it first" in machine.refuses("resume")
    file.unlink()
    assert "Released." in machine.said("resume")


def _propose(machine: Machine) -> str:
    journal = open_journal(f"sqlite:///{machine.folder / 'journal.db'}", lambda: datetime.now(UTC))
    new = NewProposal(
        id=f"P{1:020d}",
        agent="mailbot",
        queue="support",
        email_id="M" + "0" * 32,
        from_role="incoming",
        to_role="processed",
        expires_at=datetime(2030, 1, 1, tzinfo=UTC),
        predecessor=None,
    )
    with journal.writing() as writing:
        writing.create(new, {"reason": "A receipt"})
    journal.close()
    return new.id


def test_the_journal_is_taken_back_by_a_command_that_says_what_to_start_next(machine: Machine) -> None:
    assert "no_journal" in machine.refuses("downgrade", "--to", "0004")
    assert "* 0" not in machine.said("downgrade", "--list")
    machine.said("user", "add", "ada")
    machine.said("user", "add", "bob")
    listed = machine.said("downgrade", "--list")
    assert "* 0005  0.1.0" in listed
    assert "  0004  0.1.0" in listed
    # Without a revision nothing is done, and the revisions are what is missing.
    asked = machine.run("downgrade")
    assert (2, listed) == (asked.exit_code, asked.stdout)
    tried = machine.said("downgrade", "--to", "0003", "--dry-run")
    assert "would be taken back from 0005 to 0003" in tried
    assert "Nothing was changed." in tried
    refused = machine.refuses("downgrade", "--to", "0002")
    assert "people_would_gain_power" in refused
    assert "change-executor user remove NAME" in refused
    assert "chain_would_end" in machine.refuses("downgrade", "--to", "0001")
    assert "unknown_revision" in machine.refuses("downgrade", "--to", "base")
    assert listed == machine.said("downgrade", "--list")
    told = machine.said("downgrade", "--to", "0003")
    assert "Copied before to" in told
    assert "was taken back from 0005 to 0003, which belongs to 0.1.0" in told
    assert "the stop button is pressed" in told
    assert "sudo deploy/install" in told
    assert "* 0003" in machine.said("downgrade", "--list")
    assert "is of revision 0003 already" in machine.said("downgrade", "--to", "0003")
    assert "already_older" in machine.refuses("downgrade", "--to", "0004")
    # Who only looks changes nothing; any other command of this release is an upgrade, and nothing is lost by it.
    assert " events, head " in machine.said("audit", "verify")
    assert "* 0003" in machine.said("downgrade", "--list")
    machine.said("token", "list")
    assert " events, head " in machine.said("audit", "verify")
    assert "* 0005" in machine.said("downgrade", "--list")
    assert "Released." in machine.said("resume")
    assert "bob" in machine.said("user", "list")

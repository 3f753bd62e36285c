"""Setting up both programs in front of a real server: asked or answered, tried, and written once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import agent_reader.__main__
import change_executor.__main__
from agent_reader.config import ReaderSettings
from change_executor.config import ExecutorSettings
from shared.dialogue import Dialogue, shown, toml_string
from shared.settings import ConfigurationError, load_settings
from tests.servers.dovecot import Dovecot

if TYPE_CHECKING:
    from pathlib import Path

READER = agent_reader.__main__.app
EXECUTOR = change_executor.__main__.app


def secret(folder: Path, text: str, name: str = "secret") -> Path:
    file = folder / name
    file.write_text(text)
    file.chmod(0o400)
    return file


def answers(folder: Path, server: Dovecot, user: str, **more: Any) -> Path:
    given = {"host": "localhost", "tls": "starttls", "port": str(server.port), "user": user}
    given |= {"ca_file": str(server.ca_file)} | more
    file = folder / "answers.toml"
    file.write_text("\n".join(f"{key} = {json.dumps(value)}" for key, value in given.items()))
    return file


def test_the_reader_is_set_up_from_answers_and_the_file_is_never_written_over(dovecot: Dovecot, tmp_path: Path) -> None:
    before = dovecot.snapshot()
    password = secret(tmp_path, dovecot.passwords["reader"])
    given = answers(tmp_path, dovecot, "reader", id="shop", mailboxes="INBOX, Incoming,Bücher & Löhne")
    written = tmp_path / "reader.toml"
    arguments = ["setup", "--answers", str(given), "--secret-file", str(password), "--output", str(written)]
    done = CliRunner().invoke(READER, [*arguments, "--index", str(tmp_path / "index"), "--executor-uid", "991"])
    assert 0 == done.exit_code, done.output
    settings = load_settings(written, ReaderSettings)
    assert ("shop", ("INBOX", "Incoming", "Bücher & Löhne")) == (
        settings.accounts[0].id,
        settings.accounts[0].mailboxes,
    )
    assert (tmp_path / "index", 991) == (settings.store.folder, settings.server.executor_uid)
    assert before == dovecot.snapshot()
    kept = written.read_text()
    again = CliRunner().invoke(READER, arguments)
    assert (2, True) == (again.exit_code, "does not exist yet" in again.output)
    assert kept == written.read_text()


def test_a_person_is_asked_again_until_the_login_works(dovecot: Dovecot, tmp_path: Path) -> None:
    right = secret(tmp_path, dovecot.passwords["reader"])
    typed = [
        "shop",
        *("127.0.0.1", "tls", "70000", "1", "reader", "-"),
        *("localhost", "2", str(dovecot.port), "reader", str(dovecot.ca_file)),
        *("Nowhere", "all"),
    ]
    done = CliRunner().invoke(READER, ["setup", "--secret-file", str(right)], input="\n".join(typed) + "\n")
    assert 0 == done.exit_code, done.output
    assert "a number from 1 to 65535" in done.output
    assert "no connection" in done.output
    assert "not among them: Nowhere" in done.output
    assert f'host = "localhost"\nport = {dovecot.port}\ntls = "starttls"' in done.stdout
    assert "mailboxes" not in done.stdout
    left = CliRunner().invoke(READER, ["setup", "--secret-file", str(right)], input="shop\n")
    assert (2, True) == (left.exit_code, "nothing was written" in left.output)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"port": "x"}, "a number from 1 to 65535"),
        ({"tls": "ssl"}, "one of: tls, starttls, none"),
        ({"mailboxes": "Nowhere"}, "not among them"),
        ({"ca_file": "/nowhere.pem"}, "cannot be used"),
    ],
)
def test_a_wrong_answer_in_the_file_ends_the_set_up(
    dovecot: Dovecot, tmp_path: Path, changes: dict[str, str], words: str
) -> None:
    password = secret(tmp_path, dovecot.passwords["reader"])
    given = answers(tmp_path, dovecot, "reader", **changes)
    done = CliRunner().invoke(READER, ["setup", "--answers", str(given), "--secret-file", str(password)])
    assert (2, "") == (done.exit_code, done.stdout)
    assert words in done.output


def executor_answers(folder: Path, server: Dovecot, **more: Any) -> Path:
    given = {"account": "shop", "agent_uids": "1002", "reviewer_uids": "1000,1001"}
    return answers(folder, server, "executor", **(given | more))


def test_the_executor_is_set_up_with_the_mailboxes_that_are_there(dovecot: Dovecot, tmp_path: Path) -> None:
    before = dovecot.snapshot()
    password = secret(tmp_path, dovecot.passwords["executor"])
    written = tmp_path / "executor.toml"
    arguments = ["setup", "--answers", str(executor_answers(tmp_path, dovecot)), "--secret-file", str(password)]
    done = CliRunner().invoke(EXECUTOR, [*arguments, "--output", str(written), "--reader-uid", "998"])
    assert 0 == done.exit_code, done.output
    assert "may move both ways" in done.output
    settings = load_settings(written, ExecutorSettings)
    queue = settings.queues[0]
    assert ("Incoming", "Processed", "Escalate") == (
        queue.incoming,
        queue.to["processed"].mailbox,
        queue.to["escalate"].mailbox,
    )
    assert (frozenset({1000, 1001}), 998) == (settings.review.allow_uids, settings.reader.uid)
    assert before == dovecot.snapshot()
    said = {line.split()[1] for line in dovecot.commands("executor") if len(line.split()) > 1}
    assert not said & {b"SELECT", b"CREATE", b"UID"}


def test_what_the_rights_mean_is_said_before_anything_is_moved(narrow_dovecot: Dovecot, tmp_path: Path) -> None:
    password = secret(tmp_path, narrow_dovecot.passwords["executor"])
    arguments = ["setup", "--answers", str(executor_answers(tmp_path, narrow_dovecot)), "--secret-file", str(password)]
    done = CliRunner().invoke(EXECUTOR, arguments)
    assert 0 == done.exit_code, done.output
    assert "Undo will be refused" in done.output


def test_an_agent_that_runs_as_the_reviewer_is_said_to_be_not_separated(dovecot: Dovecot, tmp_path: Path) -> None:
    password = secret(tmp_path, dovecot.passwords["executor"])
    given = executor_answers(tmp_path, dovecot, agent_uids="1000")
    done = CliRunner().invoke(EXECUTOR, ["setup", "--answers", str(given), "--secret-file", str(password)])
    assert "is not separated" in done.output


def test_any_text_is_a_safe_toml_string_and_safe_on_a_terminal() -> None:
    import tomllib  # noqa: PLC0415 - for this test only

    hostile = '"\\\n\x00\x1b]0;x\x07\x7f\u2028é'
    assert {"key": hostile} == tomllib.loads(f"key = {toml_string(hostile)}")
    assert shown(hostile).isprintable()


def test_a_question_nobody_answers_names_its_key() -> None:
    unattended = Dialogue({}, None, lambda _: None)
    assert "tls" == unattended.choice("tls", "Security", ("tls", "none"), default="tls")
    with pytest.raises(ConfigurationError, match="`host`"):
        unattended.text("host", "Server")
    weary = Dialogue({}, lambda _: "x", lambda _: None)
    with pytest.raises(ConfigurationError, match="too often"):
        weary.text("port", "Port", check=lambda _: "wrong")

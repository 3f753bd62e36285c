"""What each program's `doctor` finds at its mail server and in what it keeps; a real Dovecot, real databases."""

from __future__ import annotations

import itertools
import json
import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import agent_reader.__main__
import change_executor.__main__
from agent_reader.doctor.rights import Enforcement, Finding, write_findings
from agent_reader.mcp.cursors import Cursors
from shared.doctor.finding import Fault, Report
from tests.deploy.doctor_houses import NOW, executor, faults, reader, secret, seen
from tests.fakes.imap_server import ScriptedImapServer
from tests.fakes.imap_world import PLAIN, ImapWorld
from tests.fakes.oauth_provider import OAuthProvider
from tests.servers.dovecot import Dovecot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    House = Callable[..., Path]


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with Dovecot() as running:
        yield running


def test_nothing_is_wrong_with_two_programs_as_they_should_be(server: Dovecot, tmp_path: Path) -> None:
    server.deliver("Incoming", b"Subject: fetched twice\r\nMessage-ID: <twice@x>\r\n\r\ntext\r\n")
    before = server.snapshot()
    for house in (reader, executor):
        report = seen(house(server, tmp_path))
        assert ((), ()) == (report.findings, report.unseen)
        assert not any("octets" in note for note in report.notes)
    assert before == server.snapshot()
    # Looking wrote nothing that would say that it was there.
    said = {line.split()[1] for line in server.commands("executor") if len(line.split()) > 1}
    assert not said & {b"SELECT", b"EXAMINE", b"UID", b"CREATE"}


@pytest.mark.parametrize("house", [reader, executor])
def test_a_login_that_does_not_work_is_found(server: Dovecot, tmp_path: Path, house: House) -> None:
    config = house(server, tmp_path)
    secret(tmp_path, "wrong")
    assert {Fault.LOGIN} == faults(seen(config))
    (tmp_path / "password").unlink()
    assert {Fault.LOGIN} == faults(seen(config))
    assert {Fault.LOGIN} == faults(seen(house(server, tmp_path, port=1)))


@pytest.mark.parametrize(
    ("sign_in", "listing", "words"),
    [
        (
            b"NO [ALERT] Application-specific password required: https://support.google.com/accounts/answer/185833",
            b"OK done",
            ("application password", "Make one"),
        ),
        (
            b"NO [ALERT] Your account is not enabled for IMAP use. (Failure)",
            b"OK done",
            ("switched off", "Switch it on"),
        ),
        (b"NO Basic authentication is disabled.", b"OK done", ("basic authentication", "`oauth`")),
        # Microsoft's, of a licence that ran out: after the login, to the next command.
        (b"OK AUTHENTICATE completed.", b"BAD User is authenticated but not connected.", ("no mailbox", "licence")),
    ],
)
def test_a_providers_own_reason_is_named_with_its_mend_wherever_a_login_is_tried(
    server: Dovecot, tmp_path: Path, sign_in: bytes, listing: bytes, words: tuple[str, str]
) -> None:
    said = []
    with ScriptedImapServer(
        lambda command: ([], listing) if command.startswith(b"LIST") else ([], b""), b"IMAP4rev1 AUTH=PLAIN"
    ) as provider:
        provider.sign_in = sign_in
        for house in (reader, executor):
            report = seen(house(server, tmp_path, port=provider.port))
            found = next(each for each in report.findings if each.fault is Fault.LOGIN)
            said.append(f"{found.what} {found.fix}")
        answers = tmp_path / "answers.toml"
        answers.write_text(
            f'id = "shop"\nhost = "127.0.0.1"\nport = "{provider.port}"\ntls = "none"\nuser = "reader"\nca_file = "-"\n'
        )
        for app in (agent_reader.__main__.app, change_executor.__main__.app):
            arguments = ["setup", "--answers", str(answers), "--secret-file", str(tmp_path / "password")]
            done = CliRunner().invoke(app, arguments)
            assert 2 == done.exit_code, done.exception
            said.append(done.output)
    assert [] == [(text, word) for text in said for word in words if word not in text]


@pytest.mark.parametrize("house", [reader, executor])
def test_a_mailbox_that_is_not_there_is_found(server: Dovecot, tmp_path: Path, house: House) -> None:
    assert {Fault.MAILBOX} == faults(seen(house(server, tmp_path, mailbox="Nowhere")))


def test_a_server_that_cannot_move_and_a_login_that_may_not_are_found(server: Dovecot, tmp_path: Path) -> None:
    assert {Fault.MOVE_RIGHTS} == faults(seen(executor(server, tmp_path, user="reader")))

    def answer(command: bytes) -> tuple[list[bytes], bytes] | None:
        listed = [b'LIST () "/" Incoming', b'LIST () "/" Processed']
        return (listed, b"OK done") if command.startswith(b"LIST") else ([], b"")

    with ScriptedImapServer(answer, b"IMAP4rev1 AUTH=PLAIN") as bare:
        report = seen(executor(server, tmp_path, port=bare.port))
    assert {Fault.CAPABILITY} == faults(report), report.findings
    assert any("tells no rights" in note for note in report.notes)


def test_each_login_is_asked_about_its_own_queues_alone(server: Dovecot, tmp_path: Path) -> None:
    config = executor(server, tmp_path)
    password = tmp_path / "another"
    password.write_text(server.passwords["reader"])
    password.chmod(0o400)
    # The other login may move nothing anywhere, and works a queue that is not there.
    config.write_text(
        f'{config.read_text()}[[credentials]]\nid = "another"\nhost = "127.0.0.1"\ntls = "none"\n'
        f'port = {server.port}\nuser = "reader"\nsecret_file = "{password}"\n'
    )
    assert () == seen(config).findings
    config.write_text(
        f'{config.read_text()}[[queues]]\nid = "gone"\ncredential = "another"\naccount = "shop"\n'
        'incoming = "Nowhere"\n[queues.to.processed]\nmailbox = "Processed"\n'
    )
    found = seen(config).findings
    assert [(Fault.MAILBOX, True)] == [(each.fault, each.what.startswith("gone:")) for each in found]


def test_a_read_login_that_may_write_is_found_where_the_server_could_keep_it_from(
    server: Dovecot, tmp_path: Path
) -> None:
    config = reader(server, tmp_path)
    write_findings(tmp_path / "index", "shop", {"Incoming": Finding(Enforcement.PROGRAM, NOW)})
    assert {Fault.LOGIN_MAY_WRITE} == faults(seen(config))
    write_findings(tmp_path / "index", "shop", {"Incoming": Finding(Enforcement.SERVER, NOW)})
    assert set() == faults(seen(config))


def test_where_a_server_has_no_rights_to_give_a_login_that_may_write_is_no_finding(
    server: Dovecot, tmp_path: Path
) -> None:
    world = ImapWorld()
    with ScriptedImapServer(world.answer, PLAIN) as scripted:
        config = reader(server, tmp_path, port=scripted.port, mailbox="INBOX")
        write_findings(tmp_path / "index", "shop", {"INBOX": Finding(Enforcement.PROGRAM, NOW)})
        assert Fault.LOGIN_MAY_WRITE not in faults(seen(config))
        assert any("by this program only" in note for note in seen(config).notes)


def test_a_server_that_gives_other_octets_the_second_time_is_found_and_what_to_do_about_it(
    server: Dovecot, tmp_path: Path
) -> None:
    times = itertools.count()
    session, other = b"X-Session: %d\r\n", b"Message-ID: <%d@x>\r\n"

    def looked(identity: str, rewriting: bytes, logins: int = 2) -> Report:
        world = ImapWorld(lambda octets: (rewriting % next(times) if rewriting else b"") + octets)
        for number in range(9):
            world.deliver("INBOX", b"Message-ID: <%d@x>\r\n\r\ntext\r\n" % number, frozenset())
        with ScriptedImapServer(
            lambda said: None if said == b"CAPABILITY" and scripted.connections > logins else world.answer(said), PLAIN
        ) as scripted:
            config = reader(server, tmp_path, port=scripted.port, mailbox="INBOX")
            config.write_text(f'{config.read_text()}identity = "{identity}"\n')
            return seen(config)

    (found,) = looked("octets", session).findings
    assert (Fault.OCTETS, True) == (found.fault, found.what.startswith("shop: octets not stable: 5 of 5 messages"))
    assert 'identity = "headers"' in found.fix
    assert () == looked("headers", session).findings
    # Where not even the fields stay, other names would not either.
    assert [False, False] == [
        'identity = "headers"' in each.fix for kind in ("octets", "headers") for each in looked(kind, other).findings
    ]
    assert any('`identity = "octets"`' in note for note in looked("headers", b"").notes)
    refused = looked("octets", session, logins=1)
    assert ((), True) == (refused.findings, "whether octets are stable" in refused.unseen[0])


@pytest.mark.parametrize(
    ("house", "name", "mended"),
    [
        (reader, "index/mail-shop.db", "the mail is read again"),
        (reader, "index/access.db", "restore access.db from a copy"),
        (reader, "index/cursors.db", "each agent's next look at the news is its first"),
        (executor, "journal.db", ""),
    ],
)
def test_a_damaged_database_is_found(server: Dovecot, tmp_path: Path, house: House, name: str, mended: str) -> None:
    config = house(server, tmp_path)
    if name.endswith("cursors.db"):
        Cursors(tmp_path / "index").close()
    file = tmp_path / name
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with file.open("r+b") as raw:
        raw.seek(4096)
        raw.write(b"\xff" * max(4096, file.stat().st_size - 8192))
    (found,) = [each for each in seen(config).findings if each.fault is Fault.DATABASE]
    assert mended in found.fix


@pytest.mark.parametrize(
    ("house", "name", "statement"),
    [
        (executor, "journal.db", "UPDATE tokens SET agent = 'mallory'"),
        (executor, "journal.db", "DELETE FROM events WHERE seq = 1"),
        (reader, "index/access.db", "UPDATE reads SET agent = 'mallory'"),
    ],
)
def test_a_row_that_was_changed_behind_the_chain_is_found(
    server: Dovecot, tmp_path: Path, house: House, name: str, statement: str
) -> None:
    config = house(server, tmp_path)
    with closing(sqlite3.connect(tmp_path / name)) as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute(statement)
        connection.commit()
    assert {Fault.CHAIN} == faults(seen(config))


def test_heads_that_are_gone_or_in_the_executors_own_hands_are_found(server: Dovecot, tmp_path: Path) -> None:
    heads = tmp_path / "heads"
    config = executor(server, tmp_path, journal=f'heads_file = "{heads}"')
    assert {Fault.HEADS} == faults(seen(config))
    heads.write_text("")
    assert {Fault.HEADS} == faults(seen(config))
    if os.geteuid() == 0:
        os.chown(heads, 65534, 65534)
        assert set() == faults(seen(config))
        heads.write_text(json.dumps({"events": 99, "head": "a" * 64}) + "\n")
        assert {Fault.CHAIN} == faults(seen(config))


@pytest.mark.parametrize("house", [reader, executor])
def test_tokens_that_end_and_a_clock_that_went_back_are_found(server: Dovecot, tmp_path: Path, house: House) -> None:
    config = house(server, tmp_path)
    assert {Fault.TOKEN_EXPIRING} == faults(seen(config, NOW + timedelta(days=80)))
    assert {Fault.TOKEN_EXPIRED} == faults(seen(config, NOW + timedelta(days=100)))
    assert {Fault.CLOCK} == faults(seen(config, NOW - timedelta(hours=1)))


@pytest.mark.parametrize("house", [reader, executor])
def test_a_disk_that_is_full_where_it_keeps_what_it_has_is_found(
    server: Dovecot, tmp_path: Path, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = house(server, tmp_path)
    asked: list[Path] = []

    def told(folder: Path) -> SimpleNamespace:
        asked.append(folder)
        return SimpleNamespace(f_frsize=4096, f_bavail=1, f_files=0, f_favail=0)

    monkeypatch.setattr("shared.doctor.upkeep.os.statvfs", told)
    assert {Fault.DISK} == faults(seen(config))
    assert [tmp_path / "index" if house is reader else tmp_path] == asked


def test_mail_from_the_future_tells_of_a_clock_that_is_behind(server: Dovecot, tmp_path: Path) -> None:
    config = reader(server, tmp_path)
    with closing(sqlite3.connect(tmp_path / "index" / "mail-shop.db")) as connection:
        columns = [(row[1], row[2], row[3]) for row in connection.execute("PRAGMA table_info(emails)")]
        at = int((NOW + timedelta(hours=2)).timestamp())
        values = {name: at if name == "received_at" else (0 if kind == "INTEGER" else "x") for name, kind, _ in columns}
        names = ", ".join(values)
        connection.execute(f"INSERT INTO emails ({names}) VALUES ({', '.join('?' * len(values))})", [*values.values()])
        connection.commit()
    assert {Fault.CLOCK} == faults(seen(config))


@pytest.mark.parametrize("house", [reader, executor])
def test_the_clock_is_compared_with_that_of_the_provider_of_a_login_by_consent(
    server: Dovecot, tmp_path: Path, house: House
) -> None:
    with OAuthProvider() as provider:
        config = house(server, tmp_path)
        text = config.read_text()
        line = next(line for line in text.splitlines() if line.startswith("secret_file"))
        consent = (
            f'oauth = {{ provider = "other", client_id = "x", token_file = "{tmp_path}/none.json", scope = "mail", '
            f'token_url = "{provider.url}/token", device_url = "{provider.url}/device" }}'
        )
        config.write_text(text.replace(line, consent))
        # There is no consent yet, which is a finding of its own.
        assert {Fault.LOGIN} == faults(seen(config, datetime.now(UTC)))
        assert {Fault.LOGIN, Fault.CLOCK} <= faults(seen(config, datetime.now(UTC) + timedelta(minutes=10)))
        assert any(
            "127.0.0.1" in each.what for each in seen(config, datetime.now(UTC) + timedelta(minutes=10)).findings
        )


@pytest.mark.parametrize("house", [reader, executor])
def test_copies_are_looked_for_beside_what_is_kept_or_where_they_are_said_to_be(
    server: Dovecot, tmp_path: Path, house: House
) -> None:
    config = house(server, tmp_path)
    assert any("no copy was ever made" in note for note in seen(config).notes)
    usual = (tmp_path / "index" if house is reader else tmp_path) / "backups"
    usual.mkdir(mode=0o700)
    assert {Fault.BACKUP_MISSING} == faults(seen(config))
    program = agent_reader.__main__.app if house is reader else change_executor.__main__.app
    arguments = ["doctor", "--part", "program", "--json", "--config", str(config), "--backups", str(tmp_path / "none")]
    said = json.loads(CliRunner().invoke(program, arguments).stdout)
    assert ["backup_missing"] == [each["code"] for each in said["findings"]]


def test_a_password_that_was_not_handed_over_is_no_finding_and_names_the_command(
    server: Dovecot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    for house, app in ((reader, agent_reader.__main__.app), (executor, change_executor.__main__.app)):
        config = house(server, tmp_path)
        text = config.read_text()
        line = next(line for line in text.splitlines() if line.startswith("secret_file"))
        config.write_text(text.replace(line, 'secret_credential = "mine"'))
        done = CliRunner().invoke(app, ["doctor", "--part", "program", "--config", str(config)])
        assert 2 == done.exit_code, done.output
        assert "sudo mailwarrant-doctor" in done.output


def test_the_command_says_it_in_text_and_in_json_and_by_its_status(server: Dovecot, tmp_path: Path) -> None:
    for house, app, name in (
        (reader, agent_reader.__main__.app, "agent-reader"),
        (executor, change_executor.__main__.app, "change-executor"),
    ):
        arguments = ["doctor", "--part", "program", "--config", str(house(server, tmp_path))]
        fine = CliRunner().invoke(app, arguments)
        assert (0, True) == (fine.exit_code, f"{name}: nothing wrong was found" in fine.output)
        secret(tmp_path, "wrong")
        wrong = CliRunner().invoke(app, [*arguments, "--json"])
        said = json.loads(wrong.stdout)
        assert (1, name, "login") == (wrong.exit_code, said["program"], said["findings"][0]["code"])
        assert {"code", "what", "why", "fix"} == said["findings"][0].keys()
        missing = CliRunner().invoke(app, ["doctor", "--config", str(tmp_path / "none.toml")])
        assert missing.exit_code != 0

"""Whether the server keeps the read login from writing: found out on real rights, and kept with its date."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from agent_reader.__main__ import app
from agent_reader.doctor.probe_rights import PROBE_TABLE, probe_rights
from agent_reader.doctor.rights import Enforcement, Finding, overall, read_findings, rights_file, write_findings
from shared.imap_login import ImapFailure
from tests.fakes.accounts import plain_account, reader_account
from tests.fakes.imap_server import ScriptedImapServer
from tests.servers.dovecot_config import INCOMING, MAILBOXES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.dovecot import Dovecot

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


def test_a_login_with_lr_is_kept_from_writing_by_the_server_and_one_with_all_rights_is_not(
    dovecot: Dovecot, tmp_path: Path
) -> None:
    dovecot.deliver(INCOMING, b"Subject: one\r\n\r\ntext\r\n")
    before = dovecot.snapshot()
    found = probe_rights(reader_account(dovecot, tmp_path), None, lambda: AT)
    assert dict.fromkeys(MAILBOXES, Finding(Enforcement.SERVER, AT)) == found
    owner = tmp_path / "owner.secret"
    owner.write_text(dovecot.passwords["owner"])
    owner.chmod(0o400)
    as_owner = reader_account(dovecot, tmp_path, user="owner", secret_file=owner)
    found = probe_rights(as_owner, [INCOMING, "There is none"], lambda: AT)
    assert {INCOMING: Enforcement.PROGRAM, "There is none": Enforcement.UNKNOWN} == {
        name: finding.enforcement for name, finding in found.items()
    }
    # What SELECT does: \Recent ends for the others, and nothing else.
    after = dovecot.snapshot().mailboxes[INCOMING]
    assert before.mailboxes[INCOMING].messages.keys() == after.messages.keys()
    assert (1, 0) == (before.mailboxes[INCOMING].recent, after.recent)
    said = {line.split()[1] for line in dovecot.commands("reader") if len(line.split()) > 1}
    assert {b"SELECT", b"LIST"} <= said <= PROBE_TABLE.arguments.keys()


def test_a_server_that_breaks_off_is_a_failure_and_no_finding(tmp_path: Path) -> None:
    said: list[bytes] = []

    def answer(command: bytes) -> tuple[list[bytes], bytes] | None:
        said.append(command.split()[0])
        return None if command.startswith(b"SELECT") else (answered(command), b"OK done")

    with ScriptedImapServer(answer, CAPABILITIES) as server, pytest.raises(ImapFailure) as failure:
        probe_rights(plain_account(server.port, tmp_path), ["INBOX"], lambda: AT)
    assert failure.value.retryable
    assert b"SELECT" == said[-1]


CAPABILITIES = b"IMAP4rev1 AUTH=PLAIN"


def answered(command: bytes) -> list[bytes]:
    """Untagged, to what every session says."""
    return [b"CAPABILITY " + CAPABILITIES] if command == b"CAPABILITY" else []


def test_what_cannot_be_opened_is_not_asked_for(tmp_path: Path) -> None:
    listed = [b'LIST (\\NoSelect) "/" Shared', b'LIST () "/" INBOX']

    def answer(command: bytes) -> tuple[list[bytes], bytes]:
        return (listed if command.startswith(b"LIST") else answered(command)), b"OK done"

    with ScriptedImapServer(answer, CAPABILITIES) as server:
        found = probe_rights(plain_account(server.port, tmp_path), None, lambda: AT)
    assert {"INBOX": Finding(Enforcement.PROGRAM, AT)} == found


def test_findings_are_written_through_no_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("kept")
    file = rights_file(tmp_path, "shop")
    file.with_name(f"{file.name}.new").symlink_to(tmp_path / "elsewhere")
    write_findings(tmp_path, "shop", {"INBOX": Finding(Enforcement.SERVER, AT)})
    assert "kept" == (tmp_path / "elsewhere").read_text()
    assert {"INBOX": Finding(Enforcement.SERVER, AT)} == read_findings(tmp_path, "shop")


def test_findings_are_kept_and_a_damaged_file_is_none(tmp_path: Path) -> None:
    assert {} == read_findings(tmp_path, "shop")
    findings = {"Bücher & Löhne": Finding(Enforcement.SERVER, AT), "INBOX": Finding(Enforcement.UNKNOWN, AT)}
    write_findings(tmp_path, "shop", findings)
    assert findings == read_findings(tmp_path, "shop")
    assert 0o600 == rights_file(tmp_path, "shop").stat().st_mode & 0o777
    for damaged in ("", "[]", '{"INBOX": 1}', '{"INBOX": {"enforcement": "maybe", "at": "2026-01-01"}}'):
        rights_file(tmp_path, "shop").write_text(damaged)
        assert {} == read_findings(tmp_path, "shop")


def test_the_command_keeps_what_it_found_and_says_it(dovecot: Dovecot, tmp_path: Path) -> None:
    account = reader_account(dovecot, tmp_path)
    assert account.secret_file is not None
    (tmp_path / "index").mkdir(mode=0o700)
    config = tmp_path / "reader.toml"
    config.write_text(
        f'[store]\nurl = "sqlite:///{tmp_path}/index"\n[[accounts]]\nid = "shop"\nhost = "{account.host}"\n'
        f'port = {account.port}\nuser = "reader"\nca_file = "{account.ca_file}"\n'
        f'secret_file = "{account.secret_file}"\n'
        f'mailboxes = ["INBOX", "{INCOMING}"]\n'
    )
    before = CliRunner().invoke(app, ["doctor", "--part", "program", "--config", str(config)])
    assert (0, True) == (before.exit_code, "shop: read-only by this program only" in before.output)
    done = CliRunner().invoke(app, ["doctor", "--part", "program", "--probe-rights", "--config", str(config)])
    assert 0 == done.exit_code, done.output
    assert "shop: read-only enforced by the server" in done.output
    assert {"INBOX", INCOMING} == read_findings(tmp_path / "index", "shop").keys()
    assert done.output == CliRunner().invoke(app, ["doctor", "--part", "program", "--config", str(config)]).output
    account.secret_file.chmod(0o600)
    account.secret_file.write_text("wrong")
    failed = CliRunner().invoke(app, ["doctor", "--part", "program", "--probe-rights", "--config", str(config)])
    assert 1 == failed.exit_code
    assert "refused the login" in failed.output


@pytest.mark.parametrize(
    ("kinds", "weakest"),
    [
        ([], Enforcement.PROGRAM),
        ([Enforcement.SERVER], Enforcement.SERVER),
        ([Enforcement.SERVER, Enforcement.UNKNOWN], Enforcement.UNKNOWN),
        ([Enforcement.SERVER, Enforcement.UNKNOWN, Enforcement.PROGRAM], Enforcement.PROGRAM),
    ],
)
def test_the_weakest_mailbox_counts(kinds: list[Enforcement], weakest: Enforcement) -> None:
    assert weakest is overall({str(number): Finding(kind, AT) for number, kind in enumerate(kinds)})

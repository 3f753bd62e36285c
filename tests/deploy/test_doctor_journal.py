"""The executor's doctor and what only its journal and its heads show: each by itself."""

from __future__ import annotations

import secrets
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import PosixPath
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from change_executor.config import ExecutorSettings
from change_executor.doctor.program import heads_told, look_at_program
from change_executor.intake.proposer_tokens import create_token, revoke_token
from change_executor.journal.open import open_journal
from shared.doctor.finding import Fault, Looking, Report
from shared.settings import settings_from

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def seen(folder: Path, at: datetime = NOW) -> Report:
    """What is found with a mail server that is not there, which is left out."""
    said: dict[str, Any] = {
        "review": {"allow_uids": [1500]},
        "journal": {"url": f"sqlite:///{folder}/journal.db"},
        "credentials": [
            {
                "id": "move",
                "host": "127.0.0.1",
                "tls": "none",
                "port": 9,
                "user": "mover",
                "secret_credential": "move",
            }
        ],
        "queues": [
            {
                "id": "support",
                "credential": "move",
                "account": "shop",
                "incoming": "Incoming",
                "to": {"processed": {"mailbox": "Processed"}},
            }
        ],
    }
    report = look_at_program(settings_from(said, ExecutorSettings, "executor.toml"), lambda: at)
    return Report(tuple(each for each in report.findings if each.fault is not Fault.LOGIN), (), report.notes)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One with a journal that has three agents' tokens, one of them revoked."""
    tmp_path.chmod(0o700)
    with closing(open_journal(f"sqlite:///{tmp_path}/journal.db", lambda: NOW)) as journal:
        for agent in ("triage", "other", "gone"):
            made = create_token(journal, agent=agent, queue="support", days=90, random_octets=secrets.token_bytes)
        revoke_token(journal, made.id)
    return tmp_path


def test_of_a_token_that_was_revoked_nothing_is_said(folder: Path) -> None:
    assert () == seen(folder).findings
    found = seen(folder, NOW + timedelta(days=80)).findings
    assert {Fault.TOKEN_EXPIRING} == {each.fault for each in found}
    assert {"triage (support)", "other (support)"} == {each.what.split(" of ")[1].split(" ends ")[0] for each in found}


def test_a_file_whose_pages_do_not_add_up_is_found_though_every_row_can_be_read(folder: Path) -> None:
    file = folder / "journal.db"
    octets = bytearray(file.read_bytes())
    # How many pages are free, as the file says itself (https://sqlite.org/fileformat2.html, offset 36).
    octets[36:40] = (5).to_bytes(4)
    file.write_bytes(octets)
    assert [Fault.DATABASE] == [each.fault for each in seen(folder).findings]


class Closed(PosixPath):
    """A file that this user may not read, whoever runs the test."""

    def open(self, *_: object, **__: object) -> NoReturn:
        raise PermissionError(13, "Permission denied")


def test_heads_that_may_be_added_to_and_not_read_are_not_looked_at_and_no_finding(folder: Path) -> None:
    looking = Looking()
    assert {} == heads_told(Closed(folder / "heads"), folder / "journal.db", looking)
    report = looking.report()
    assert () == report.findings
    assert "audit verify --heads" in report.unseen[0]
    assert {} == heads_told(None, folder / "journal.db", looking)

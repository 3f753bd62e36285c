"""The reader's files copied while they are in use, and put back: tokens open, reads verify, old states are foreign."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from agent_reader.access import Access
from agent_reader.backing_up import backup_files, restore_files
from agent_reader.listening import sole_use_of
from agent_reader.store import CannotCalculateChanges, DataType
from shared.problem import Problem
from shared.settings import ConfigurationError
from tests.agent_reader.mirrored import ACCOUNT, Mirrored, fetched, id_of, letter, mirrored

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def access(folder: Path) -> Access:
    return Access(folder, lambda: NOW, secrets.token_bytes)


def filled(account: Mirrored, count: int = 20) -> None:
    account.begin("INBOX")
    account.add(
        "INBOX", *(fetched(uid, letter(f"words number{uid}", subject=f"s{uid}")) for uid in range(1, count + 1))
    )
    account.end_round()


def test_a_copy_in_use_is_put_back_and_answers_as_before_but_for_its_states(tmp_path: Path) -> None:
    folder, copies = tmp_path / "store", tmp_path / "copies"
    with mirrored(folder) as account, access(folder) as doors:
        filled(account)
        token = doors.create_token("bot").text
        state = account.state()
        copy = backup_files(folder, copies, NOW)
        # What comes afterwards is not in it, and had states of its own.
        account.add("INBOX", fetched(21, letter("later")))
        later = account.state()
    assert {"access.db", f"mail-{ACCOUNT}.db", "manifest.json"} == {each.name for each in copy.iterdir()}
    shutil.rmtree(folder)
    restored = restore_files(folder, copy, secrets.token_bytes)
    assert {"access.db", f"mail-{ACCOUNT}.db"} == set(restored)
    with mirrored(folder) as account, access(folder) as doors:
        assert {id_of(letter("words number7", subject="s7"))} == account.found(text="number7")
        assert 20 == len(account.found())
        for told in (state, later):
            with pytest.raises(CannotCalculateChanges):
                account.changes(DataType.EMAIL, told)
        account.add("INBOX", fetched(21, letter("later")))
        assert {id_of(letter("later"))} == account.found(text="later")
        assert not isinstance(doors.authenticate(f"Bearer {token}"), Problem)
    for file in folder.iterdir():
        assert not file.stat().st_mode & 0o077, file


def test_nothing_is_written_over_and_no_copy_is_put_back_under_a_running_reader(tmp_path: Path) -> None:
    folder, copies = tmp_path / "store", tmp_path / "copies"
    with mirrored(folder) as account, access(folder):
        filled(account, 2)
        copy = backup_files(folder, copies, NOW)
    with pytest.raises(ConfigurationError, match="is there already"):
        restore_files(folder, copy, secrets.token_bytes)
    elsewhere = tmp_path / "elsewhere"
    with sole_use_of(elsewhere), pytest.raises(ConfigurationError, match="another agent-reader"):
        restore_files(elsewhere, copy, secrets.token_bytes)
    assert ["reader.lock"] == [each.name for each in elsewhere.iterdir()]


def test_a_copy_may_leave_the_index_out_and_only_the_newest_are_kept(tmp_path: Path) -> None:
    folder, copies = tmp_path / "store", tmp_path / "copies"
    with mirrored(folder) as account, access(folder):
        filled(account, 2)
        made = [
            backup_files(folder, copies, NOW + timedelta(minutes=minute), keep=2, with_index=False)
            for minute in range(4)
        ]
    assert set(made[2:]) == set(copies.iterdir())
    assert {"access.db", "manifest.json"} == {each.name for each in made[-1].iterdir()}
    with pytest.raises(ConfigurationError, match="nothing to copy"):
        backup_files(tmp_path / "empty", copies, NOW)


def test_what_probes_found_comes_along_and_a_copy_of_newer_tables_is_refused(tmp_path: Path) -> None:
    folder, copies = tmp_path / "store", tmp_path / "copies"
    with mirrored(folder) as account, access(folder):
        filled(account, 1)
        (folder / "rights-main.json").write_text("{}")
        copy = backup_files(folder, copies, NOW)
    assert "rights-main.json" in {each.name for each in copy.iterdir()}
    manifest = copy / "manifest.json"
    told = manifest.read_text()
    for file in json.loads(told)["files"]:
        if file["version"] is not None:
            newer = told.replace(f'"version": "{file["version"]}"', '"version": "9999"')
            manifest.write_text(newer)
            with pytest.raises(ConfigurationError, match="version 9999"):
                restore_files(tmp_path / "back", copy, secrets.token_bytes)
            assert not list((tmp_path / "back").glob("*.db"))
    manifest.write_text(told)
    # A log of a file that is not there any more would be taken for this one's.
    (tmp_path / "back").mkdir(exist_ok=True)
    (tmp_path / "back" / "access.db-wal").write_text("")
    with pytest.raises(ConfigurationError, match="is there already"):
        restore_files(tmp_path / "back", copy, secrets.token_bytes)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can own what is another user's")
def test_root_makes_no_files_in_a_store_of_another_user(tmp_path: Path) -> None:
    folder, copies = tmp_path / "store", tmp_path / "copies"
    with mirrored(folder) as account, access(folder):
        filled(account, 1)
        copy = backup_files(folder, copies, NOW)
    (tmp_path / "theirs").mkdir()
    for place in (folder, tmp_path / "theirs"):
        os.chown(place, 12345, 12345)
    with pytest.raises(ConfigurationError, match="12345"):
        backup_files(folder, copies, NOW + timedelta(days=1))
    with pytest.raises(ConfigurationError, match="12345"):
        restore_files(tmp_path / "theirs", copy, secrets.token_bytes)

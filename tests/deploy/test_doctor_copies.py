"""The doctor and what wears out: copies, where units put them and when one should be there; disks, clock, tokens."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from shared.doctor.copying import BY_HAND, OLDEST_BACKUP, Copying, copying_by, look_at_backup, look_at_copies
from shared.doctor.finding import Fault, Looking, Report
from shared.doctor.upkeep import look_at_date, look_at_disk, look_at_temporary, look_at_tokens

NAME = "change-executor-backup"
UNITS = Path(__file__).parents[2] / "deploy" / "systemd"
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def enable(units: Path, at: datetime) -> None:
    link = units / "timers.target.wants" / f"{NAME}.timer"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(units / f"{NAME}.timer")
    os.utime(link, (at.timestamp(),) * 2, follow_symlinks=False)


def drop_in(units: Path, text: str) -> None:
    folder = units / f"{NAME}.service.d"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "override.conf").write_text(f"[Service]\n{text}\n")


def faults(report: Report) -> set[Fault]:
    return {each.fault for each in report.findings}


def seen(copying: Copying, state: Path) -> tuple[set[Fault], list[str]]:
    looking = Looking()
    look_at_copies(copying, state, "make one", lambda: NOW, looking)
    report = looking.report()
    return faults(report), list(report.notes)


def test_it_is_read_from_the_units_where_copies_go_and_since_when(tmp_path: Path) -> None:
    assert BY_HAND == copying_by(tmp_path, NAME)
    (tmp_path / f"{NAME}.service").write_text((UNITS / f"{NAME}.service").read_text())
    enable(tmp_path, NOW)
    assert Copying(None, NOW) == copying_by(tmp_path, NAME)
    assert Copying(Path("/named"), NOW) == copying_by(tmp_path, NAME, Path("/named"))


@pytest.mark.parametrize(
    ("words", "folder"),
    [
        ("--keep 14 --to /srv/copies/executor", Path("/srv/copies/executor")),
        ("--to=/srv/copies/executor --keep 14", Path("/srv/copies/executor")),
        ("--to '/srv/two words'", Path("/srv/two words")),
        ("--keep 14", None),
        ("--to", None),
        ("--to 'no end", None),
    ],
)
def test_a_drop_in_that_puts_them_elsewhere_is_followed(tmp_path: Path, words: str, folder: Path | None) -> None:
    (tmp_path / f"{NAME}.service").write_text((UNITS / f"{NAME}.service").read_text())
    drop_in(tmp_path, f"ExecStart=\nExecStart=/opt/mailwarrant/executor/bin/change-executor backup {words}")
    assert folder == copying_by(tmp_path, NAME).folder


@pytest.mark.parametrize("elsewhere", [False, True])
def test_the_first_copy_of_a_timer_is_missed_when_it_is_due_and_no_sooner(tmp_path: Path, elsewhere: bool) -> None:
    folder = tmp_path / "srv" if elsewhere else None
    young, old = (Copying(folder, NOW - OLDEST_BACKUP + timedelta(hours=hours)) for hours in (1, -1))
    assert (set(), []) == seen(young, tmp_path)
    assert ({Fault.BACKUP_MISSING}, []) == seen(old, tmp_path)
    # An empty folder is no copy; nor is one that is being made.
    copies = folder or tmp_path / "backups"
    copies.mkdir(mode=0o700)
    (copies / ".2026-11-30T11-00-00Z.1").mkdir()
    assert (set(), []) == seen(young, tmp_path)
    assert ({Fault.BACKUP_MISSING}, []) == seen(old, tmp_path)
    copy = copies / "2026-11-30T11-00-00Z"
    copy.mkdir()
    os.utime(copy, (NOW.timestamp(),) * 2)
    assert (set(), []) == seen(old, tmp_path) == seen(young, tmp_path)
    # What is there is looked at from the first day on.
    copies.chmod(0o755)
    assert ({Fault.BACKUP_READABLE}, []) == seen(young, tmp_path)


def test_where_no_timer_is_on_a_note_says_that_nobody_makes_any(tmp_path: Path) -> None:
    assert (set(), [f"no copy was ever made in {tmp_path}/backups: make one"]) == seen(BY_HAND, tmp_path)
    assert ({Fault.BACKUP_MISSING}, []) == seen(Copying(tmp_path / "named"), tmp_path)


def test_copies_that_are_missing_old_or_open_are_found(tmp_path: Path) -> None:
    def found() -> set[Fault]:
        looking = Looking()
        look_at_backup(tmp_path / "copies", "backup", lambda: NOW, looking)
        return faults(looking.report())

    assert {Fault.BACKUP_MISSING} == found()
    (tmp_path / "copies").mkdir(mode=0o700)
    assert {Fault.BACKUP_MISSING} == found()
    copy = tmp_path / "copies" / "one"
    copy.touch()
    os.utime(copy, (NOW.timestamp(), NOW.timestamp()))
    assert set() == found()
    os.utime(copy, ((NOW - timedelta(days=3)).timestamp(),) * 2)
    assert {Fault.BACKUP_OLD} == found()
    # The newest counts, however old the others are.
    newer = tmp_path / "copies" / "two"
    newer.touch()
    os.utime(newer, (NOW.timestamp(),) * 2)
    assert set() == found()
    newer.unlink()
    (tmp_path / "copies").chmod(0o755)
    assert {Fault.BACKUP_OLD, Fault.BACKUP_READABLE} == found()


def test_a_full_disk_and_a_wrong_clock_are_found(tmp_path: Path) -> None:
    looking = Looking()
    look_at_disk(tmp_path, looking, least=1)
    look_at_date("Mon, 30 Nov 2026 02:00:00 GMT", "the provider", datetime(2026, 11, 30, 2, 1, tzinfo=UTC), looking)
    look_at_temporary(looking, [tmp_path], least=1)
    look_at_date("nonsense", "the provider", NOW, looking)
    look_at_date(None, "the provider", NOW, looking)
    assert [] == looking.findings
    look_at_disk(tmp_path, looking, least=2**62)
    look_at_temporary(looking, [tmp_path], least=2**62)
    look_at_date("Mon, 30 Nov 2026 02:00:00 GMT", "the provider", datetime(2026, 11, 30, 3, tzinfo=UTC), looking)
    assert {Fault.DISK, Fault.TEMPORARY_FULL, Fault.CLOCK} == faults(looking.report())


@dataclass(frozen=True, slots=True)
class Room:
    """What a file system says of itself (statvfs(3)): blocks of a MiB, and files; roomy, but for what is given."""

    blocks: int = 1024
    files: int = 1000
    free_files: int = 900

    def told(self, _: Path) -> SimpleNamespace:
        return SimpleNamespace(f_frsize=1024 * 1024, f_bavail=self.blocks, f_files=self.files, f_favail=self.free_files)


@pytest.mark.parametrize(
    ("room", "faults_of_state", "faults_of_temporary"),
    [
        (Room(files=0, free_files=0), set(), set()),
        (Room(blocks=1), {Fault.DISK}, {Fault.TEMPORARY_FULL}),
        (Room(free_files=0), {Fault.DISK}, {Fault.TEMPORARY_FULL}),
        (Room(free_files=99), set(), {Fault.TEMPORARY_FULL}),
    ],
    ids=["files are not counted", "no octets", "no files", "few files"],
)
def test_room_is_octets_and_files_where_a_file_system_counts_them(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    room: Room,
    faults_of_state: set[Fault],
    faults_of_temporary: set[Fault],
) -> None:
    monkeypatch.setattr("shared.doctor.upkeep.os.statvfs", room.told)
    state, temporary = Looking(), Looking()
    look_at_disk(tmp_path, state)
    look_at_temporary(temporary, [tmp_path])
    assert (faults_of_state, faults_of_temporary) == (faults(state.report()), faults(temporary.report()))


def test_an_agent_with_a_newer_token_is_not_told_of_the_old_one() -> None:
    looking = Looking()
    old, new = ("old", "triage", NOW - timedelta(days=1)), ("new", "triage", NOW + timedelta(days=60))
    look_at_tokens([old, new], NOW, "make", looking)
    assert [] == looking.findings
    look_at_tokens([old], NOW, "make", looking)
    assert {Fault.TOKEN_EXPIRED} == faults(looking.report())

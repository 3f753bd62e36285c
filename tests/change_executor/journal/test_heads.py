"""Heads that are told outside the journal find what the chain alone cannot: one made anew, and yesterday's copy."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
import rfc8785
import structlog
from structlog.testing import capture_logs

from change_executor.audit import Fault, verify
from change_executor.errors import JournalUnavailable
from change_executor.heads import OPENED, TOLD, HeadPublisher, heads_together, newest_told, published_heads
from change_executor.journal.open import open_journal
from shared.settings import ConfigurationError
from tests.change_executor.journal.clock import MovableClock, new_proposal
from tests.change_executor.journal.test_group import until
from tests.servers.small_disk import small_disk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from change_executor.journal.journal import Journal

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


@pytest.fixture
def heads(tmp_path: Path) -> Path:
    file = tmp_path / "heads"
    file.touch()
    return file


_NO_HEADS = (
    *("", "no line of ours", "{broken", "[1]", '{"events": 7, "head": "abc"}', "{" * 100_000),
    *(json.dumps({"events": events, "head": "f" * 64}) for events in (0, -1, True, "1", None)),
)


def publisher(journal: Journal, file: Path | None, every_seconds: float = 0.001) -> HeadPublisher:
    return HeadPublisher(journal, structlog.get_logger(), file=file, every_seconds=every_seconds)


def append(journal: Journal, count: int = 1) -> None:
    for _ in range(count):
        with journal.writing() as writing:
            writing.append("test:event", "x", "operator")


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_the_head_is_told_at_the_start_after_commits_and_at_the_end(journal: Journal, heads: Path) -> None:
    append(journal, 2)
    telling = publisher(journal, heads)
    telling.start()
    assert [("journal:open", 2)] == [(line["event"], line["events"]) for line in lines(heads)]
    append(journal, 3)
    until(lambda: 5 in published_heads(heads.read_text().splitlines()))
    telling.stop()
    assert () == journal._listeners
    assert ("journal:close", 5) == (lines(heads)[-1]["event"], lines(heads)[-1]["events"])
    with journal.reading() as connection:
        assert () == verify(connection, published_heads(heads.read_text().splitlines())).findings


def test_a_head_that_could_not_be_read_is_told_without_waiting_for_another_commit(
    journal: Journal, heads: Path
) -> None:
    failing = threading.Event()

    class Failing:
        now, listen, unlisten = journal.now, journal.listen, journal.unlisten

        @contextlib.contextmanager
        def reading(self) -> Iterator[Connection]:
            if failing.is_set():
                failing.clear()
                raise JournalUnavailable("locked")
            with journal.reading() as connection:
                yield connection

    telling = publisher(cast("Journal", Failing()), heads)
    telling.start()
    failing.set()
    append(journal)
    until(lambda: 1 in published_heads(heads.read_text().splitlines()))
    telling.stop()


def test_a_commit_without_an_event_tells_nothing_again(journal: Journal, heads: Path) -> None:
    append(journal)
    telling = publisher(journal, heads)
    telling._tell(OPENED)
    telling._tell(TOLD)
    assert ["journal:open"] == [line["event"] for line in lines(heads)]
    append(journal)
    telling._tell(TOLD)
    telling.close()
    assert [1, 2] == [line["events"] for line in lines(heads)]


def test_what_a_command_of_another_process_committed_is_told_too(journal: Journal, url: str, heads: Path) -> None:
    telling = publisher(journal, heads, every_seconds=0.02)
    telling.start()
    # Another connection to the same file: nobody here hears of its commit.
    with closing(open_journal(url, MovableClock())) as command:
        append(command)
    until(lambda: 1 in published_heads(heads.read_text().splitlines()))
    telling.stop()


def test_it_is_told_no_more_often_than_configured(journal: Journal, heads: Path) -> None:
    telling = publisher(journal, heads, every_seconds=3600)
    telling.start()
    append(journal)
    until(lambda: len(lines(heads)) == 1)
    append(journal, 20)
    telling.stop()
    assert ["journal:head", "journal:close"] == [line["event"] for line in lines(heads)]


def test_the_log_tells_it_too_and_a_log_is_compared_like_the_file(journal: Journal) -> None:
    append(journal)
    with capture_logs() as logged:
        telling = publisher(journal, None)
        telling.start()
        telling.stop()
    written = [f"Nov 30 host change-executor[7]: {json.dumps(line)}" for line in logged]
    with journal.reading() as connection:
        assert {1: verify(connection).head} == published_heads([*written, *_NO_HEADS])


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 64) as folder:
        yield folder


@needs_root
def test_a_full_disk_of_the_heads_loses_none_that_was_told_and_gets_the_newest_once_there_is_room(
    journal: Journal, disk: Path
) -> None:
    file, filler = disk / "heads", disk / "filler"
    # A few octets before the end of its only block: the next line is torn.
    file.write_bytes(b"\n" * 4000)
    with filler.open("wb", buffering=0) as filling, contextlib.suppress(OSError):
        while filling.write(b"x" * 4096):
            pass
    append(journal)
    with capture_logs() as logged:
        telling = publisher(journal, file, every_seconds=0.02)
        telling.start()
        assert (4096, "journal:head_not_written") == (file.stat().st_size, logged[-1]["event"])
        append(journal, 3)
        until(lambda: "head_not_written" in str(logged) and any(line.get("events") == 4 for line in logged))
        assert {} == published_heads(file.read_text().splitlines())
        filler.unlink()
        # Nothing else is committed.
        until(lambda: 4 in published_heads(file.read_text().splitlines()))
        until(lambda: logged[-1]["event"] == "journal:head_written_again")
        append(journal)
        telling.stop()
    # Said once, and not each time that it is tried.
    assert 1 == sum(line["event"] == "journal:head_not_written" for line in logged)
    with journal.reading() as connection:
        found = published_heads(file.read_text().splitlines())
        assert ({4, 5}, ()) == (set(found), verify(connection, found).findings)


def test_a_line_that_a_full_disk_tore_hides_no_other(journal: Journal, heads: Path) -> None:
    append(journal)
    heads.write_text('{"at": "2026-11-30T09:00:00+00:00", "ev')
    telling = publisher(journal, heads)
    telling.start()
    append(journal)
    telling.stop()
    assert {1, 2} == set(published_heads(heads.read_text().splitlines()))


def test_a_file_that_its_owner_takes_away_is_missed_and_the_one_put_in_its_place_is_gone_on_in(
    journal: Journal, heads: Path
) -> None:
    append(journal)
    with capture_logs() as logged:
        telling = publisher(journal, heads)
        telling._tell(OPENED)
        rotated = heads.rename(heads.with_name("heads.1"))
        append(journal)
        telling._tell(TOLD)
        assert ("journal:head_not_written", "No such file or directory") == (logged[-1]["event"], logged[-1]["error"])
        heads.touch()
        telling._tell(TOLD)
        assert "journal:head_written_again" == logged[-1]["event"]
        append(journal)
        telling._tell(TOLD)
        telling.close()
    assert ([1], [2, 3]) == ([line["events"] for line in lines(rotated)], [line["events"] for line in lines(heads)])


def test_the_newest_head_is_that_of_the_last_whole_line(tmp_path: Path) -> None:
    file = tmp_path / "heads"
    assert newest_told(None) is None
    assert newest_told(file) is None
    told = [json.dumps({"events": number, "head": f"{number:064x}"}) for number in (7, 5)]
    file.write_text("\n".join([*told, *_NO_HEADS, told[0][:40]]))
    assert newest_told(file) is None
    file.write_text("\n".join([told[0], *_NO_HEADS, *told, told[0][:40]]))
    assert (5, f"{5:064x}") == newest_told(file)


def test_a_file_that_cannot_be_appended_to_stops_the_start(journal: Journal, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="heads_file"):
        publisher(journal, tmp_path / "nowhere" / "heads")
    with pytest.raises(ConfigurationError, match="another user"):
        publisher(journal, tmp_path / "not-made")


@needs_root
def test_the_file_of_another_user_is_appended_to_and_cannot_be_read() -> None:
    """As the executor's user, which the mode lets write; `chattr +a` would keep it from more than appending."""
    with tempfile.TemporaryDirectory() as folder:
        _append_as_another(Path(folder) / "heads")


def _append_as_another(file: Path) -> None:
    file.parent.chmod(0o755)
    file.touch()
    os.chown(file, 0, 65534)
    file.chmod(0o620)
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom change_executor.heads import _appendable\n"
        "os.setgid(65534); os.setgroups([]); os.setuid(65533)\n"
        "os.write(_appendable(Path(sys.argv[1])), b'{}\\n')\n"
        "try:\n    open(sys.argv[1])\nexcept PermissionError:\n    print('unreadable')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(file)], capture_output=True, text=True, timeout=60, check=True
    )
    assert ("unreadable\n", "{}\n") == (done.stdout, file.read_text())


def test_a_copy_of_yesterday_ends_before_a_head_that_was_published(
    journal: Journal, url: str, heads: Path, tmp_path: Path, clock: MovableClock
) -> None:
    append(journal, 3)
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as live:
        yesterday = sqlite3.connect(":memory:")
        live.backup(yesterday)
    telling = publisher(journal, heads, every_seconds=3600)
    telling.start()
    append(journal)
    until(lambda: len(lines(heads)) == 2)
    append(journal)
    telling.stop()
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as live:
        yesterday.backup(live)
        yesterday.close()
    with journal.reading() as connection:
        assert () == verify(connection).findings
        found = verify(connection, published_heads(heads.read_text().splitlines())).findings
    assert {(Fault.HEAD_MISSING, "event 4"), (Fault.HEAD_MISSING, "event 5")} == {
        (each.fault, each.subject) for each in found
    }
    # Once the copy has lived on past that number, its events have other hashes; and what it tells of them, to this file
    # or to another, takes back nothing that was told before.
    clock.advance(days=1)
    another = tmp_path / "another"
    another.touch()
    for number, file in enumerate((heads, another)):
        append(journal)
        with contextlib.closing(publisher(journal, file)) as again:
            again.start()
        told = [published_heads(each.read_text().splitlines()) for each in (heads, another)]
        assert 4 + number in told[number]
        with journal.reading() as connection:
            found = verify(connection, heads_together(*told)).findings
        assert (Fault.HEAD_DIFFERS, f"event {4 + number}") in {(each.fault, each.subject) for each in found}


def test_a_chain_made_anew_from_a_point_has_another_hash_where_one_was_published(
    journal: Journal, url: str, heads: Path, clock: MovableClock
) -> None:
    with journal.writing() as writing:
        writing.create(new_proposal(1))
    append(journal, 4)
    telling = publisher(journal, heads)
    telling.start()
    telling.stop()
    clock.advance(hours=1)
    append(journal, 2)
    make_anew(url, from_seq=3)
    with journal.reading() as connection:
        assert () == verify(connection).findings
        found = verify(connection, published_heads(heads.read_text().splitlines())).findings
    assert {(Fault.HEAD_DIFFERS, "event 5")} == {(each.fault, each.subject) for each in found}


def make_anew(url: str, from_seq: int) -> None:
    """What somebody who knows the format does: change one event and hash all that follow again."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
        connection.row_factory = sqlite3.Row
        connection.execute("DROP TRIGGER events_refuse_update")
        previous = "0" * 64
        for row in connection.execute("SELECT * FROM events ORDER BY seq").fetchall():
            content = {**row, "details": json.loads(row["details"])}
            del content["hash"]
            content["previous"] = previous
            if content["seq"] == from_seq:
                content["actor"] = "person:eve"
            previous = hashlib.sha256(rfc8785.dumps(content)).hexdigest()
            connection.execute(
                "UPDATE events SET actor = ?, previous = ?, hash = ? WHERE seq = ?",
                (content["actor"], content["previous"], previous, content["seq"]),
            )

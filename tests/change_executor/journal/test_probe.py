"""Health is asked of the journal by writing: one that can be read may be full."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from change_executor.errors import JournalUnavailable
from change_executor.journal.journal import PROBE_EVERY

if TYPE_CHECKING:
    from change_executor.journal.journal import Journal
    from tests.change_executor.journal.clock import MovableClock


def refuse_writes(url: str, *, refused: bool) -> None:
    """As a full disk does: what is there can be read, and nothing can be added."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
        if refused:
            connection.execute(
                "CREATE TRIGGER full BEFORE UPDATE ON probes BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
            )
        else:
            connection.execute("DROP TRIGGER full")


def test_a_journal_that_can_be_read_and_not_written_is_unavailable(
    journal: Journal, url: str, clock: MovableClock
) -> None:
    journal.probe()
    refuse_writes(url, refused=True)
    # Within a few seconds the last answer counts, so that asking costs no wait for the disk.
    journal.probe()
    clock.now += PROBE_EVERY
    for _ in range(2):
        with pytest.raises(JournalUnavailable, match="full"):
            journal.probe()
    refuse_writes(url, refused=False)
    journal.probe()


def test_asking_for_health_wakes_nobody(journal: Journal) -> None:
    woken: list[bool] = []
    journal.listen(lambda: woken.append(True))
    journal.probe()
    assert [] == woken

"""Threads are counted from packed pages as one by one: over years, after every change, under every scope."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest

from agent_reader.query import parse_email_query
from agent_reader.query.emails import all_results
from agent_reader.query.filters import resolve
from agent_reader.scope import WHOLE, Depth, Scope
from agent_reader.store import thread_pages
from agent_reader.store.database import account_file
from agent_reader.store.selection import Selection
from agent_reader.store.snapshot import Snapshot
from agent_reader.store.statements import hits_of
from agent_reader.store.thread_pages import ThreadPages
from shared.message import JSON
from tests.agent_reader.mirrored import ACCOUNT, START, Mirrored, fetched, letter, mirrored

# From the first year to one whose places lie below zero.
YEARS = (1971, 2021, 2024, 2027, 4000)
OF_A_YEAR = 24


@pytest.fixture(autouse=True)
def every_count_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pages, "_FEW_HITS", 1_000_000)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirrored]:
    with mirrored(tmp_path_factory.mktemp("store")) as account:
        account.begin("INBOX", "Other")
        for year in YEARS:
            _add(account, year)
        account.end_round()
        yield account


def _add(account: Mirrored, year: int, *, begun: int = 0) -> None:
    """So many messages of a year, most in Threads of three that others lie between, some with a code to sign in."""
    for number in range(begun, begun + OF_A_YEAR):
        thread = f"<{year if number % 8 else 0}.{number % 8}@x>"
        text = "Your verification code is 482913." if number % 5 == 0 else f"word of {number}"
        octets = letter(
            f"all {text} {'even' if number % 2 == 0 else ''}",
            subject="Your verification code" if number % 5 == 0 else "A letter",
            sender=f"Ann <ann@{'example' if number % 3 else 'other'}.org>",
            headers={"Message-ID": f"<{number}.{year}@y>", "References": thread},
        )
        at = START.replace(year=year) + timedelta(hours=number)
        account.add("INBOX" if number % 4 else "Other", fetched(year * 1000 + number, octets, at=at))


def _totals(snapshot: Snapshot, condition: dict[str, JSON]) -> tuple[int, int]:
    """How many Threads are counted, and how many the whole list has."""
    asked = parse_email_query({"filter": condition, "collapseThreads": True})
    return snapshot.count(resolve(asked.filter, snapshot), by_thread=True), len(list(all_results(snapshot, asked)))


@pytest.mark.parametrize(
    "condition",
    [
        {"text": "all"},
        {"text": "even"},
        {"text": "nowhere"},
        {"text": '"all word"', "from": "ann"},
        {"text": "all", "after": "2024-01-01T12:00:00Z"},
        {"text": "all", "after": "2021-01-02T00:00:00Z", "before": "2027-01-01T15:00:00Z"},
        {"text": "all", "before": "1960-01-01T00:00:00Z"},
        {"text": "all", "notKeyword": "$seen"},
        {"operator": "NOT", "conditions": [{"text": "even"}]},
        {"operator": "OR", "conditions": [{"text": "even"}, {"subject": "verification"}]},
    ],
)
@pytest.mark.parametrize(
    "scope",
    [
        WHOLE,
        Scope(mailboxes=("Other",), sign_in_mail=True),
        Scope(sign_in_mail=False),
        Scope(senders=("other.org",), received_since=START.replace(year=2024), sign_in_mail=True),
        Scope(depth=Depth.HEADERS, sign_in_mail=True),
    ],
    ids=["whole", "mailbox", "ordinary", "senders", "headers"],
)
def test_as_many_are_counted_as_the_list_has(
    made: Mirrored, condition: dict[str, JSON], scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    with made.store.snapshot(ACCOUNT, scope) as snapshot:
        found = snapshot.count(resolve(parse_email_query({"filter": condition}).filter, snapshot))
        if found:
            # One by one nothing is counted here.
            monkeypatch.setattr(
                "agent_reader.store.snapshot.count_statement", lambda *_, **__: pytest.fail("looked up")
            )
        counted, listed = _totals(snapshot, condition)
    assert counted == listed
    assert scope is not WHOLE or condition != {"text": "all"} or len(YEARS) * 7 < counted < len(YEARS) * OF_A_YEAR


def test_a_view_has_the_threads_of_its_own_hits_whatever_comes_in_goes_and_makes_room(tmp_path: Path) -> None:
    with mirrored(tmp_path) as account:
        account.begin("INBOX", "Other")
        for year in (2020, 2024):
            _add(account, year)
        with account.store.snapshot(ACCOUNT) as before:
            held = _totals(before, {"text": "all"})
            _add(account, 2020, begun=OF_A_YEAR)
            # All of one second: each makes room among those that are there.
            for uid in range(60):
                octets = letter(f"all {uid}", headers={"References": f"<{uid % 40}@z>"})
                account.add("INBOX", fetched(uid + 1, octets, at=START.replace(year=2024)))
            account.vanish("INBOX", *range(2_024_001, 2_024_012))
            account.end_round()
            with account.store.snapshot(ACCOUNT) as after:
                now = _totals(after, {"text": "all"})
            assert held == _totals(before, {"text": "all"})
            assert (now[1], held[1]) == (now[0], held[0])
            assert now[0] > held[0] + 40
        account.reopen()
        with account.store.snapshot(ACCOUNT) as again:
            assert now == _totals(again, {"text": "all"})


def test_what_was_read_is_kept_until_it_is_another_or_there_is_no_room(made: Mirrored) -> None:
    with made.store.snapshot(ACCOUNT) as snapshot:
        connection = snapshot.connection
        reads = list[int]()

        def trace(statement: str) -> bool:
            reads.append("FROM thread_pages" in statement)
            return True

        def count_reads(pages: ThreadPages) -> int:
            reads.clear()
            connection.exec_trace = lambda _, sql, __: trace(sql)
            try:
                chunks = list(pages.chunks(connection, ACCOUNT, thread_pages.versions(connection)))
            finally:
                connection.exec_trace = None
            # In the order of the list, and apart.
            assert all(newer.last < older.first for newer, older in pairwise(chunks))
            return sum(reads)

        whole = ThreadPages()
        assert [len(YEARS), 0] == [count_reads(whole) for _ in range(2)]
        whole.clear()
        assert len(YEARS) == count_reads(whole)
        small = ThreadPages(most_octets=1)
        assert [len(YEARS)] * 2 == [count_reads(small) for _ in range(2)]


def test_few_hits_are_looked_up_one_by_one_and_more_where_pages_are_to_be_read(
    made: Mirrored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    with made.store.snapshot(ACCOUNT) as snapshot:
        pages, versions = ThreadPages(), thread_pages.versions(snapshot.connection)
        assert len(YEARS) * 512 * 9 == pages.worth_hits(ACCOUNT, versions)
        held = sum(len(chunk.threads) // 4_000 for chunk in pages.chunks(snapshot.connection, ACCOUNT, versions))
        assert 0 == pages.worth_hits(ACCOUNT, versions)
        others = [(number, version + 1) for number, version in versions] * 20
        assert held * 9 * 20 == pages.worth_hits(ACCOUNT, others)
        monkeypatch.setattr(snapshot, "thread_pages", ThreadPages())
        monkeypatch.setattr("agent_reader.store.snapshot.hits_of", _look_at_how_many_alone)
        counted, listed = _totals(snapshot, {"text": "all"})
    assert counted == listed


def _look_at_how_many_alone(selection: Selection) -> object:
    hits = hits_of(selection)
    assert hits is not None
    return SimpleNamespace(are_more_than=hits.are_more_than)


def test_more_threads_than_memory_may_hold_are_counted_by_sqlite(
    made: Mirrored, monkeypatch: pytest.MonkeyPatch
) -> None:
    with made.store.snapshot(ACCOUNT) as snapshot:
        expected = _totals(snapshot, {"text": "all"})
        monkeypatch.setattr(thread_pages, "_MOST_THREADS", 3)
        assert expected == _totals(snapshot, {"text": "all"})


def test_each_email_that_is_shown_has_its_thread_at_its_place(made: Mirrored) -> None:
    assert len(YEARS) * OF_A_YEAR == threads_that_are_right(made.folder)


def threads_that_are_right(folder: Path) -> int:
    """How many Emails have their Thread in its page."""
    with closing(apsw.Connection(str(account_file(folder, ACCOUNT)))) as connection:
        held: list[Any] = connection.execute("SELECT page, threads FROM thread_pages").fetchall()
        pages: dict[int, bytes] = dict(held)
        rows: list[Any] = connection.execute("SELECT place, thread_key FROM emails WHERE visible").fetchall()
        chunks = {number for (number,) in connection.execute("SELECT chunk FROM thread_chunks").fetchall()}
    assert {page // 512 for page in pages} == chunks
    found = 0
    for place, thread_key in rows:
        page, number = divmod(place, 1_000)
        found += int.from_bytes(pages[page][4 * number : 4 * number + 4], "little") == thread_key
    return found

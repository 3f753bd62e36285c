"""How questions are answered inside SQLite: hits come out in the order of dates, so that a limit stops early.

What would cost a pass over the account, a sort of all hits or a table made for one question shows in the plan.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from agent_reader.query import parse_email_query
from agent_reader.query.filters import resolve
from agent_reader.scope import Scope
from agent_reader.store import header_search
from agent_reader.store.database import account_file
from agent_reader.store.statements import count_statement, rows_statement
from agent_reader.store.status import STANDING, read_standing, read_status
from shared.message import JSON
from tests.agent_reader.mirrored import ACCOUNT, START, Mirrored, fetched, letter, mirrored


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirrored]:
    with mirrored(tmp_path_factory.mktemp("store")) as account:
        account.begin("INBOX")
        account.add(
            "INBOX",
            *(fetched(uid, letter(f"word {uid}", headers={"Message-ID": f"<{uid}@x>"})) for uid in range(1, 50)),
        )
        yield account


def _plan(account: Mirrored, **asked: JSON) -> str:
    parsed = parse_email_query(asked)
    with account.store.snapshot(ACCOUNT) as snapshot:
        statement = rows_statement(
            resolve(parsed.filter, snapshot), parsed.sort, by_thread=parsed.collapse_threads, limit=50
        )
        rows = snapshot.connection.execute(f"EXPLAIN QUERY PLAN {statement.sql}", statement.parameters)
        return "\n".join(str(detail) for _, _, _, detail in rows)


@pytest.mark.parametrize(
    "condition",
    [
        {"text": "word"},
        {"text": '"word 7" word'},
        {"text": "word", "from": "ann", "hasAttachment": False, "notKeyword": "$seen"},
        {"text": "word", "after": "2026-01-01T00:00:00Z", "before": "2027-01-01T00:00:00Z"},
        {"text": "word", "inMailbox": "INBOX"},
        {"inMailbox": "INBOX", "notKeyword": "$seen"},
        {"operator": "NOT", "conditions": [{"text": "word"}, {"hasKeyword": "$seen"}]},
        {"operator": "OR", "conditions": [{"text": "word"}, {"subject": "letter"}]},
        {"header": ["List-Id", "<1@x>"]},
        {"header": ["list-id", "<1@x>"], "text": "word", "inMailbox": "INBOX"},
        {"header": ["List-Id"]},
        {"operator": "NOT", "conditions": [{"header": ["In-Reply-To"]}]},
    ],
)
@pytest.mark.parametrize("ascending", [False, True])
def test_what_tokens_and_dates_say_is_one_walk_over_the_search_table(
    account: Mirrored, condition: dict[str, JSON], ascending: bool
) -> None:
    asked = {**condition, **({"inMailbox": account.mailbox_id("INBOX")} if "inMailbox" in condition else {})}
    plan = _plan(account, filter=asked, sort=[{"property": "receivedAt", "isAscending": ascending}])
    walk, *looks = plan.splitlines()
    assert walk.startswith("SCAN search VIRTUAL TABLE INDEX"), plan
    # The id of each hit, and where the dates of a range begin and end.
    ids = "SEARCH e USING COVERING INDEX emails_by_place (place=?)"
    dates = {"SEARCH emails USING INTEGER PRIMARY KEY (rowid>?)", "SCALAR SUBQUERY", "REUSE SUBQUERY"}
    assert [ids] == [look for look in map(_without_number, looks) if look not in dates], plan


def _without_number(step: str) -> str:
    return step.strip().rstrip("0123456789 ")


@pytest.mark.parametrize(
    ("asked", "begins"),
    [
        ({}, "SCAN e"),
        ({"filter": {"after": "2026-01-01T00:00:00Z"}}, "SEARCH e USING INTEGER PRIMARY KEY (rowid>?)"),
        ({"filter": {"inMailbox": "INBOX"}}, "SEARCH b USING PRIMARY KEY (mailbox_key=?)"),
        ({"filter": {"text": "word", "minSize": 10}}, "SCAN search VIRTUAL TABLE INDEX"),
        ({"filter": {"text": "word", "header": ["X-A"]}}, "SCAN search VIRTUAL TABLE INDEX"),
        ({"filter": {"header": ["Message-ID", "<1@x>"]}}, "SCAN search VIRTUAL TABLE INDEX"),
        (
            {
                "filter": {
                    "operator": "OR",
                    "conditions": [{"header": ["References", "<1@x>"]}, {"header": ["In-Reply-To", "<1@x>"]}],
                }
            },
            "SCAN search VIRTUAL TABLE INDEX",
        ),
        ({"filter": {"header": ["References", "<1@x> <2@x>"]}}, "SCAN search VIRTUAL TABLE INDEX"),
        ({"filter": {"text": "word"}, "collapseThreads": True}, "SCAN search VIRTUAL TABLE INDEX"),
        ({"filter": {"someInThreadHaveKeyword": "$seen"}}, "SCAN e"),
        ({"filter": {"header": ["X-A"], "inMailbox": "INBOX"}}, "SEARCH b USING PRIMARY KEY (mailbox_key=?)"),
    ],
)
def test_what_columns_say_is_asked_of_one_candidate_after_the_other_in_the_order_of_dates(
    account: Mirrored, asked: dict[str, JSON], begins: str
) -> None:
    condition = asked.get("filter")
    if isinstance(condition, dict) and "inMailbox" in condition:
        asked = {**asked, "filter": {**condition, "inMailbox": account.mailbox_id("INBOX")}}
    plan = _plan(account, **asked)
    assert plan.startswith(begins), plan
    assert "TEMP B-TREE" not in plan
    assert "SCAN x" not in plan


def test_a_scope_is_told_by_tokens_and_places_so_that_a_total_is_one_walk(account: Mirrored) -> None:
    scope = Scope(mailboxes=("INBOX",), received_since=START, sign_in_mail=False)
    with account.store.snapshot(ACCOUNT, scope) as snapshot:
        selection = resolve(parse_email_query({"filter": {"text": "word"}}).filter, snapshot)
        statement = count_statement(selection, by_thread=False)
        rows = list(snapshot.connection.execute(f"EXPLAIN QUERY PLAN {statement.sql}", statement.parameters))
        walks = [str(detail) for _, _, _, detail in rows if str(detail).startswith(("SCAN s ", "SEARCH", "CORRELATED"))]
    assert "SCAN s VIRTUAL TABLE INDEX" in walks[0]
    # Where its first date begins.
    assert ["SEARCH p USING INTEGER PRIMARY KEY (rowid>?)"] == walks[1:]


def test_not_of_what_names_a_message_looks_into_no_other_header(account: Mirrored) -> None:
    refused: JSON = {"operator": "NOT", "conditions": [{"header": ["Message-ID", "<7@x>"]}]}
    asked = parse_email_query({"filter": refused})
    looked = list[object]()

    def has_it(*arguments: object) -> bool:
        looked.append(arguments[-1])
        return True

    with account.store.snapshot(ACCOUNT) as snapshot:
        connection, statement = snapshot.connection, count_statement(resolve(asked.filter, snapshot), by_thread=False)
        connection.create_scalar_function(header_search.FUNCTION, has_it, 3)
        try:
            (found,) = connection.execute(statement.sql, statement.parameters).fetchone() or (0,)
        finally:
            header_search.offer(connection)
    assert (48, ["<7@x>"]) == (found, looked)


def test_how_fresh_an_account_is_costs_the_same_with_a_hundred_thousand_emails(tmp_path: Path) -> None:
    # Each tool call asks it; the count, which is a walk over all Emails, is for whoever looks at a status.
    with mirrored(tmp_path) as account:
        account.begin("INBOX")
        account.add("INBOX", fetched(1, letter("one")))
        with closing(apsw.Connection(str(account_file(tmp_path, ACCOUNT)))) as connection:
            columns = [str(row[1]) for row in connection.execute("PRAGMA table_info(emails)")]
            made = {"key": "e.key + n", "id": "e.id || n"}
            connection.execute(
                f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 100000) "
                f"INSERT INTO emails ({', '.join(columns)}) "
                f"SELECT {', '.join(made.get(each, f'e.{each}') for each in columns)} FROM emails e, numbers"
            )
        with account.store.snapshot(ACCOUNT) as snapshot:
            plan = [str(row[3]) for row in snapshot.connection.execute(f"EXPLAIN QUERY PLAN {STANDING}")]
            steps = {name: _steps(snapshot.connection, read) for name, read in READS.items()}
        assert ["SCAN account"] == plan
        assert 100_001 == account.store.status(ACCOUNT).messages
        assert steps["standing"] < 100
        assert steps["status"] > 100_000


READS = {"standing": read_standing, "status": read_status}


def _steps(connection: apsw.Connection, read: Callable[[apsw.Connection], object]) -> int:
    """How many steps of SQLite's machine it takes, to the next ten."""
    looks = itertools.count()
    connection.set_progress_handler(lambda: next(looks) < 0, 10)
    try:
        read(connection)
    finally:
        connection.set_progress_handler(None)
    return 10 * next(looks)

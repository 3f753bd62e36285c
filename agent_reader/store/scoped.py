"""A scope as the only tables there are: views of a connection that shadow the tables behind them.

A connection that is narrowed has, for each table that questions are answered from, a temporary view of the same name.
SQLite takes a temporary name before the file's, so every statement, whoever wrote it, sees what is inside and nothing
else; an authorizer refuses the file's own tables by any other way, and so every table that has no view here. What is
hidden can be counted (`hidden`), and nothing more.
"""

# ruff: noqa: S608 - the SQL is made of names and conditions of this package alone; values lie in tables

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import apsw

from agent_reader.imap.values import canonical_name
from agent_reader.scope import Depth, Scope
from agent_reader.store import tokens
from agent_reader.store.emails import KEY_SHIFT
from agent_reader.store.scoped_changes import changes_view, mailbox_changes
from agent_reader.store.writing import seconds

# FTS5 reads its own tables by statements of its own; what they hold is no word of any message in the clear.
_SHADOW_TABLES: Final = frozenset(f"search_{part}" for part in ("data", "idx", "docsize", "config"))
# A function that SQLite calls a table: what is in it the question brought itself.
_TABLES_OF_NO_MAIL: Final = _SHADOW_TABLES | {"json_each"}

_LIMITS: Final = (
    "CREATE TEMP TABLE scope_limits (since_key INTEGER, expression TEXT)",
    "CREATE TEMP TABLE scope_mailboxes (key INTEGER PRIMARY KEY)",
    "CREATE TEMP TABLE scope_names (name TEXT PRIMARY KEY)",
    "CREATE TEMP TABLE scope_senders (sender TEXT PRIMARY KEY)",
)

_IN_MAILBOXES: Final = "IN (SELECT key FROM temp.scope_mailboxes)"
_FIRST_PLACE: Final = (
    "(SELECT p.place FROM main.emails p WHERE p.key >= (SELECT since_key FROM temp.scope_limits) "
    "ORDER BY p.key LIMIT 1)"
)
_SENDERS: Final = "(SELECT sender FROM temp.scope_senders)"


@dataclass(frozen=True, slots=True)
class Hidden:
    """How many Emails are not seen: `outside` the scope, and `withheld` inside it as mail that signs somebody in."""

    outside: int
    withheld: int


def narrow(connection: apsw.Connection, scope: Scope) -> None:
    """Narrow a fresh connection that only reads to a scope, for good."""
    connection.pragma("query_only", False)
    for statement in _LIMITS:
        connection.execute(statement)
    since = None if scope.received_since is None else _first_second(scope) << KEY_SHIFT
    connection.execute("INSERT INTO temp.scope_limits VALUES (?, ?)", (since, _expression(scope, [])))
    connection.executemany(
        "INSERT INTO temp.scope_names VALUES (?)", [(canonical_name(each),) for each in scope.mailboxes or ()]
    )
    connection.executemany("INSERT INTO temp.scope_senders VALUES (?)", [(each,) for each in scope.senders or ()])
    views = _views(connection, scope)
    for name, select in views.items():
        connection.execute(f"CREATE TEMP VIEW {name} AS {select}")
    connection.authorizer = _guard(frozenset(views))
    connection.pragma("query_only", True)


def begin(connection: apsw.Connection, scope: Scope) -> str:
    """Begin a transaction that sees the mailboxes that the scope names now; return what tells this view from others.

    A mailbox that was renamed into or out of the scope makes another view: states of the one are none of the other.
    """
    connection.execute("BEGIN")
    if scope.mailboxes is None:
        return scope.fingerprint()
    while (keys := _keys(connection, "granted_mailboxes")) != _keys(connection, "temp.scope_mailboxes"):
        # Seldom, and outside the transaction: to let it write makes SQLite prepare every statement anew.
        connection.execute("ROLLBACK")
        with _writing_limits(connection):
            connection.execute("DELETE FROM temp.scope_mailboxes")
            connection.executemany("INSERT INTO temp.scope_mailboxes VALUES (?)", [(key,) for key in keys])
            connection.execute("UPDATE temp.scope_limits SET expression = ?", (_expression(scope, keys),))
        connection.execute("BEGIN")
    return f"{scope.fingerprint()}{_mark(connection)}"


def _keys(connection: apsw.Connection, table: str) -> list[int]:
    return sorted(int(key) for (key,) in connection.execute(f"SELECT key FROM {table}"))


def hidden(connection: apsw.Connection, kept: dict[int, Hidden]) -> Hidden:
    """Return how many Emails this connection does not see; `kept` holds what was found in the account's last state."""
    # Of the account, not of the scope: mail that is hidden and comes in makes no new state here, and counts.
    number = int(connection.execute("SELECT state FROM account").get)
    if number not in kept:
        found = _hidden(connection)
        kept.clear()
        kept[number] = found
    return kept[number]


def _hidden(connection: apsw.Connection) -> Hidden:
    outside, withheld = connection.execute("SELECT outside, withheld FROM hidden_emails").fetchone() or (0, 0)
    return Hidden(int(outside), int(withheld))


def last_state(connection: apsw.Connection, after: int) -> int | None:
    """Return the number of the last state after a number that this connection sees a difference of."""
    emails = "SELECT state FROM changes WHERE type = 'Email' AND state > ? ORDER BY state DESC LIMIT 1"
    mailboxes = "SELECT state FROM mailbox_changes WHERE state > ? ORDER BY state DESC LIMIT 1"
    found: list[int | None] = [connection.execute(each, (after,)).get for each in (emails, mailboxes)]
    return max((each for each in found if each is not None), default=None)


def _views(connection: apsw.Connection, scope: Scope) -> dict[str, str]:
    """The views by name, each after those that it is made from."""
    mailbox = "" if scope.mailboxes is None else f" AND {{}} {_IN_MAILBOXES}"
    in_mailboxes = None if scope.mailboxes is None else _IN_MAILBOXES
    inside = _Inside(scope)
    in_a_mailbox = (
        "1"
        if scope.mailboxes is None
        else (
            f"EXISTS (SELECT 1 FROM main.email_mailboxes m WHERE m.email_key = e.key AND m.mailbox_key {_IN_MAILBOXES})"
        )
    )
    visible = "EXISTS (SELECT 1 FROM temp.emails v WHERE v.key = {}.{})"
    octets = "1" if scope.depth is Depth.FULL else "0"
    return {
        "granted_mailboxes": "SELECT m.key, m.id FROM main.mailboxes m "
        "WHERE m.standing <> 'pending' AND m.name IN (SELECT name FROM temp.scope_names)",
        "mailboxes": _without(
            # How many messages the server counts there tells how many are hidden.
            connection,
            "mailboxes",
            {"expected"} if scope.hides_emails else set(),
            mailbox.format("r.key"),
        ),
        "emails": f"SELECT e.* FROM main.emails e WHERE {inside('e.key')} AND {in_a_mailbox}",
        "email_mailboxes": "SELECT b.* FROM main.email_mailboxes b "
        f"WHERE {inside('b.email_key')}{mailbox.format('b.mailbox_key')}",
        "email_texts": f"SELECT x.* FROM main.email_texts x WHERE {visible.format('x', 'key')}",
        "threads": "SELECT t.* FROM main.threads t WHERE EXISTS "
        "(SELECT 1 FROM temp.emails v WHERE v.thread_key = t.key)",
        "copies": f"SELECT c.* FROM main.copies c WHERE {octets} AND {visible.format('c', 'email_key')}"
        f"{mailbox.format('c.mailbox_key')}",
        "part_blobs": f"SELECT p.* FROM main.part_blobs p WHERE {octets} AND {visible.format('p', 'email_key')}",
        "set_aside": f"SELECT a.* FROM main.set_aside a WHERE 1{mailbox.format('a.mailbox_key')}",
        # Why a round failed may name a mailbox.
        "account": _without(
            connection, "account", {"failure_detail", "failure_fix"} if scope.mailboxes is not None else set(), ""
        ),
        "search": _search_view(connection, scope),
        # Numbers without a message: where a date would stand.
        "email_places": "SELECT p.key, p.place FROM main.emails p",
        "thread_pages": "SELECT p.page, p.threads FROM main.thread_pages p",
        "thread_chunks": "SELECT c.chunk, c.version FROM main.thread_chunks c",
        "changes": changes_view(in_mailboxes, inside.now_or_once),
        "mailbox_changes": f"SELECT r.state FROM {mailbox_changes(in_mailboxes)}",
        "hidden_emails": _hidden_view(scope, inside, in_a_mailbox),
    }


class _Inside:
    """Conditions on what never changes of an Email, from the SQL of its key."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __call__(self, key: str) -> str:
        """The condition for an Email that is there."""
        return self._condition(key, ("main.emails",), withheld=not self._scope.sign_in_mail)

    def now_or_once(self, key: str) -> str:
        """The condition for an Email that is there or was."""
        return self._condition(key, ("main.emails", "main.gone_emails"), withheld=not self._scope.sign_in_mail)

    def but_for_sign_in(self, key: str) -> str:
        """The condition as it would be if no mail were withheld."""
        return self._condition(key, ("main.emails",), withheld=False)

    def _condition(self, key: str, tables: tuple[str, ...], *, withheld: bool) -> str:
        conditions = []
        if self._scope.received_since is not None:
            conditions.append(f"{key} >= (SELECT since_key FROM temp.scope_limits)")
        if self._scope.senders is not None:
            of_sender = (
                f"EXISTS (SELECT 1 FROM {table} s WHERE s.key = {key} "
                f"AND (s.sender IN {_SENDERS} OR s.sender_domain IN {_SENDERS}))"
                for table in tables
            )
            conditions.append(f"({' OR '.join(of_sender)})")
        if withheld:
            # A table of its own, and a small one: a look at it costs next to nothing for each hit.
            conditions.append(f"NOT EXISTS (SELECT 1 FROM main.sign_in_emails w WHERE w.email_key = {key})")
        return " AND ".join(conditions) or "1"


def _without(connection: apsw.Connection, table: str, hidden: set[str], condition: str) -> str:
    """The view of a table that has nothing in some columns."""
    rows = connection.execute("SELECT name FROM pragma_table_info(?, 'main')", (table,))
    columns = ", ".join(f"NULL AS {name}" if name in hidden else f"r.{name}" for (name,) in rows)
    return f"SELECT {columns} FROM main.{table} r WHERE 1{condition}"


def _search_view(connection: apsw.Connection, scope: Scope) -> str:
    rows = connection.execute("SELECT name FROM pragma_table_info('search', 'main')")
    # The hidden column of the table's own name is what MATCH is said of; FTS5 takes both expressions at once.
    columns = ", ".join(("s.rowid AS rowid", *(f"s.{name}" for (name,) in rows), "s.search"))
    conditions = ["1"]
    if scope.mailboxes is not None or scope.senders is not None or not scope.sign_in_mail:
        conditions.append("s.search MATCH (SELECT expression FROM temp.scope_limits)")
    if scope.received_since is not None:
        conditions.append(f"s.rowid <= {_FIRST_PLACE}")
    return f"SELECT {columns} FROM main.search s WHERE {' AND '.join(conditions)}"


def _hidden_view(scope: Scope, inside: "_Inside", in_a_mailbox: str) -> str:
    of_scope = f"e.visible AND {inside.but_for_sign_in('e.key')} AND {in_a_mailbox}"
    withheld = "0"
    if not scope.sign_in_mail:
        # From the small table: a look at each Email of an account would take as long as a search for nothing.
        withheld = (
            "(SELECT count(*) FROM main.sign_in_emails w CROSS JOIN main.emails e ON e.key = w.email_key "
            f"WHERE {of_scope})"
        )
    outside = "0"
    if scope.narrows:
        everything = "(SELECT count(*) FROM main.emails e WHERE e.visible)"
        outside = f"{everything} - (SELECT count(*) FROM main.emails e WHERE {of_scope})"
    return f"SELECT {outside} AS outside, {withheld} AS withheld"


def _expression(scope: Scope, mailbox_keys: list[int]) -> str:
    """What FTS5 is asked besides each question: tokens of mailboxes, of senders, and of what signs nobody in."""
    mailboxes = [tokens.of_mailbox(key) for key in mailbox_keys]
    senders = [tokens.of_sender(each) for each in scope.senders or ()]
    asked = [each for each, limit in ((mailboxes, scope.mailboxes), (senders, scope.senders)) if limit is not None]
    if not scope.sign_in_mail:
        asked.append([tokens.ORDINARY])
    if not all(asked):
        return f'"{tokens.NONE}"'
    alternatives = (" OR ".join(f'"{token}"' for token in alternative) for alternative in asked)
    return " AND ".join(f"({each})" for each in alternatives)


def _guard(views: frozenset[str]) -> Callable[[int, str | None, str | None, str | None, str | None], int]:
    def allow(operation: int, table: str | None, column: str | None, database: str | None, view: str | None) -> int:
        is_behind = operation == apsw.SQLITE_READ and database == "main" and view not in views
        # SQLite says of a view that it flattened that a table is read, without a column: no row of it comes out. A bare
        # `count(*)` of a table looks the same, and is the one thing that is not refused.
        if is_behind and column and table not in _TABLES_OF_NO_MAIL and not str(table).startswith("sqlite_"):
            return apsw.SQLITE_DENY
        return apsw.SQLITE_OK

    return allow


@contextmanager
def _writing_limits(connection: apsw.Connection) -> Iterator[None]:
    connection.pragma("query_only", False)
    try:
        yield
    finally:
        connection.pragma("query_only", True)


def _first_second(scope: Scope) -> int:
    """The first whole second at or after the date: mail is received at whole seconds."""
    assert scope.received_since is not None
    whole = seconds(scope.received_since)
    return whole + (1 if scope.received_since.microsecond else 0)


def _mark(connection: apsw.Connection) -> str:
    # By their ids: the key of a mailbox that is gone may be another's. Eight hex digits: two sets of one scope's
    # mailboxes must differ, and nobody gains by making them alike.
    ids = sorted(str(mailbox_id) for (mailbox_id,) in connection.execute("SELECT id FROM granted_mailboxes"))
    return hashlib.sha256(repr(ids).encode()).hexdigest()[:8]

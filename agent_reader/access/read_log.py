"""The read log: what each agent was shown. Rows are only ever appended, and let go at the old end when they are old."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import apsw
import msgspec

from agent_reader.access import chain
from agent_reader.access.agents import Agent
from shared.link import OpenedState, Read, WasOpened
from shared.settings import ConfigurationError

# A row that names more would not fit in an answer of the private socket; a longer list takes several rows.
MAX_EMAIL_IDS_IN_A_ROW: Final = 500

# Each answer lets go of a few old rows, so that none waits for a long deletion.
_MOST_PRUNED: Final = 200

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Shown:
    """What one method call's answer shows: the Emails it names, and those among them with the text of their body.

    `octets` is the size of the answer; `parts` pairs an Email's id with the names of its parts that were shown.
    """

    method: str
    account: str
    email_ids: tuple[str, ...] = ()
    opened_ids: tuple[str, ...] = ()
    octets: int = 0
    parts: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """What one answer shows, and to whom."""

    agent: Agent
    shown: Sequence[Shown]


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the read log as a person or a program reads it; `at` is aware UTC."""

    key: int
    at: datetime
    agent: str
    token_id: str
    method: str
    account: str
    email_ids: tuple[str, ...]
    parts: dict[str, list[str]]
    octets: int
    peer: str
    has_bodies: bool


def append(connection: apsw.Connection, at: datetime, records: Sequence[Record]) -> None:
    """Append what was shown, in the caller's transaction."""
    moment = microseconds(at)
    last = chain.head(connection)
    rows: list[tuple[Any, ...]] = []
    for record in records:
        for call in record.shown:
            for row in _rows_of(call, record.agent, moment, last.key + 1):
                last = chain.Link(row.key, row.digest(last.digest))
                rows.append(_columns(row, last.digest))
    connection.executemany(
        "INSERT INTO reads (key, at, agent, token_id, method, account, email_ids, parts, octets, peer, bodies, "
        "digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )
    connection.executemany(
        # A page of Emails in one step. Without WHERE, ON would belong to the SELECT.
        "INSERT INTO opened (agent, account, email_id, at) SELECT ?, ?, value, ? FROM json_each(?) WHERE true "
        "ON CONFLICT DO UPDATE SET at = max(at, excluded.at)",
        [
            (record.agent.name, call.account, moment, msgspec.json.encode(call.opened_ids).decode())
            for record in records
            for call in record.shown
            if call.opened_ids
        ],
    )


def prune(connection: apsw.Connection, now: datetime, keep: timedelta) -> None:
    """Let go of a few rows that are older than `keep`, in the caller's transaction; the anchor moves to the last."""
    before = microseconds(now - keep)
    # Most answers find nothing old: a look at the first row of each tells so.
    if (connection.execute("SELECT min(at) FROM opened").get or before) < before:
        _prune_opened(connection, before)
    if (connection.execute("SELECT at FROM reads ORDER BY key LIMIT 1").get or before) < before:
        _prune_reads(connection, before, now)


def _prune_opened(connection: apsw.Connection, before: int) -> None:
    connection.execute(
        "DELETE FROM opened WHERE (agent, account, email_id) IN "
        "(SELECT agent, account, email_id FROM opened WHERE at < ? LIMIT ?)",
        (before, _MOST_PRUNED),
    )


def _prune_reads(connection: apsw.Connection, before: int, now: datetime) -> None:
    # Keys are in the order of time, unless the clock went back: then the row waits for those before it.
    old: list[Any] = connection.execute(
        "SELECT key, at, digest FROM reads ORDER BY key LIMIT ?", (_MOST_PRUNED,)
    ).fetchall()
    last = old[0]
    for row in old:
        if row[1] >= before:
            break
        last = row
    connection.execute("DELETE FROM reads WHERE key <= ?", (last[0],))
    connection.execute(
        "INSERT OR REPLACE INTO anchor (row, key, digest, last_at, pruned_at) VALUES (1, ?, ?, ?, ?)",
        (last[0], last[2], last[1], microseconds(now)),
    )


def page(
    connection: apsw.Connection, agent: str, since: datetime | None, cursor: int | None, limit: int
) -> list[tuple[int, Read]]:
    """Return (key, line) of an agent's reads after a cursor and at or after a time, oldest first."""
    rows = connection.execute(
        "SELECT key, at, method, account, email_ids FROM reads WHERE agent = ? AND key > ? AND at >= ? "
        "ORDER BY key LIMIT ?",
        (agent, cursor or 0, 0 if since is None else microseconds(since), limit),
    )
    return [
        (
            int(key),
            Read(at=moment_of(at), method=str(method), account=str(account), emailIds=json.loads(email_ids)),
        )
        for key, at, method, account, email_ids in rows
    ]


def lines(
    connection: apsw.Connection, agent: str | None, since: datetime | None, email_id: str | None, limit: int
) -> list[Line]:
    """Return the newest lines, oldest of them first; each of `agent`, `since` and `email_id` narrows where given.

    Raises `ConfigurationError` where one of them was put there by another hand and is no line.
    """
    rows = connection.execute(
        "SELECT key, at, agent, token_id, method, account, email_ids, parts, octets, peer, bodies FROM reads "
        "WHERE (:agent IS NULL OR agent = :agent) AND at >= :since AND (:id IS NULL OR instr(email_ids, :id)) "
        "ORDER BY key DESC LIMIT :limit",
        {
            "agent": agent,
            "since": 0 if since is None else microseconds(since),
            # The array holds it as JSON does, in quotes: so no id is found within a longer one.
            "id": None if email_id is None else json.dumps(email_id),
            "limit": limit,
        },
    )
    return [_line(row) for row in rows][::-1]


def _line(row: Sequence[Any]) -> Line:
    key, at, agent, token_id, method, account, email_ids, parts, octets, peer, bodies = row
    try:
        return Line(
            key=int(key),
            at=moment_of(at),
            agent=str(agent),
            token_id=str(token_id),
            method=str(method),
            account=str(account),
            email_ids=tuple(json.loads(email_ids)),
            parts=dict(json.loads(parts)),
            octets=int(octets),
            peer=str(peer),
            has_bodies=bool(bodies),
        )
    except (ValueError, TypeError, OverflowError):
        raise ConfigurationError(
            "[store]",
            f"row {key} of the read log is not what was written.",
            "`agent-reader reads verify` says from where on; ask for newer lines with --since or --limit.",
        ) from None


def octets_since(connection: apsw.Connection, token_id: str, since: datetime) -> int:
    """Return how many octets of answers a token was shown since a time."""
    found = connection.execute(
        "SELECT sum(octets) FROM reads WHERE token_id = ? AND at > ?", (token_id, microseconds(since))
    ).get
    return int(found or 0)


def opened(connection: apsw.Connection, agent: str, account: str, email_id: str) -> WasOpened:
    """Return whether an agent was given the text of an Email's body.

    `unknown` where the agent never held a token here (then nothing says that the name is the same agent), and where
    the log was let go of further than its first token goes back.
    """
    at = connection.execute(
        "SELECT at FROM opened WHERE agent = ? AND account = ? AND email_id = ?", (agent, account, email_id)
    ).get
    if at is not None:
        return WasOpened(state=OpenedState.OPENED, at=moment_of(at))
    first_token = connection.execute("SELECT min(created_at) FROM tokens WHERE agent = ?", (agent,)).get
    reaches_to = connection.execute("SELECT last_at FROM anchor").get
    knows = first_token is not None and (reaches_to is None or int(reaches_to) < int(first_token))
    return WasOpened(state=OpenedState.NOT_OPENED if knows else OpenedState.UNKNOWN, at=None)


def microseconds(moment: datetime) -> int:
    """Return microseconds since 1970 of an aware datetime."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment_of(microseconds_since_1970: int) -> datetime:
    """Return the aware datetime in UTC."""
    return _EPOCH + timedelta(microseconds=microseconds_since_1970)


def _columns(row: chain.Row, digest: bytes) -> tuple[Any, ...]:
    return (
        row.key,
        row.at,
        row.agent,
        row.token_id,
        row.method,
        row.account,
        msgspec.json.encode(row.email_ids).decode(),
        msgspec.json.encode(row.parts).decode(),
        row.octets,
        row.peer,
        row.bodies,
        digest,
    )


def _rows_of(call: Shown, agent: Agent, at: int, first_key: int) -> Iterator[chain.Row]:
    parts = dict(call.parts)
    for number, start in enumerate(range(0, max(1, len(call.email_ids)), MAX_EMAIL_IDS_IN_A_ROW)):
        email_ids = call.email_ids[start : start + MAX_EMAIL_IDS_IN_A_ROW]
        yield chain.Row(
            key=first_key + number,
            at=at,
            agent=agent.name,
            token_id=agent.token_id,
            method=call.method,
            account=call.account,
            email_ids=email_ids,
            parts={email_id: parts[email_id] for email_id in email_ids if email_id in parts},
            octets=call.octets if number == 0 else 0,
            peer=agent.peer,
            bodies=int(bool(call.opened_ids)),
        )

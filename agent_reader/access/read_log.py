"""The read log: what each agent was shown. Rows are only ever appended; `opened` keeps the latest time."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import apsw

from shared.link import OpenedState, Read, WasOpened

# A row that names more would not fit in an answer of the private socket; a longer list takes several rows.
MAX_EMAIL_IDS_IN_A_ROW: Final = 500

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Shown:
    """What one method call's answer shows: the Emails it names, and those among them with the text of their body."""

    method: str
    account: str
    email_ids: tuple[str, ...] = ()
    opened_ids: tuple[str, ...] = ()


def append(connection: apsw.Connection, at: datetime, agent: str, token_id: str, shown: Iterable[Shown]) -> None:
    """Append what was shown, in the caller's transaction."""
    moment = microseconds(at)
    for call in shown:
        for email_ids in _rows_of(call.email_ids):
            connection.execute(
                "INSERT INTO reads (at, agent, token_id, method, account, email_ids, bodies) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (moment, agent, token_id, call.method, call.account, json.dumps(email_ids), int(bool(call.opened_ids))),
            )
        connection.executemany(
            "INSERT INTO opened (agent, account, email_id, at) VALUES (?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET at = max(at, excluded.at)",
            [(agent, call.account, email_id, moment) for email_id in call.opened_ids],
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


def opened(connection: apsw.Connection, agent: str, account: str, email_id: str) -> WasOpened:
    """Return whether an agent was given the text of an Email's body.

    `unknown` where the agent never held a token here: then nothing says that the name is the same agent.
    """
    at = connection.execute(
        "SELECT at FROM opened WHERE agent = ? AND account = ? AND email_id = ?", (agent, account, email_id)
    ).get
    if at is not None:
        return WasOpened(state=OpenedState.OPENED, at=moment_of(at))
    known = connection.execute("SELECT 1 FROM tokens WHERE agent = ? LIMIT 1", (agent,)).get
    return WasOpened(state=OpenedState.UNKNOWN if known is None else OpenedState.NOT_OPENED, at=None)


def microseconds(moment: datetime) -> int:
    """Return microseconds since 1970 of an aware datetime."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment_of(microseconds_since_1970: int) -> datetime:
    """Return the aware datetime in UTC."""
    return _EPOCH + timedelta(microseconds=microseconds_since_1970)


def _rows_of(email_ids: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for start in range(0, max(1, len(email_ids)), MAX_EMAIL_IDS_IN_A_ROW):
        yield email_ids[start : start + MAX_EMAIL_IDS_IN_A_ROW]

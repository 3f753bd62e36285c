"""The journal written out: every event as a line of JSON, and all that is on record about one proposal or message."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, RowMapping, select, type_coerce
from sqlalchemy.types import NullType

from change_executor.errors import NoSuchProposal
from change_executor.journal import schema

_EVENTS_AT_ONCE: Final = 1_000


# What stands in the database, past the schema's types: also in a journal that was tampered with.
_AS_STORED: Final = tuple(type_coerce(column, NullType()).label(column.name) for column in schema.events.columns)


def export_events(
    reading: Callable[[], AbstractContextManager[Connection]], after: int = 0, which: Sequence[ColumnElement[bool]] = ()
) -> Iterator[list[str]]:
    """Yield the events that follow number `after` as JSON objects, one a line, in the order of the chain, in pieces.

    The members are the columns of `events`; `at` stays microseconds and `details` an object, so that the hash of each
    line can be made again from the line (docs/journal.md). `which` are conditions on them. `reading` opens a snapshot
    for each piece: nothing is held between two of them, so that a slow reader keeps nobody from writing.
    """
    seq = schema.events.c.seq
    while True:
        with reading() as connection:
            rows = (
                connection.execute(select(*_AS_STORED).where(seq > after, *which).order_by(seq).limit(_EVENTS_AT_ONCE))
                .mappings()
                .all()
            )
        if not rows:
            return
        after = rows[-1]["seq"]
        yield [
            json.dumps({**row, "details": _object(row["details"])}, ensure_ascii=False, sort_keys=True) for row in rows
        ]


def show(connection: Connection, named: str) -> Iterator[str]:
    """Yield all that is on record about a proposal (`P...`), or about every proposal for a message (`M...`).

    Raises `NoSuchProposal`.
    """
    columns = schema.proposals.c
    wanted = columns.id == named if named.startswith("P") else columns.email_id == named
    rows = connection.execute(select(schema.proposals).where(wanted).order_by(columns.created_at, columns.id))
    found = list(rows.mappings())
    if not found:
        raise NoSuchProposal(named)
    for row in found:
        yield from _proposal(connection, row)


def _proposal(connection: Connection, row: RowMapping) -> Iterator[str]:
    yield f"{row['id']}  {row['state']}  {row['queue']}: {row['from_role']} to {row['to_role']}  {row['email_id']}"
    for name, value in row.items():
        if value is not None and name not in {"id", "state", "queue", "from_role", "to_role", "email_id"}:
            yield f"  {name}: {_shown(value)}"
    texts = schema.texts.c
    kept = connection.execute(select(texts.kind).where(texts.proposal == row["id"]).order_by(texts.kind)).scalars()
    yield f"  texts kept: {', '.join(kept) or 'none'}"
    events = connection.execute(
        select(schema.events).where(schema.events.c.subject == row["id"]).order_by(schema.events.c.seq)
    )
    for event in events.mappings():
        # Escaped: of a journal that was tampered with nothing reaches a terminal but as letters.
        details = json.dumps(_object(event["details"]), ensure_ascii=True, sort_keys=True)
        yield f"  {event['seq']:>8}  {_shown(event['at'])}  {event['kind']}  {event['actor']}  {details}"


def _object(details: str) -> Any:  # noqa: ANN401 - any JSON value, also in a journal that was tampered with
    try:
        return json.loads(details)
    except (ValueError, TypeError):
        return details


def _shown(value: object) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S} UTC" if isinstance(value, datetime) else str(value)

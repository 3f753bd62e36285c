"""The journal written out: every event as a line of JSON, and all that is on record about one proposal or message."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Label, RowMapping, Table, select, type_coerce
from sqlalchemy.types import NullType

from change_executor.errors import NoSuchProposal
from change_executor.journal import schema
from change_executor.legible import any_octets, legible

_EVENTS_AT_ONCE: Final = 1_000


# What stands in the database, past the schema's types: also in a journal that was tampered with.
def _as_stored(table: Table) -> tuple[Label[Any], ...]:
    return tuple(type_coerce(column, NullType()).label(column.name) for column in table.columns)


_AS_STORED: Final = _as_stored(schema.events)
# Columns that hold times: microseconds since 1970.
_TIMES: Final = frozenset(
    column.name
    for table in (schema.events, schema.proposals)
    for column in table.columns
    if isinstance(column.type, schema.UtcMicroseconds)
)


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
        with reading() as connection, any_octets(connection):
            rows = (
                connection.execute(select(*_AS_STORED).where(seq > after, *which).order_by(seq).limit(_EVENTS_AT_ONCE))
                .mappings()
                .all()
            )
        if not rows:
            return
        after = rows[-1]["seq"]
        yield [
            # A lone surrogate is an octet that is no UTF-8: escaped, as JSON does it.
            json.dumps(
                {**row, "details": _object(row["details"])}, ensure_ascii=False, sort_keys=True, default=bytes.hex
            )
            .encode("utf-8", "backslashreplace")
            .decode()
            for row in rows
        ]


def show(connection: Connection, named: str) -> Iterator[str]:
    """Yield all that is on record about a proposal (`P...`), or about every proposal for a message (`M...`).

    Raises `NoSuchProposal`.
    """
    columns = schema.proposals.c
    wanted = columns.id == named if named.startswith("P") else columns.email_id == named
    with any_octets(connection):
        rows = connection.execute(
            select(*_as_stored(schema.proposals)).where(wanted).order_by(columns.created_at, columns.id)
        )
        found = list(rows.mappings())
        if not found:
            raise NoSuchProposal(named)
        for row in found:
            # Nothing reaches a terminal but as letters.
            yield from map(legible, _proposal(connection, row))


def _proposal(connection: Connection, row: RowMapping) -> Iterator[str]:
    yield f"{row['id']}  {row['state']}  {row['queue']}: {row['from_role']} to {row['to_role']}  {row['email_id']}"
    for name, value in row.items():
        if value is not None and name not in {"id", "state", "queue", "from_role", "to_role", "email_id"}:
            yield f"  {name}: {_shown(name, value)}"
    texts = schema.texts.c
    kept = connection.execute(select(texts.kind).where(texts.proposal == row["id"]).order_by(texts.kind)).scalars()
    yield f"  texts kept: {', '.join(kept) or 'none'}"
    events = connection.execute(
        select(*_AS_STORED).where(schema.events.c.subject == row["id"]).order_by(schema.events.c.seq)
    )
    for event in events.mappings():
        details = json.dumps(_object(event["details"]), ensure_ascii=True, sort_keys=True, default=bytes.hex)
        yield f"  {event['seq']:>8}  {_shown('at', event['at'])}  {event['kind']}  {event['actor']}  {details}"


def _object(details: str) -> Any:  # noqa: ANN401 - any JSON value, also in a journal that was tampered with
    try:
        return json.loads(details)
    except (ValueError, TypeError, RecursionError):
        return details


def _shown(name: str, value: object) -> str:
    if name in _TIMES and isinstance(value, int):
        with suppress(OverflowError):
            return f"{schema.from_microseconds(value):%Y-%m-%d %H:%M:%S} UTC"
    return str(value)

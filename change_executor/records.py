"""The journal written out: every event as a line of JSON, and all that is on record about one proposal or message."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, RowMapping, select

from change_executor.errors import NoSuchProposal
from change_executor.journal import schema
from change_executor.journal.journal import event_details

_ROWS_AT_ONCE: Final = 1_000


def export_events(connection: Connection, after: int = 0) -> Iterator[str]:
    """Yield the events that follow number `after` as JSON objects, one a line, in the order of the chain.

    The members are the columns of `events`; `at` stays microseconds and `details` an object, so that the hash of each
    line can be made again from the line (docs/journal.md).
    """
    rows = connection.exec_driver_sql(
        "SELECT seq, at, kind, subject, actor, details, previous, hash FROM events WHERE seq > ? ORDER BY seq",
        (after,),
        execution_options={"yield_per": _ROWS_AT_ONCE},
    ).mappings()
    for row in rows:
        yield json.dumps({**row, "details": _object(row["details"])}, ensure_ascii=False, sort_keys=True)


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
        details = json.dumps(event_details(event["details"]), ensure_ascii=True, sort_keys=True)
        yield f"  {event['seq']:>8}  {_shown(event['at'])}  {event['kind']}  {event['actor']}  {details}"


def _object(details: str) -> Any:  # noqa: ANN401 - any JSON value, also in a journal that was tampered with
    try:
        return json.loads(details)
    except (ValueError, TypeError):
        return details


def _shown(value: object) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S} UTC" if isinstance(value, datetime) else str(value)

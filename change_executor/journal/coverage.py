"""Rows beside the proposals that the chain covers: an event that makes or changes one states the row's digest.

The digest is SHA-256 (lower-case hex) over the RFC 8785 canonical JSON of the row's columns that are not null, by name,
as SQLite holds them; octets, which no column of ours holds, as `{"octets": HEX}`. A column that a later version adds is
null in older rows, and so leaves their digests alone.
"""

import hashlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import rfc8785
from sqlalchemy import Connection

from change_executor.journal.chain import canonical
from change_executor.journal.engine import driver_of

# Every covered table and the column by which its rows are named in events.
COVERED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "evidence": "id",
        "moves": "id",
        "tokens": "id",
        "people": "name",
        "passkeys": "id",
        "switches": "name",
        "examinations": "queue",
        "revoked_agents": "name",
    }
)

# Events whose subject names the row that they are about, by the part of their kind before the colon.
_BY_SUBJECT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "token": "tokens",
        "person": "people",
        "passkey": "passkeys",
        "stop": "switches",
        "queue": "examinations",
        "agent": "revoked_agents",
    }
)

Row = tuple[str, int | str]


def row_of(kind: str, subject: str) -> Row | None:
    """Return the covered row that an event of this kind and subject is about, or None."""
    table = _BY_SUBJECT.get(kind.partition(":")[0])
    return None if table is None else (table, subject)


def stated(connection: Connection, row: Row) -> dict[str, Any]:
    """Return what an event says of a row as it stands now in this transaction; `sha256` is None where it is gone."""
    table, key = row
    asked = driver_of(connection).execute(f"SELECT * FROM {table} WHERE {COVERED[table]} = ?", (key,))  # noqa: S608 - a table of ours
    found = asked.fetchone()
    if found is None:
        return {"table": table, "key": str(key), "sha256": None}
    columns = (column[0] for column in asked.description)
    digest = text_digest(canonical(_held(dict(zip(columns, found, strict=True)))))
    return {"table": table, "key": str(key), "sha256": digest}


def row_digest(row: Mapping[Any, Any]) -> str:
    """Return the digest of a row as SQLite holds it.

    Raises `rfc8785.CanonicalizationError` for what JSON cannot hold.
    """
    return hashlib.sha256(rfc8785.dumps(_held(row))).hexdigest()


def text_digest(text: str) -> str:
    """Return the digest of a text as events state it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _held(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(column): _value(value) for column, value in row.items() if value is not None}


def _value(value: Any) -> Any:  # noqa: ANN401 - whatever SQLite holds
    # Never as the digits alone: a digest that somebody turned into octets opens and matches nothing any more.
    return {"octets": value.hex()} if isinstance(value, bytes) else value

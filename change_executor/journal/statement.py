"""Statements that are compiled once and said to the driver: what every proposal and every move says many times.

SQLAlchemy's expression language writes them, and its types read and write their values; left out is all that its
`execute` does beside that for each call, ten times what SQLite takes.
"""

import sqlite3
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import BindParameter, ClauseElement, ReturnsRows

from change_executor.journal.engine import driver_of

_Value = Callable[[Any], Any]

_DIALECT: Final = sqlite.dialect()
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Statement:
    """One statement of the expression language; `columns` are those that an INSERT sets, or an UPDATE of bound ones.

    Its parameters are given by the names of its `bindparam`s; what it was made with stays as it is. Errors are those of
    `Connection.execute` in a transaction of the journal: `IntegrityError` of SQLAlchemy, and the driver's for the rest.
    """

    def __init__(self, statement: ClauseElement, columns: tuple[str, ...] | None = None) -> None:
        compiled = statement.compile(dialect=_DIALECT, column_keys=columns)
        assert isinstance(compiled, SQLCompiler), "no statement that defines tables"
        # Lists (`IN`) and limits are written out with the values that the statement was made with.
        asked_for = {name: None for name, bind in compiled.binds.items() if bind.required}
        written_out = compiled.construct_expanded_state(asked_for)
        self._sql: Final = written_out.statement
        self._given: Final = tuple(
            _given(name, compiled.binds.get(name), written_out.parameters[name])
            for name in written_out.positiontup or ()
        )
        returned = statement.exported_columns if isinstance(statement, ReturnsRows) else ()
        self._columns: Final = tuple(_read_by(column) for column in returned)

    def insert(self, connection: Connection, values: Mapping[str, Any] = _NOTHING) -> int:
        """Say it, and return the number that SQLite gave the new row."""
        row = self._said(connection, values).lastrowid
        assert row is not None, "SQLite numbers the rows"
        return row

    def run(self, connection: Connection, values: Mapping[str, Any] = _NOTHING) -> int:
        """Say it, and return how many rows it changed."""
        return self._said(connection, values).rowcount

    def first(self, connection: Connection, values: Mapping[str, Any] = _NOTHING) -> dict[str, Any] | None:
        """Return the first row by the names of its columns, or None."""
        row = self._said(connection, values).fetchone()
        return None if row is None else self._read(row)

    def all(self, connection: Connection, values: Mapping[str, Any] = _NOTHING) -> list[dict[str, Any]]:
        """Return every row by the names of its columns."""
        return [self._read(row) for row in self._said(connection, values).fetchall()]

    def _said(self, connection: Connection, values: Mapping[str, Any]) -> sqlite3.Cursor:
        try:
            return driver_of(connection).execute(self._sql, self._parameters(values))
        except sqlite3.IntegrityError as error:
            # Without the parameters, which hold what agents and people wrote.
            raise IntegrityError(self._sql, None, error) from error

    def _parameters(self, values: Mapping[str, Any]) -> list[Any]:
        return [
            made_with if name is None else values[name] if write is None else write(values[name])
            for name, write, made_with in self._given
        ]

    def _read(self, row: tuple[Any, ...]) -> dict[str, Any]:
        return {
            name: value if read is None else read(value) for (name, read), value in zip(self._columns, row, strict=True)
        }


def _given(name: str, bind: BindParameter[Any] | None, made_with: object) -> tuple[str | None, _Value | None, object]:
    """Where a parameter comes from: its name and what makes it one of SQLite's, or the value that is always given."""
    write = None if bind is None else bind.type.dialect_impl(_DIALECT).bind_processor(_DIALECT)
    if bind is not None and bind.required:
        return name, write, None
    # One of a list (`IN`) has no bind of its own; its statement holds it as SQLite takes it.
    return None, None, made_with if write is None else write(made_with)


def _read_by(column: ColumnElement[Any]) -> tuple[str, _Value | None]:
    return str(column.key), column.type.dialect_impl(_DIALECT).result_processor(_DIALECT, None)

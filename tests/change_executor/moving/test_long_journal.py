"""A move costs as much after a hundred thousand moves as after a hundred: no question of its pass walks them all."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import event

from change_executor.journal.statement import Statement
from change_executor.lifecycle import Event

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping

    from sqlalchemy import Connection, Engine

    from tests.change_executor.moving.office import Office

# What grows for ever, or all of it that a queue ever had.
_WALKED = re.compile(
    r"SCAN (?:proposals|moves|events|evidence)\w*(?! USING INDEX moves_under_way)\b"
    r"|USING (?:COVERING )?INDEX \w+ \(queue=\?\)$"
)


@contextmanager
def asked(*engines: Engine) -> Iterator[list[tuple[str, Any]]]:
    """Every statement that the block says, with its parameters."""
    found: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        found.append((statement, parameters))

    said = Statement._said

    def noted(statement: Statement, connection: Connection, values: Mapping[str, Any]) -> sqlite3.Cursor:
        found.append((statement._sql, tuple(statement._parameters(values))))
        return said(statement, connection, values)

    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)
    # Those that are compiled once go past the engine.
    Statement._said = noted  # type: ignore[method-assign,assignment]  # to hear what is asked
    try:
        yield found
    finally:
        Statement._said = said  # type: ignore[method-assign]  # as it was
        for engine in engines:
            event.remove(engine, "before_cursor_execute", note)


def test_no_question_of_a_move_or_an_undo_walks_all_that_ever_was(office: Office) -> None:
    journal, proposal = office.workshop.journal, office.workshop.approved(office.deliver())
    with asked(journal._readers.engine, journal._writer) as statements:
        office.worker.pass_once()
        assert ("applied", "moved", None) == office.workshop.told(proposal)
        office.workshop.happen(proposal, Event.UNDO)
        office.worker.pass_once()
    assert ("undone", "moved_back", None) == office.workshop.told(proposal)
    walks = []
    with journal.reading() as connection:
        for statement, parameters in statements:
            if statement.lstrip().startswith(("SELECT", "UPDATE")):
                plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
                walks += [(row.detail, statement) for row in plan if _WALKED.search(row.detail)]
    assert any("FROM moves" in statement for statement, _ in statements)
    assert [] == walks

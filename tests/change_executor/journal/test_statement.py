"""A statement that is compiled once says and hears the same as SQLAlchemy's own way of saying it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError

from change_executor.journal import schema
from change_executor.journal.statement import Statement
from tests.change_executor.journal.clock import new_proposal

if TYPE_CHECKING:
    from change_executor.journal.journal import Journal

_columns = schema.proposals.c
_MOMENT = datetime(2026, 11, 29, 13, 14, 15, 161718, tzinfo=UTC)

ASKED: dict[str, tuple[Any, dict[str, Any]]] = {
    "a whole row": (select(schema.proposals).where(_columns.id == bindparam("id")), {"id": new_proposal().id}),
    "by time": (select(_columns.id).where(_columns.created_at < bindparam("now")), {"now": _MOMENT}),
    "a time that it was made with": (select(_columns.id).where(_columns.created_at < _MOMENT), {}),
    "a list and a limit": (select(_columns.id).where(_columns.state.in_(["pending", "stale"])).limit(2), {}),
    "a name given twice": (
        select(_columns.id).where((_columns.agent == bindparam("x")) | (_columns.queue == bindparam("x"))),
        {"x": "support"},
    ),
    "yes or no": (select(select(_columns.id).where(_columns.state == "pending").exists().label("any")), {}),
    "nothing": (select(_columns.id).where(_columns.id == bindparam("id")), {"id": "P"}),
}


@pytest.fixture
def three(journal: Journal) -> Journal:
    with journal.writing() as writing:
        for number in range(1, 4):
            writing.create(new_proposal(number))
    return journal


def test_it_hears_what_sqlalchemy_hears(three: Journal) -> None:
    for asked, (statement, values) in ASKED.items():
        said = Statement(statement)
        with three.reading() as connection:
            expected = [dict(row) for row in connection.execute(statement, values).mappings()]
            assert (asked, expected) == (asked, said.all(connection, values))
            assert (asked, expected[0] if expected else None) == (asked, said.first(connection, values))


def test_a_time_is_written_as_its_type_has_it_and_changed_rows_are_counted(three: Journal) -> None:
    change = Statement(
        update(schema.proposals).where(_columns.id == bindparam("which")).values(decided_at=bindparam("decided_at"))
    )
    known, unknown = new_proposal(1).id, "P"
    with three.writing() as writing:
        assert 1 == change.run(writing.connection, {"which": known, "decided_at": _MOMENT})
        assert 0 == change.run(writing.connection, {"which": unknown, "decided_at": None})
        assert _MOMENT == writing.proposal(known).decided_at


def test_a_refused_row_is_refused_as_sqlalchemy_does_and_its_values_stay_out_of_the_words(three: Journal) -> None:
    add = Statement(insert(schema.texts), ("proposal", "kind", "text"))
    with pytest.raises(IntegrityError) as refused, three.writing() as writing:
        add.run(writing.connection, {"proposal": "P-none", "kind": "reason", "text": "what an agent wrote"})
    assert "what an agent wrote" not in str(refused.value)


def test_a_value_that_is_not_given_is_our_mistake(three: Journal) -> None:
    add = Statement(insert(schema.texts), ("proposal", "kind", "text"))
    with pytest.raises(KeyError), three.writing() as writing:
        add.run(writing.connection, {"proposal": new_proposal(1).id, "kind": "reason"})

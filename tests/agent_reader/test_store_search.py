"""The search table's pieces: joined once they are many, with every hit where it was."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import apsw

from agent_reader.store import database, search, tokens

WORDS = [f"w{number}" for number in range(5_000)]


def _fill(connection: apsw.Connection, places: range) -> None:
    with connection:
        for place in places:
            chance = random.Random(place)
            body = " ".join(chance.choices(WORDS, k=60))
            search.put(connection, place, tokens.ORDINARY, ("", "", "", "", "", body, ""))


def _found(connection: apsw.Connection, word: str) -> list[int]:
    rows = connection.execute("SELECT rowid FROM search WHERE search MATCH ? ORDER BY rowid DESC", (word,))
    return [int(place) for (place,) in rows]


def _join(connection: apsw.Connection) -> int:
    steps, is_more = 0, True
    while is_more:
        with connection:
            is_more = search.join_pieces(connection, is_first_step=steps == 0)
        steps += 1
    return steps


def test_pieces_are_joined_step_by_step_and_hits_stay(tmp_path: Path) -> None:
    with closing(database.open_file(tmp_path / "store" / "mail-a.db", "", None)) as connection:
        for batch in range(6):
            _fill(connection, range(batch * 400, batch * 400 + 400))
        assert search.is_scattered(connection)
        found = {word: _found(connection, word) for word in WORDS[:50]}
        assert _join(connection) > 1
        assert 1 == connection.execute("SELECT count(DISTINCT segid) FROM search_idx").get
        assert found == {word: _found(connection, word) for word in WORDS[:50]}
        # A little more is no reason to write everything anew.
        _fill(connection, range(2_400, 2_500))
        assert not search.is_scattered(connection)


def test_a_small_table_is_left_as_it_is(tmp_path: Path) -> None:
    with closing(database.open_file(tmp_path / "store" / "mail-a.db", "", None)) as connection:
        assert not search.is_scattered(connection)
        for batch in range(5):
            _fill(connection, range(batch * 10, batch * 10 + 10))
        assert not search.is_scattered(connection)

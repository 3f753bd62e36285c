"""Places in the search table: the newest first, whatever comes in when, and few must move for a newcomer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import apsw
import pytest

from agent_reader.store import places
from agent_reader.store.emails import KEY_SHIFT
from shared.message import JSON
from tests.agent_reader.mirrored import START, fetched, letter, mirrored


class Table:
    """Emails, as much of them as places are about."""

    def __init__(self) -> None:
        self.connection = apsw.Connection(":memory:")
        self.connection.execute("CREATE TABLE emails (key INTEGER PRIMARY KEY, place INTEGER NOT NULL)")
        self.moves = 0

    def put(self, key: int) -> None:
        found = places.find(self.connection, key)
        for each in found.moved:
            assert each.old == self.connection.execute("SELECT place FROM emails WHERE key = ?", (each.key,)).get
        self.connection.executemany(
            "UPDATE emails SET place = ? WHERE key = ?", [(each.new, each.key) for each in found.moved]
        )
        self.connection.execute("INSERT INTO emails VALUES (?, ?)", (key, found.place))
        self.moves += len(found.moved)

    def places(self) -> list[int]:
        return [int(place) for (place,) in self.connection.execute("SELECT place FROM emails ORDER BY key DESC")]


@pytest.fixture
def table() -> Iterator[Table]:
    table = Table()
    yield table
    table.connection.close()


def _key(second: int, tie: int) -> int:
    return (second << KEY_SHIFT) + tie


def _orders() -> dict[str, list[int]]:
    chance = random.Random(7)
    one_second = [_key(1_700_000_000, tie) for tie in chance.sample(range(1 << KEY_SHIFT), 3_000)]
    seconds = [_key(1_700_000_000 + second, second * 7919 % 1_000) for second in range(3_000)]
    apart = [_key(1_700_000_000 + number * 540, number) for number in range(3_000)]
    return {
        "one second": one_second,
        "one second, newest first": sorted(one_second, reverse=True),
        "one second among others": [*apart[::30], *one_second, *apart[1::30]],
        "a script's, newest first": seconds[::-1],
        "a script's, mixed": chance.sample(seconds, len(seconds)),
        "mailboxes one after the other": [*apart[2::3][::-1], *apart[::3][::-1], *apart[1::3][::-1]],
        "always in the same gap": [*apart[:10], *(_key(1_700_000_100, tie) for tie in range(3_000, 0, -1))],
        "before 1970": [_key(second, 5) for second in chance.sample(range(-3_000, 3_000), 1_000)],
    }


@pytest.mark.parametrize("name", _orders())
def test_places_are_the_newest_first_whatever_comes_in_when(table: Table, name: str) -> None:
    keys = _orders()[name]
    for key in keys:
        table.put(key)
    found = table.places()
    assert sorted(set(found)) == found
    # Each newcomer rewrites a few entries of the search table, not a share of them.
    assert 20 * len(keys) > table.moves


def test_mail_that_comes_minutes_apart_moves_none_however_it_comes_in(table: Table) -> None:
    for key in _orders()["mailboxes one after the other"]:
        table.put(key)
    assert 0 == table.moves


def test_mail_that_comes_in_order_moves_none_however_fast_and_takes_one_place_each(table: Table) -> None:
    for key in sorted(_orders()["one second"]):
        table.put(key)
    assert 0 == table.moves
    assert 2_999 == table.places()[-1] - table.places()[0]


def test_hits_of_one_crowded_second_come_in_the_order_of_all_lists_and_dates_part_them_exactly(tmp_path: Path) -> None:
    """Before, within and after a second that hundreds came in, in several batches, with others there already."""
    moments = [START + timedelta(seconds=second) for second in (0, 1, 1, 1, 1, 1, 1, 2)]
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX")
        for batch in range(10):
            account.add(
                "INBOX",
                *(
                    fetched(batch * 80 + number + 1, letter(f"word {batch} {number}"), at=moments[number % 8])
                    for number in range(80)
                ),
            )
        everything = account.query(limit=500).ids + account.query(limit=500, position=500).ids
        assert 800 == len(everything)
        found = account.query(filter={"text": "word"}, limit=500).ids
        assert everything == found + account.query(filter={"text": "word"}, limit=500, position=500).ids
        oldest_first = account.query(filter={"text": "word"}, sort=[{"property": "receivedAt"}], limit=500).ids
        assert everything[::-1][:500] == oldest_first
        second: list[JSON] = [_utc(START + timedelta(seconds=1)), _utc(START + timedelta(seconds=2))]
        of_the_second = {"text": "word", "after": second[0], "before": second[1]}
        within = account.query(filter=of_the_second, limit=500, calculateTotal=True)
        assert (600, everything[100:600]) == (within.total, within.ids)
        after = account.query(filter={"text": "word", "after": second[1]}, calculateTotal=True)
        assert (100, everything[:100]) == (after.total, after.ids)
        before = account.query(filter={"text": "word", "before": second[0]}, calculateTotal=True)
        assert (100, everything[700:]) == (before.total, before.ids)
        none = account.query(filter={"text": "word", "after": _utc(START + timedelta(days=1))}, calculateTotal=True)
        assert (0, ()) == (none.total, none.ids)


def _utc(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"

"""What a request reads of a message it reads once, within a bound that does not grow with what is asked."""

from __future__ import annotations

from pathlib import Path

from agent_reader.query import kept_readings
from agent_reader.query.kept_readings import KeptReadings
from tests.agent_reader.served import ACCOUNT, house


def test_a_message_is_read_once_and_the_first_ones_stay(tmp_path: Path) -> None:
    with house(tmp_path) as served, served.store.snapshot(ACCOUNT) as snapshot:
        keys = [int(key) for (key,) in snapshot.connection.execute("SELECT key FROM emails ORDER BY key")]
        readings = KeptReadings()
        first = readings.of(snapshot, keys[0])
        assert readings.of(snapshot, keys[0]) is first
        assert first.text() is first.text()
        assert first.segmented() is first.segmented()
        assert first.flags() is first.flags()
        readings._octets = kept_readings._MOST_OCTETS
        assert readings.of(snapshot, keys[1]) is not readings.of(snapshot, keys[1])
        assert readings.of(snapshot, keys[0]) is first

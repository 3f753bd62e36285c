"""What a request reads of a message it reads once, within a bound that does not grow with what is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_reader.query import kept_readings
from agent_reader.query.kept_readings import KeptReadings
from tests.agent_reader.served import ACCOUNT, house


def test_a_message_is_read_once_and_the_first_ones_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with house(tmp_path) as served, served.store.snapshot(ACCOUNT) as snapshot:
        rows = snapshot.connection.execute("SELECT id FROM emails ORDER BY key")
        emails = list(snapshot.emails([email_id for (email_id,) in rows]).values())
        readings = KeptReadings()
        first = readings.of(snapshot, emails[0])
        assert readings.of(snapshot, emails[0]) is first
        assert first.text() is first.text()
        assert first.segmented() is first.segmented()
        assert first.flags() is first.flags()
        for bound in ("_MOST_MESSAGES", "_MOST_OCTETS"):
            with monkeypatch.context() as bounded:
                bounded.setattr(kept_readings, bound, 1)
                few = KeptReadings()
                kept = few.of(snapshot, emails[0])
                assert (few.of(snapshot, emails[0]) is kept) == (bound == "_MOST_MESSAGES")
                assert few.of(snapshot, emails[1]) is not few.of(snapshot, emails[1])
        readings._octets = kept_readings._MOST_OCTETS
        assert readings.of(snapshot, emails[1]) is not readings.of(snapshot, emails[1])
        assert readings.of(snapshot, emails[0]) is first

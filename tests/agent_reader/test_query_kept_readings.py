"""What a request reads of a message it reads once, within a bound that does not grow with what is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_reader.query import kept_readings
from agent_reader.query.kept_readings import KeptReading, KeptReadings
from agent_reader.store import document
from shared.message import parse
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
        # Two of the three fit: what is kept adds up.
        sizes = [KeptReading(snapshot.message_of(email)).octets for email in emails]
        with monkeypatch.context() as bounded:
            bounded.setattr(kept_readings, "_MOST_OCTETS", sum(sizes) - 1)
            assert [True, True, False] == [
                readings.of(snapshot, each) is readings.of(snapshot, each) for each in emails
            ]
            assert readings.of(snapshot, emails[0]) is first


def test_how_much_a_message_takes_grows_with_its_text_its_fields_and_its_parts() -> None:
    def octets(fields: int = 0, parts: int = 1, text: int = 0) -> int:
        head = b"".join(b"X: y\r\n" for _ in range(fields)) + b"Content-Type: multipart/mixed; boundary=b\r\n\r\n"
        body = b"".join(b"--b\r\n\r\n" + b"t" * text + b"\r\n" for _ in range(parts))
        return KeptReading(document.unpack(document.pack(parse(head + body + b"--b--\r\n")))).octets

    least = octets()
    # Objects of their own: many times what they are on the wire.
    assert octets(fields=1_000) - least > 100 * 1_000
    assert octets(parts=500) - least > 500 * 500
    assert octets(text=100_000) - least == 100_000

"""The text that a monitor reads, line by line against the published grammar; and the listener that gives it."""

from __future__ import annotations

import asyncio
import re
import socket
import stat
from typing import TYPE_CHECKING, Any

import pytest

from shared.imap_guard import Guard, GuardRefusal, refused_lines
from shared.metrics import Health, Measure, Metrics, exposition, listener_of, metrics_app, of_the_process
from shared.reader_verbs import READER_TABLE
from shared.settings import ConfigurationError, settings_from

if TYPE_CHECKING:
    from pathlib import Path

# Prometheus' text-based format, version 0.0.4.
_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
LINE = re.compile(
    r"# HELP [a-zA-Z_:][a-zA-Z0-9_:]* (?:[^\\\n]|\\[\\n])*"
    r"|# TYPE [a-zA-Z_:][a-zA-Z0-9_:]* (?:counter|gauge)"
    rf"|[a-zA-Z_:][a-zA-Z0-9_:]*(?:\{{{_LABEL}(?:,{_LABEL})*\}})? -?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
)


def assert_grammar(text: str) -> dict[str, float]:
    """Every line is of the grammar, each name is told once and its values follow it; gives the values."""
    assert text.endswith("\n")
    values: dict[str, float] = {}
    told: list[str] = []
    for line in text.splitlines():
        assert LINE.fullmatch(line), line
        if line.startswith("# TYPE"):
            told.append(line.split()[2])
        elif not line.startswith("#"):
            sample, _, value = line.rpartition(" ")
            assert sample.partition("{")[0] == told[-1], line
            assert sample not in values
            values[sample] = float(value)
    assert len(set(told)) == len(told)
    return values


def test_numbers_become_lines_and_hostile_labels_stay_inside_their_quotes() -> None:
    hostile = 'a"} 1\nmailwarrant_alarm 0 \\'
    found = [
        Measure("x_total", 3.0, (("account", "shop"),)),
        Measure("y", 0.25),
        Measure("x_total", 1e15, (("account", hostile), ("state", ""))),
        Measure("y_seconds", 1.5e-7),
    ]
    text = exposition(found, {"x_total": "Some\nthing\\.", "y": "Y.", "y_seconds": "S."}).decode()
    values = assert_grammar(text)
    assert {0.25, 3.0, 1e15, 1.5e-7} == set(values.values())
    assert "# TYPE x_total counter\n" in text
    assert "# TYPE y gauge\n" in text


def test_a_number_without_a_help_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        exposition([Measure("z", 1.0)], {})


def test_a_refused_line_is_counted_by_its_table() -> None:
    before = refused_lines().get("reader", 0)
    with pytest.raises(GuardRefusal):
        Guard(READER_TABLE).pass_on(b"A1 EXPUNGE\r\n")
    assert before + 1 == refused_lines()["reader"]
    assert any(each.labels == (("table", "reader"),) for each in of_the_process())


def asked(path: str, *, host: bytes = b"localhost:8624", method: str = "GET", well: bool = True) -> tuple[int, bytes]:
    def health() -> Health:
        if not well:
            raise ValueError("with a secret in it")
        return Health(is_well=True, details={"events": 7})

    app = metrics_app(lambda: b"y 1\n", health)
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("no body is read")

    async def answered() -> None:
        await app({"type": "http", "method": method, "path": path, "headers": [(b"host", host)]}, receive, send)

    asyncio.run(answered())
    return sent[0]["status"], sent[1]["body"]


def test_two_paths_are_answered_to_whoever_calls_it_by_its_own_name() -> None:
    assert (200, b"y 1\n") == asked("/metrics")
    assert (200, b'{"status": "ok", "events": 7}\n') == asked("/health", host=b"127.0.0.1")
    assert 404 == asked("/")[0] == asked("/metrics/")[0] == asked("/metrics", method="POST")[0]
    assert 421 == asked("/metrics", host=b"evil.example:8624")[0]
    status, body = asked("/health", well=False)
    assert 503 == status
    assert b"secret" not in body


def test_it_listens_on_this_machine_only_and_its_socket_is_narrow(tmp_path: Path) -> None:
    assert listener_of(Metrics()) is None
    for wrong in ("0.0.0.0:1", "example.org:80", "localhost:80", "unix:relative"):
        with pytest.raises(ConfigurationError):
            settings_from({"listen": wrong}, Metrics, "test")
    path = tmp_path / "metrics.sock"
    for _ in range(2):
        # A socket that a killed process left is taken over.
        listener = listener_of(Metrics(listen=f"unix:{path}"))
        assert listener is not None
        listener.close()
        assert 0o660 == stat.S_IMODE(path.stat().st_mode)
    path.unlink()
    path.write_text("a file")
    with pytest.raises(ConfigurationError, match="no socket"):
        listener_of(Metrics(listen=f"unix:{path}"))
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ConfigurationError, match="cannot be listened"):
        listener_of(Metrics(listen=f"127.0.0.1:{taken.getsockname()[1]}"))

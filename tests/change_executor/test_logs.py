"""The log tells events and where an error passed, and never the words that came with it."""

from __future__ import annotations

import io
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from change_executor.logs import configure_logs

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    stream = io.StringIO()
    configure_logs(stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_is_one_json_object_a_line(stream: io.StringIO) -> None:
    structlog.get_logger().info("executor:ready", intake="127.0.0.1:8621", name="zoë\n")
    (line,) = lines(stream)
    assert line.pop("timestamp").endswith("Z")
    assert {"event": "executor:ready", "level": "info", "intake": "127.0.0.1:8621", "name": "zoë\n"} == line
    assert stream.getvalue().isascii()


def test_an_error_is_told_by_its_kind_and_place(stream: io.StringIO) -> None:
    try:
        int("Dear Ada, my password is")
    except ValueError as error:
        structlog.get_logger().error("intake:mistake", exc_info=error)
        structlog.get_logger().exception("intake:mistake")
        logging.getLogger("uvicorn.error").exception("Exception in %s\nmore", "Dear Ada")
    assert "Dear Ada" not in stream.getvalue()
    for line in lines(stream):
        assert "ValueError" == line["error"]
        assert line["where"][-1].startswith("test_logs.py:")
    assert ("library:message", "uvicorn.error", "Exception in %s") == tuple(
        lines(stream)[-1][key] for key in ("event", "library", "words")
    )


def test_what_a_library_says_again_and_again_is_one_line_and_a_number(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("change_executor.logs.time.monotonic", lambda: clock[0])
    configure_logs(stream)
    for seconds in (0.0, 59.0, 60.0):
        clock[0] = seconds
        for number in range(100):
            logging.getLogger("asyncio").error("no more descriptors: %s", number)
            structlog.get_logger().info("intake:refused")
    told = lines(stream)
    assert [0, 199] == [line["left_out"] for line in told if line["event"] == "library:message"]
    # Our own are events, each of them.
    assert 300 == sum(line["event"] == "intake:refused" for line in told)


def test_libraries_that_tell_every_step_are_quiet(stream: io.StringIO) -> None:
    for name in ("alembic.runtime.migration", "uvicorn.error", "asyncio", "httpx", "imapclient.imapclient"):
        logging.getLogger(name).info("step")
    assert [] == lines(stream)

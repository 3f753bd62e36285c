"""The log: events as JSON lines on standard error, `subject:action`; never mail content, never a credential.

An error is told by its kind and the lines of our code that it passed; its words may hold what somebody sent.
"""

import logging
import sys
import time
import traceback
from typing import Any, Final, TextIO

import structlog
from structlog.types import EventDict, Processor, WrappedLogger

from shared.repeats import Repeats

# The innermost lines of a trace tell where; the outer ones are the server's.
_LINES_OF_TRACE: Final = 12
_CHARACTERS_OF_A_LIBRARY: Final = 200


def configure_logs(stream: TextIO = sys.stderr) -> None:
    """Send structlog's events and the libraries' warnings to one stream, one JSON object a line."""
    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _without_words,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, _of_a_library],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(ensure_ascii=True),
            ],
        )
    )
    handler.addFilter(_NoFloods())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    # Libraries speak when something is wrong; these tell every step otherwise.
    for name in ("alembic", "uvicorn", "asyncio", "httpx", "httpcore", "imapclient"):
        logging.getLogger(name).setLevel(logging.WARNING)


class _NoFloods(logging.Filter):
    """Leaves out what a library said in this minute already; our own events are not counted."""

    def __init__(self) -> None:
        super().__init__()
        self._repeats = Repeats(time.monotonic)

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.msg, dict):
            return True
        raised = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else None
        left_out = self._repeats.left_out((record.name, f"{record.module}:{record.lineno}", raised))
        record.left_out = left_out
        return left_out is not None


def _without_words(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    found = event.pop("exc_info", None)
    error: Any = sys.exc_info()[1] if found is True else found[1] if isinstance(found, tuple) else found
    if isinstance(error, BaseException):
        frames = traceback.extract_tb(error.__traceback__)[-_LINES_OF_TRACE:]
        event["error"] = type(error).__name__
        event["where"] = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames]
    return event


def _of_a_library(logger: WrappedLogger, _: str, event: EventDict) -> EventDict:
    # The first line as it stands in the library's code: what is filled in, and what follows, may be content.
    record = event.get("_record")
    name, words = (record.name, str(record.msg)) if isinstance(record, logging.LogRecord) else (str(logger), "")
    first_line = words.partition("\n")[0][:_CHARACTERS_OF_A_LIBRARY]
    left_out = getattr(record, "left_out", 0)
    return {**event, "event": "library:message", "library": name, "words": first_line, "left_out": left_out}

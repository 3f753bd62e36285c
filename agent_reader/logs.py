"""The log: one JSON object a line on standard error, `subject:action`; never mail content, never a credential."""

import logging
import time
from typing import TextIO, cast

import structlog
from structlog.typing import FilteringBoundLogger

from shared.repeats import Repeats


def new_log(stream: TextIO) -> FilteringBoundLogger:
    """Return a logger that writes to this stream."""
    log = structlog.wrap_logger(
        structlog.PrintLogger(stream),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
    )
    return cast("FilteringBoundLogger", log)


def pass_on_warnings(log: FilteringBoundLogger) -> None:
    """Make the warnings of every library of this process lines of this log."""
    logging.basicConfig(handlers=[_LibraryWarnings(log)], level=logging.WARNING, force=True)


class _LibraryWarnings(logging.Handler):
    """Passes on that a library warned, and where; not its text, which may quote mail or an argument."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        super().__init__(logging.WARNING)
        self._log = log
        self._repeats = Repeats(time.monotonic)

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line, or count it where the same one was written in this minute."""
        raised = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else None
        place = f"{record.module}:{record.lineno}"
        left_out = self._repeats.left_out((record.name, place, raised))
        if left_out is not None:
            self._log.warning("library:warning", logger=record.name, place=place, error=raised, left_out=left_out)

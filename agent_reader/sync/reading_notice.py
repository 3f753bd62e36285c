"""Says it once, in the log and in the status, when a long backlog is read in the reader for want of processes."""

from typing import Final

from structlog.typing import FilteringBoundLogger

from agent_reader.sync.mirror import Mirror

IN_READER: Final = "reading_in_reader"
_DETAIL: Final = "No process can be started that reads mail: a long backlog is read in the reader itself."
_FIX: Final = (
    "Look at the memory and the number of processes that the machine and the unit allow (doctor tries one). It is "
    "tried again by itself, four times an hour at least."
)


class ReadingNotice:
    """What was said of it last. One thread uses it."""

    def __init__(self, mirror: Mirror, log: FilteringBoundLogger) -> None:
        self._mirror, self._log = mirror, log
        self._is_said = False

    def look(self) -> None:
        """Say what has changed since the last look."""
        is_so = self._mirror.reads_in_place_of_processes()
        if is_so and not self._is_said:
            self._log.warning("reading:in_reader", detail=_DETAIL, fix=_FIX)
            self._mirror.failed(IN_READER, _DETAIL, _FIX)
        elif self._is_said and not is_so:
            self._log.info("reading:in_reader_ended")
            self._mirror.is_over(IN_READER)
        self._is_said = is_so

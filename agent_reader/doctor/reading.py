"""Whether a process can be started here that reads mail, as a long backlog wants some (`store/reading_process.py`)."""

from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Final

from agent_reader.keep import Keep
from agent_reader.store.reading_process import CHILD, START_PAUSES_SECONDS, CannotRead, ReadingProcess
from agent_reader.store.reading_wire import AskedMessage
from shared.doctor.finding import Fault, Looking, Report

_OCTETS: Final = b"Subject: a try\r\n\r\nof the doctor's\r\n"
_MESSAGE: Final = AskedMessage("F", 1, 1, datetime.fromtimestamp(0, UTC), len(_OCTETS), _OCTETS, b"", Keep.EVERYTHING)
_FIX: Final = (
    "Give the machine memory, and the unit processes and memory (TasksMax=, MemoryMax=: systemctl show agent-reader "
    "-p TasksCurrent -p TasksMax -p MemoryCurrent); then: doctor"
)


def look_at_reading(command: Sequence[str] = CHILD, pauses: Sequence[float] = START_PAUSES_SECONDS) -> Report:
    """Start one, have it read a message of ours, and end it."""
    looking = Looking()
    with closing(ReadingProcess(command, pauses=pauses)) as process:
        try:
            (said,) = process.read([_MESSAGE])
        except CannotRead:
            looking.find(Fault.READING_PROCESS, "no process can be started that reads mail", _FIX)
        else:
            if said.reading is None:
                looking.find(Fault.READING_PROCESS, f"a process that reads mail fails at it ({said.error})", _FIX)
    return looking.report()

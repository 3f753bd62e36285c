"""What to do with a bug: an id for whoever asked, and the place in the code for the log; never content."""

import traceback

from structlog.typing import FilteringBoundLogger

from shared.time_and_chance import RandomOctets


class Faults:
    """Notes internal faults. The words of an exception may hold mail, so only its type and place are logged."""

    def __init__(self, log: FilteringBoundLogger, random_octets: RandomOctets) -> None:
        self._log, self._random_octets = log, random_octets

    def note(self, where: str, error: BaseException) -> str:
        """Log a fault and return its id."""
        fault = self._random_octets(6).hex()
        frames = traceback.extract_tb(error.__traceback__)
        places = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames[-8:]]
        self._log.error("request:failed", fault=fault, where=where, error=type(error).__name__, places=places)
        return fault

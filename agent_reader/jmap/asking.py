"""What a method may use while it answers one call."""

from collections.abc import Callable
from dataclasses import dataclass, field

from agent_reader.jmap.capabilities import Limits
from agent_reader.jmap.errors import Abandoned
from agent_reader.jmap.sheet import Sheet
from agent_reader.query import BlobReader
from agent_reader.query.errors import took_too_long
from agent_reader.query.kept_readings import KeptReadings
from agent_reader.store.snapshot import Snapshot

# Seconds that only go on; where they begin says nothing.
Monotonic = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Asking:
    """One call of a request: what is seen of the account, and what the answer may cost.

    `using` is what the request named; `sheet` is what the whole answer is written on; `blobs` opens what the store does
    not keep; `until` is the moment of `monotonic` at which a search ends, and `reading_until` that at which reading
    does; `is_abandoned` says whether nobody waits for the answer any more; `readings` are of the snapshot, for all
    calls of the request.
    """

    snapshot: Snapshot = field(repr=False)
    limits: Limits
    using: frozenset[str]
    sheet: Sheet = field(repr=False)
    monotonic: Monotonic = field(repr=False)
    blobs: BlobReader = field(repr=False)
    until: float
    reading_until: float
    readings: KeptReadings = field(default_factory=KeptReadings, repr=False)
    is_abandoned: Callable[[], bool] = field(default=lambda: False, repr=False)

    def is_over(self) -> bool:
        """Whether the time of this call is up, or nobody waits for it."""
        return self.monotonic() >= self.until or self.is_abandoned()

    def go_on(self) -> None:
        """Raise `Abandoned` where nobody waits, `QueryRefused` where it took too long: asked between messages."""
        if self.is_abandoned():
            raise Abandoned
        if self.monotonic() >= self.reading_until:
            raise took_too_long()

"""What a method may use while it answers one call."""

from collections.abc import Callable
from dataclasses import dataclass, field

from agent_reader.jmap.capabilities import Limits
from agent_reader.query import BlobReader
from agent_reader.store.snapshot import Snapshot

# Seconds that only go on; where they begin says nothing.
Monotonic = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Asking:
    """One call of a request: what is seen of the account, and what the answer may cost.

    `using` is what the request named; `octets_left` is the room that is left in the whole answer; `blobs` opens what
    the store does not keep; `until` is the moment of `monotonic` at which a search ends.
    """

    snapshot: Snapshot = field(repr=False)
    limits: Limits
    using: frozenset[str]
    octets_left: int
    monotonic: Monotonic = field(repr=False)
    blobs: BlobReader = field(repr=False)
    until: float

    def is_over(self) -> bool:
        """Whether the time of this call is up."""
        return self.monotonic() >= self.until

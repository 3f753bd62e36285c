"""What a method may use while it answers one call."""

from dataclasses import dataclass, field

from agent_reader.door.limits import Limits
from agent_reader.jmap.sheet import Sheet
from agent_reader.query import BlobReader
from agent_reader.query.kept_readings import KeptReadings
from agent_reader.query.patience import Patience
from agent_reader.store.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Asking:
    """One call of a request: what is seen of the account, and what the answer may cost.

    `using` is what the request named; `sheet` is what the whole answer is written on; `blobs` opens what the store does
    not keep; `readings` are of the snapshot, for all calls of the request.
    """

    snapshot: Snapshot = field(repr=False)
    limits: Limits
    using: frozenset[str]
    sheet: Sheet = field(repr=False)
    blobs: BlobReader = field(repr=False)
    patience: Patience = field(repr=False)
    readings: KeptReadings = field(default_factory=KeptReadings, repr=False)

"""What is kept of messages, and for how long: everything, the texts alone, or no text at all.

Headers, structure, sizes and ids are always kept: without them the index would not know the message.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

_DAY_SECONDS: Final = 24 * 3600

# Of what agents read; `[reads] keep_days` says why.
READS_KEPT_DAYS: Final = 365


class Keep(IntEnum):
    """`TEXT`: the texts that are the message's body. `EVERYTHING`: text attachments besides; others never are here."""

    METADATA = 0
    TEXT = 1
    EVERYTHING = 2


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept of a message, and after how many days since it was received only its metadata; None for never."""

    keep: Keep = Keep.EVERYTHING
    days: int | None = None

    def oldest_with_text(self, now: int) -> int:
        """Return from when on, in seconds since 1970, a message's text is kept."""
        return 0 if self.days is None else now - self.days * _DAY_SECONDS

    def of(self, received_at: int, now: int) -> Keep:
        """Return what is kept of a message."""
        return self.keep if received_at >= self.oldest_with_text(now) else Keep.METADATA

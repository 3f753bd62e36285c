"""Time that nobody sets: how long ago something was noted, whatever the wall clock was made to say since.

A process that begins again on the same machine goes on counting; after the machine began again nothing is known of the
time between, and whoever counts begins anew.
"""

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Self

# random(4): of this boot of the kernel, and of no other.
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Reading:
    """A reading of the machine's own clock: microseconds of one boot."""

    boot: str
    microseconds: int

    @classmethod
    def noted(cls, details: Mapping[str, Any]) -> Self | None:
        """Return what an event notes, or None where it was written by a release that noted none."""
        noted = details.get("steady")
        return cls(str(noted["boot"]), int(noted["microseconds"])) if isinstance(noted, dict) else None

    def note(self) -> dict[str, Any]:
        """Return it as an event notes it."""
        return {"boot": self.boot, "microseconds": self.microseconds}

    def since(self, earlier: "Reading | None") -> int | None:
        """Return the microseconds that passed since an earlier one, or None where nobody can know."""
        if earlier is None or earlier.boot != self.boot or earlier.microseconds > self.microseconds:
            return None
        return self.microseconds - earlier.microseconds


Steady = Callable[[], Reading]


def since_boot() -> Reading:
    """Read the machine's clock. It stands still while the machine sleeps: that makes a time longer, never shorter."""
    return Reading(_boot(), time.monotonic_ns() // 1_000)


@cache
def _boot() -> str:
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        # No such file (macOS): a process knows of its own time only.
        return secrets.token_hex(16)

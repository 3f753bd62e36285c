"""Time and chance, which come in as arguments, so that a test hands in its own: their types, and the real clock."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeAlias

# The present, aware UTC.
Clock: TypeAlias = Callable[[], datetime]

# Seconds that only go on; where they begin says nothing.
Monotonic: TypeAlias = Callable[[], float]

# So many octets that nobody can guess, as `secrets.token_bytes` gives them.
RandomOctets: TypeAlias = Callable[[int], bytes]


def utc_now() -> datetime:
    """Return the present, aware UTC."""
    return datetime.now(UTC)

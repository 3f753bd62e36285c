"""Trying again: soon at first, ever more seldom later; and what a failure says of the server behind it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Self

# The first retry comes soon, since most failures are a moment's; later ones leave a server in peace.
FIRST_RETRY: Final = timedelta(seconds=2)
LONGEST_RETRY: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Retry:
    """What has failed `tried` times, was put off at `since` the last time, and is tried again at `due`."""

    tried: int
    since: datetime
    due: datetime

    @classmethod
    def after(cls, before: Self | None, now: datetime, *, was_tried: bool = True) -> Self:
        """Return what follows one more failure, or, not `was_tried`, one more time that it was put off for another."""
        tried = 0 if before is None else before.tried
        return cls(tried + was_tried, now, now + min(FIRST_RETRY * 2 ** min(tried, 16), LONGEST_RETRY))

    def holds(self, now: datetime) -> bool:
        """Whether it is not tried yet; not for as long as a clock was set back."""
        return self.since <= now < self.due


# A server that takes longer over a failure has trouble of its own: whatever else is asked of it now waits as long.
_PATIENCE_SECONDS: Final = 10.0


@dataclass(slots=True)
class Servers:
    """The servers that one pass has found in trouble, by credential: with them it tries nothing more."""

    _in_trouble: dict[str, bool] = field(default_factory=dict)

    @property
    def in_trouble(self) -> Mapping[str, bool]:
        """Those that are left alone, and whether that is for all who wait for them: nobody could sign in."""
        return self._in_trouble

    def failed(self, credential: str, *, signed_in: bool, seconds: float) -> None:
        """Note a failure. One that came soon in a session may be one message's: it must not hold up the others."""
        if not signed_in or seconds > _PATIENCE_SECONDS:
            self._in_trouble[credential] = not signed_in

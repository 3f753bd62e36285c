"""Trying again: soon at first, ever more seldom later; pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Self

# The first retry comes soon, since most failures are a moment's; later ones leave a server in peace.
FIRST_RETRY: Final = timedelta(seconds=2)
LONGEST_RETRY: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Retry:
    """What has failed `tried` times, the last time at `since`, and is tried again at `due`."""

    tried: int
    since: datetime
    due: datetime

    @classmethod
    def after(cls, before: Self | None, now: datetime) -> Self:
        """Return what follows one more failure."""
        tried = 1 if before is None else before.tried + 1
        return cls(tried, now, now + min(FIRST_RETRY * 2 ** min(tried - 1, 16), LONGEST_RETRY))

    def holds(self, now: datetime) -> bool:
        """Whether it is not tried yet; not for as long as a clock was set back."""
        return self.since <= now < self.due

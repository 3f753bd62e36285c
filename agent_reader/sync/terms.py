"""On what terms an account is read: what others want between two steps, and what the owner allows."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from agent_reader.sync.order import Age
from shared.time_and_chance import Clock, utc_now


def _nothing_urgent() -> Collection[str]:
    return ()


def _never() -> bool:
    return False


def _everything(_: Age) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Terms:
    """Asked between the steps of a round; each step is one command or two, and at most one batch.

    `between`: stands back for whoever waits for octets, and returns the mailboxes to look at before anything else.
    `is_over`: whether the round is to end, so that all mailboxes are looked at anew. `allows`: whether messages of this
    age may be fetched now. `window`: the server shows only so many messages of a mailbox, the newest (Yahoo), None for
    all.
    """

    clock: Clock = utc_now
    between: Callable[[], Collection[str]] = _nothing_urgent
    is_over: Callable[[], bool] = _never
    allows: Callable[[Age], bool] = _everything
    window: int | None = None

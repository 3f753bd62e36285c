"""Who waits for new states of an account is woken when one was committed: no polling.

The store announces from whatever thread wrote; each subscriber waits in an asyncio loop of its own.
"""

import asyncio
import contextlib
import threading
from collections.abc import Collection, Iterator


class Subscription:
    """What one subscriber has not heard yet: account ids only, so it never grows, however slow the subscriber is."""

    def __init__(self, account_ids: Collection[str], loop: asyncio.AbstractEventLoop) -> None:
        self._account_ids = frozenset(account_ids)
        self._loop = loop
        self._lock = threading.Lock()
        self._unheard: set[str] = set()
        self._woken = asyncio.Event()

    async def changed(self) -> frozenset[str]:
        """Wait until accounts have new states; return their ids, each once however often its state changed."""
        while True:
            await self._woken.wait()
            with self._lock:
                heard, self._unheard = frozenset(self._unheard), set()
                self._woken.clear()
            if heard:
                return heard

    def note(self, account_id: str) -> None:
        """Take note of a new state; any thread may call."""
        if account_id not in self._account_ids:
            return
        with self._lock:
            self._unheard.add(account_id)
        # The loop may have been closed under a subscriber that was never told to end; nobody waits there any more.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._woken.set)


class StateWatch:
    """Passes on that an account has a new state. Any thread may call `announce`; it never waits and never fails."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscriptions: set[Subscription] = set()

    def announce(self, account_id: str) -> None:
        """Wake those who wait for this account; called after the commit, so that they see the new state."""
        with self._lock:
            subscriptions = tuple(self._subscriptions)
        for subscription in subscriptions:
            subscription.note(account_id)

    @property
    def subscribers(self) -> int:
        """How many wait now."""
        with self._lock:
            return len(self._subscriptions)

    @contextlib.contextmanager
    def subscribe(self, account_ids: Collection[str]) -> Iterator[Subscription]:
        """Hear of these accounts for as long as the block lasts; inside a running asyncio loop.

        Read the present state after subscribing: what is committed between the two is heard, not missed.
        """
        subscription = Subscription(account_ids, asyncio.get_running_loop())
        with self._lock:
            self._subscriptions.add(subscription)
        try:
            yield subscription
        finally:
            with self._lock:
                self._subscriptions.discard(subscription)

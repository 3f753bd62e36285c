"""Restarts of everything at random: ended and killed programs, a mail server that goes, sessions that break."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from tests.end_to_end.houses import House, Houses
    from tests.servers.dovecot import Dovecot


class Accidents:
    """So many of them, spread over the part of the day that is not calm."""

    def __init__(self, dovecot: Dovecot, houses: Houses, chance: random.Random, most: int) -> None:
        self._dovecot, self._houses, self._chance, self._most = dovecot, houses, chance, most
        self.count = 0

    def maybe(self, share: float) -> None:
        """Let happen what is due by this share of the part with accidents."""
        while self.count < min(self._most, round(self._most * share)):
            # Each kind once before any comes again.
            kinds = self._kinds()
            kinds[self.count % len(kinds)]()
            self.count += 1

    def _kinds(self) -> list[Callable[[], None]]:
        houses = self._houses
        return [
            lambda: self._restart(houses.executor, signal.SIGKILL),
            lambda: self._restart(houses.reader, signal.SIGTERM),
            self._mail_server,
            lambda: self._restart(houses.reader, signal.SIGKILL),
            lambda: self._restart(houses.executor, signal.SIGTERM),
            self._sessions,
        ]

    def _restart(self, house: House, number: signal.Signals) -> None:
        if number is signal.SIGKILL:
            house.close()
        else:
            assert house.stop(number) == 0, house.log[-2000:]
        house.start()

    def _mail_server(self) -> None:
        self._dovecot.stop()
        # As often as not the executor is started anew while it is away.
        if self._chance.random() < 0.5:
            self._restart(self._houses.executor, signal.SIGTERM)
        self._dovecot.start()

    def _sessions(self) -> None:
        for login in ("reader", "executor"):
            with contextlib.suppress(AssertionError):
                self._dovecot.kill_session(login)

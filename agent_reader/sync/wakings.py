"""What is to be looked at before its time: told by whoever listens, taken by the account's own thread."""

import threading
from collections.abc import Collection


class Wakings:
    """Mailbox names, or everything; any thread may tell, and nothing told is lost."""

    def __init__(self) -> None:
        self._told = threading.Condition()
        self._names: set[str] = set()
        self._everything = False
        self._insisted = False
        self._ended = False

    def wake(self, names: Collection[str]) -> None:
        """Look at these mailboxes at once."""
        with self._told:
            self._names.update(names)
            self._told.notify_all()

    def wake_all(self) -> None:
        """Look at every mailbox at once."""
        with self._told:
            self._everything = True
            self._told.notify_all()

    def insist(self) -> None:
        """Look at every mailbox at once, even at a server that is being left alone."""
        with self._told:
            self._everything = self._insisted = True
            self._told.notify_all()

    def end(self) -> None:
        """Nothing is waited for any more."""
        with self._told:
            self._ended = True
            self._told.notify_all()

    @property
    def everything(self) -> bool:
        """Whether a whole round is wanted."""
        with self._told:
            return self._everything

    def wait(self, seconds: float) -> None:
        """Wait until something is told, at most so long."""
        with self._told:
            self._told.wait_for(lambda: bool(self._names) or self._everything or self._ended, seconds)

    def rest(self, seconds: float) -> None:
        """Wait so long, whatever news there is; only `insist` or the end is sooner."""
        with self._told:
            self._insisted = False
            self._told.wait_for(lambda: self._insisted or self._ended, seconds)

    def take(self) -> frozenset[str]:
        """Take the names that were told."""
        with self._told:
            names, self._names = frozenset(self._names), set()
            return names

    def take_all(self) -> frozenset[str]:
        """A whole round begins, and whatever was told until now is part of it; take the names that were."""
        with self._told:
            self._everything = False
            return self.take()

"""Who keeps a place at a listener: no stranger, and no uid all of them.

The person decides here while agents, and whoever else has a process on this machine, may try to be in the way.
"""

from collections.abc import Callable
from typing import ClassVar

from change_executor.peers import PeerProtocol, PeerUidGate
from shared.problem import Problem


class ListenerProtocol(PeerProtocol):
    """Lets those whom the gate refuses stay for their answer alone, and few of them at a time."""

    # A third: three agents, or three people, of whom one is out of order, still leave each other room.
    max_of_one_uid: ClassVar[int] = 100

    # They are told why, which takes milliseconds; whoever makes more of it than this is told nothing.
    max_refused: ClassVar[int] = 16
    refused_seconds: ClassVar[float] = 2.0

    is_refused = False

    def taken(self) -> None:
        """Look the peer up, and decide whether it may stay."""
        super().taken()
        gate = self.config.app
        self.is_refused = isinstance(gate, PeerUidGate) and not gate.allows(self.uid)
        if self.is_refused:
            self._end_soon()
        elif self.uid is not None and self._of_one_uid() > self.max_of_one_uid:
            self.drop()

    def _end_soon(self) -> None:
        if (
            sum(isinstance(other, ListenerProtocol) and other.is_refused for other in self.connections)
            > self.max_refused
        ):
            self.drop()
        else:
            # Whatever is sent meanwhile; aborting what has ended does nothing.
            self.loop.call_later(self.refused_seconds, self.transport.abort)

    def _of_one_uid(self) -> int:
        return sum(isinstance(other, PeerProtocol) and other.uid == self.uid for other in self.connections)


def counted_by(count: Callable[[Problem], None]) -> type[ListenerProtocol]:
    """Return the protocol of a listener at which `count` is told of requests that are none."""

    class Counted(ListenerProtocol):
        def refused(self, problem: Problem) -> None:
            count(problem)

    return Counted

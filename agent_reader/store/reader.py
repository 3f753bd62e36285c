"""Who reads what comes in: a process beside this one while a backlog is long, this one otherwise.

Both read by the same code and give the same. What a process answers is believed only so far: a message's id follows
from octets that are here. Where no process can be started, a long backlog is read here too, which is said, and a
process is tried again later; but what a process died of is never read here, nor a message so large that the reader
itself could end of it.
"""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Final

from agent_reader.errors import NoReadingProcess, ReadingEnded
from agent_reader.identity import Identity, names_of
from agent_reader.keep import Keep
from agent_reader.store.reading import Reading
from agent_reader.store.reading_child import answer
from agent_reader.store.reading_pool import ReadingShare
from agent_reader.store.reading_process import CannotRead
from agent_reader.store.reading_wire import Answer, Asked, AskedHeader, AskedMessage
from agent_reader.store.set_aside import UNREADABLE_FIX
from agent_reader.store.threads import FirstHeader
from agent_reader.store.writing import seconds
from agent_reader.sync.mirror import FetchedMessage, MessageState, SetAside, ThreadHeader
from shared.time_and_chance import Monotonic

# To be ready a process takes as long as reading some hundreds of messages.
LONG_BACKLOG: Final = 500
# To read a message takes up to 33 times its octets of memory, and a minute and a half for 60 MiB (measured): the
# service may have 2 GiB, and answers meanwhile. One of these takes 140 MiB and some seconds.
LARGE_OCTETS: Final = 4 * 1024 * 1024
# A machine that was short of memory for a moment has some again by the next look at the account; one that lets no
# process be started at all is asked four times an hour.
FIRST_PAUSE_SECONDS: Final = 15.0
LONGEST_PAUSE_SECONDS: Final = 900.0

Taken = tuple[int, MessageState, Reading]


class MessageReader:
    """Has messages read. One thread asks; any may stop it.

    `processes` gives a share in those that read a long backlog; `identity` is what names messages.
    """

    def __init__(
        self,
        processes: Callable[[], ReadingShare],
        identity: Identity = Identity.OCTETS,
        monotonic: Monotonic = time.monotonic,
    ) -> None:
        self._make, self._identity, self._monotonic = processes, identity, monotonic
        self._processes: ReadingShare | None = None
        self._lock = threading.Lock()
        self._outage = _Outage()
        self._has_backlog = False

    @property
    def is_beside(self) -> bool:
        """Whether processes read, so that this one can do something else meanwhile."""
        return self._processes is not None and not self._outage.is_left_alone

    @property
    def is_in_place_of_processes(self) -> bool:
        """Whether a long backlog is read here, since no process could be started."""
        return self._has_backlog and self._outage.is_on and not self._outage.is_of_deaths

    def await_backlog(self, messages: int) -> int:
        """Share in processes where so many messages are to be read that they pay; no more where none are.

        Returns how many batches it pays to have begun at once. Raises `NoReadingProcess` while none can be started and
        one died of what is to be read.
        """
        if messages == 0:
            self.end()
            return 0
        with self._lock:
            if self._processes is None and messages < LONG_BACKLOG and not self._outage.is_of_deaths:
                return 0
            self._has_backlog = True
            processes = self._processes_now()
        if processes is None:
            self._outage.check()
            return 0
        # One waits while each process reads one: more would only fill the memory.
        return processes.count + 1

    def _processes_now(self) -> ReadingShare | None:
        if not self._outage.may_try(self._monotonic()):
            return None
        if self._processes is None:
            try:
                self._processes = self._make()
            except CannotRead:
                self._outage.begin(self._monotonic(), is_of_deaths=False)
                return None
            self._processes.begin()
        return self._processes

    def end(self) -> None:
        """End this share in the processes; whoever waits for what they read gets `ReadingEnded`."""
        with self._lock:
            processes, self._processes = self._processes, None
            self._has_backlog = False
        if processes is not None:
            processes.end()

    def links_of(self, headers: Sequence[ThreadHeader]) -> Callable[[], list[FirstHeader]]:
        """Begin to read what threads these messages. What cannot be read threads nothing: it is read again whole."""
        answers = self._asked([AskedHeader(each.header) for each in headers])

        def links() -> list[FirstHeader]:
            found = zip(headers, answers(), strict=True)
            return [FirstHeader(each.uid, seconds(each.internaldate), said.links) for each, said in found]

        return links

    def readings_of(
        self, messages: Iterable[FetchedMessage], mailbox_id: str, uidvalidity: int, keep: Callable[[int], Keep]
    ) -> Callable[[], tuple[list[Taken], list[SetAside]]]:
        """Begin to read messages; what cannot be read is set aside."""
        fetched: list[FetchedMessage] = []
        asked: list[AskedMessage] = []
        unasked: list[SetAside] = []
        for message in messages:
            try:
                asked.append(_asked(message, mailbox_id, uidvalidity, keep, self._identity))
                fetched.append(message)
            except Exception as error:  # noqa: BLE001 - whatever one message brings about, the others come in
                unasked.append(_unreadable(message, type(error).__name__))
        answers = self._asked(asked)

        def readings() -> tuple[list[Taken], list[SetAside]]:
            taken: list[Taken] = []
            aside = list(unasked)
            for message, request, said in zip(fetched, asked, answers(), strict=True):
                if said.reading is not None and _is_of(said.reading, request):
                    taken.append((message.uid, message.state, said.reading))
                else:
                    aside.append(_unreadable(message, said.error or "ReadingIsOfAnother"))
            return taken, aside

        return readings

    def _asked(self, asked: Sequence[Asked]) -> Callable[[], list[Answer]]:
        is_large = sum(len(each.octets or b"") for each in asked if isinstance(each, AskedMessage)) > LARGE_OCTETS
        with self._lock:
            is_alone = is_large and self._processes is None
            processes = self._processes_now() if is_alone else self._processes if self.is_beside else None
        future: Future[list[Answer]] | None = None
        if processes is not None:
            future = processes.read(asked)

        def answers() -> list[Answer]:
            if future is not None:
                try:
                    found = future.result()
                except CannotRead as cannot:
                    self._outage.begin(self._monotonic(), is_of_deaths=cannot.is_of_deaths)
                except CancelledError:
                    raise ReadingEnded from None
                else:
                    if found:
                        self._outage = _Outage()
                    return found
                finally:
                    if is_alone:
                        self.end()
            # Where no process can be started, it is read here, as a short backlog is.
            self._outage.check()
            if is_large:
                raise NoReadingProcess
            return [answer(each) for each in asked]

        return answers


@dataclass(slots=True)
class _Outage:
    """That no process could be started, until one has read again; `is_of_deaths`: nothing is read here meanwhile."""

    is_on: bool = False
    is_of_deaths: bool = False
    _is_tried: bool = False
    _pause: float = 0.0
    _again_at: float = 0.0

    @property
    def is_left_alone(self) -> bool:
        """Whether no process is tried for now."""
        return self.is_on and not self._is_tried

    def begin(self, now: float, *, is_of_deaths: bool) -> None:
        """Leave processes alone, for longer each time; what was begun before ends in the same outage."""
        self.is_of_deaths |= is_of_deaths
        if self.is_left_alone:
            return
        self._pause = min(LONGEST_PAUSE_SECONDS, 2 * self._pause or FIRST_PAUSE_SECONDS)
        self._again_at = now + self._pause
        self.is_on, self._is_tried = True, False

    def may_try(self, now: float) -> bool:
        """Whether processes may be tried, from now on."""
        self._is_tried |= self.is_on and now >= self._again_at
        return not self.is_left_alone

    def check(self) -> None:
        """Raise `NoReadingProcess` where what is to be read may be what a process died of."""
        if self.is_of_deaths:
            raise NoReadingProcess


def _asked(
    message: FetchedMessage, mailbox_id: str, uidvalidity: int, keep: Callable[[int], Keep], identity: Identity
) -> AskedMessage:
    return AskedMessage(
        mailbox_id,
        uidvalidity,
        message.uid,
        message.internaldate,
        message.size,
        message.octets,
        message.header if message.octets is None else b"",
        keep(seconds(message.internaldate)),
        identity,
    )


def _unreadable(message: FetchedMessage, cause: str) -> SetAside:
    # Reading is the same each time: once is as good as three times.
    return SetAside(message.uid, "message_unreadable", cause, UNREADABLE_FIX)


def _is_of(reading: Reading, asked: AskedMessage) -> bool:
    names = names_of(asked.identity, asked.octets, asked.header, asked.mailbox_id, asked.uidvalidity, asked.uid)
    return reading.id == names.email_id

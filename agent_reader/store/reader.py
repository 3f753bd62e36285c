"""Who reads what comes in: a process beside this one while a backlog is long, this one otherwise.

Both read by the same code and give the same. What a process answers is believed only so far: a message's id follows
from octets that are here.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future
from typing import Final

from agent_reader.errors import ReadingEnded
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

# To be ready a process takes as long as reading some hundreds of messages.
LONG_BACKLOG: Final = 500

Taken = tuple[int, MessageState, Reading]


class MessageReader:
    """Has messages read. One thread asks; any may stop it.

    `processes` gives a share in those that read a long backlog; `identity` is what names messages.
    """

    def __init__(self, processes: Callable[[], ReadingShare], identity: Identity = Identity.OCTETS) -> None:
        self._make, self._identity = processes, identity
        self._processes: ReadingShare | None = None
        self._lock = threading.Lock()
        self._cannot = False

    @property
    def is_beside(self) -> bool:
        """Whether processes read, so that this one can do something else meanwhile."""
        return self._processes is not None

    def await_backlog(self, messages: int) -> int:
        """Share in processes where so many messages are to be read that they pay; no more where none are.

        Returns how many batches it pays to have begun at once.
        """
        if messages == 0:
            self.end()
        with self._lock:
            processes = self._processes
            if processes is None:
                if messages < LONG_BACKLOG or self._cannot:
                    return 0
                try:
                    processes = self._processes = self._make()
                except CannotRead:
                    self._cannot = True
                    return 0
                processes.begin()
        # One waits while each process reads one: more would only fill the memory.
        return processes.count + 1

    def end(self) -> None:
        """End this share in the processes; whoever waits for what they read gets `ReadingEnded`."""
        with self._lock:
            processes, self._processes = self._processes, None
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
        with self._lock:
            processes = self._processes
        future: Future[list[Answer]] | None = None
        if processes is not None:
            future = processes.read(asked)

        def answers() -> list[Answer]:
            if future is not None:
                try:
                    return future.result()
                except CannotRead:
                    # Where no process can be started, it is read here, as a short backlog is.
                    self._cannot = True
                    self.end()
                except (CancelledError, ReadingEnded):
                    if not self._cannot:
                        raise ReadingEnded from None
            return [answer(each) for each in asked]

        return answers


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

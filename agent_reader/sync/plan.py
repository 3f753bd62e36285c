"""What is to be done to make the mirror equal to the server: pure decisions, no connection and no store."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from agent_reader.imap.values import Examined, MessageState
from shared.identity import MAX_MESSAGE_OCTETS

# Fetching gains nothing above 200 messages or 2 MiB a command (measured), and an interruption loses one batch.
MOST_MESSAGES: Final = 200
_MOST_OCTETS: Final = 2 * 1024 * 1024
# Larger messages come in pieces, one by one.
_LARGE_OCTETS: Final = 2 * 1024 * 1024

# After this many failures a message is set aside and sync moves on.
MOST_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class Local:
    """A mailbox as the mirror has it; `count`: how many of its messages are taken in or set aside."""

    uidvalidity: int | None
    uidnext: int
    highestmodseq: int | None
    count: int


@dataclass(frozen=True, slots=True)
class Told:
    """What a server with QRESYNC told of its own accord: how many known ones are `gone`, how many are `new`."""

    gone: int
    new: int


@dataclass(frozen=True, slots=True)
class Restart:
    """Forget the copies: the UIDs mean other messages now, or this is the first look."""

    uidvalidity: int


@dataclass(frozen=True, slots=True)
class LookAtAll:
    """Ask UID and flags of every message: finds new, changed and vanished ones."""


@dataclass(frozen=True, slots=True)
class LookAtChanges:
    """Ask flags of the messages that changed since then (CONDSTORE)."""

    since: int


@dataclass(frozen=True, slots=True)
class TakeTold:
    """Take in what the server told with EXAMINE (QRESYNC)."""


@dataclass(frozen=True, slots=True)
class ListUids:
    """Ask which UIDs there are: finds new and vanished messages."""


Step = Restart | LookAtAll | LookAtChanges | TakeTold | ListUids


def plan(local: Local, server: Examined, told: Told | None = None) -> tuple[Step, ...]:
    """Return the steps by which one mailbox is caught up with, in order.

    The mirror then has what EXAMINE said before them: what happens during the steps is found by the next look.
    """
    if local.uidvalidity != server.uidvalidity:
        return (Restart(server.uidvalidity), ListUids())
    if told is not None:
        # What was told has to add up: a server that keeps no record of expunges, or lies, is asked for a list.
        adds_up = local.count - told.gone + told.new == server.exists
        return (TakeTold(),) if adds_up else (TakeTold(), ListUids())
    if server.highestmodseq is None or local.highestmodseq is None or server.highestmodseq < local.highestmodseq:
        return (LookAtAll(),)
    steps: list[Step] = []
    if server.highestmodseq != local.highestmodseq:
        steps.append(LookAtChanges(local.highestmodseq))
    # UIDs only grow: with the same UIDNEXT and the same count nothing came and nothing went.
    if server.uidnext != local.uidnext or server.exists != local.count:
        steps.append(ListUids())
    return tuple(steps)


@dataclass(frozen=True, slots=True)
class Difference:
    """`new`: to be fetched, ascending. `absent`: known here and not listed there."""

    new: tuple[int, ...]
    absent: tuple[int, ...]


def difference(known: Collection[int], listed: Collection[int], window: int | None = None) -> Difference:
    """Compare UIDs. `window`: the server shows only so many, the newest; older ones that it hides are not absent."""
    there = set(listed)
    absent = set(known) - there
    if window is not None and len(there) >= window:
        oldest = min(there)
        absent = {uid for uid in absent if uid > oldest}
    return Difference(tuple(sorted(there - set(known))), tuple(sorted(absent)))


def changed(here: Mapping[int, MessageState], there: Mapping[int, MessageState]) -> dict[int, MessageState]:
    """Return the states that differ, of messages that are here."""
    return {uid: state for uid, state in there.items() if uid in here and here[uid] != state}


@dataclass(frozen=True, slots=True)
class Whole:
    """Messages to fetch in one command."""

    uids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Large:
    """One message to fetch in pieces."""

    uid: int

    @property
    def uids(self) -> tuple[int, ...]:
        """Just this one."""
        return (self.uid,)


@dataclass(frozen=True, slots=True)
class HeaderOnly:
    """One message too large to be digested."""

    uid: int

    @property
    def uids(self) -> tuple[int, ...]:
        """Just this one."""
        return (self.uid,)


Batch = Whole | Large | HeaderOnly


def batches(uids: Iterable[int], sizes: Mapping[int, int], most_messages: int) -> Iterator[Batch]:
    """Divide messages into fetches within the budget of octets, in the given order.

    A message without a stated size has a fetch of its own.
    """
    gathered: list[int] = []
    octets = 0
    for uid in uids:
        size = sizes.get(uid, _MOST_OCTETS)
        if gathered and (len(gathered) >= most_messages or octets + size > _MOST_OCTETS):
            yield Whole(tuple(gathered))
            gathered, octets = [], 0
        if size > MAX_MESSAGE_OCTETS:
            yield HeaderOnly(uid)
        elif size > _LARGE_OCTETS:
            yield Large(uid)
        else:
            gathered.append(uid)
            octets += size
    if gathered:
        yield Whole(tuple(gathered))

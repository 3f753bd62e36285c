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
    """A mailbox as the mirror has it; `held` are the UIDs taken in, `aside` those set aside."""

    uidvalidity: int | None
    uidnext: int
    highestmodseq: int | None
    held: Collection[int]
    aside: Collection[int]


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
class ListUids:
    """Ask which UIDs there are: finds new and vanished messages."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Record what the mailbox was brought up to."""

    uidnext: int
    highestmodseq: int | None


Step = Restart | LookAtAll | LookAtChanges | ListUids | Finish


def plan(local: Local, server: Examined) -> tuple[Step, ...]:
    """Return the steps that bring one mailbox up to date, in order; `Finish` is always last.

    `Finish` carries what EXAMINE said before the other steps: what happens during them is found by the next look.
    """
    finish = Finish(server.uidnext, server.highestmodseq)
    if local.uidvalidity != server.uidvalidity:
        return (Restart(server.uidvalidity), ListUids(), finish)
    if server.highestmodseq is None or local.highestmodseq is None or server.highestmodseq < local.highestmodseq:
        return (LookAtAll(), finish)
    steps: list[Step] = []
    if server.highestmodseq != local.highestmodseq:
        steps.append(LookAtChanges(local.highestmodseq))
    # UIDs only grow: with the same UIDNEXT and the same count nothing came and nothing went.
    if server.uidnext != local.uidnext or server.exists != len(local.held) + len(local.aside):
        steps.append(ListUids())
    return (*steps, finish)


@dataclass(frozen=True, slots=True)
class Difference:
    """`new`: to be fetched, newest first. `absent`: known here and not listed there."""

    new: tuple[int, ...]
    absent: tuple[int, ...]


def difference(local: Local, listed: Collection[int], attempts: Mapping[int, int]) -> Difference:
    """Compare UIDs; those that failed before come last, so that one bad message does not hold up the others."""
    known = {*local.held, *local.aside}
    new = sorted(set(listed) - known, key=lambda uid: (attempts.get(uid, 0), -uid))
    return Difference(tuple(new), tuple(sorted(known - set(listed))))


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


@dataclass(frozen=True, slots=True)
class HeaderOnly:
    """One message too large to be digested."""

    uid: int


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

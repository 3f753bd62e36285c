"""One look at one mailbox: what changed changes, what is gone goes, and what is missing is known afterwards."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, assert_never

from agent_reader.imap.session import ReadOnlySession
from agent_reader.imap.uid_ranges import UidRanges
from agent_reader.imap.values import Examined, MailboxStatus, MessageState, Resync
from agent_reader.sync.mirror import KnownMailbox, Mirror
from agent_reader.sync.order import Backlog
from agent_reader.sync.plan import (
    MOST_MESSAGES,
    ListUids,
    Local,
    LookAtAll,
    LookAtChanges,
    Restart,
    Step,
    TakeTold,
    Told,
    changed,
    difference,
    plan,
)
from shared.imap_login import ImapFailure

# What a server that tells by STATUS what it saw long ago holds back comes in so late at most.
_OPENED_AT_LEAST_EVERY: Final = timedelta(minutes=10)


@dataclass(slots=True)
class Memory:
    """What is remembered of a mailbox between looks, in this process only.

    `attempts`: failures by UID. `most_messages`: how many the next fetch may name. `in_pieces`: UIDs that were larger
    than stated. `trusted`: the mirror's UIDs are this login's. `caught_up`: what EXAMINE said when the mirror was last
    brought up to it, but for the `backlog` and the `pending` UIDs, which failed. `in_one_answer`: what changed is asked
    for in one, by QRESYNC where the server has it. `said`: the refusal last reported. `opened_at`: since when no more
    than its STATUS was asked for.
    """

    attempts: Counter[int] = field(default_factory=Counter)
    most_messages: int = MOST_MESSAGES
    in_pieces: set[int] = field(default_factory=set)
    trusted: bool = True
    caught_up: Examined | None = None
    backlog: Backlog = field(default_factory=Backlog)
    pending: set[int] = field(default_factory=set)
    in_one_answer: bool = True
    said: str | None = None
    opened_at: datetime | None = None

    @property
    def is_complete(self) -> bool:
        """Whether everything that the mailbox was seen to have is in the mirror."""
        return self.caught_up is not None and not self.pending and not len(self.backlog)

    def is_unchanged(self, mailbox: KnownMailbox, status: MailboxStatus | None, now: datetime) -> bool:
        """Whether a mailbox need not be opened, by what the server tells without that: all of it is in the mirror.

        Only where it keeps mod-sequences, which count changed flags too; and now and then it is opened all the same,
        since some may tell by STATUS what they saw long ago.
        """
        if status is None or not self.trusted or self.said is not None:
            return False
        if self.caught_up is None and status == mailbox.whole_at:
            # Another process brought the mirror up to this.
            self.caught_up = Examined(
                status.uidvalidity, status.uidnext, status.messages, status.highestmodseq, mailbox_id=None
            )
            self.opened_at = now
        if self.caught_up is None or self.caught_up.status != status or self.opened_at is None:
            return False
        # Whichever way the clock went.
        return self.is_complete and abs(now - self.opened_at) < _OPENED_AT_LEAST_EVERY


@dataclass(slots=True)
class Counts:
    """What a round did."""

    taken_in: int = 0
    changed: int = 0
    vanished: int = 0
    set_aside: int = 0


class Look:
    """Opens one mailbox and catches up with it: everything but the octets of what is missing."""

    def __init__(
        self,
        session: ReadOnlySession,
        mirror: Mirror,
        mailbox: KnownMailbox,
        memory: Memory,
        counts: Counts,
        *,
        window: int | None = None,
    ) -> None:
        self._session, self._mirror, self._mailbox = session, mirror, mailbox
        self._memory, self._counts, self._window = memory, counts, window
        self._uidvalidity = mailbox.uidvalidity if memory.trusted else None
        self._resync: Resync | None = None
        self._changed: dict[int, MessageState] = {}
        self._gone: set[int] = set()
        self._missing: set[int] = set()

    def catch_up(self, now: datetime) -> None:
        """Bring the mirror up to the mailbox; what is missing is in the memory's backlog. Raises as the session."""
        examined = self._opened()
        self._memory.opened_at = now
        if self._is_as_before(examined):
            self._memory.caught_up = examined
            self._resume(examined)
            return
        self._memory.caught_up = None
        for step in plan(self._local(), examined, self._told()):
            self._do(step, examined)
        self._missing -= self._gone
        self._mirror.caught_up(self._mailbox.id, self._changed, self._gone, examined, whole=not self._missing)
        self._counts.changed += len(self._changed)
        self._counts.vanished += len(self._gone)
        self._memory.caught_up = examined
        self._memory.in_one_answer = True
        self._memory.pending.clear()
        self._memory.backlog = Backlog(sorted(self._missing))

    def _is_as_before(self, examined: Examined) -> bool:
        before = self._memory.caught_up
        # Without MODSEQ the same numbers can hide changed flags.
        if before is None or examined.status is None or before.status != examined.status:
            return False
        # By STATUS alone the name of the mailbox was not told (RFC 8474).
        return before.mailbox_id in (examined.mailbox_id, None) and not (self._resync and self._resync.changed)

    def _resume(self, examined: Examined) -> None:
        if self._memory.pending:
            again = {*self._memory.pending, *self._memory.backlog.unseen}
            for of_age in self._memory.backlog.seen.values():
                again |= of_age.keys()
            self._memory.backlog = Backlog(sorted(again))
            self._memory.pending.clear()
        if self._memory.is_complete:
            self._mirror.looked(self._mailbox.id, examined.uidnext, examined.highestmodseq)

    def _opened(self) -> Examined:
        mailbox = self._mailbox
        if self._uidvalidity is None or mailbox.highestmodseq is None or not self._memory.in_one_answer:
            return self._session.examine(mailbox.name)
        with self._noting_size():
            examined, self._resync = self._session.examine_since(mailbox.name, self._uidvalidity, mailbox.highestmodseq)
        return examined

    @contextmanager
    def _noting_size(self) -> Iterator[None]:
        """After a very long time so much can have happened that one answer holds no more of it: the next look asks."""
        try:
            yield
        except ImapFailure as failure:
            self._memory.in_one_answer = failure.code != "too_large"
            raise

    def _local(self) -> Local:
        mailbox = self._mailbox
        count = self._mirror.count(mailbox.id) if self._uidvalidity is not None else 0
        return Local(self._uidvalidity, mailbox.uidnext, mailbox.highestmodseq, count)

    def _told(self) -> Told | None:
        if self._resync is None:
            return None
        known = {*self._held(self._resync), *self._aside()}
        self._gone = self._resync.vanished.among(known)
        self._missing = {uid for uid in self._resync.changed if uid not in known}
        return Told(len(self._gone), len(self._missing))

    def _held(self, resync: Resync) -> Mapping[int, MessageState]:
        return self._mirror.states(self._mailbox.id, resync.vanished.with_uids(resync.changed))

    def _aside(self) -> Collection[int]:
        return self._mirror.set_aside(self._mailbox.id).keys()

    def _do(self, step: Step, examined: Examined) -> None:
        match step:
            case Restart(uidvalidity):
                self._mirror.restart(self._mailbox.id, uidvalidity)
                self._memory.attempts.clear()
                self._memory.in_pieces.clear()
                self._memory.trusted = True
            case TakeTold():
                assert self._resync is not None
                self._changed = changed(self._held(self._resync), self._resync.changed)
            case LookAtChanges(since):
                known = () if self._memory.in_one_answer else self._mirror.states(self._mailbox.id).keys()
                with self._noting_size():
                    there = self._session.changed_since(since, known)
                held = self._mirror.states(self._mailbox.id, UidRanges().with_uids(there))
                self._changed = changed(held, there)
            case LookAtAll():
                self._look_at_all(examined)
            case ListUids():
                listed = self._session.uids(examined)
                # Some servers' SEARCH leaves messages out; then every message is asked for itself.
                if len(listed) < examined.exists:
                    self._look_at_all(examined)
                else:
                    self._compare(self._mirror.states(self._mailbox.id).keys(), listed)
            case _:
                assert_never(step)

    def _look_at_all(self, examined: Examined) -> None:
        held = self._mirror.states(self._mailbox.id)
        there = self._session.all_states(examined, held.keys())
        self._changed |= changed(held, there)
        self._compare(held.keys(), there)

    def _compare(self, held: Collection[int], listed: Collection[int]) -> None:
        found = difference({*held, *self._aside()}, listed, self._window)
        absent = [uid for uid in found.absent if uid not in self._gone]
        # A listing can leave messages out; one that still answers is not gone.
        still = self._session.states_of(absent) if absent else {}
        self._gone |= {uid for uid in absent if uid not in still}
        self._missing = set(found.new)

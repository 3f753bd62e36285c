"""One look at one open mailbox: what is new comes in, what changed changes, what is gone goes."""

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, assert_never

from agent_reader.errors import Refused
from agent_reader.imap.session import ReadOnlySession
from agent_reader.imap.values import Examined, FetchedMessage, MessageState
from agent_reader.sync.mirror import KnownMailbox, Mirror, SetAside
from agent_reader.sync.plan import (
    MOST_ATTEMPTS,
    MOST_MESSAGES,
    Batch,
    Finish,
    HeaderOnly,
    Large,
    ListUids,
    Local,
    LookAtAll,
    LookAtChanges,
    Restart,
    Step,
    Whole,
    batches,
    changed,
    difference,
    plan,
)
from shared.imap_login import ImapFailure

# Sizes are asked for so many at a time: one answer of some 100 kB.
_SIZES_AT_A_TIME: Final = 2_000
# So many single messages refused in one look is no bad message but a server that does not want now; it is left alone.
_MOST_REFUSALS: Final = 8


@dataclass(slots=True)
class Memory:
    """What is remembered of a mailbox between looks, in this process only.

    `attempts`: failures by UID. `most_messages`: how many the next fetch may name. `trusted`: the mirror's UIDs are
    this login's. `up_to_date`: what EXAMINE said when all was taken in. `said`: the refusal last reported.
    """

    attempts: Counter[int] = field(default_factory=Counter)
    most_messages: int = MOST_MESSAGES
    trusted: bool = True
    up_to_date: Examined | None = None
    said: str | None = None


@dataclass(slots=True)
class Counts:
    """What a round did."""

    taken_in: int = 0
    changed: int = 0
    vanished: int = 0
    set_aside: int = 0


class Look:
    """Performs the plan for one mailbox that the session has open."""

    def __init__(
        self,
        session: ReadOnlySession,
        mirror: Mirror,
        mailbox: KnownMailbox,
        examined: Examined,
        memory: Memory,
        counts: Counts,
    ) -> None:
        self._session, self._mirror, self._mailbox, self._examined = session, mirror, mailbox, examined
        self._memory, self._counts = memory, counts
        self._states: Mapping[int, MessageState] = {}
        self._local = Local(None, 0, None, (), ())
        self._pending: set[int] = set()
        self._refusals = 0

    def perform(self) -> bool:
        """Whether everything that the server has is in the mirror now. Raises `Refused`, `ImapFailure`."""
        if self._memory.trusted and self._memory.up_to_date == self._examined:
            self._finish(Finish(self._examined.uidnext, self._examined.highestmodseq))
            return True
        self._read_mirror()
        for step in plan(self._local, self._examined):
            self._do(step)
        return not self._pending

    def _read_mirror(self) -> None:
        mailbox = self._mailbox
        self._states = self._mirror.states(mailbox.id)
        self._local = Local(
            mailbox.uidvalidity if self._memory.trusted else None,
            mailbox.uidnext,
            mailbox.highestmodseq,
            self._states.keys(),
            self._mirror.set_aside(mailbox.id).keys(),
        )

    def _do(self, step: Step) -> None:
        match step:
            case Restart(uidvalidity):
                self._mirror.restart(self._mailbox.id, uidvalidity)
                self._memory.attempts.clear()
                self._memory.trusted = True
                self._states, self._local = {}, Local(uidvalidity, 0, None, (), ())
            case LookAtChanges(since):
                self._take_changes(self._session.changed_since(since))
            case LookAtAll():
                self._look_at_all()
            case ListUids():
                listed = self._session.uids(self._examined)
                # Some servers' SEARCH leaves messages out; then every message is asked for itself.
                if len(listed) < self._examined.exists:
                    self._look_at_all()
                else:
                    self._take_difference(listed)
            case Finish():
                if not self._pending:
                    self._finish(step)
            case _:
                assert_never(step)

    def _finish(self, step: Finish) -> None:
        self._mirror.looked(self._mailbox.id, step.uidnext, step.highestmodseq)
        # Without MODSEQ the same numbers can hide changed flags.
        self._memory.up_to_date = self._examined if step.highestmodseq is not None else None

    def _look_at_all(self) -> None:
        states = self._session.all_states(self._examined)
        self._take_changes(states)
        self._take_difference(states)

    def _take_changes(self, there: Mapping[int, MessageState]) -> None:
        if differing := changed(self._states, there):
            self._mirror.change(self._mailbox.id, differing)
            self._counts.changed += len(differing)

    def _take_difference(self, listed: Collection[int]) -> None:
        found = difference(self._local, listed, self._memory.attempts)
        # A listing can leave messages out; one that still answers is not gone.
        still = self._session.states_of(found.absent) if found.absent else {}
        if gone := [uid for uid in found.absent if uid not in still]:
            self._mirror.vanish(self._mailbox.id, gone)
            self._counts.vanished += len(gone)
        for begin in range(0, len(found.new), _SIZES_AT_A_TIME):
            self._take_in(found.new[begin : begin + _SIZES_AT_A_TIME])

    def _take_in(self, uids: Sequence[int]) -> None:
        stated = self._session.stated(uids)
        sizes = {uid: each.size for uid, each in stated.items() if each.size is not None}
        # What was fetched in vain before goes alone, last.
        tried = [uid for uid in uids if self._memory.attempts[uid]]
        fresh = [uid for uid in uids if not self._memory.attempts[uid]]
        plans = (batches(fresh, sizes, self._memory.most_messages), batches(tried, sizes, 1))
        for batch in itertools.chain.from_iterable(plans):
            self._fetch(batch)

    def _fetch(self, batch: Batch) -> None:
        match batch:
            case Whole(uids):
                self._fetch_whole(uids)
            case Large(uid) | HeaderOnly(uid):
                self._fetch_alone(uid, header_only=isinstance(batch, HeaderOnly))
            case _:
                assert_never(batch)

    def _fetch_whole(self, uids: Sequence[int]) -> None:
        try:
            messages = self._session.fetch_messages(uids)
        except Refused as refusal:
            if refusal.is_throttling:
                raise
            if len(uids) == 1:
                self._refused(uids[0], refusal)
                return
            # Some servers refuse a large batch, some a batch with one bad message: halves find out which.
            self._fetch_whole(uids[: len(uids) // 2])
            self._fetch_whole(uids[len(uids) // 2 :])
            return
        except ImapFailure as failure:
            self._lost(uids, failure)
            raise
        self._memory.most_messages = min(MOST_MESSAGES, 2 * self._memory.most_messages)
        self._take(uids, messages)

    def _fetch_alone(self, uid: int, *, header_only: bool) -> None:
        try:
            message = self._session.fetch_header(uid) if header_only else self._session.fetch_large(uid)
        except Refused as refusal:
            if refusal.is_throttling:
                raise
            self._refused(uid, refusal)
            return
        except ImapFailure as failure:
            self._lost([uid], failure)
            raise
        self._take([uid], {uid: message} if message else {})

    def _take(self, uids: Iterable[int], messages: Mapping[int, FetchedMessage]) -> None:
        if messages:
            self._mirror.add(self._mailbox.id, messages.values())
            self._counts.taken_in += len(messages)
            for uid in messages:
                self._memory.attempts.pop(uid, None)
        if silent := [uid for uid in uids if uid not in messages]:
            for uid in self._session.states_of(silent):
                self._failed(uid, "message_incomplete", "The server answers, but without the message's octets or date.")

    def _refused(self, uid: int, refusal: Refused) -> None:
        self._failed(uid, "message_refused", f"The server refuses to give the message ({refusal}).")
        self._refusals += 1
        if self._refusals >= _MOST_REFUSALS:
            raise refusal

    def _lost(self, uids: Sequence[int], failure: ImapFailure) -> None:
        # Perhaps one of these makes the server fall over: the next round asks for fewer, until it is one.
        self._memory.most_messages = max(1, len(uids) // 4)
        if len(uids) == 1:
            self._failed(uids[0], "message_breaks_connection", f"Fetching it ends the connection ({failure.code}).")

    def _failed(self, uid: int, code: str, cause: str) -> None:
        self._memory.attempts[uid] += 1
        if self._memory.attempts[uid] < MOST_ATTEMPTS:
            self._pending.add(uid)
            return
        fix = "Open it with a mail program; if that works, move it to another mailbox and back, and it is read again."
        self._mirror.put_aside(self._mailbox.id, SetAside(uid, code, cause, fix))
        self._memory.attempts.pop(uid)
        self._counts.set_aside += 1

"""Messages that are missing come in, batch by batch; one that cannot be had is set aside and stops no other."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, assert_never

from agent_reader.errors import Refused
from agent_reader.imap.session import ReadOnlySession
from agent_reader.imap.values import FetchedMessage, Stated
from agent_reader.sync.ahead import Ahead
from agent_reader.sync.look import Counts, Memory
from agent_reader.sync.mirror import KnownCopy, Mirror, SetAside
from agent_reader.sync.plan import MOST_ATTEMPTS, MOST_MESSAGES, Batch, HeaderOnly, Large, Whole
from agent_reader.sync.sameness import Sameness
from shared.imap_login import ImapFailure

# So many single messages refused in one look is no bad message but a server that does not want now; it is left alone.
_MOST_REFUSALS: Final = 8
_FIX: Final = "Open it with a mail program; if that works, move it to another mailbox and back, and it is read again."


class Intake:
    """Takes in what one open mailbox is missing."""

    def __init__(
        self,
        session: ReadOnlySession,
        mirror: Mirror,
        mailbox_id: str,
        memory: Memory,
        counts: Counts,
        sameness: Sameness,
        ahead: Ahead,
    ) -> None:
        self._session, self._mirror, self._mailbox_id = session, mirror, mailbox_id
        self._memory, self._counts, self._sameness, self._ahead = memory, counts, sameness, ahead
        self._refusals = 0

    def next_step(self, now: datetime) -> None:
        """Ask about the newest missing messages, or fetch a batch of them. Raises `Refused`, `ImapFailure`."""
        try:
            self._step(now)
        except BaseException:
            self._lose()
            raise

    def _lose(self) -> None:
        # What was taken from the backlog may have got lost on the way: the next look compares anew.
        self._memory.caught_up = None

    def _step(self, now: datetime) -> None:
        backlog = self._memory.backlog
        if backlog.is_to_be_surveyed:
            uids = backlog.to_survey()
            stated = self._session.stated(uids)
            backlog.surveyed(uids, stated, now)
            self._take_copies(stated)
            return
        batch, stated = backlog.next_batch(self._memory.attempts, self._memory.most_messages)
        self._fetch(batch)
        self._sameness.note(self._mailbox_id, stated)

    def _take_copies(self, stated: Mapping[int, Stated]) -> None:
        """What lies in another mailbox too is not fetched again (Gmail shows a message under each of its labels)."""
        elsewhere = self._sameness.elsewhere(self._mailbox_id, stated)
        if not elsewhere:
            return
        self._ahead.flush()
        states = self._session.states_of(elsewhere)
        copies = [KnownCopy(uid, states[uid], *place) for uid, place in elsewhere.items() if uid in states]
        taken = self._mirror.add_copies(self._mailbox_id, copies)
        self._memory.backlog.drop(taken)
        self._counts.taken_in += len(taken)

    def _fetch(self, batch: Batch) -> None:
        match batch:
            case Whole(uids):
                self._fetch_whole(uids)
            case Large(uid) | HeaderOnly(uid):
                self._fetch_alone(uid, header_only=isinstance(batch, HeaderOnly))
            case _:
                assert_never(batch)

    def _fetch_whole(self, uids: Sequence[int]) -> None:
        if len(uids) == 1 and uids[0] in self._memory.in_pieces:
            self._fetch_alone(uids[0], header_only=False)
            return
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
            self._begin(messages)
        if silent := [uid for uid in uids if uid not in messages]:
            for uid in self._session.states_of(silent):
                self._failed(uid, "message_incomplete", "The server answers, but without the message's octets or date.")

    def _begin(self, messages: Mapping[int, FetchedMessage]) -> None:
        take = self._mirror.begin_add(self._mailbox_id, messages.values())
        uids = tuple(messages)

        def taken_in() -> None:
            take()
            self._counts.taken_in += len(uids)
            for uid in uids:
                self._memory.attempts.pop(uid, None)

        self._ahead.put(taken_in, self._lose)

    def _refused(self, uid: int, refusal: Refused) -> None:
        self._failed(uid, "message_refused", f"The server refuses to give the message ({refusal}).")
        self._refusals += 1
        if self._refusals >= _MOST_REFUSALS:
            raise refusal

    def _lost(self, uids: Sequence[int], failure: ImapFailure) -> None:
        # Perhaps one of these makes the server fall over: the next round asks for fewer, until it is one.
        self._memory.most_messages = max(1, len(uids) // 4)
        if len(uids) > 1:
            return
        if failure.code == "too_large":
            self._memory.in_pieces.update(uids)
        self._failed(uids[0], "message_breaks_connection", f"Fetching it ends the connection ({failure.code}).")

    def _failed(self, uid: int, code: str, cause: str) -> None:
        self._memory.attempts[uid] += 1
        if self._memory.attempts[uid] < MOST_ATTEMPTS:
            self._memory.pending.add(uid)
            return
        self._memory.pending.discard(uid)
        self._mirror.put_aside(self._mailbox_id, SetAside(uid, code, cause, _FIX))
        self._memory.attempts.pop(uid)
        self._counts.set_aside += 1

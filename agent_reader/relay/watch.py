"""The watch: new mail is found once, waits for its batch, and is crossed off when the command has taken it.

Each step is on disk before the next: a message is first written down as waiting, then given, then crossed off. Whatever
ends the watch, the next one goes on from there; only what was being given at that moment is given again, and says so.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from agent_reader.relay.endpoint import Refused, Unreachable
from agent_reader.relay.event_stream import FINAL_STATUSES, EventStream
from agent_reader.relay.jmap_client import JmapClient, PlaceLost, WatchedEmail
from agent_reader.relay.watch_filter import WatchFilter
from agent_reader.relay.watch_run import Batch, Ended, make_batch
from agent_reader.relay.watch_state import LastRun, StateFile, WatchState
from shared.time_and_chance import Clock, RandomOctets

# A message may reach the index some time after it was received; what was received earlier than this is no news.
_LATE: Final = timedelta(days=1)

_LONGEST_PAUSE: Final = timedelta(hours=1)
# 2^12 of the shortest pause there is is past the longest.
_MAX_DOUBLINGS: Final = 12


class WatchEnded(Exception):  # noqa: N818 - names what happened
    """The watch cannot go on; the text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Pace:
    """At most one batch each `interval`; after a failure `retry`, then twice as long each time."""

    interval: timedelta
    retry: timedelta

    def after_failure(self, failures: int) -> timedelta:
        """Return the pause after so many failures in a row."""
        doublings = min(failures - 1, _MAX_DOUBLINGS)
        return min(self.retry * (1 << doublings), _LONGEST_PAUSE)


@dataclass(slots=True)
class Watch:
    """One account watched. `give` runs the command, `say` tells whoever started it in a line of ours."""

    client: JmapClient
    file: StateFile
    wanted: WatchFilter
    pace: Pace
    clock: Clock
    random_octets: RandomOctets = field(repr=False)
    give: Callable[[Batch], Ended]
    say: Callable[[str], None]

    def once(self) -> bool:
        """Look, and give one batch if anything waits; return whether nothing failed. Raises `WatchEnded`."""
        try:
            state = self._looked(self._kept())
        except (Unreachable, Refused) as error:
            raise WatchEnded(_why(error)) from None
        return not state.waiting or self._given(state).failures == 0

    def follow(self, stream: EventStream) -> None:
        """Look whenever the reader has news, and give batches, until something ends it. Raises `WatchEnded`."""
        stream.start()
        state = self.file.read()
        # Looks that failed in a row while the stream stood: no knock tells when to look again.
        failed = 0
        while True:
            knock = stream.wait(self._pause(state, failed))
            if knock is not None and knock.lost is not None:
                if knock.is_final:
                    raise WatchEnded(knock.lost)
                state, failed = self._lost(state, knock.lost), 0
                continue
            try:
                if knock is not None or failed or state is None:
                    state = self._looked(state or self._kept())
                if state.waiting and not self._seconds_left(state):
                    state = self._given(state)
                failed = 0
            except (Unreachable, Refused) as error:
                state, failed = self._lost(state, _why(error)), failed + 1
                if isinstance(error, Refused) and error.reply.status in FINAL_STATUSES:
                    raise WatchEnded(_why(error)) from None

    def _pause(self, state: WatchState | None, failed: int) -> float | None:
        """How long to wait for a knock: for ever, unless something is to be tried again or waits for its time."""
        if failed:
            return self.pace.after_failure(failed).total_seconds()
        if state is None or not state.waiting or state.unreachable is not None:
            return None
        return self._seconds_left(state)

    def _seconds_left(self, state: WatchState) -> float:
        if state.not_before is None:
            return 0.0
        # A clock that was set back makes nobody wait for longer than a pause can be.
        left = min(state.not_before - self.clock(), max(_LONGEST_PAUSE, self.pace.interval))
        return max(0.0, left.total_seconds())

    def _lost(self, state: WatchState | None, why: str) -> WatchState | None:
        if state is not None and state.unreachable == why:
            return state
        self.say(f"the reader cannot be asked: {why}; nothing is lost, it is tried again")
        if state is None:
            return None
        state = replace(state, unreachable=why)
        self.file.write(state)
        return state

    def _kept(self) -> WatchState:
        """Where the watch stands; the first look is a baseline, and what is there by then is no news."""
        kept = self.file.read()
        if kept is not None and kept.account == self.client.account:
            return kept
        # RFC 9051 §2.3.3: received is a whole second, and mail of this one is news rather than lost.
        now = self.clock().replace(microsecond=0)
        email_state, is_complete = self.client.state()
        state = WatchState(self.client.account, email_state, now, now - _LATE, settled=is_complete)
        here = self.client.emails(list(self.client.received_since(state.floor)))
        state = replace(state, seen=_seen(email for email in here.values() if self.wanted.is_in_queue(email)))
        self.file.write(state)
        return state

    def _looked(self, state: WatchState) -> WatchState:
        """What came since the last look, written down."""
        before = state
        by_queue = self.wanted.mailbox_id is not None
        # Asked before the changes: what they hold is then of a whole index.
        is_complete = state.settled or self.client.state()[1]
        try:
            has_more = True
            while has_more:
                changes = self.client.changes(state.email_state, updated=by_queue)
                state = self._taken_in(state, changes.touched, changes.new_state)
                has_more = changes.has_more
        except PlaceLost:
            email_state, _ = self.client.state()
            found = tuple(reversed(list(self.client.received_since(state.floor))))
            state = self._taken_in(state, found, email_state)
        state = replace(state, settled=is_complete, unreachable=None).forgetting(self.clock())
        if state != before:
            self.file.write(state)
        return state

    def _taken_in(self, state: WatchState, ids: Sequence[str], email_state: str) -> WatchState:
        unseen = [each for each in ids if each not in state.seen]
        news = [
            email
            for email in self.client.emails(unseen).values()
            if email.received_at >= state.floor and self.wanted.is_in_queue(email)
        ]
        to_be_told = [
            email.id
            for email in sorted(news, key=lambda each: each.received_at)
            if (state.settled or email.received_at >= state.started_at) and self.wanted.matches(email)
        ]
        return replace(
            state, email_state=email_state, seen=state.seen | _seen(news), waiting=(*state.waiting, *to_be_told)
        )

    def _given(self, state: WatchState) -> WatchState:
        """One batch given to the command; crossed off if it took it, kept if not."""
        emails = self.client.emails(state.waiting)
        state = replace(state, waiting=tuple(each for each in state.waiting if each in emails))
        if not state.waiting:
            self.file.write(state)
            return state
        batch = make_batch([emails[each] for each in state.waiting], state.given, self.random_octets)
        started_at = self.clock()
        state = replace(state, given=batch.ids)
        self.file.write(state)
        ended = self.give(batch)
        run = LastRun(started_at, len(batch.ids), ended.status, ended.code)
        if ended.is_success:
            waiting = tuple(each for each in state.waiting if each not in batch.ids)
            state = replace(state, waiting=waiting, failures=0, not_before=started_at + self.pace.interval)
        else:
            pause = max(self.pace.after_failure(state.failures + 1), self.pace.interval)
            state = replace(state, failures=state.failures + 1, not_before=self.clock() + pause)
            self.say(f"{ended.code}; the {len(batch.ids)} messages are given again in {pause.total_seconds():.0f} s")
        state = replace(state, given=(), last_run=run)
        self.file.write(state)
        return state


def _seen(emails: Iterable[WatchedEmail]) -> dict[str, int]:
    return {email.id: int(email.received_at.timestamp()) for email in emails}


def _why(error: Unreachable | Refused) -> str:
    return f"reader_unreachable ({error.why})" if isinstance(error, Unreachable) else str(error)

"""One message at once, then a digest; an alarm at once and once; memory holds no more than what waits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from change_executor.alarms import Alarm, AlarmCode
from change_executor.notify.message import MessageKind
from change_executor.notify.plan import Memory, Picture, decide

NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
DIGEST = timedelta(minutes=60)


def picture(*pending: str, alarms: tuple[AlarmCode, ...] = ()) -> Picture:
    return Picture(pending, NOON if pending else None, tuple(Alarm(code, 1, NOON) for code in alarms))


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def test_the_first_comes_at_once_and_those_after_it_together() -> None:
    first = decide(Memory(), picture("a"), at(0), DIGEST)
    assert (MessageKind.WAITING, ("a",)) == (first.kind, first.new)
    more = decide(first.memory, picture("a", "b", "c"), at(1), DIGEST)
    assert (None, at(60)) == (more.kind, more.due)
    digest = decide(more.memory, picture("a", "b", "c"), at(60), DIGEST)
    assert (MessageKind.WAITING, ("b", "c")) == (digest.kind, digest.new)
    assert decide(digest.memory, picture("a", "b", "c"), at(600), DIGEST).kind is None


def test_what_is_decided_before_the_digest_is_not_told() -> None:
    first = decide(Memory(), picture("a"), at(0), DIGEST)
    gone = decide(first.memory, picture("a"), at(61), DIGEST)
    assert gone.kind is None
    assert MessageKind.WAITING == decide(gone.memory, picture("a", "b"), at(90), DIGEST).kind


def test_an_alarm_is_told_at_once_and_once_and_its_end_too() -> None:
    first = decide(Memory(), picture("a"), at(0), DIGEST)
    raised = decide(first.memory, picture("a", alarms=(AlarmCode.SETTLE,)), at(1), DIGEST)
    assert MessageKind.ALARM == raised.kind
    assert decide(raised.memory, picture("a", alarms=(AlarmCode.SETTLE,)), at(300), DIGEST).kind is None
    cleared = decide(raised.memory, picture("a"), at(301), DIGEST)
    assert MessageKind.CLEARED == cleared.kind
    assert MessageKind.ALARM == decide(cleared.memory, picture(alarms=(AlarmCode.SETTLE,)), at(302), DIGEST).kind


def test_that_an_alarm_has_become_more_is_told_with_the_digest() -> None:
    def worse(count: int, code: AlarmCode = AlarmCode.SETTLE) -> Picture:
        return Picture((), None, (Alarm(code, count, NOON),))

    memory = decide(Memory(), worse(1), at(0), DIGEST).memory
    second = decide(memory, worse(2), at(1), DIGEST)
    assert second.kind is None
    told = decide(second.memory, worse(2), at(60), DIGEST)
    assert MessageKind.ALARM == told.kind
    fewer = decide(told.memory, worse(1), at(61), DIGEST)
    assert decide(fewer.memory, worse(1), at(180), DIGEST).kind is None
    assert MessageKind.ALARM == decide(fewer.memory, worse(2), at(180), DIGEST).kind
    # Of what waits for a decision the digest tells how many there are.
    many = decide(Memory(), worse(51, AlarmCode.PENDING_MANY), at(0), DIGEST)
    assert decide(many.memory, worse(52, AlarmCode.PENDING_MANY), at(60), DIGEST).kind is None


def test_a_clock_that_is_set_back_silences_nobody() -> None:
    first = decide(Memory(), picture("a"), at(0), DIGEST)
    assert MessageKind.WAITING == decide(first.memory, picture("a", "b"), at(-600), DIGEST).kind


@given(
    st.lists(
        st.tuples(
            st.integers(0, 45),
            st.sets(st.sampled_from("abcdefgh")),
            st.sets(st.sampled_from(list(AlarmCode))),
        ),
        max_size=40,
    )
)
def test_whatever_happens_messages_are_few_and_nothing_that_stays_is_left_untold(
    steps: list[tuple[int, set[str], set[AlarmCode]]],
) -> None:
    memory, now, waited = Memory(), NOON, []
    for minutes, pending, raised in steps:
        now += timedelta(minutes=minutes)
        decision = decide(memory, picture(*sorted(pending), alarms=tuple(sorted(raised))), now, DIGEST)
        memory = decision.memory
        assert memory.told <= pending
        if decision.kind is MessageKind.WAITING:
            waited.append(now)
        if decision.kind is not None:
            assert pending == memory.told
        else:
            # Whatever is new has a moment at which it is told.
            assert bool(pending - memory.told) == (decision.due is not None)
    assert all(later - earlier >= DIGEST for earlier, later in pairwise(waited))

"""When to tell a person: one message at once, then a digest; an alarm at once, once. Pure: pictures and a clock in.

That an alarm is about more than was told comes with the digest: otherwise one that somebody can keep up, as by a cap,
would hide all that go wrong after it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from change_executor.alarms import Alarm, AlarmCode
from change_executor.notify.message import MessageKind

# Of the others the number tells nothing new: what waits for a decision is counted in each message.
_EACH_MATTERS: Final = frozenset({AlarmCode.SETTLE, AlarmCode.NOT_APPLIED, AlarmCode.NOT_UNDONE})


@dataclass(frozen=True, slots=True)
class Picture:
    """The state of things: the ids that wait for a person, oldest first, since when, and what is wrong."""

    pending: tuple[str, ...]
    oldest: datetime | None
    alarms: tuple[Alarm, ...]


@dataclass(frozen=True, slots=True)
class Memory:
    """What was told: which of those that still wait, which alarms about how many, and when."""

    told: frozenset[str] = field(default_factory=frozenset)
    alarms: Mapping[AlarmCode, int] = field(default_factory=dict)
    last: datetime | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now: a message of this kind about these new ids, or none; look again at `due` at the latest."""

    kind: MessageKind | None
    new: tuple[str, ...]
    memory: Memory
    due: datetime | None


def decide(memory: Memory, picture: Picture, now: datetime, digest: timedelta) -> Decision:
    """Decide whether to tell, and what to remember if so.

    An alarm that is raised is told at once, and again before it was over only where it has become more. What waits is
    told at once where nothing was told for `digest`; otherwise all of it together when that has passed.
    """
    new = tuple(each for each in picture.pending if each not in memory.told)
    raised = {alarm.code: alarm.count for alarm in picture.alarms}
    # What waits no more is forgotten, so that memory is bounded by what waits.
    still = {code: min(count, raised[code]) for code, count in memory.alarms.items() if code in raised}
    kept = replace(memory, told=memory.told & frozenset(picture.pending), alarms=still)
    told = Memory(frozenset(picture.pending), raised, now)
    if raised.keys() - memory.alarms.keys():
        return Decision(MessageKind.ALARM, new, told, None)
    if memory.alarms and not raised:
        return Decision(MessageKind.CLEARED, new, replace(told, last=now if new else memory.last), None)
    due = None if memory.last is None else memory.last + digest
    may_tell = due is None or due <= now or memory.last is None or memory.last > now
    if may_tell and any(raised[code] > still.get(code, 0) for code in _EACH_MATTERS & raised.keys()):
        return Decision(MessageKind.ALARM, new, told, None)
    if not new:
        return Decision(None, (), kept, None)
    return Decision(MessageKind.WAITING, new, told, None) if may_tell else Decision(None, (), kept, due)

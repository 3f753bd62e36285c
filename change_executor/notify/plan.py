"""When to tell a person: one message at once, then a digest; an alarm at once, once. Pure: pictures and a clock in."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from change_executor.alarms import Alarm, AlarmCode
from change_executor.notify.message import MessageKind


@dataclass(frozen=True, slots=True)
class Picture:
    """The state of things: the ids that wait for a person, oldest first, since when, and what is wrong."""

    pending: tuple[str, ...]
    oldest: datetime | None
    alarms: tuple[Alarm, ...]


@dataclass(frozen=True, slots=True)
class Memory:
    """What was told: which of those that still wait, which alarms, and when the last message about waiting was sent."""

    told: frozenset[str] = field(default_factory=frozenset)
    alarms: frozenset[AlarmCode] = field(default_factory=frozenset)
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

    An alarm that is raised is told at once and not again before it was over. What waits is told at once where nothing
    was told for `digest`; otherwise all of it together when that has passed.
    """
    new = tuple(each for each in picture.pending if each not in memory.told)
    raised = frozenset(alarm.code for alarm in picture.alarms)
    # What waits no more is forgotten, so that memory is bounded by what waits.
    kept = replace(memory, told=memory.told & frozenset(picture.pending), alarms=memory.alarms & raised)
    told = Memory(frozenset(picture.pending), raised, now)
    if raised - memory.alarms:
        return Decision(MessageKind.ALARM, new, told, None)
    if memory.alarms and not raised:
        return Decision(MessageKind.CLEARED, new, replace(told, last=now if new else memory.last), None)
    if not new:
        return Decision(None, (), kept, None)
    due = None if memory.last is None else memory.last + digest
    if due is None or due <= now or memory.last is None or memory.last > now:
        return Decision(MessageKind.WAITING, new, told, None)
    return Decision(None, (), kept, due)

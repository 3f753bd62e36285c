"""What is wrong, seen from the journal: alarms for the page, the log and notifiers, and numbers for a monitor.

Reading only, and cheap: every question goes by an index over the open proposals, however many have ended.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from sqlalchemy import ColumnElement, Connection, func, select

from change_executor.config import ExecutorSettings
from change_executor.journal import schema
from change_executor.journal.troubles import Trouble
from change_executor.lifecycle import OPEN, Event
from change_executor.outcomes import Waiting
from shared.proposal import State


class AlarmCode(StrEnum):
    """Kinds of alarms; each has one sentence in `SENTENCES`."""

    # the journal cannot be read or written, so nothing is decided and nothing moves
    JOURNAL_UNAVAILABLE = "journal_unavailable"
    # approved, and neither moved nor ended within `approved_minutes`
    NOT_APPLIED = "not_applied"
    # a person asked for it to be moved back, and it was not within `approved_minutes`
    NOT_UNDONE = "not_undone"
    # looking cannot settle it, so a person must
    SETTLE = "settle"
    # the oldest that waits for a person is older than `pending_hours`
    PENDING_OLD = "pending_old"
    # more than `pending_count` wait for a person
    PENDING_MANY = "pending_many"
    # somebody pressed the stop button
    STOPPED = "stopped"


SENTENCES: Final = {
    AlarmCode.JOURNAL_UNAVAILABLE: "the journal cannot be used, so nothing is decided and nothing moves",
    AlarmCode.NOT_APPLIED: "approved, and not moved within the time that it should take",
    AlarmCode.NOT_UNDONE: "to be moved back, and not done within the time that it should take",
    AlarmCode.SETTLE: "moves of unknown outcome, which a person must look into",
    AlarmCode.PENDING_OLD: "waiting for a decision, the oldest for too long",
    AlarmCode.PENDING_MANY: "waiting for a decision, more than somebody reads",
    AlarmCode.STOPPED: "everything is stopped until a person releases it",
}


# Of a doubt: what looking again does not end. A quiet time ends by itself, and so does a server's silence.
_FOR_A_PERSON: Final = (
    Waiting.SETTLE.value,
    Waiting.MOVED_TWICE.value,
    Waiting.MAILBOX_CHANGED.value,
    Waiting.TOO_MANY_TO_LOOK_AT.value,
    Waiting.QUEUE_NOT_CONFIGURED.value,
)


@dataclass(frozen=True, slots=True)
class Alarm:
    """One thing that is wrong: how many proposals it is about, since when at the longest, and what they wait for.

    `count` is 0 where it is about none; `reasons` are codes of `change_executor.outcomes.Waiting`, or that of a
    `change_executor.errors.JournalFault`; `fix` is there where the mend goes by the reason.
    """

    code: AlarmCode
    count: int
    since: datetime
    reasons: tuple[str, ...] = ()
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Measure:
    """One number for a monitor: a name in the style of Prometheus, labels, a value (seconds where it is a time)."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float


_columns = schema.proposals.c
_APPROVED: Final = (State.APPROVED.value, State.APPLYING.value, State.DOUBTFUL.value)
_UNDOING: Final = (State.UNDOING.value, State.UNDO_DOUBTFUL.value)


def without_journal(trouble: Trouble | None) -> tuple[Alarm, ...]:
    """Return what is known to be wrong where nothing can be read."""
    if trouble is None:
        return ()
    return (Alarm(AlarmCode.JOURNAL_UNAVAILABLE, 0, trouble.since, (trouble.fault.value,), trouble.fix),)


def alarms(
    connection: Connection, settings: ExecutorSettings, now: datetime, trouble: Trouble | None = None
) -> tuple[Alarm, ...]:
    """Return everything that is wrong at this moment, worst first; `trouble` is the journal's, told by its users."""
    limits = settings.notify
    approved, pending = timedelta(minutes=limits.approved_minutes), timedelta(hours=limits.pending_hours)
    found = [
        _about(connection, AlarmCode.SETTLE, _columns.waiting_since, _needs_person()),
        _about(
            connection,
            AlarmCode.NOT_APPLIED,
            _columns.decided_at,
            _columns.state.in_(_APPROVED) & _is_late(_columns.decided_at, now, approved) & ~_needs_person(),
        ),
        _not_undone(connection, now, approved),
        _about(
            connection,
            AlarmCode.PENDING_OLD,
            _columns.created_at,
            _pending() & _is_late(_columns.created_at, now, pending),
        ),
        _many(connection, limits.pending_count),
        _stopped(connection),
    ]
    return (*without_journal(trouble), *(alarm for alarm in found if alarm is not None))


def measure_of(code: AlarmCode, alarm: Alarm | None) -> Measure:
    """Return the number that a monitor reads of an alarm that is raised, or is not."""
    return Measure("mailwarrant_alarm", (("code", code.value),), 0.0 if alarm is None else float(max(1, alarm.count)))


def measures(
    connection: Connection, settings: ExecutorSettings, now: datetime, trouble: Trouble | None = None
) -> tuple[Measure, ...]:
    """Return what a monitor reads: alarms by code, open proposals by queue and state, the age of the oldest in each."""
    known = {alarm.code: alarm for alarm in alarms(connection, settings, now, trouble)}
    found = [measure_of(code, known.get(code)) for code in AlarmCode]
    rows = connection.execute(
        select(_columns.queue, _columns.state, func.count(), func.min(_columns.created_at))
        .where(_columns.state.in_([state.value for state in OPEN]))
        .group_by(_columns.queue, _columns.state)
        .order_by(_columns.queue, _columns.state)
    ).all()
    for queue, state, count, oldest in rows:
        labels = (("queue", queue), ("state", state))
        found += [
            Measure("mailwarrant_open_proposals", labels, float(count)),
            Measure("mailwarrant_oldest_open_proposal_seconds", labels, max(0.0, (now - oldest).total_seconds())),
        ]
    return tuple(found)


def waiting_for_person(connection: Connection) -> Sequence[str]:
    """Return the ids of the proposals that a person can decide now, oldest first."""
    return connection.execute(select(_columns.id).where(_decidable()).order_by(_columns.created_at)).scalars().all()


def oldest_for_person(connection: Connection) -> datetime | None:
    """Return when the oldest of them was made."""
    oldest: datetime | None = connection.execute(select(func.min(_columns.created_at)).where(_decidable())).scalar_one()
    return oldest


def _pending() -> ColumnElement[bool]:
    return _columns.state == State.PENDING.value


def _decidable() -> ColumnElement[bool]:
    # Without evidence there is nothing to decide on yet; what cannot get any grows old, which is an alarm.
    return _pending() & _columns.evidence.is_not(None)


def _needs_person() -> ColumnElement[bool]:
    doubtful = _columns.state.in_([State.DOUBTFUL.value, State.UNDO_DOUBTFUL.value])
    return doubtful & func.coalesce(_columns.waiting_code, "").in_(_FOR_A_PERSON)


def _about(
    connection: Connection, code: AlarmCode, since: ColumnElement[datetime], which: ColumnElement[bool]
) -> Alarm | None:
    count, oldest = connection.execute(select(func.count(), func.min(since)).where(which)).one()
    if not count:
        return None
    return Alarm(code, count, oldest, _reasons(connection, which))


def _reasons(connection: Connection, which: ColumnElement[bool]) -> tuple[str, ...]:
    codes: Iterable[str] = connection.execute(
        select(_columns.waiting_code).where(which & _columns.waiting_code.is_not(None)).distinct()
    ).scalars()
    return tuple(sorted(codes))


def _is_late(since: ColumnElement[datetime], now: datetime, allowed: timedelta) -> ColumnElement[bool]:
    # A clock that was set back makes moments lie ahead; no alarm waits until it has come to them again.
    return (since <= now - allowed) | (since > now + allowed)


def _not_undone(connection: Connection, now: datetime, allowed: timedelta) -> Alarm | None:
    asked = (
        select(func.max(schema.events.c.at))
        .where(schema.events.c.subject == _columns.id, schema.events.c.kind == f"proposal:{Event.UNDO.value}")
        .scalar_subquery()
    )
    return _about(
        connection,
        AlarmCode.NOT_UNDONE,
        asked,
        _columns.state.in_(_UNDOING) & _is_late(asked, now, allowed) & ~_needs_person(),
    )


def _many(connection: Connection, most: int) -> Alarm | None:
    alarm = _about(connection, AlarmCode.PENDING_MANY, _columns.created_at, _pending())
    return alarm if alarm is not None and alarm.count > most else None


def _stopped(connection: Connection) -> Alarm | None:
    switches = schema.switches.c
    since: datetime | None = connection.execute(
        select(switches.since).where(switches.name == "stop")
    ).scalar_one_or_none()
    return None if since is None else Alarm(AlarmCode.STOPPED, 0, since)

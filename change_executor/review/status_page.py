"""The status: what a person should do something about first, then the mail server, the reader and the executor."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import ColumnElement, Connection, func, select, text
from starlette.requests import Request
from starlette.responses import Response

from change_executor.alarms import Alarm, alarms
from change_executor.config import ExecutorSettings, Queue
from change_executor.evidence.reader_link import ReaderFailure
from change_executor.journal import schema
from change_executor.journal.troubles import Trouble
from change_executor.lifecycle import OPEN
from change_executor.outcomes import Waiting
from change_executor.review.alarm_words import ALARMS
from change_executor.review.frame import Frame, read_frame
from change_executor.review.log_view import read_head
from change_executor.review.room import Room, html
from change_executor.review.sessions import Session
from shared.link import AccountStatus
from shared.proposal import State

# A day is the last chance of somebody who looks each morning.
EXPIRES_SOON: Final = timedelta(days=1)

# The reader's silence, the stop button and a doubt are alarms of their own.
_TOLD_OTHERWISE: Final = frozenset({Waiting.READER_UNREACHABLE, Waiting.STOPPED, Waiting.SETTLE, Waiting.QUIET_TIME})

_columns = schema.proposals.c


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """One queue: when its mailboxes were last found right, whether undo works, and what its proposals wait for."""

    id: str
    server: str
    incoming: str
    destinations: list[tuple[str, str]]
    examined_at: datetime | None
    undo_permitted: bool
    waiting: list[tuple[str, int]]
    last_move_at: datetime | None


@dataclass(frozen=True, slots=True)
class Concerns:
    """What somebody should look at: alarms, what proposals wait for, and whether the reader answers."""

    alarms: tuple[Alarm, ...]
    expires_soon: int
    waiting: list[tuple[str, int]]
    reader: Waiting | None
    stopped_by: str | None

    @property
    def is_any(self) -> bool:
        """Whether anything is wrong."""
        return bool(self.alarms or self.expires_soon or self.waiting or self.reader)


@dataclass(frozen=True, slots=True)
class _Journalled:
    queues: list[QueueStatus]
    concerns: Concerns
    under_way: int
    head: tuple[int, str]
    frame: Frame


async def status(room: Room, request: Request, session: Session) -> Response:  # noqa: ARG001 - a handler's signature
    """`GET /status`."""
    return html(await room.in_thread(_status_page, room, session))


def _status_page(room: Room, session: Session) -> str:
    accounts: list[AccountStatus] | None
    try:
        accounts, reader = room.reader.status().accounts, None
    except ReaderFailure as failure:
        accounts, reader = None, failure.waiting
    with room.journal.reading() as connection:
        found = _journalled(connection, room.settings, room.clock(), reader, room.journal.troubles.found())
    return room.page(
        "status.html",
        session,
        found.frame,
        here="status",
        queues=found.queues,
        concerns=found.concerns,
        alarm_words=ALARMS,
        under_way=found.under_way,
        head=found.head,
        accounts=accounts,
    )


def _journalled(
    connection: Connection, settings: ExecutorSettings, now: datetime, reader: Waiting | None, trouble: Trouble | None
) -> _Journalled:
    waits = _waiting_by_queue(connection)
    queues = [_queue_status(connection, settings, queue, waits.get(queue.id, [])) for queue in settings.queues]
    waiting: dict[str, int] = {}
    for queue in queues:
        for code, count in queue.waiting:
            if code not in _TOLD_OTHERWISE:
                waiting[code] = waiting.get(code, 0) + count
    stopped_by = connection.execute(
        select(schema.switches.c.by).where(schema.switches.c.name == "stop")
    ).scalar_one_or_none()
    state = _columns.state
    concerns = Concerns(
        alarms=alarms(connection, settings, now, trouble),
        expires_soon=_count(connection, state == State.PENDING.value, _columns.expires_at < now + EXPIRES_SOON),
        waiting=sorted(waiting.items()),
        reader=reader,
        stopped_by=stopped_by,
    )
    under_way = _count(connection, state.in_([State.APPROVED.value, State.APPLYING.value, State.UNDOING.value]))
    return _Journalled(queues, concerns, under_way, read_head(connection), read_frame(connection))


def _waiting_by_queue(connection: Connection) -> dict[str, list[tuple[str, int]]]:
    # One question for all queues: with a queue in it SQLite would read all that this queue ever had.
    rows = connection.execute(
        select(_columns.queue, _columns.waiting_code, func.count())
        .where(_columns.state.in_([state.value for state in OPEN]), _columns.waiting_code.is_not(None))
        .group_by(_columns.queue, _columns.waiting_code)
    )
    found: dict[str, list[tuple[str, int]]] = {}
    for queue_id, code, count in rows:
        found.setdefault(queue_id, []).append((code, count))
    return found


def _queue_status(
    connection: Connection, settings: ExecutorSettings, queue: Queue, waiting: list[tuple[str, int]]
) -> QueueStatus:
    login = settings.credential(queue.credential)
    examined = connection.execute(
        select(schema.examinations.c.examined_at, schema.examinations.c.undo_permitted).where(
            schema.examinations.c.queue == queue.id
        )
    ).first()
    last_move: datetime | None = connection.execute(
        select(func.max(_columns.outcome_at)).where(_columns.queue == queue.id, text(schema.MOVED))
    ).scalar_one()
    return QueueStatus(
        id=queue.id,
        server=f"{login.user} at {login.host}:{login.port}",
        incoming=queue.incoming,
        destinations=[(role, destination.mailbox) for role, destination in queue.to.items()],
        examined_at=None if examined is None else examined.examined_at,
        undo_permitted=queue.undo and examined is not None and examined.undo_permitted == 1,
        waiting=waiting,
        last_move_at=last_move,
    )


def _count(connection: Connection, *which: ColumnElement[bool]) -> int:
    return connection.execute(select(func.count()).select_from(schema.proposals).where(*which)).scalar_one()

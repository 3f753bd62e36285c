"""What a monitor learns of the executor: the queue, what became of proposals, the chain's head, alarms."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, func, select

from change_executor.alarms import AlarmCode, measure_of, measures, without_journal
from change_executor.condition import Hindrance, hindrances
from change_executor.config import ExecutorSettings
from change_executor.errors import JournalUnavailable
from change_executor.journal import schema
from change_executor.journal.journal import Journal, is_stopped
from change_executor.journal.troubles import Trouble
from shared.metrics import PROCESS_HELPS, Health, Measure, Measured, exposition, of_the_process
from shared.proposal import State

HELPS: Final = PROCESS_HELPS | {
    "mailwarrant_alarm": "Each alarm: 0, or how many proposals it is about (1 where it is about none).",
    "mailwarrant_open_proposals": "Proposals that have not ended, by queue and state.",
    "mailwarrant_oldest_open_proposal_seconds": "The age of the oldest of them.",
    "mailwarrant_proposals": "All proposals there are, by state.",
    "mailwarrant_undo_ratio": "Of what was moved, what a person took back.",
    "mailwarrant_journal_events_total": "Events in the journal: the number of the chain's head.",
    "mailwarrant_stopped": "1 while the stop button is pressed.",
    "mailwarrant_refused_requests_total": "Authenticated requests to propose that were refused and are on record.",
    "mailwarrant_intake_refusals_total": "All requests that the intake refused since the start, by code.",
}

_MOVED: Final = (State.APPLIED, State.UNDOING, State.UNDO_DOUBTFUL, State.UNDONE)


def metrics(
    journal: Journal, settings: ExecutorSettings, now: Callable[[], datetime], refused: Mapping[str, int]
) -> bytes:
    """Return all numbers as text, of one snapshot; `refused` are requests by code.

    Where the journal cannot be read, what is known without it: a monitor sees the alarm that says so.
    """
    found: list[Measured] = []
    try:
        with journal.reading() as connection:
            found += [*measures(connection, settings, now(), journal.troubles.found()), *_of_journal(connection)]
    except JournalUnavailable as failure:
        trouble = Trouble(failure.fault, now())
        found = [measure_of(alarm.code, alarm) for alarm in without_journal(trouble)]
    found += [
        Measure("mailwarrant_intake_refusals_total", float(count), (("code", code),))
        for code, count in sorted(refused.items())
    ]
    found += of_the_process()
    return exposition(found, HELPS)


def health(journal: Journal, is_alive: Callable[[], bool]) -> Health:
    """Return whether the worker lives and the journal can be written, what hinders it, and the chain's head.

    A mail server that is down is told and is no failure of this program. A journal that cannot be used, now or by the
    worker, is one: which `fault` it has, and the mend.
    """
    alive = is_alive()
    try:
        journal.probe()
        with journal.reading() as connection:
            head = connection.execute(
                select(schema.events.c.seq, schema.events.c.hash).order_by(schema.events.c.seq.desc()).limit(1)
            ).first()
            hindered = hindrances(connection)
    except JournalUnavailable as failure:
        return Health(False, {"worker": alive, **_told(failure)})
    events, digest = (0, None) if head is None else (int(head[0]), str(head[1]))
    by = {each.value: each in hindered for each in Hindrance}
    trouble = journal.troubles.found()
    told = {} if trouble is None else _told(trouble)
    return Health(alive and trouble is None, {"worker": alive, **by, "events": events, "head": digest, **told})


def _told(failure: JournalUnavailable | Trouble) -> dict[str, str]:
    return {"error": AlarmCode.JOURNAL_UNAVAILABLE.value, "fault": failure.fault.value, "fix": failure.fix}


def _of_journal(connection: Connection) -> list[Measure]:
    columns = schema.proposals.c
    counted = connection.execute(select(columns.state, func.count()).group_by(columns.state)).all()
    counts = dict.fromkeys(State, 0) | {State(state): int(count) for state, count in counted}
    moved = sum(counts[state] for state in _MOVED)
    head = connection.execute(select(func.max(schema.events.c.seq))).scalar_one() or 0
    refused = connection.execute(
        select(func.count())
        .select_from(schema.events)
        .where(
            schema.events.c.subject.in_(select("agent:" + schema.tokens.c.agent)),
            schema.events.c.kind == "intake:refuse",
        )
    ).scalar_one()
    return [
        *(Measure("mailwarrant_proposals", float(counts[state]), (("state", state.value),)) for state in State),
        Measure("mailwarrant_undo_ratio", counts[State.UNDONE] / moved if moved else 0.0),
        Measure("mailwarrant_journal_events_total", float(head)),
        Measure("mailwarrant_stopped", float(is_stopped(connection))),
        Measure("mailwarrant_refused_requests_total", float(refused)),
    ]

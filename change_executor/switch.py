"""The stop button: one act of a person freezes proposals, approvals and moves until a person releases it.

It is a row of the journal, so a restart does not forget it, and every process of the executor's user sees it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, delete, func, insert, select

from change_executor.journal import schema
from change_executor.journal.journal import Journal, Writing, is_stopped
from change_executor.lifecycle import IN_FLIGHT
from shared.proposal import State

# The switch's name, which its events have as their subject.
STOP: Final = "stop"

# One worker has one command under way; doubts add a few.
_MAX_NAMED: Final = 20


@dataclass(frozen=True, slots=True)
class InFlight:
    """What a stop finds: proposals of which a command may be under way, and those that wait for a move or an undo."""

    in_flight: tuple[str, ...]
    held: tuple[str, ...]


def press_stop(journal: Journal, actor: str) -> bool:
    """Press the button as `actor` (`person:NAME`, `operator`, `stop_file`); False where it was pressed already.

    The event tells what was in flight. Raises `JournalUnavailable`.
    """
    with journal.reading() as connection:
        if is_stopped(connection):
            return False
    with journal.writing() as writing:
        if writing.stopped():
            return False
        found = in_flight(writing.connection)
        press_in(writing, actor, {"inFlight": list(found.in_flight[:_MAX_NAMED]), "held": len(found.held)})
        return True


def press_in(writing: Writing, actor: str, details: Mapping[str, Any]) -> None:
    """Press the button, which is not pressed, in a transaction that does more; `details` are its event's."""
    writing.connection.execute(insert(schema.switches).values(name=STOP, since=writing.now, by=actor))
    writing.append("stop:press", STOP, actor, dict(details))


class PressedSince(Exception):  # noqa: N818 - names the state of things
    """Somebody pressed the button after whoever would release it had looked."""


def release_stop(journal: Journal, actor: str, *, seen: int | None = None) -> bool:
    """Release the button as `actor`; False where it was not pressed.

    `seen` is the last event that they knew of, None for who looks now. Raises `PressedSince`, `JournalUnavailable`.
    """
    with journal.writing() as writing:
        if not writing.stopped():
            return False
        if seen is not None and seen < _pressed_by(writing.connection):
            raise PressedSince
        writing.connection.execute(delete(schema.switches).where(schema.switches.c.name == STOP))
        writing.append("stop:release", STOP, actor)
        return True


def _pressed_by(connection: Connection) -> int:
    events = schema.events.c
    pressed = select(func.coalesce(func.max(events.seq), 0)).where(events.subject == STOP, events.kind == "stop:press")
    found: int = connection.execute(pressed).scalar_one()
    return found


def in_flight(connection: Connection) -> InFlight:
    """Return what is in flight and what is held, oldest first."""
    columns = schema.proposals.c
    rows = connection.execute(
        select(columns.id, columns.state)
        .where(columns.state.in_([*IN_FLIGHT, State.APPROVED]))
        .order_by(columns.created_at, columns.id)
    ).all()
    intended = set(
        connection.execute(select(schema.moves.c.proposal).where(schema.moves.c.concluded_at.is_(None))).scalars()
    )
    # An undo that is only asked for has no intent yet: nothing of it has left.
    return InFlight(
        tuple(row.id for row in rows if row.id in intended),
        tuple(row.id for row in rows if row.id not in intended),
    )


def is_frozen(connection: Connection, stop_file: Path | None) -> bool:
    """Whether everything is stopped: by the button, or by the file before anybody has pressed the button for it."""
    return is_stopped(connection) or stop_file_present(stop_file)


def stop_file_present(stop_file: Path | None) -> bool:
    """Whether the file that means stop is there; where that cannot be told it counts as there."""
    if stop_file is None:
        return False
    try:
        stop_file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True

"""The stop button: one act of a person freezes proposals, decisions and moves until a person releases it.

It is a row of the journal, so a restart does not forget it, and every process of the executor's user sees it.
"""

from typing import Final

from sqlalchemy import delete, insert

from change_executor.journal import schema
from change_executor.journal.journal import Journal

_NAME: Final = "stop"


def press_stop(journal: Journal, actor: str) -> bool:
    """Press the button as `actor` (`person:NAME` or `operator`); False where it was pressed already.

    Raises `JournalUnavailable`.
    """
    with journal.writing() as writing:
        if writing.stopped():
            return False
        writing.connection.execute(insert(schema.switches).values(name=_NAME, since=writing.now, by=actor))
        writing.append("stop:press", _NAME, actor)
        return True


def release_stop(journal: Journal, actor: str) -> bool:
    """Release the button as `actor`; False where it was not pressed. Raises `JournalUnavailable`."""
    with journal.writing() as writing:
        if not writing.stopped():
            return False
        writing.connection.execute(delete(schema.switches).where(schema.switches.c.name == _NAME))
        writing.append("stop:release", _NAME, actor)
        return True

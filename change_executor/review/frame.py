"""What stands around every page, read in the transaction that the page is made in."""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from change_executor.journal import schema
from change_executor.journal.journal import is_stopped
from change_executor.review.queue_view import count_waiting


@dataclass(frozen=True, slots=True)
class Frame:
    """The stop button, how many proposals wait, and the last event that the page knows of."""

    stopped: bool
    waiting: int
    seq: int


def read_frame(connection: Connection) -> Frame:
    """Return what stands around a page that is made in this transaction."""
    return Frame(is_stopped(connection), count_waiting(connection), last_seq(connection))


def last_seq(connection: Connection) -> int:
    """Return the number of the last event, which a page made in this transaction was made after; 0 for none."""
    last: int = connection.execute(select(func.coalesce(func.max(schema.events.c.seq), 0))).scalar_one()
    return last

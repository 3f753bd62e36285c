"""Forgetting: the texts of proposals that ended long ago, and ways in that open nothing any more.

The chain stays whole without them.
"""

from datetime import timedelta
from typing import Final

from sqlalchemy import ColumnElement, delete, exists, func, select

from change_executor.journal import schema
from change_executor.journal.journal import Journal

# Past its end a session's row still tells a browser that was here before from a stranger's. A session lasts a week at
# most, so what was not seen for so long is over.
SESSIONS_KEPT_FOR: Final = timedelta(days=90)
# A link lasts minutes; its row says for some days, to whoever looks, that it was spent.
LINKS_KEPT_FOR: Final = timedelta(days=7)

# A year's backlog is forgotten in steps, so that no agent and no person waits for the write lock.
_PROPOSALS_AT_ONCE: Final = 200


def forget_texts(journal: Journal, after: timedelta) -> int:
    """Delete the texts of proposals that ended at least `after` ago; returns of how many proposals.

    Each step is on record with the proposals' ids. Raises `JournalUnavailable`; what was forgotten until then stays so.
    """
    forgotten = 0
    while done := _forget_some(journal, after):
        forgotten += done
    return forgotten


def forget_ways_in(journal: Journal) -> int:
    """Delete the rows of sessions and links that ended long ago; returns how many. Raises `JournalUnavailable`.

    That they began, ended and were spent stays on record in the events.
    """
    now, sessions, links = journal.now(), schema.sessions.c, schema.links.c
    due = (
        (schema.sessions, sessions.seen_at <= now - SESSIONS_KEPT_FOR),
        (schema.links, links.expires_at <= now - LINKS_KEPT_FOR),
    )
    with journal.reading() as connection:
        if not any(connection.execute(select(table.c.digest).where(over).limit(1)).first() for table, over in due):
            return 0
    with journal.writing() as writing:
        return sum(writing.connection.execute(delete(table).where(over)).rowcount for table, over in due)


def _forget_some(journal: Journal, after: timedelta) -> int:
    due = _ended_with_texts(journal, after)
    with journal.reading() as connection:
        if connection.execute(select(schema.proposals.c.id).where(due).limit(1)).first() is None:
            return 0
    with journal.writing() as writing:
        chosen = (
            select(schema.proposals.c.id).where(due).order_by(schema.proposals.c.ended_at).limit(_PROPOSALS_AT_ONCE)
        )
        ids = writing.connection.execute(chosen).scalars().all()
        table = schema.texts
        texts = writing.connection.execute(
            select(func.count()).select_from(table).where(table.c.proposal.in_(ids))
        ).scalar_one()
        writing.connection.execute(delete(table).where(table.c.proposal.in_(ids)))
        writing.connection.execute(delete(schema.threads).where(schema.threads.c.proposal.in_(ids)))
        if ids:
            # By name, so that a text that is gone without having been forgotten is found.
            writing.append("texts:forget", "texts", "executor", {"proposals": list(ids), "texts": texts})
        return len(ids)


def _ended_with_texts(journal: Journal, after: timedelta) -> ColumnElement[bool]:
    # An open proposal has no `ended_at`, however old it is.
    has_texts = exists().where(schema.texts.c.proposal == schema.proposals.c.id)
    return has_texts & (schema.proposals.c.ended_at <= journal.now() - after)

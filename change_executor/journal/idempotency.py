"""Requests that may come again: which proposal the first one made or found, by agent and key, for a day.

What is refused is not kept, so that it may come again and succeed; and of one proposal few keys are, so that an agent
can fill this not much faster than it may propose.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection, delete, func, insert, select

from change_executor.journal import schema
from change_executor.journal.journal import Journal, Writing

# A client that has no answer after a day asks what became of its proposals instead of repeating itself.
KEPT_FOR: Final = timedelta(hours=24)

# A client that begins anew and finds what it asked for before has another key each time; it does so a few times a day.
MAX_KEYS_OF_ONE: Final = 20


@dataclass(frozen=True, slots=True)
class Key:
    """An Idempotency-Key and what its request asked for, both as SHA-256 in lower-case hexadecimal."""

    key_sha256: str
    request_sha256: str


@dataclass(frozen=True, slots=True)
class Answered:
    """What the first request with a key asked for, which proposal it made or found, and when (aware UTC)."""

    request_sha256: str
    proposal: str
    at: datetime


def find(writing: Writing, agent: str, key: Key) -> Answered | None:
    """Return what this agent's first request with this key made or found within the last day, or None."""
    table = schema.idempotency_keys
    row = writing.connection.execute(
        select(table.c.request_sha256, table.c.proposal, table.c.at).where(
            table.c.agent == agent, table.c.key_sha256 == key.key_sha256, table.c.at > writing.now - KEPT_FOR
        )
    ).first()
    return None if row is None else Answered(row.request_sha256, row.proposal, row.at)


def has_room(writing: Writing, agent: str, proposal_id: str) -> bool:
    """Whether another key of this proposal may be kept."""
    table = schema.idempotency_keys
    of_one = select(func.count()).where(table.c.agent == agent, table.c.proposal == proposal_id)
    return writing.connection.execute(of_one).scalar_one() < MAX_KEYS_OF_ONE


def keep(writing: Writing, agent: str, key: Key, proposal_id: str) -> None:
    """Keep what a request made or found, in place of what an expired one of this key did."""
    table = schema.idempotency_keys
    writing.connection.execute(delete(table).where(table.c.agent == agent, table.c.key_sha256 == key.key_sha256))
    values = {"key_sha256": key.key_sha256, "request_sha256": key.request_sha256, "proposal": proposal_id}
    writing.connection.execute(insert(table).values(agent=agent, at=writing.now, **values))


def forget_keys(journal: Journal) -> None:
    """Delete the keys that are over. Raises `JournalUnavailable`."""
    with journal.reading() as connection:
        over = journal.now() - KEPT_FOR
        if not _any(connection, over):
            return
    with journal.writing() as writing:
        writing.connection.execute(delete(schema.idempotency_keys).where(schema.idempotency_keys.c.at <= over))


def _any(connection: Connection, over: datetime) -> bool:
    table = schema.idempotency_keys
    return connection.execute(select(table.c.agent).where(table.c.at <= over).limit(1)).first() is not None

"""Fallback moves, threads, revoked agents, idempotency; and what stood in the tables before goes under the chain.

Revision 0002. Until here the chain covered proposals, and of evidence and moves what their events repeat. From here on
it covers whole rows (`coverage.py`), so the rows and texts that are there get events that state their digests.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import rfc8785
import sqlalchemy as sa
from alembic import context, op

from change_executor.journal import migrations
from change_executor.journal.chain import FIRST_PREVIOUS, event_hash
from change_executor.journal.coverage import row_digest, text_digest
from shared.revisions import refusal_of

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# Of each table with rows: what names one. Frozen here, as a published version is.
_KEYS: Final = {
    "evidence": "id",
    "moves": "id",
    "tokens": "id",
    "people": "name",
    "switches": "name",
    "examinations": "queue",
}

# An event of two hundred digests is some twenty kilobytes: a journal of any length becomes a few events more.
_ROWS_IN_AN_EVENT: Final = 200


def upgrade() -> None:
    """Make what is new, then state what is there."""
    op.add_column("evidence", sa.Column("sender_sha256", sa.String(), nullable=True))
    op.create_index("evidence_by_sender", "evidence", ["sender_sha256"], unique=False)
    op.add_column("moves", sa.Column("method", sa.String(), nullable=False, server_default="move"))
    op.add_column("moves", sa.Column("step", sa.String(), nullable=True))
    op.add_column("moves", sa.Column("elsewhere", sa.Text(), nullable=True))
    _threads()
    _revoked_agents()
    _idempotency_keys()
    _probes()
    _adopt(op.get_bind())


def downgrade() -> None:
    """Refuse: what the first version does to rows it states nowhere, so that no later one could verify them."""
    raise refusal_of(migrations.REVISIONS[1])


def _threads() -> None:
    op.create_table(
        "threads",
        sa.Column("proposal", sa.String(), nullable=False),
        sa.Column("id_sha256", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["proposal"], ["proposals.id"]),
        sa.PrimaryKeyConstraint("proposal", "id_sha256"),
    )
    op.create_index("threads_by_id", "threads", ["id_sha256"], unique=False)


def _revoked_agents() -> None:
    op.create_table(
        "revoked_agents",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("since", sa.Integer(), nullable=False),
        sa.Column("by", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )


def _idempotency_keys() -> None:
    op.create_table(
        "idempotency_keys",
        sa.Column("agent", sa.String(), nullable=False),
        sa.Column("key_sha256", sa.String(), nullable=False),
        sa.Column("request_sha256", sa.String(), nullable=False),
        sa.Column("proposal", sa.String(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["proposal"], ["proposals.id"]),
        sa.PrimaryKeyConstraint("agent", "key_sha256"),
    )
    op.create_index("idempotency_keys_by_time", "idempotency_keys", ["at"], unique=False)


def _probes() -> None:
    op.create_table(
        "probes",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )


def _adopt(connection: sa.Connection) -> None:
    now: datetime = context.config.attributes["now"]
    at = (now - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    for table, key in _KEYS.items():
        rows = connection.exec_driver_sql(f"SELECT * FROM {table} ORDER BY {key}").mappings()  # noqa: S608 - ours
        for digests in _in_pieces((str(row[key]), row_digest(row)) for row in rows):
            _append(connection, at, table, digests)
    texts = connection.exec_driver_sql("SELECT proposal, kind, text FROM texts ORDER BY proposal, kind")
    for digests in _in_pieces((f"{row[0]}:{row[1]}", text_digest(row[2])) for row in texts):
        _append(connection, at, "texts", digests)


def _in_pieces(digests: Iterator[tuple[str, str]]) -> Iterator[dict[str, str]]:
    piece: dict[str, str] = {}
    for key, digest in digests:
        piece[key] = digest
        if len(piece) == _ROWS_IN_AN_EVENT:
            yield piece
            piece = {}
    if piece:
        yield piece


def _append(connection: sa.Connection, at: int, table: str, digests: dict[str, str]) -> None:
    head = connection.exec_driver_sql("SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1").first()
    seq, previous = (1, FIRST_PREVIOUS) if head is None else (head[0] + 1, head[1])
    details: dict[str, Any] = {"table": table, "rows": digests}
    event: dict[str, Any] = {"kind": "journal:adopt", "subject": table, "actor": "executor"}
    digest = event_hash(seq=seq, at=at, details=details, previous=previous, **event)
    text = rfc8785.dumps(details).decode()
    assert json.loads(text) == details, "what is hashed is what is stored"
    connection.exec_driver_sql(
        "INSERT INTO events (seq, at, kind, subject, actor, details, previous, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (seq, at, event["kind"], event["subject"], event["actor"], text, previous, digest),
    )

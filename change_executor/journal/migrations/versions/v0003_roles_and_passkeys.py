"""Roles, passkeys, and when a session's person last proved who they are.

Revision 0003. Whoever is there already could do everything until here, and goes on as an administrator; since the chain
covers people, their rows are stated anew.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import rfc8785
import sqlalchemy as sa
from alembic import context, op

from change_executor.journal.chain import FIRST_PREVIOUS, event_hash
from change_executor.journal.coverage import row_digest

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make what is new, then state the people anew."""
    op.add_column("people", sa.Column("role", sa.String(), nullable=False, server_default="reviewer"))
    op.add_column("sessions", sa.Column("how", sa.String(), nullable=True))
    op.add_column("sessions", sa.Column("proved_at", sa.Integer(), nullable=True))
    op.create_table(
        "passkeys",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("person", sa.String(), nullable=False),
        sa.Column("public_key", sa.String(), nullable=False),
        sa.Column("sign_count", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Integer(), nullable=False),
        sa.Column("used_at", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["person"], ["people.name"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_passkeys_person", "passkeys", ["person"], unique=False)
    _make_administrators(op.get_bind())


def downgrade() -> None:
    """Refuse: a record that can be rolled back is none."""
    raise NotImplementedError("the journal is never taken back; restore a copy instead")


def _make_administrators(connection: sa.Connection) -> None:
    connection.exec_driver_sql("UPDATE people SET role = 'administrator'")
    rows = connection.exec_driver_sql("SELECT * FROM people ORDER BY name").mappings()
    digests = {str(row["name"]): row_digest(row) for row in rows}
    if not digests:
        return
    now: datetime = context.config.attributes["now"]
    at = (now - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    head = connection.exec_driver_sql("SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1").first()
    seq, previous = (1, FIRST_PREVIOUS) if head is None else (head[0] + 1, head[1])
    details: dict[str, Any] = {"table": "people", "rows": digests}
    digest = event_hash(
        seq=seq, at=at, kind="journal:adopt", subject="people", actor="executor", details=details, previous=previous
    )
    connection.exec_driver_sql(
        "INSERT INTO events (seq, at, kind, subject, actor, details, previous, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (seq, at, "journal:adopt", "people", "executor", rfc8785.dumps(details).decode(), previous, digest),
    )

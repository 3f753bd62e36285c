"""Roles, passkeys, and when a session's person last proved who they are.

Revision 0003. Whoever is there already could do everything until here, and goes on as an administrator; since the chain
covers people, their rows are stated anew.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import rfc8785
import sqlalchemy as sa
from alembic import context, op

from change_executor.journal.chain import FIRST_PREVIOUS, event_hash
from change_executor.journal.coverage import row_digest
from shared.revisions import DowngradeRefused

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# A refusal names so many people; `user list` shows the rest.
_MOST_NAMED: Final = 5


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
    """Take roles and passkeys away and state the people anew, where the older release gives nobody more power by it.

    It knows no roles: to it, everybody is what an administrator is now. And it takes an event about a passkey for one
    that was forged. Raises `DowngradeRefused`.
    """
    connection = op.get_bind()
    _refuse_to_promote(connection)
    _refuse_passkeys_on_record(connection)
    op.drop_index("ix_passkeys_person", table_name="passkeys")
    op.drop_table("passkeys")
    op.drop_column("sessions", "proved_at")
    op.drop_column("sessions", "how")
    op.drop_column("people", "role")
    people = _state_people(connection)
    context.config.attributes["lost"] += [
        f"the roles of {people} people, all of them administrators, as an upgrade makes them again",
        "passkeys, and the question who is there before people, tokens and resuming",
    ]


def _refuse_to_promote(connection: sa.Connection) -> None:
    found = connection.exec_driver_sql("SELECT name FROM people WHERE role <> 'administrator' ORDER BY name").scalars()
    if names := found.all():
        named = ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")
        raise DowngradeRefused(
            "people_would_gain_power",
            f"A release of revision 0002 knows no roles: {len(names)} who are no administrators ({named}) could let "
            "people and agents in, and release the stop button.",
            "For each of them: change-executor user remove NAME, or change-executor user role NAME administrator.",
        )


def _refuse_passkeys_on_record(connection: sa.Connection) -> None:
    rows = connection.exec_driver_sql(
        "SELECT count(*) FROM events WHERE json_extract(details, '$.row.table') = 'passkeys'"
    )
    if count := rows.scalar_one():
        raise DowngradeRefused(
            "passkeys_on_record",
            f"{count} events are about passkeys, and a release of revision 0002 would call each of them malformed: "
            "its journal would not verify any more.",
            "Stay at 0003, or restore a copy made before the upgrade from 0002.",
        )


def _make_administrators(connection: sa.Connection) -> None:
    connection.exec_driver_sql("UPDATE people SET role = 'administrator'")
    _state_people(connection)


def _state_people(connection: sa.Connection) -> int:
    rows = connection.exec_driver_sql("SELECT * FROM people ORDER BY name").mappings()
    digests = {str(row["name"]): row_digest(row) for row in rows}
    if not digests:
        return 0
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
    return len(digests)

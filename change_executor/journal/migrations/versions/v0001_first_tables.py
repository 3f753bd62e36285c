"""The first tables, and the triggers that keep the chain append-only.

Revision 0001. What each column means stands in `schema.py`; a test compares the two.
"""

import sqlalchemy as sa
from alembic import op

from change_executor.journal import migrations
from shared.revisions import refusal_of

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make every table of the first version."""
    _events()
    _proposals()
    _evidence()
    _texts()
    _moves()
    _tokens()
    _people()
    _links()
    _sessions()
    _switches()
    _examinations()
    _append_only()


def downgrade() -> None:
    """Refuse: before the first version there is no journal."""
    raise refusal_of(migrations.REVISIONS[0])


def _append_only() -> None:
    # Triggers stop accidents; tampering is found by the chain, whose head is published elsewhere.
    for action in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER events_refuse_{action.lower()} BEFORE {action} ON events "
            f"BEGIN SELECT RAISE(ABORT, 'events are only ever appended'); END"
        )


def _events() -> None:
    op.create_table(
        "events",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("previous", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("hash"),
    )
    op.create_index("events_by_subject", "events", ["subject", "seq"], unique=False)


def _proposals() -> None:
    op.create_table(
        "proposals",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("agent", sa.String(), nullable=False),
        sa.Column("queue", sa.String(), nullable=False),
        sa.Column("email_id", sa.String(), nullable=False),
        sa.Column("from_role", sa.String(), nullable=False),
        sa.Column("to_role", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Integer(), nullable=False),
        sa.Column("expires_at", sa.Integer(), nullable=False),
        sa.Column("ended_at", sa.Integer(), nullable=True),
        sa.Column("predecessor", sa.String(), nullable=True),
        sa.Column("waiting_code", sa.String(), nullable=True),
        sa.Column("waiting_since", sa.Integer(), nullable=True),
        sa.Column("decided_by", sa.String(), nullable=True),
        sa.Column("decided_at", sa.Integer(), nullable=True),
        sa.Column("policy_version", sa.String(), nullable=True),
        sa.Column("shown", sa.String(), nullable=True),
        sa.Column("outcome_code", sa.String(), nullable=True),
        sa.Column("outcome_at", sa.Integer(), nullable=True),
        sa.Column("copies_left", sa.Integer(), nullable=True),
        sa.Column("evidence", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["evidence"], ["evidence.id"], use_alter=True),
        sa.ForeignKeyConstraint(
            ["predecessor"],
            ["proposals.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "one_open_proposal_for_each_email",
        "proposals",
        ["queue", "email_id"],
        unique=True,
        sqlite_where=sa.text("state IN ('pending', 'approved', 'applying', 'doubtful', 'undoing', 'undo_doubtful')"),
    )
    op.create_index("proposals_by_agent", "proposals", ["agent", "created_at"], unique=False)
    op.create_index("proposals_by_email", "proposals", ["queue", "email_id", "created_at"], unique=False)
    op.create_index("proposals_by_end", "proposals", ["ended_at"], unique=False)
    op.create_index("proposals_by_state", "proposals", ["state", "created_at"], unique=False)


def _evidence() -> None:
    op.create_table(
        "evidence",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("proposal", sa.String(), nullable=False),
        sa.Column("made_at", sa.Integer(), nullable=False),
        sa.Column("uidvalidity", sa.Integer(), nullable=False),
        sa.Column("uid", sa.Integer(), nullable=False),
        sa.Column("octets_sha256", sa.String(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("internaldate", sa.String(), nullable=False),
        sa.Column("copies", sa.Integer(), nullable=False),
        sa.Column("reading_version", sa.String(), nullable=False),
        sa.Column("reading_sha256", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["proposal"],
            ["proposals.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_evidence_proposal", "evidence", ["proposal"], unique=False)


def _texts() -> None:
    op.create_table(
        "texts",
        sa.Column("proposal", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["proposal"],
            ["proposals.id"],
        ),
        sa.PrimaryKeyConstraint("proposal", "kind"),
    )


def _moves() -> None:
    op.create_table(
        "moves",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("proposal", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("credential", sa.String(), nullable=False),
        sa.Column("source_mailbox", sa.String(), nullable=False),
        sa.Column("source_uidvalidity", sa.Integer(), nullable=False),
        sa.Column("source_uid", sa.Integer(), nullable=False),
        sa.Column("target_mailbox", sa.String(), nullable=False),
        sa.Column("target_uidvalidity", sa.Integer(), nullable=False),
        sa.Column("target_uidnext", sa.Integer(), nullable=False),
        sa.Column("octets_sha256", sa.String(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("internaldate", sa.String(), nullable=False),
        sa.Column("started_at", sa.Integer(), nullable=False),
        sa.Column("concluded_at", sa.Integer(), nullable=True),
        sa.Column("conclusion", sa.String(), nullable=True),
        sa.Column("new_uid", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["proposal"],
            ["proposals.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_moves_proposal", "moves", ["proposal"], unique=False)


def _tokens() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("agent", sa.String(), nullable=False),
        sa.Column("queue", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("created_at", sa.Integer(), nullable=False),
        sa.Column("expires_at", sa.Integer(), nullable=False),
        sa.Column("revoked_at", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )


def _people() -> None:
    op.create_table(
        "people",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("password_hash", sa.String(), nullable=True),
        sa.Column("created_at", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )


def _links() -> None:
    op.create_table(
        "links",
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("person", sa.String(), nullable=False),
        sa.Column("expires_at", sa.Integer(), nullable=False),
        sa.Column("spent_at", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["person"],
            ["people.name"],
        ),
        sa.PrimaryKeyConstraint("digest"),
    )


def _sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("person", sa.String(), nullable=False),
        sa.Column("created_at", sa.Integer(), nullable=False),
        sa.Column("seen_at", sa.Integer(), nullable=False),
        sa.Column("ended_at", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["person"],
            ["people.name"],
        ),
        sa.PrimaryKeyConstraint("digest"),
    )


def _switches() -> None:
    op.create_table(
        "switches",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("since", sa.Integer(), nullable=False),
        sa.Column("by", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )


def _examinations() -> None:
    op.create_table(
        "examinations",
        sa.Column("queue", sa.String(), nullable=False),
        sa.Column("policy_version", sa.String(), nullable=False),
        sa.Column("examined_at", sa.Integer(), nullable=False),
        sa.Column("undo_permitted", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("queue"),
    )

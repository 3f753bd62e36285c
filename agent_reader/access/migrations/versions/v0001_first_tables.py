"""The first tables.

Revision 0001. What each column means stands in `schema.py`; a test compares the two.
"""

import sqlalchemy as sa
from alembic import op

from agent_reader.access import migrations
from shared.revisions import refusal_of

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make every table of the first version."""
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("agent", sa.String(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.Integer(), nullable=False),
        sa.Column("expires_at", sa.Integer(), nullable=False),
        sa.Column("revoked_at", sa.Integer()),
    )
    op.create_index("tokens_by_agent", "tokens", ["agent"])
    op.create_table(
        "reads",
        sa.Column("key", sa.Integer(), primary_key=True),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.Column("agent", sa.String(), nullable=False),
        sa.Column("token_id", sa.String(), nullable=False),
        sa.Column("method", sa.String(), nullable=False),
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("email_ids", sa.Text(), nullable=False),
        sa.Column("bodies", sa.Integer(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("reads_by_agent", "reads", ["agent", "key"])
    op.create_table(
        "opened",
        sa.Column("agent", sa.String(), primary_key=True),
        sa.Column("account", sa.String(), primary_key=True),
        sa.Column("email_id", sa.String(), primary_key=True),
        sa.Column("at", sa.Integer(), nullable=False),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Refuse: before the first version there is no read log."""
    raise refusal_of(migrations.REVISIONS[0])

"""Indexes by which pages stay as fast with a hundred thousand proposals that have ended as with a hundred.

Revision 0004.
"""

import sqlalchemy as sa
from alembic import context, op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the index of what ended and was there, and give that of agents what their record is counted from."""
    op.create_index(
        "proposals_found_by_end",
        "proposals",
        ["ended_at", "id"],
        unique=False,
        sqlite_where=sa.text("ended_at IS NOT NULL AND (state <> 'stale' OR evidence IS NOT NULL)"),
    )
    op.drop_index("proposals_by_agent", table_name="proposals")
    op.create_index("proposals_by_agent", "proposals", ["agent", "created_at", "state", "decided_at"], unique=False)


def downgrade() -> None:
    """Drop one index and make the other as it was: an upgrade makes them anew."""
    op.drop_index("proposals_by_agent", table_name="proposals")
    op.create_index("proposals_by_agent", "proposals", ["agent", "created_at"], unique=False)
    op.drop_index("proposals_found_by_end", table_name="proposals")
    context.config.attributes["lost"].append("one index and a half, which an upgrade makes anew")

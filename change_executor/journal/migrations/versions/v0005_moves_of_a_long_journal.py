"""Indexes by which a move, a pass and the status cost as much after a hundred thousand moves as after a hundred.

Revision 0005.
"""

import sqlalchemy as sa
from alembic import context, op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the indexes of what began lately, of what is under way, and of what a queue moved."""
    op.create_index("moves_by_start", "moves", ["started_at"], unique=False)
    op.create_index("moves_under_way", "moves", ["id"], unique=False, sqlite_where=sa.text("concluded_at IS NULL"))
    op.create_index(
        "proposals_moved",
        "proposals",
        ["queue", "outcome_at"],
        unique=False,
        sqlite_where=sa.text("state IN ('applied', 'undoing', 'undo_doubtful', 'undone')"),
    )


def downgrade() -> None:
    """Drop the indexes: an upgrade makes them anew."""
    op.drop_index("proposals_moved", table_name="proposals")
    op.drop_index("moves_under_way", table_name="moves")
    op.drop_index("moves_by_start", table_name="moves")
    context.config.attributes["lost"].append("three indexes, which an upgrade makes anew")

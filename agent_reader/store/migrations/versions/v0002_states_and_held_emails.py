"""States that a power cut took back are told from those that are there; a held Email knows since when.

Revision 0002.
"""

import sqlalchemy as sa
from alembic import op

from agent_reader.store import migrations
from shared.revisions import refusal_of

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; what is held already was held since the migration, as far as anybody knows."""
    op.add_column("account", sa.Column("boot", sa.String()))
    op.add_column("account", sa.Column("skip", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("emails", sa.Column("held_at", sa.Integer()))
    op.execute("UPDATE emails SET held_at = CAST(strftime('%s', 'now') AS INTEGER) WHERE held_tick IS NOT NULL")


def downgrade() -> None:
    """Refuse: a mirror is made anew from the mail server sooner than it is taken back to this."""
    raise refusal_of(migrations.REVISIONS[1])

"""The headers of the newest messages are threaded before any id is given; a mirror that gave ids goes on as it did.

Revision 0004.
"""

import sqlalchemy as sa
from alembic import op

from agent_reader.store import migrations
from shared.revisions import refusal_of

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table; who has a state has given ids (2: nothing is waited for)."""
    op.add_column("account", sa.Column("threaded", sa.Integer(), nullable=False, server_default="0"))
    op.execute("UPDATE account SET threaded = 2 WHERE state > 0")
    op.create_table(
        "first_headers",
        sa.Column("mailbox_key", sa.Integer(), primary_key=True),
        sa.Column("uidvalidity", sa.Integer(), primary_key=True),
        sa.Column("uid", sa.Integer(), primary_key=True),
        sa.Column("received_at", sa.Integer(), nullable=False),
        sa.Column("links", sa.LargeBinary(), nullable=False),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Refuse: a mirror is made anew from the mail server sooner than it is taken back to this."""
    raise refusal_of(migrations.REVISIONS[3])

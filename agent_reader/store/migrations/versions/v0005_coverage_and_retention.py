"""What each mailbox should hold and why it does not; what is kept of each Email; which reading failed at a message.

Revision 0005.
"""

import sqlalchemy as sa
from alembic import op

from agent_reader.store import migrations
from shared.revisions import refusal_of

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns. What is there was kept whole, and what was set aside is tried again."""
    for name in ("expected", "looked_at", "failed_at"):
        op.add_column("mailboxes", sa.Column(name, sa.Integer()))
    op.add_column("mailboxes", sa.Column("failure_code", sa.String()))
    op.add_column("mailboxes", sa.Column("failure_detail", sa.Text()))
    op.add_column("mailboxes", sa.Column("failure_fix", sa.Text()))
    # When each was looked at is not known; no later than the last whole round.
    op.execute("UPDATE mailboxes SET looked_at = (SELECT settled_at FROM account) WHERE looked_tick IS NOT NULL")
    op.add_column("emails", sa.Column("kept", sa.Integer(), nullable=False, server_default="2"))
    op.add_column("set_aside", sa.Column("version", sa.String(), nullable=False, server_default=""))
    op.add_column("set_aside", sa.Column("at", sa.Integer(), nullable=False, server_default="0"))
    op.create_table(
        "intake",
        sa.Column("minute", sa.Integer(), primary_key=True),
        sa.Column("messages", sa.Integer(), nullable=False),
        sa.Column("octets", sa.Integer(), nullable=False),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Refuse: a mirror is made anew from the mail server sooner than it is taken back to this."""
    raise refusal_of(migrations.REVISIONS[4])

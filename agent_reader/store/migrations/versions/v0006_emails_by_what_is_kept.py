"""What should not be kept any more is found without a look at everything.

Revision 0006.
"""

from alembic import op

from agent_reader.store import migrations
from shared.revisions import refusal_of

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the index."""
    op.create_index("emails_kept", "emails", ["kept", "key"])


def downgrade() -> None:
    """Refuse: a mirror is made anew from the mail server sooner than it is taken back to this."""
    raise refusal_of(migrations.REVISIONS[5])

"""The Thread of each hit is found in an index that holds nothing else, so that Threads are counted faster.

Revision 0009.
"""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the index."""
    op.create_index("emails_threads_by_place", "emails", ["place", "thread_key"])


def downgrade() -> None:
    """Refuse: a mirror is made anew from the mail server, never taken back."""
    raise NotImplementedError("delete the file instead; the mail server has everything")

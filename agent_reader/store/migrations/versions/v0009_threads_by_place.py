"""The Thread of each hit is found in an index that holds nothing else, so that Threads are counted faster.

Revision 0009.
"""

from alembic import op

from agent_reader.store.migrations.taking_back import search_anew

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the index."""
    op.create_index("emails_threads_by_place", "emails", ["place", "thread_key"])


def downgrade() -> None:
    """Drop the index: an upgrade makes it anew."""
    op.drop_index("emails_threads_by_place", table_name="emails")
    search_anew("an index of places")

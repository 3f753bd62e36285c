"""Where each Email stands in the search table, so that the table's entries take less room.

Revision 0007. The search table itself is made anew from the kept words, since its shape is another (`search.SHAPE`).
"""

import sqlalchemy as sa
from alembic import op

from agent_reader.store.migrations.taking_back import search_anew

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

# Each at its unit of 128 seconds, or right after the one before: what `places.find` gives them in the order of keys.
_PLACES = (
    "UPDATE emails SET place = found.place FROM (SELECT key, number + max((key >> 27) - number) OVER (ORDER BY key) "
    "AS place FROM (SELECT key, row_number() OVER (ORDER BY key) AS number FROM emails)) AS found "
    "WHERE found.key = emails.key"
)


def upgrade() -> None:
    """Give each Email its place."""
    op.add_column("emails", sa.Column("place", sa.Integer(), nullable=False, server_default="0"))
    op.execute(_PLACES)
    op.create_index("emails_by_place", "emails", ["place", "thread_key", "id"])
    op.execute("CREATE VIEW email_places AS SELECT key, place FROM emails")


def downgrade() -> None:
    """Take the places away."""
    op.execute("DROP VIEW email_places")
    op.drop_index("emails_by_place", table_name="emails")
    op.drop_column("emails", "place")
    search_anew("places in the search table")

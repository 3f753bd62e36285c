"""Places in the search table go from the newest Email to the oldest: FTS5 reads its lists from their beginning.

Revision 0008. The search table itself is made anew from the kept words, since its shape is another (`search.SHAPE`).
"""

from alembic import op

from agent_reader.store.migrations.taking_back import search_anew

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

# As 0007 gave them.
_OLDER_PLACES = (
    "UPDATE emails SET place = found.place FROM (SELECT key, number + max((key >> 27) - number) OVER (ORDER BY key) "
    "AS place FROM (SELECT key, row_number() OVER (ORDER BY key) AS number FROM emails)) AS found "
    "WHERE found.key = emails.key"
)

# Each at its unit of 128 seconds, counted back from that of 1970, or right after the one before: what `places.find`
# gives them where they come in with the newest first.
_PLACES = (
    "UPDATE emails SET place = found.place FROM (SELECT key, number + max(268435455 - (key >> 27) - number) "
    "OVER (ORDER BY key DESC) AS place FROM (SELECT key, row_number() OVER (ORDER BY key DESC) AS number "
    "FROM emails)) AS found WHERE found.key = emails.key"
)


def upgrade() -> None:
    """Give each Email its place."""
    op.execute(_PLACES)


def downgrade() -> None:
    """Give each Email the place that it had before."""
    op.execute(_OLDER_PLACES)
    search_anew("places from the newest on")

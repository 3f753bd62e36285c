"""The Threads of places in the search table are packed, page by page, so that those of many hits are counted at once.

Revision 0010. The index of Threads by place that this takes the place of is dropped.
"""

from itertools import groupby

import sqlalchemy as sa
from alembic import context, op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_PLACES_OF_A_PAGE = 1_000
# A chunk is 512 pages: a shift, since those of the far future are below zero.
_CHUNKS = "INSERT INTO thread_chunks (chunk, version) SELECT DISTINCT page >> 9, 1 FROM thread_pages"


def upgrade() -> None:
    """Make the tables, and fill them from the Emails that are shown."""
    op.create_table(
        "thread_pages",
        sa.Column("page", sa.Integer(), primary_key=True),
        sa.Column("threads", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "thread_chunks",
        sa.Column("chunk", sa.Integer(), primary_key=True),
        sa.Column("version", sa.Integer(), nullable=False),
    )
    connection = op.get_bind()
    rows = connection.exec_driver_sql("SELECT place, thread_key FROM emails WHERE visible ORDER BY place")
    for page, standing in groupby(rows, key=lambda row: row[0] // _PLACES_OF_A_PAGE):
        threads = bytearray(4 * _PLACES_OF_A_PAGE)
        for place, thread_key in standing:
            start = 4 * (place % _PLACES_OF_A_PAGE)
            threads[start : start + 4] = thread_key.to_bytes(4, "little")
        connection.exec_driver_sql("INSERT INTO thread_pages (page, threads) VALUES (?, ?)", (page, bytes(threads)))
    op.execute(_CHUNKS)
    op.drop_index("emails_threads_by_place", table_name="emails")


def downgrade() -> None:
    """Drop the pages, and make the index that was there before: an upgrade makes them anew."""
    op.create_index("emails_threads_by_place", "emails", ["place", "thread_key"])
    op.drop_table("thread_chunks")
    op.drop_table("thread_pages")
    context.config.attributes["lost"].append("the packed Threads of places")

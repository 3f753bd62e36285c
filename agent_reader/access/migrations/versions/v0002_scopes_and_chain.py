"""Tokens with a scope, a budget, a note and a last use; the read log as a hash chain with octets, parts and peers.

Revision 0002. A token of before keeps what it could read, but for sign-in mail: that is withheld unless it is granted.
Rows of before enter the chain as they are.
"""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

from agent_reader.access import migrations
from agent_reader.access.chain import NO_DIGEST, Row
from shared.revisions import refusal_of

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns and the anchor, and chain the rows that are there."""
    of_tokens: tuple[sa.Column[Any], ...] = (
        sa.Column("scope", sa.Text(), nullable=False, server_default="{}"),
        sa.Column("budget", sa.Integer()),
        sa.Column("note", sa.Text(), nullable=False, server_default=""),
        sa.Column("used_at", sa.Integer()),
        sa.Column("used_from", sa.String(), nullable=False, server_default=""),
    )
    of_reads: tuple[sa.Column[Any], ...] = (
        sa.Column("parts", sa.Text(), nullable=False, server_default="{}"),
        sa.Column("octets", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("peer", sa.String(), nullable=False, server_default=""),
        sa.Column("digest", sa.LargeBinary(), nullable=False, server_default=sa.text("x''")),
    )
    for table, columns in (("tokens", of_tokens), ("reads", of_reads)):
        for column in columns:
            op.add_column(table, column)
    op.create_index("reads_by_token", "reads", ["token_id", "at"])
    op.create_index("opened_by_time", "opened", ["at"])
    op.create_table(
        "anchor",
        sa.Column("row", sa.Integer(), primary_key=True),
        sa.Column("key", sa.Integer(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("last_at", sa.Integer(), nullable=False),
        sa.Column("pruned_at", sa.Integer(), nullable=False),
    )
    _chain()


def downgrade() -> None:
    """Refuse: tokens would open more than they were made for, and the read log would be no chain any more."""
    raise refusal_of(migrations.REVISIONS[1])


def _chain() -> None:
    connection = op.get_bind()
    rows = connection.exec_driver_sql(
        "SELECT key, at, agent, token_id, method, account, email_ids, bodies FROM reads ORDER BY key"
    ).fetchall()
    if not rows:
        return
    # Nothing was ever deleted, so keys begin at 1; where somebody did, the chain begins there.
    if rows[0][0] > 1:
        connection.exec_driver_sql(
            "INSERT INTO anchor (row, key, digest, last_at, pruned_at) VALUES (1, ?, ?, ?, ?)",
            (rows[0][0] - 1, NO_DIGEST, rows[0][1], rows[0][1]),
        )
    digest = NO_DIGEST
    for key, at, agent, token_id, method, account, email_ids, bodies in rows:
        row = Row(key, at, agent, token_id, method, account, json.loads(email_ids), {}, 0, "", bodies)
        digest = row.digest(digest)
        connection.exec_driver_sql("UPDATE reads SET digest = ? WHERE key = ?", (digest, key))

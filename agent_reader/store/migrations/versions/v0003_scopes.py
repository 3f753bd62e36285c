"""Who sent an Email, whether it signs somebody in, and from which mailboxes to which it went: what scopes are made of.

Revision 0003. Emails that are here already are read once more; changes before it are as if they had never been.
"""

import sqlalchemy as sa
from alembic import op

from agent_reader.store import document, migrations, reading
from shared.revisions import refusal_of

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables and columns, and fill them from what is kept of each message."""
    op.add_column("emails", sa.Column("sender", sa.Text(), nullable=False, server_default=""))
    op.add_column("emails", sa.Column("sender_domain", sa.Text(), nullable=False, server_default=""))
    op.create_table(
        "sign_in_emails",
        sa.Column("email_key", sa.Integer(), primary_key=True),
    )
    op.create_table(
        "gone_emails",
        sa.Column("key", sa.Integer(), primary_key=True),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("thread_key", sa.Integer(), nullable=False),
        sa.Column("thread_id", sa.String(), nullable=False),
        sa.Column("sender", sa.Text(), nullable=False),
        sa.Column("sender_domain", sa.Text(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
    )
    op.create_index("gone_emails_by_thread", "gone_emails", ["thread_key"])
    op.create_table(
        "email_changes",
        sa.Column("state", sa.Integer(), primary_key=True),
        sa.Column("email_key", sa.Integer(), primary_key=True),
        sa.Column("mailboxes_before", sa.Text(), nullable=False),
        sa.Column("mailboxes_after", sa.Text(), nullable=False),
        sa.Column("changed", sa.Integer(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("email_changes_by_email", "email_changes", ["email_key", "state"])
    _read_again()
    # A scope cannot tell what changed before; what is whole begins here. It is a state of its own, so that one that
    # was given out before is none of those that are remembered.
    op.execute("UPDATE account SET state = state + 1")
    op.execute("UPDATE account SET changes_from = state")
    op.execute("DELETE FROM changes")


def downgrade() -> None:
    """Refuse: a mirror is made anew from the mail server sooner than it is taken back to this."""
    raise refusal_of(migrations.REVISIONS[2])


def _read_again() -> None:
    connection = op.get_bind()
    rows = connection.exec_driver_sql("SELECT key, summary, document FROM email_texts")
    for key, summary, packed in rows:
        sender, domain = reading.sender_of(reading.unpack_summary(summary)["from"])
        connection.exec_driver_sql(
            "UPDATE emails SET sender = ?, sender_domain = ? WHERE key = ?", (sender, domain, key)
        )
        if reading.signs_in(document.unpack(packed)):
            connection.exec_driver_sql("INSERT INTO sign_in_emails (email_key) VALUES (?)", (key,))

"""The first tables.

Revision 0001. What each column means stands in `schema.py`; a test compares the two.
"""

import sqlalchemy as sa
from alembic import op

from agent_reader.store import migrations
from shared.revisions import refusal_of

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make every table of the first version."""
    _account()
    _mailboxes()
    _emails()
    _email_texts()
    _copies()
    _former_copies()
    _email_mailboxes()
    _threads()
    _thread_links()
    _set_aside()
    _changes()


def downgrade() -> None:
    """Refuse: a mirror is made anew from the mail server sooner than it is taken back to this."""
    raise refusal_of(migrations.REVISIONS[0])


def _account() -> None:
    op.create_table(
        "account",
        sa.Column("key", sa.Integer(), primary_key=True),
        sa.Column("epoch", sa.String(), nullable=False),
        sa.Column("state", sa.Integer(), nullable=False),
        sa.Column("tick", sa.Integer(), nullable=False),
        sa.Column("changes_from", sa.Integer(), nullable=False),
        sa.Column("search_shape", sa.Integer(), nullable=False),
        sa.Column("settled_at", sa.Integer()),
        sa.Column("failed_at", sa.Integer()),
        sa.Column("failure_code", sa.String()),
        sa.Column("failure_detail", sa.Text()),
        sa.Column("failure_fix", sa.Text()),
    )


def _mailboxes() -> None:
    op.create_table(
        "mailboxes",
        sa.Column("key", sa.Integer(), primary_key=True),
        sa.Column("handle", sa.String(), nullable=False, unique=True),
        sa.Column("id", sa.String(), nullable=False, unique=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("delimiter", sa.String()),
        sa.Column("attributes", sa.Text(), nullable=False),
        sa.Column("subscribed", sa.Integer(), nullable=False),
        sa.Column("selectable", sa.Integer(), nullable=False),
        sa.Column("uidvalidity", sa.Integer()),
        sa.Column("uidnext", sa.Integer(), nullable=False),
        sa.Column("highestmodseq", sa.Integer()),
        sa.Column("looked_tick", sa.Integer()),
        sa.Column("passed_over", sa.Integer(), nullable=False),
        sa.Column("standing", sa.String(), nullable=False),
    )


def _emails() -> None:
    op.create_table(
        "emails",
        sa.Column("key", sa.Integer(), primary_key=True),
        sa.Column("id", sa.String(), nullable=False, unique=True),
        sa.Column("thread_key", sa.Integer(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("received_at", sa.Integer(), nullable=False),
        sa.Column("sent_at", sa.Integer()),
        sa.Column("has_attachment", sa.Integer(), nullable=False),
        sa.Column("from_order", sa.Text(), nullable=False),
        sa.Column("to_order", sa.Text(), nullable=False),
        sa.Column("subject_order", sa.Text(), nullable=False),
        sa.Column("keywords", sa.Text(), nullable=False),
        sa.Column("visible", sa.Integer(), nullable=False),
        sa.Column("held_tick", sa.Integer()),
    )
    op.create_index("emails_by_thread", "emails", ["thread_key"])
    op.create_index("emails_held", "emails", ["held_tick"])


def _email_texts() -> None:
    op.create_table(
        "email_texts",
        sa.Column("key", sa.Integer(), primary_key=True),
        sa.Column("summary", sa.LargeBinary(), nullable=False),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.Column("words", sa.LargeBinary(), nullable=False),
    )


def _copies() -> None:
    op.create_table(
        "copies",
        sa.Column("mailbox_key", sa.Integer(), primary_key=True),
        sa.Column("uid", sa.Integer(), primary_key=True),
        sa.Column("email_key", sa.Integer(), nullable=False),
        sa.Column("flags", sa.Text(), nullable=False),
        sa.Column("modseq", sa.Integer()),
        sa.Column("deleted", sa.Integer(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("copies_by_email", "copies", ["email_key"])


def _former_copies() -> None:
    op.create_table(
        "former_copies",
        sa.Column("mailbox_key", sa.Integer(), primary_key=True),
        sa.Column("uid", sa.Integer(), primary_key=True),
        sa.Column("email_key", sa.Integer(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("former_copies_by_email", "former_copies", ["email_key"])


def _email_mailboxes() -> None:
    op.create_table(
        "email_mailboxes",
        sa.Column("mailbox_key", sa.Integer(), primary_key=True),
        sa.Column("email_key", sa.Integer(), primary_key=True),
        sa.Column("thread_key", sa.Integer(), nullable=False),
        sa.Column("unread", sa.Integer(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("email_mailboxes_by_email", "email_mailboxes", ["email_key"])
    op.create_index("email_mailboxes_by_thread", "email_mailboxes", ["thread_key", "unread"])


def _threads() -> None:
    op.create_table(
        "threads",
        sa.Column("key", sa.Integer(), primary_key=True),
        sa.Column("id", sa.String(), nullable=False, unique=True),
    )


def _thread_links() -> None:
    op.create_table(
        "thread_links",
        sa.Column("link", sa.LargeBinary(), primary_key=True),
        sa.Column("thread_key", sa.Integer(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("thread_links_by_thread", "thread_links", ["thread_key"])


def _set_aside() -> None:
    op.create_table(
        "set_aside",
        sa.Column("mailbox_key", sa.Integer(), primary_key=True),
        sa.Column("uid", sa.Integer(), primary_key=True),
        sa.Column("code", sa.String(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("fix", sa.Text(), nullable=False),
        sqlite_with_rowid=False,
    )


def _changes() -> None:
    op.create_table(
        "changes",
        sa.Column("type", sa.String(), primary_key=True),
        sa.Column("state", sa.Integer(), primary_key=True),
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sqlite_with_rowid=False,
    )

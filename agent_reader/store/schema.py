"""The tables of one account's mirror. Times are seconds since 1970 in UTC; ids are JMAP's, keys are ours.

The search table is not here: it can be made anew from these, and only `search.py` knows its shape.
"""

from sqlalchemy import Column, Index, Integer, LargeBinary, MetaData, String, Table, Text

metadata = MetaData()

account = Table(
    "account",
    metadata,
    Column("key", Integer, primary_key=True, comment="always 1"),
    Column("epoch", String, nullable=False, comment="random; a state of another file is recognised as foreign"),
    Column("state", Integer, nullable=False, comment="counts the transactions that changed what JMAP shows"),
    Column("tick", Integer, nullable=False, comment="counts the looks and losses, to tell which came first"),
    Column("changes_from", Integer, nullable=False, comment="the oldest state that `changes` is whole from"),
    Column("search_shape", Integer, nullable=False, comment="of the search table in this file; 0 for none"),
    Column("settled_at", Integer, comment="when the last whole round ended"),
    Column("failed_at", Integer, comment="when a round ended early, null since the next whole one"),
    Column("failure_code", String),
    Column("failure_detail", Text),
    Column("failure_fix", Text),
    Column("boot", String, comment="of the machine, when this file was last opened; null where it has no such name"),
    Column("skip", Integer, nullable=False, server_default="0", comment="so many states may be lost; see database.py"),
    Column("threaded", Integer, nullable=False, server_default="0", comment="see threads.Threaded"),
    comment="One row: where this account stands.",
)

mailboxes = Table(
    "mailboxes",
    metadata,
    Column("key", Integer, primary_key=True),
    Column("handle", String, nullable=False, unique=True, comment="what sync calls it; never changes"),
    Column("id", String, nullable=False, unique=True, comment="Mailbox.id; after a rename the old one is kept"),
    Column("name", Text, nullable=False, comment="decoded, whole path"),
    Column("delimiter", String),
    Column("attributes", Text, nullable=False, comment="JSON array, sorted, as LIST spelled them"),
    Column("subscribed", Integer, nullable=False),
    Column("selectable", Integer, nullable=False),
    Column("uidvalidity", Integer, comment="null before the first look"),
    Column("uidnext", Integer, nullable=False),
    Column("highestmodseq", Integer),
    Column("looked_tick", Integer, comment="when it was last brought up to date; null if never"),
    Column("passed_over", Integer, nullable=False, comment="1 if a whole round ended without a look at it"),
    Column("standing", String, nullable=False, comment="listed, pending (may be a renamed one) or gone"),
    Column("expected", Integer, comment="messages that the server counts; null before the first look"),
    Column("looked_at", Integer, comment="when it was last brought up to date; kept where UIDs mean others now"),
    Column("failed_at", Integer, comment="since when it cannot be looked at; null since the last look"),
    Column("failure_code", String),
    Column("failure_detail", Text),
    Column("failure_fix", Text),
    comment="A mailbox that is listed, or that was until the last round and whose Emails are not settled yet.",
)

emails = Table(
    "emails",
    metadata,
    Column("key", Integer, primary_key=True, comment="receivedAt * 2^20 + tie-break: key order is date order"),
    Column("id", String, nullable=False, unique=True),
    Column("thread_key", Integer, nullable=False),
    Column("size", Integer, nullable=False),
    Column("received_at", Integer, nullable=False),
    Column("sent_at", Integer, comment="null where Date is missing or no date"),
    Column("has_attachment", Integer, nullable=False),
    Column("from_order", Text, nullable=False, comment="folded, for sorting"),
    Column("to_order", Text, nullable=False),
    Column("subject_order", Text, nullable=False),
    Column("keywords", Text, nullable=False, comment="JSON array, sorted; what the copies come to"),
    Column("visible", Integer, nullable=False, comment="1 while it has a mailbox"),
    Column("held_tick", Integer, comment="when its last copy vanished; null while it has one"),
    Column("held_at", Integer, comment="the same as a time"),
    Column("sender", Text, nullable=False, server_default="", comment="the one address of From in lower case, or none"),
    Column("sender_domain", Text, nullable=False, server_default=""),
    Column("kept", Integer, nullable=False, server_default="2", comment="see retention.Keep"),
    Column(
        "place", Integer, nullable=False, server_default="0", comment="the rowid in the search table; see places.py"
    ),
    Index("emails_by_thread", "thread_key"),
    Index("emails_held", "held_tick"),
    Index("emails_kept", "kept", "key"),
    Index("emails_by_place", "place", "thread_key", "id"),
    comment="An Email: one content, however many copies.",
)

email_texts = Table(
    "email_texts",
    metadata,
    Column("key", Integer, primary_key=True),
    Column("summary", LargeBinary, nullable=False, comment="zlib: the metadata properties as JSON"),
    Column("document", LargeBinary, nullable=False, comment="zlib: headers, structure and texts, see document.py"),
    Column("words", LargeBinary, nullable=False, comment="zlib: the folded words by search column"),
    comment="What is kept of an Email's content.",
)

copies = Table(
    "copies",
    metadata,
    Column("mailbox_key", Integer, primary_key=True),
    Column("uid", Integer, primary_key=True),
    Column("email_key", Integer, nullable=False),
    Column("flags", Text, nullable=False, comment="JSON array, sorted, as the server spells them"),
    Column("modseq", Integer),
    Column("deleted", Integer, nullable=False, comment="1 with \\Deleted: such a copy is not shown"),
    Index("copies_by_email", "email_key"),
    sqlite_with_rowid=False,
    comment="A message in a mailbox under its present UIDVALIDITY.",
)

former_copies = Table(
    "former_copies",
    metadata,
    Column("mailbox_key", Integer, primary_key=True),
    Column("uid", Integer, primary_key=True),
    Column("email_key", Integer, nullable=False),
    Index("former_copies_by_email", "email_key"),
    sqlite_with_rowid=False,
    comment="What a gone mailbox held: by this a renamed one is known again. Dropped when the round is whole.",
)

email_mailboxes = Table(
    "email_mailboxes",
    metadata,
    Column("mailbox_key", Integer, primary_key=True),
    Column("email_key", Integer, primary_key=True),
    Column("thread_key", Integer, nullable=False),
    Column("unread", Integer, nullable=False, comment="1 with neither $seen nor $draft"),
    Index("email_mailboxes_by_email", "email_key"),
    Index("email_mailboxes_by_thread", "thread_key", "unread"),
    sqlite_with_rowid=False,
    comment="Email.mailboxIds, and what the counts of a Mailbox are made from.",
)

threads = Table(
    "threads",
    metadata,
    Column("key", Integer, primary_key=True, comment="in the order in which ids were given: the smaller is the older"),
    Column("id", String, nullable=False, unique=True),
    comment="A Thread. Its Emails name it; it never merges with another.",
)

thread_pages = Table(
    "thread_pages",
    metadata,
    Column("page", Integer, primary_key=True, comment="of a thousand places"),
    Column(
        "threads", LargeBinary, nullable=False, comment="four octets for each place: a key, or zeros; thread_pages.py"
    ),
    comment="The Thread of each place in the search table.",
)

thread_chunks = Table(
    "thread_chunks",
    metadata,
    Column("chunk", Integer, primary_key=True, comment="of 512 pages"),
    Column("version", Integer, nullable=False, comment="another with each change to one of its pages"),
    comment="Which pages there are, and whether they are those that were read before.",
)

thread_links = Table(
    "thread_links",
    metadata,
    Column("link", LargeBinary, primary_key=True, comment="digest of a Message-ID and a base subject"),
    Column("thread_key", Integer, nullable=False),
    Index("thread_links_by_thread", "thread_key"),
    sqlite_with_rowid=False,
    comment="Which Thread a message that bears or names this Message-ID belongs to.",
)

first_headers = Table(
    "first_headers",
    metadata,
    Column("mailbox_key", Integer, primary_key=True),
    Column("uidvalidity", Integer, primary_key=True),
    Column("uid", Integer, primary_key=True),
    Column("received_at", Integer, nullable=False),
    Column("links", LargeBinary, nullable=False, comment="digests of 16 octets, as in thread_links; its own the last"),
    sqlite_with_rowid=False,
    comment="What threads a message that did not come in yet; empty once ids are given.",
)

set_aside = Table(
    "set_aside",
    metadata,
    Column("mailbox_key", Integer, primary_key=True),
    Column("uid", Integer, primary_key=True),
    Column("code", String, nullable=False),
    Column("cause", Text, nullable=False),
    Column("fix", Text, nullable=False),
    Column("version", String, nullable=False, server_default="", comment="of the reading that failed"),
    Column("at", Integer, nullable=False, server_default="0"),
    sqlite_with_rowid=False,
    comment="A message that could not be had or read; another version of the reading tries again.",
)

intake = Table(
    "intake",
    metadata,
    Column("minute", Integer, primary_key=True, comment="minutes since 1970"),
    Column("messages", Integer, nullable=False),
    Column("octets", Integer, nullable=False),
    sqlite_with_rowid=False,
    comment="What came in within a minute, for a day: how fast it goes, and what of a day's budget is used.",
)

changes = Table(
    "changes",
    metadata,
    Column("type", String, primary_key=True, comment="Email, Mailbox, Thread, or MailboxByOthers: see `changes.py`"),
    Column("state", Integer, primary_key=True),
    Column("id", String, primary_key=True),
    Column("kind", String, nullable=False, comment="created, updated, counted (a Mailbox's counts only) or destroyed"),
    Column("at", Integer, nullable=False),
    sqlite_with_rowid=False,
    comment="What became different with each state.",
)

email_changes = Table(
    "email_changes",
    metadata,
    Column("state", Integer, primary_key=True),
    Column("email_key", Integer, primary_key=True),
    Column("mailboxes_before", Text, nullable=False, comment="JSON array of keys, sorted"),
    Column("mailboxes_after", Text, nullable=False),
    Column(
        "changed", Integer, nullable=False, comment="bits: 1 keywords, 2 whether it is unread, 4 the words that find it"
    ),
    Column("at", Integer, nullable=False),
    Index("email_changes_by_email", "email_key", "state"),
    sqlite_with_rowid=False,
    comment="What became different of an Email, for who sees some of the mailboxes only.",
)

gone_emails = Table(
    "gone_emails",
    metadata,
    Column("key", Integer, primary_key=True),
    Column("id", String, nullable=False),
    Column("thread_key", Integer, nullable=False),
    Column("thread_id", String, nullable=False),
    Column("sender", Text, nullable=False),
    Column("sender_domain", Text, nullable=False),
    Column("at", Integer, nullable=False),
    Index("gone_emails_by_thread", "thread_key"),
    comment="An Email that was destroyed, for as long as `email_changes` may speak of it.",
)

sign_in_emails = Table(
    "sign_in_emails",
    metadata,
    Column("email_key", Integer, primary_key=True),
    comment="An Email that holds a one-time code, a password reset or a sign-in link, there or gone.",
)

"""The tables of the access file. Times are microseconds since 1970 in UTC."""

from sqlalchemy import Column, Index, Integer, LargeBinary, MetaData, String, Table, Text

metadata = MetaData()

tokens = Table(
    "tokens",
    metadata,
    Column("id", String, primary_key=True),
    Column("agent", String, nullable=False),
    Column("digest", LargeBinary, nullable=False, comment="SHA-256 of the whole token, 32 octets"),
    Column("created_at", Integer, nullable=False),
    Column("expires_at", Integer, nullable=False),
    Column("revoked_at", Integer),
    Index("tokens_by_agent", "agent"),
    comment="A reader token: whose it is and how long it opens. Never deleted: the read log names it.",
)

reads = Table(
    "reads",
    metadata,
    Column("key", Integer, primary_key=True, comment="in the order of the commits; a page's cursor"),
    Column("at", Integer, nullable=False),
    Column("agent", String, nullable=False),
    Column("token_id", String, nullable=False),
    Column("method", String, nullable=False),
    Column("account", String, nullable=False),
    Column("email_ids", Text, nullable=False, comment="JSON array: the Emails that the answer showed or named"),
    Column("bodies", Integer, nullable=False, comment="1 where body text was in it"),
    Index("reads_by_agent", "agent", "key"),
    sqlite_autoincrement=True,
    comment="A method call whose answer showed mail.",
)

opened = Table(
    "opened",
    metadata,
    Column("agent", String, primary_key=True),
    Column("account", String, primary_key=True),
    Column("email_id", String, primary_key=True),
    Column("at", Integer, nullable=False, comment="the latest time"),
    sqlite_with_rowid=False,
    comment="An Email whose body text an agent was given: what a reviewer asks, answered without a search.",
)

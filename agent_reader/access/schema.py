"""The tables of the access file. Times are microseconds since 1970 in UTC."""

from sqlalchemy import Column, Index, Integer, LargeBinary, MetaData, String, Table, Text, text

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
    Column("scope", Text, nullable=False, server_default="{}", comment="JSON, see scope_text.py; {} for all mail"),
    Column("budget", Integer, comment="octets of answers an hour; null for no limit"),
    Column("note", Text, nullable=False, server_default="", comment="for people: what it was made for"),
    Column("used_at", Integer, comment="the last use that is on record"),
    Column("used_from", String, nullable=False, server_default="", comment="where that came from"),
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
    Column(
        "parts", Text, nullable=False, server_default="{}", comment="JSON object: parts that were shown, by Email id"
    ),
    Column(
        "octets", Integer, nullable=False, server_default="0", comment="of the answer; a long list's first row has them"
    ),
    Column("peer", String, nullable=False, server_default="", comment="where the request came from"),
    Column("digest", LargeBinary, nullable=False, server_default=text("x''"), comment="see chain.py, 32 octets"),
    Index("reads_by_agent", "agent", "key"),
    Index("reads_by_token", "token_id", "at"),
    sqlite_autoincrement=True,
    comment="A method call whose answer showed mail.",
)

anchor = Table(
    "anchor",
    metadata,
    Column("row", Integer, primary_key=True, comment="always 1"),
    Column("key", Integer, nullable=False, comment="of the last row of `reads` that was pruned"),
    Column("digest", LargeBinary, nullable=False, comment="of that row: the chain goes on from it"),
    Column("last_at", Integer, nullable=False, comment="when that was read: the log does not reach back to it"),
    Column("pruned_at", Integer, nullable=False),
    comment="One row at most: where the read log begins, since older rows were let go.",
)

opened = Table(
    "opened",
    metadata,
    Column("agent", String, primary_key=True),
    Column("account", String, primary_key=True),
    Column("email_id", String, primary_key=True),
    Column("at", Integer, nullable=False, comment="the latest time"),
    Index("opened_by_time", "at"),
    sqlite_with_rowid=False,
    comment="An Email whose body text an agent was given: what a reviewer asks, answered without a search.",
)

"""The tables of the journal. Times are UTC microseconds since 1970; digests are lower-case hexadecimal."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Column, ForeignKey, Index, Integer, MetaData, String, Table, Text, text
from sqlalchemy.dialects.sqlite import insert as insert_or_replace
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class UtcMicroseconds(TypeDecorator[datetime]):
    """An aware UTC datetime kept as an integer, since SQLite gives datetimes back without their zone."""

    impl = Integer
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:  # noqa: ARG002 - signature
        """Return microseconds since 1970."""
        return None if value is None else to_microseconds(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:  # noqa: ANN401, ARG002 - signature
        """Return the aware datetime."""
        return None if value is None else from_microseconds(value)


def to_microseconds(moment: datetime) -> int:
    """Return microseconds since 1970 of an aware datetime."""
    return (moment - _EPOCH) // _MICROSECOND


def recorded(values: dict[str, Any]) -> dict[str, Any]:
    """Return columns as an event records them: times in UTC microseconds since 1970, all else as it is."""
    return {
        column: to_microseconds(value) if isinstance(value, datetime) else value for column, value in values.items()
    }


def from_microseconds(microseconds: int) -> datetime:
    """Return the aware UTC datetime. Raises `OverflowError` past the years that a datetime reaches."""
    return _EPOCH + timedelta(microseconds=microseconds)


metadata = MetaData()

events = Table(
    "events",
    metadata,
    Column("seq", Integer, primary_key=True, comment="1, 2, 3, ... without a gap"),
    Column("at", UtcMicroseconds, nullable=False),
    Column("kind", String, nullable=False, comment="subject:action, e.g. proposal:approve"),
    Column("subject", String, nullable=False, comment="what it is about: a proposal id, a name"),
    Column("actor", String, nullable=False, comment="agent:NAME, person:NAME, executor or operator"),
    Column("details", Text, nullable=False, comment="canonical JSON (RFC 8785): ids, digests and codes only"),
    Column("previous", String, nullable=False, comment="hash of the event before; 64 zeros for the first"),
    Column("hash", String, nullable=False, unique=True, comment="SHA-256 over the event, see chain.py"),
    Index("events_by_subject", "subject", "seq"),
    comment="One thing that happened. Rows are only ever appended; triggers refuse UPDATE and DELETE.",
)

# What ended and was there at all: the words of a partial index, which SQLite takes where a query says the same words.
FOUND_AND_ENDED = "ended_at IS NOT NULL AND (state <> 'stale' OR evidence IS NOT NULL)"

# What a move was made of, whether or not a person takes it back.
MOVED = "state IN ('applied', 'undoing', 'undo_doubtful', 'undone')"

proposals = Table(
    "proposals",
    metadata,
    Column("id", String, primary_key=True),
    Column("agent", String, nullable=False),
    Column("queue", String, nullable=False),
    Column("email_id", String, nullable=False),
    Column("from_role", String, nullable=False),
    Column("to_role", String, nullable=False),
    Column("state", String, nullable=False),
    Column("version", Integer, nullable=False, comment="counts the changes of this row, from 1"),
    Column("created_at", UtcMicroseconds, nullable=False),
    Column("expires_at", UtcMicroseconds, nullable=False),
    Column("ended_at", UtcMicroseconds, comment="when it left the open states; texts are forgotten some time after"),
    Column("predecessor", String, ForeignKey("proposals.id"), comment="the last ended one for queue and Email"),
    Column("waiting_code", String, comment="why it does not advance, or null"),
    Column("waiting_since", UtcMicroseconds),
    Column("decided_by", String, comment="the person's name"),
    Column("decided_at", UtcMicroseconds),
    Column("policy_version", String, comment="of the policy that the decision was made under"),
    Column("shown", String, comment="the digest of what was shown when it was approved"),
    Column("outcome_code", String),
    Column("outcome_at", UtcMicroseconds),
    Column("copies_left", Integer, comment="identical copies that stay in incoming"),
    Column("evidence", Integer, ForeignKey("evidence.id", use_alter=True), comment="the evidence now shown"),
    Index("proposals_by_state", "state", "created_at"),
    # With all that an agent's record is counted from, so that no row is read for it.
    Index("proposals_by_agent", "agent", "created_at", "state", "decided_at"),
    Index("proposals_by_email", "queue", "email_id", "created_at"),
    Index("proposals_by_end", "ended_at"),
    Index("proposals_found_by_end", "ended_at", "id", sqlite_where=text(FOUND_AND_ENDED)),
    Index("proposals_moved", "queue", "outcome_at", sqlite_where=text(MOVED)),
    Index(
        "one_open_proposal_for_each_email",
        "queue",
        "email_id",
        unique=True,
        sqlite_where=text("state IN ('pending', 'approved', 'applying', 'doubtful', 'undoing', 'undo_doubtful')"),
    ),
    comment="A proposal as it stands now; its history is in events.",
)

evidence = Table(
    "evidence",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("proposal", String, ForeignKey("proposals.id"), nullable=False, index=True),
    Column("made_at", UtcMicroseconds, nullable=False),
    Column("uidvalidity", Integer, nullable=False, comment="of incoming, when the copy was looked at"),
    Column("uid", Integer, nullable=False, comment="the one copy that may move: the lowest UID"),
    Column("octets_sha256", String, nullable=False),
    Column("size", Integer, nullable=False, comment="octets"),
    Column("internaldate", String, nullable=False, comment="RFC 3339 with its offset"),
    Column("copies", Integer, nullable=False, comment="identical copies in incoming, this one included"),
    Column("reading_version", String, nullable=False, comment="of the code that made the reading"),
    Column("reading_sha256", String, nullable=False, comment="of the reading's canonical JSON in texts"),
    Column("sender_sha256", String, comment="of the one address in From, in lower case; null where it has not one"),
    Index("evidence_by_sender", "sender_sha256"),
    comment="What the executor saw when it looked at the message for a proposal.",
)

texts = Table(
    "texts",
    metadata,
    Column("proposal", String, ForeignKey("proposals.id"), primary_key=True),
    Column("kind", String, primary_key=True, comment="reason, decision_reason, reading, hints, source"),
    Column("text", Text, nullable=False),
    comment="Everything from mail, agents and people that is content; deleted some time after a proposal's end.",
)

# In place of the text of this kind that the proposal had.
_text = insert_or_replace(texts)
keep_text = _text.on_conflict_do_update(index_elements=["proposal", "kind"], set_={"text": _text.excluded.text})

threads = Table(
    "threads",
    metadata,
    Column("proposal", String, ForeignKey("proposals.id"), primary_key=True),
    Column("id_sha256", String, primary_key=True, comment="of a Message-ID that the message has, answers or refers to"),
    Index("threads_by_id", "id_sha256"),
    comment="What ties a proposal's message to others of its thread; goes with the texts.",
)

moves = Table(
    "moves",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("proposal", String, ForeignKey("proposals.id"), nullable=False, index=True),
    Column("kind", String, nullable=False, comment="move or undo"),
    Column("credential", String, nullable=False),
    Column("source_mailbox", String, nullable=False),
    Column("source_uidvalidity", Integer, nullable=False),
    Column("source_uid", Integer, nullable=False),
    Column("target_mailbox", String, nullable=False),
    Column("target_uidvalidity", Integer, nullable=False),
    Column("target_uidnext", Integer, nullable=False),
    Column("octets_sha256", String, nullable=False),
    Column("size", Integer, nullable=False, comment="octets"),
    Column("internaldate", String, nullable=False, comment="RFC 3339 with its offset"),
    Column("started_at", UtcMicroseconds, nullable=False),
    Column("concluded_at", UtcMicroseconds),
    Column("conclusion", String, comment="the lifecycle event that ended it, or null while it may be under way"),
    Column("new_uid", Integer, comment="the UID in the target, once known"),
    Column(
        "method", String, nullable=False, server_default="move", comment="move (UID MOVE), or copy where there is none"
    ),
    Column("step", String, comment="of a copy, how far it is known to have come: copied, flagged"),
    Column("elsewhere", Text, comment="canonical JSON: UIDVALIDITY and UIDNEXT of the other destinations, by name"),
    # Every move asks how many began lately, and every pass what is under way: neither may read all that ever moved.
    Index("moves_by_start", "started_at"),
    Index("moves_under_way", "id", sqlite_where=text("concluded_at IS NULL")),
    comment="An intent, committed before the first octet of a MOVE leaves, and what became of it.",
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String, primary_key=True),
    Column("agent", String, nullable=False),
    Column("queue", String, nullable=False),
    Column("digest", String, nullable=False, comment="SHA-256 of the whole token"),
    Column("created_at", UtcMicroseconds, nullable=False),
    Column("expires_at", UtcMicroseconds, nullable=False),
    Column("revoked_at", UtcMicroseconds),
    comment="A proposer token: whose it is and the one queue that it opens.",
)

people = Table(
    "people",
    metadata,
    Column("name", String, primary_key=True),
    Column("password_hash", String, comment="argon2id, or null until the person has set one"),
    Column("created_at", UtcMicroseconds, nullable=False),
    Column("role", String, nullable=False, server_default="reviewer", comment="reviewer or administrator"),
    comment="A person who may decide; an administrator may also let others in, people and agents.",
)

passkeys = Table(
    "passkeys",
    metadata,
    Column("id", String, primary_key=True, comment="credential id, base64url without padding"),
    Column("person", String, ForeignKey("people.name"), nullable=False, index=True),
    Column("public_key", String, nullable=False, comment="COSE_Key (RFC 9052 §7), base64url without padding"),
    Column(
        "sign_count", Integer, nullable=False, comment="what the authenticator counted at its last use; 0 for never"
    ),
    Column("created_at", UtcMicroseconds, nullable=False),
    Column("used_at", UtcMicroseconds),
    comment="A WebAuthn credential by which a person signs in.",
)

links = Table(
    "links",
    metadata,
    Column("digest", String, primary_key=True, comment="SHA-256 of the 256-bit secret"),
    Column("person", String, ForeignKey("people.name"), nullable=False),
    Column("expires_at", UtcMicroseconds, nullable=False),
    Column("spent_at", UtcMicroseconds),
    comment="A sign-in link: ten minutes, single use, spent by a POST.",
)

sessions = Table(
    "sessions",
    metadata,
    Column("digest", String, primary_key=True, comment="SHA-256 of the cookie's secret"),
    Column("person", String, ForeignKey("people.name"), nullable=False),
    Column("created_at", UtcMicroseconds, nullable=False),
    Column("seen_at", UtcMicroseconds, nullable=False),
    Column("ended_at", UtcMicroseconds),
    Column("how", String, comment="what began it: link, password or passkey; null before version 3"),
    Column("proved_at", UtcMicroseconds, comment="when the password or a passkey was given last, or null"),
    comment="A signed-in browser.",
)

switches = Table(
    "switches",
    metadata,
    Column("name", String, primary_key=True, comment="stop"),
    Column("since", UtcMicroseconds, nullable=False),
    Column("by", String, nullable=False),
    comment="The row exists while the switch is on; a restart does not forget it.",
)

revoked_agents = Table(
    "revoked_agents",
    metadata,
    Column("name", String, primary_key=True),
    Column("since", UtcMicroseconds, nullable=False),
    Column("by", String, nullable=False),
    comment="An agent whose proposals are neither taken nor moved; the row goes when it gets a new token.",
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("agent", String, primary_key=True),
    Column("key_sha256", String, primary_key=True),
    Column("request_sha256", String, nullable=False, comment="of what the request asked for"),
    Column("proposal", String, ForeignKey("proposals.id"), nullable=False),
    Column("at", UtcMicroseconds, nullable=False),
    Index("idempotency_keys_by_time", "at"),
    comment="A request that made a proposal and may come again; forgotten after a day.",
)

probes = Table(
    "probes",
    metadata,
    Column("name", String, primary_key=True),
    Column("at", UtcMicroseconds, nullable=False),
    comment="Written now and then by who is asked for health: a journal that can be read may still be full.",
)

examinations = Table(
    "examinations",
    metadata,
    Column("queue", String, primary_key=True),
    Column("policy_version", String, nullable=False),
    Column("examined_at", UtcMicroseconds, nullable=False),
    Column("undo_permitted", Integer, nullable=False, comment="1 where the login may move back"),
    comment="The last time a queue's mailboxes were looked at and found right; lets a restart wait for a server.",
)

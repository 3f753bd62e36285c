"""Signed-in browsers: a server-side table, limits of its own, and a cookie of which only the digest is stored."""

import base64
import hashlib
import hmac
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, func, insert, select, update

from change_executor.journal import schema
from change_executor.journal.journal import Journal, Writing
from change_executor.review.people import PERSON_COLUMNS, Person, RandomOctets, person_of
from change_executor.review.preferences import DEFAULTS, Preferences

IDLE_LIMIT: Final = timedelta(hours=8)
ABSOLUTE_LIMIT: Final = timedelta(days=7)
# Noting each request would cost a durable commit each; the idle limit needs no finer grain.
_SEEN_GRAIN: Final = timedelta(minutes=5)
# Long enough to make a token and read what it says, short enough that a browser left open lets nobody else in.
PROOF_LASTS: Final = timedelta(minutes=5)
_SECRET_OCTETS: Final = 32
# A stored digest is named in events by its beginning: enough to tell sessions apart.
_SHORT: Final = 16


@dataclass(frozen=True, slots=True)
class KnownSession:
    """A session as the settings list it; `name` is the beginning of its digest, enough to tell it from others."""

    name: str
    created_at: datetime
    seen_at: datetime
    how: str | None
    is_this_one: bool


@dataclass(frozen=True, slots=True)
class Session:
    """A session that is good now; `csrf` is the token that each of its forms must carry.

    `proved_at` is when the password or a passkey was given last, None where it came by a link alone.
    """

    person: Person
    digest: str
    csrf: str = field(repr=False)
    proved_at: datetime | None = None
    preferences: Preferences = DEFAULTS

    def is_proved(self, now: datetime) -> bool:
        """Whether it is known freshly enough who sits there, for what gives others power."""
        # A clock that was set back would make it last for as long as that.
        return self.proved_at is not None and timedelta(0) <= now - self.proved_at <= PROOF_LASTS


class How(StrEnum):
    """By what a session began, or was proved again."""

    LINK = "link"
    PASSWORD = "password"  # noqa: S105 - a way in, not a secret
    PASSKEY = "passkey"


def begin_session(writing: Writing, name: str, how: How, random_octets: RandomOctets) -> str:
    """Begin a session for a person and return the secret for the cookie."""
    secret = base64.urlsafe_b64encode(random_octets(_SECRET_OCTETS)).rstrip(b"=").decode("ascii")
    digest = _digest(secret)
    writing.connection.execute(
        insert(schema.sessions).values(
            digest=digest,
            person=name,
            created_at=writing.now,
            seen_at=writing.now,
            ended_at=None,
            how=how.value,
            # Whoever made the link, or came by it, may be somebody else.
            proved_at=None if how is How.LINK else writing.now,
        )
    )
    writing.append("session:began", name, f"person:{name}", {"how": how.value, "session": digest[:_SHORT]})
    return secret


def prove_session(writing: Writing, session: Session, how: How) -> None:
    """Note that the person of a session just showed again who they are."""
    writing.connection.execute(
        update(schema.sessions).where(schema.sessions.c.digest == session.digest).values(proved_at=writing.now)
    )
    name = session.person.name
    details = {"how": how.value, "session": session.digest[:_SHORT]}
    writing.append("session:proved", name, f"person:{name}", details)


def find_session(journal: Journal, untrusted_secret: str | None) -> Session | None:
    """Return the session that a cookie's secret opens, or None; notes that it was seen. Raises `JournalUnavailable`."""
    if not untrusted_secret:
        return None
    digest = _digest(untrusted_secret)
    now = journal.now()
    with journal.reading() as connection:
        row = _good_row(connection, digest, now)
    if row is None:
        return None
    if now - row.seen_at > _SEEN_GRAIN:
        with journal.writing() as writing:
            writing.connection.execute(
                update(schema.sessions)
                .where(schema.sessions.c.digest == digest, schema.sessions.c.ended_at.is_(None))
                .values(seen_at=now)
            )
    person = person_of(row.name, row.role, row.has_password, row.has_passkey)
    return Session(person, digest, _csrf(untrusted_secret), row.proved_at)


def known_browser(connection: Connection, untrusted_secret: str | None, name: str) -> str | None:
    """Return what tells a browser from others that once was signed in as this person, or None.

    Its session may have ended long ago: it opens nothing, and shows that this is not whoever guesses from elsewhere.
    """
    columns = schema.sessions.c
    found = connection.execute(
        select(columns.digest).where(columns.digest == _digest(untrusted_secret or ""), columns.person == name)
    ).scalar_one_or_none()
    return None if found is None else f"browser:{found[:_SHORT]}"


def still_good(connection: Connection, digest: str, now: datetime) -> bool:
    """Whether a session found earlier is good still, in this transaction; nothing is noted."""
    return _good_row(connection, digest, now) is not None


def csrf_matches(session: Session, untrusted_token: str) -> bool:
    """Whether a form carries the session's own token, in constant time."""
    return hmac.compare_digest(session.csrf.encode(), untrusted_token.encode())


def end_session(journal: Journal, session: Session) -> None:
    """Sign out: the row ends, whatever becomes of the cookie."""
    name = session.person.name
    with journal.writing() as writing:
        if _end(writing, schema.sessions.c.digest == session.digest):
            writing.append("session:ended", name, f"person:{name}", {"session": session.digest[:_SHORT]})


def list_sessions(connection: Connection, session: Session, now: datetime) -> list[KnownSession]:
    """Return the good sessions of a session's person, the one that was seen last first."""
    columns = schema.sessions.c
    rows = connection.execute(
        select(columns.digest, columns.created_at, columns.seen_at, columns.how)
        .where(columns.person == session.person.name, *_good(now))
        .order_by(columns.seen_at.desc(), columns.digest)
    )
    return [
        KnownSession(row.digest[:_SHORT], row.created_at, row.seen_at, row.how, row.digest == session.digest)
        for row in rows
    ]


def end_named_session(journal: Journal, session: Session, untrusted_name: str) -> bool:
    """End another session of the same person by its listed name; False where there is none to end."""
    columns, name = schema.sessions.c, session.person.name
    with journal.writing() as writing:
        mine = (columns.person == name) & (func.substr(columns.digest, 1, _SHORT) == untrusted_name)
        if not _end(writing, mine):
            return False
        writing.append("session:ended", name, f"person:{name}", {"session": untrusted_name})
        return True


def end_sessions_elsewhere(journal: Journal, session: Session) -> None:
    """End every session of a person but the one that asks."""
    with journal.writing() as writing:
        end_other_sessions(writing, session.person.name, session.digest)


def end_other_sessions(writing: Writing, name: str, digest: str) -> None:
    """End every session of a person but one, as a new password demands."""
    ended = _end(writing, (schema.sessions.c.person == name) & (schema.sessions.c.digest != digest))
    if ended:
        writing.append("session:others_ended", name, f"person:{name}", {"count": ended})


def _end(writing: Writing, which: ColumnElement[bool]) -> int:
    done = writing.connection.execute(
        update(schema.sessions).where(which, schema.sessions.c.ended_at.is_(None)).values(ended_at=writing.now)
    )
    return done.rowcount


def _good_row(connection: Connection, digest: str, now: datetime) -> Row[Any] | None:
    sessions = schema.sessions.c
    return connection.execute(
        select(*PERSON_COLUMNS, sessions.seen_at, sessions.proved_at)
        .join(schema.people, schema.people.c.name == sessions.person)
        .where(sessions.digest == digest, *_good(now))
    ).first()


def _good(now: datetime) -> tuple[ColumnElement[bool], ...]:
    columns = schema.sessions.c
    return (
        columns.ended_at.is_(None),
        columns.seen_at > now - IDLE_LIMIT,
        columns.created_at > now - ABSOLUTE_LIMIT,
    )


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8")).hexdigest()


def _csrf(secret: str) -> str:
    # Derived, so that nothing more is stored; the stored digest of the secret does not give it away.
    token = hmac.digest(secret.encode("utf-8"), b"mailwarrant form token", "sha256")
    return base64.urlsafe_b64encode(token).rstrip(b"=").decode("ascii")

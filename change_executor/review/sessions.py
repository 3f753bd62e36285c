"""Signed-in browsers: a server-side table, limits of its own, and a cookie of which only the digest is stored."""

import base64
import hashlib
import hmac
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import ColumnElement, Connection, func, insert, select, update

from change_executor.journal import schema
from change_executor.journal.journal import Journal, Writing
from change_executor.review.people import Person, RandomOctets
from change_executor.review.preferences import DEFAULTS, Preferences

IDLE_LIMIT: Final = timedelta(hours=8)
ABSOLUTE_LIMIT: Final = timedelta(days=7)
# Noting each request would cost a durable commit each; the idle limit needs no finer grain.
_SEEN_GRAIN: Final = timedelta(minutes=5)
_SECRET_OCTETS: Final = 32
# A stored digest is named in events by its beginning: enough to tell sessions apart.
_SHORT: Final = 16


@dataclass(frozen=True, slots=True)
class KnownSession:
    """A session as the settings list it; `name` is the beginning of its digest, enough to tell it from others."""

    name: str
    created_at: datetime
    seen_at: datetime
    is_this_one: bool


@dataclass(frozen=True, slots=True)
class Session:
    """A session that is good now; `csrf` is the token that each of its forms must carry."""

    person: Person
    digest: str
    csrf: str = field(repr=False)
    preferences: Preferences = DEFAULTS


def begin_session(writing: Writing, name: str, how: str, random_octets: RandomOctets) -> str:
    """Begin a session for a person (`how`: link or password) and return the secret for the cookie."""
    secret = base64.urlsafe_b64encode(random_octets(_SECRET_OCTETS)).rstrip(b"=").decode("ascii")
    digest = _digest(secret)
    writing.connection.execute(
        insert(schema.sessions).values(
            digest=digest, person=name, created_at=writing.now, seen_at=writing.now, ended_at=None
        )
    )
    writing.append("session:began", name, f"person:{name}", {"how": how, "session": digest[:_SHORT]})
    return secret


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
    name, has_password, seen_at = row
    if now - seen_at > _SEEN_GRAIN:
        with journal.writing() as writing:
            writing.connection.execute(
                update(schema.sessions)
                .where(schema.sessions.c.digest == digest, schema.sessions.c.ended_at.is_(None))
                .values(seen_at=now)
            )
    return Session(Person(name, has_password=has_password), digest, _csrf(untrusted_secret))


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
        select(columns.digest, columns.created_at, columns.seen_at)
        .where(columns.person == session.person.name, *_good(now))
        .order_by(columns.seen_at.desc(), columns.digest)
    )
    return [
        KnownSession(row.digest[:_SHORT], row.created_at, row.seen_at, row.digest == session.digest) for row in rows
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


def _good_row(connection: Connection, digest: str, now: datetime) -> tuple[str, bool, datetime] | None:
    sessions, people = schema.sessions.c, schema.people.c
    row = connection.execute(
        select(sessions.person, sessions.seen_at, people.password_hash)
        .join(schema.people, people.name == sessions.person)
        .where(sessions.digest == digest, *_good(now))
    ).first()
    return None if row is None else (row.person, row.password_hash is not None, row.seen_at)


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

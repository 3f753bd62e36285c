"""The people who may decide, and the one-time links that let a person in for the first time or without a password.

A link is made on the machine only (`change-executor user link NAME`); its secret is printed once and stored hashed.
"""

import base64
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from sqlalchemy import insert, select, update

from change_executor.journal import schema
from change_executor.journal.journal import Journal, Writing

RandomOctets = Callable[[int], bytes]

PERSON_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}", re.ASCII)

# Long enough to walk to another device, short enough that a forgotten line on a screen opens nothing.
LINK_MINUTES: Final = 10
_SECRET_OCTETS: Final = 32


class PersonRefused(Exception):  # noqa: N818 - a refusal is what it is
    """A name that cannot be used as asked: `code`, what is wrong and what to do next."""

    def __init__(self, code: str, detail: str, fix: str) -> None:
        super().__init__(f"{detail} {fix}")
        self.code, self.detail, self.fix = code, detail, fix


class LinkRefused(Exception):  # noqa: N818 - a refusal is what it is
    """The code of a link opens nothing: unknown, spent or expired; which of them is not told."""


@dataclass(frozen=True, slots=True)
class Person:
    """A row of `people`; `has_password` is False until one was set."""

    name: str
    has_password: bool


def add_person(journal: Journal, name: str) -> None:
    """Record a person who may decide; they come in by a link. Raises `PersonRefused`, `JournalUnavailable`."""
    if PERSON_NAME.fullmatch(name) is None:
        raise PersonRefused(
            "malformed_name",
            "That is not a name for a person.",
            "Use 1 to 40 of a-z, 0-9, dot, dash and underscore; begin with a letter or digit.",
        )
    with journal.writing() as writing:
        if _password_hash_row(writing, name) is not None:
            raise PersonRefused(
                "person_exists", f"{name} may decide already.", f"Let them in by: change-executor user link {name}"
            )
        writing.connection.execute(insert(schema.people).values(name=name, created_at=writing.now))
        writing.append("person:added", name, "operator")


def new_link(journal: Journal, name: str, random_octets: RandomOctets) -> str:
    """Make a link for a person and return its secret: 256 bits as base64url, good for ten minutes and one use.

    Raises `PersonRefused` for an unknown name, `JournalUnavailable`.
    """
    secret = base64.urlsafe_b64encode(random_octets(_SECRET_OCTETS)).rstrip(b"=").decode("ascii")
    with journal.writing() as writing:
        if _password_hash_row(writing, name) is None:
            raise PersonRefused(
                "unknown_person", f"Nobody here is called {name!r}.", f"Add them by: change-executor user add {name}"
            )
        writing.connection.execute(
            insert(schema.links).values(
                digest=_digest(secret), person=name, expires_at=writing.now + timedelta(minutes=LINK_MINUTES)
            )
        )
        writing.append("link:made", name, "operator")
    return secret


def spend_link(writing: Writing, untrusted_secret: str, *, forget_password: bool) -> Person:
    """Spend a link inside the transaction that begins the session, and return whose it is.

    `forget_password` removes the old password, so that a new one can be set without it. Raises `LinkRefused`.
    """
    digest = _digest(untrusted_secret)
    spent = writing.connection.execute(
        update(schema.links)
        .where(
            schema.links.c.digest == digest,
            schema.links.c.spent_at.is_(None),
            schema.links.c.expires_at > writing.now,
        )
        .values(spent_at=writing.now)
    )
    if spent.rowcount != 1:
        raise LinkRefused
    name = writing.connection.execute(select(schema.links.c.person).where(schema.links.c.digest == digest)).scalar_one()
    writing.append("link:spent", name, f"person:{name}")
    if forget_password:
        writing.connection.execute(update(schema.people).where(schema.people.c.name == name).values(password_hash=None))
        writing.append("person:password_forgotten", name, f"person:{name}")
    row = _password_hash_row(writing, name)
    assert row is not None, "a link's person exists"
    return Person(name, has_password=row[0] is not None)


def store_password(writing: Writing, name: str, password_hash: str, *, rehash: bool = False) -> None:
    """Keep the argon2id hash of a person's password; `rehash` where only its parameters changed."""
    writing.connection.execute(
        update(schema.people).where(schema.people.c.name == name).values(password_hash=password_hash)
    )
    writing.append("person:password_rehashed" if rehash else "person:password_set", name, f"person:{name}")


def password_hash(journal: Journal, name: str) -> str | None:
    """Return the stored hash of a person's password, or None: unknown names and people without one look alike."""
    with journal.reading() as connection:
        stored: str | None = connection.execute(
            select(schema.people.c.password_hash).where(schema.people.c.name == name)
        ).scalar_one_or_none()
    return stored


def _password_hash_row(writing: Writing, name: str) -> tuple[str | None] | None:
    row = writing.connection.execute(select(schema.people.c.password_hash).where(schema.people.c.name == name)).first()
    return None if row is None else (row.password_hash,)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8")).hexdigest()

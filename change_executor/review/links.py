"""One-time links that let a person in for the first time, or without what they usually come in by.

Made on the machine (`change-executor user link NAME`), or by an administrator for somebody who has no way in yet; the
secret is shown once and stored hashed.
"""

import base64
import hashlib
from datetime import timedelta
from typing import Final

from sqlalchemy import insert, select, update

from change_executor.journal import schema
from change_executor.journal.journal import Journal, Writing
from change_executor.review.people import (
    Person,
    RandomOctets,
    forget_password,
    known_person,
    remove_passkeys,
)

# Long enough to walk to another device, short enough that a forgotten line on a screen opens nothing.
LINK_MINUTES: Final = 10
_SECRET_OCTETS: Final = 32


class LinkRefused(Exception):  # noqa: N818 - a refusal is what it is
    """The code of a link opens nothing: unknown, spent or expired; which of them is not told."""


def new_link(journal: Journal, name: str, random_octets: RandomOctets) -> str:
    """Make a link for a person and return its secret: 256 bits as base64url, good for ten minutes and one use.

    Raises `PersonRefused` for an unknown name, `JournalUnavailable`.
    """
    with journal.writing() as writing:
        return insert_link(writing, name, random_octets, "operator")


def insert_link(writing: Writing, name: str, random_octets: RandomOctets, actor: str) -> str:
    """Make a link in this transaction, as `new_link` does."""
    secret = base64.urlsafe_b64encode(random_octets(_SECRET_OCTETS)).rstrip(b"=").decode("ascii")
    known_person(writing.connection, name)
    writing.connection.execute(
        insert(schema.links).values(
            digest=_digest(secret), person=name, expires_at=writing.now + timedelta(minutes=LINK_MINUTES)
        )
    )
    writing.append("link:made", name, actor)
    return secret


def spend_link(writing: Writing, untrusted_secret: str, *, begin_anew: bool) -> Person:
    """Spend a link inside the transaction that begins the session, and return whose it is.

    `begin_anew` removes the old password and the passkeys, so that others can be set without them. Raises
    `LinkRefused`.
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
    if begin_anew:
        forget_password(writing, name)
        remove_passkeys(writing, name, f"person:{name}")
    return known_person(writing.connection, name)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8")).hexdigest()

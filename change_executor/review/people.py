"""The people who may decide: their names, roles and passwords.

The first one is made on the machine only and is an administrator; an administrator lets the others in.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sqlalchemy import Connection, Row, delete, exists, func, insert, select, update

from change_executor.journal import schema
from change_executor.journal.journal import Journal, Writing

RandomOctets = Callable[[int], bytes]

PERSON_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}", re.ASCII)

_OPERATOR: Final = "operator"

_people = schema.people.c


class Role(StrEnum):
    """What a person may do: a reviewer decides, an administrator also lets people and agents in."""

    REVIEWER = "reviewer"
    ADMINISTRATOR = "administrator"


class PersonRefused(Exception):  # noqa: N818 - a refusal is what it is
    """A person that cannot be made or changed as asked: `code`, what is wrong and what to do next."""

    def __init__(self, code: str, detail: str, fix: str) -> None:
        super().__init__(f"{detail} {fix}")
        self.code, self.detail, self.fix = code, detail, fix


@dataclass(frozen=True, slots=True)
class Person:
    """A row of `people`: whether a password is set, and whether there is a passkey."""

    name: str
    role: Role
    has_password: bool
    has_passkey: bool

    @property
    def is_administrator(self) -> bool:
        """Whether this person may let others in."""
        return self.role is Role.ADMINISTRATOR

    @property
    def can_prove(self) -> bool:
        """Whether there is anything by which this person can show who they are."""
        return self.has_password or self.has_passkey


def add_person(journal: Journal, name: str, role: Role | None = None, actor: str = _OPERATOR) -> Person:
    """Record a person who may decide; they come in by a link.

    Without `role` the first one is an administrator and all others are reviewers. Raises `PersonRefused`,
    `JournalUnavailable`.
    """
    with journal.writing() as writing:
        return insert_person(writing, name, role, actor)


def insert_person(writing: Writing, name: str, role: Role | None, actor: str) -> Person:
    """Record a person in this transaction, as `add_person` does."""
    if PERSON_NAME.fullmatch(name) is None:
        raise PersonRefused(
            "malformed_name",
            "That is not a name for a person.",
            "Use 1 to 40 of a-z, 0-9, dot, dash and underscore; begin with a letter or digit.",
        )
    if find_person(writing.connection, name) is not None:
        raise PersonRefused(
            "person_exists", f"{name} may decide already.", f"Let them in by: change-executor user link {name}"
        )
    is_first = writing.connection.execute(select(func.count()).select_from(schema.people)).scalar_one() == 0
    if is_first and role is Role.REVIEWER:
        raise PersonRefused(
            "first_is_administrator",
            "The first person is an administrator, or nobody could let others in.",
            "Add an administrator first.",
        )
    given = role or (Role.ADMINISTRATOR if is_first else Role.REVIEWER)
    writing.connection.execute(
        insert(schema.people).values(name=name, role=given.value, created_at=writing.now, password_hash=None)
    )
    writing.append("person:added", name, actor, {"role": given.value})
    return Person(name, given, has_password=False, has_passkey=False)


def change_role(writing: Writing, name: str, role: Role, actor: str) -> None:
    """Give a person another role. Raises `PersonRefused`, also where nobody would be an administrator any more."""
    person = known_person(writing.connection, name)
    if person.role is role:
        return
    _leave_an_administrator(writing.connection, person)
    writing.connection.execute(update(schema.people).where(_people.name == name).values(role=role.value))
    writing.append("person:role_changed", name, actor, {"role": role.value})


def remove_person(writing: Writing, name: str, actor: str) -> None:
    """Let a person decide no more: their sessions, links and passkeys go with them; what they decided stays.

    Raises `PersonRefused`, also where nobody would be an administrator any more.
    """
    _leave_an_administrator(writing.connection, known_person(writing.connection, name))
    remove_passkeys(writing, name, actor)
    for table in (schema.sessions, schema.links):
        writing.connection.execute(delete(table).where(table.c.person == name))
    writing.connection.execute(delete(schema.people).where(_people.name == name))
    writing.append("person:removed", name, actor)


def remove_passkeys(writing: Writing, name: str, actor: str, passkey_id: str | None = None) -> int:
    """Remove the passkeys of a person, or one of them; returns how many there were."""
    columns = schema.passkeys.c
    which = columns.person == name if passkey_id is None else (columns.person == name) & (columns.id == passkey_id)
    ids = writing.connection.execute(select(columns.id).where(which).order_by(columns.id)).scalars().all()
    for each in ids:
        writing.connection.execute(delete(schema.passkeys).where(columns.id == each))
        writing.append("passkey:removed", each, actor, {"person": name})
    return len(ids)


def list_people(connection: Connection) -> list[Person]:
    """Return everybody who may decide, by name."""
    return [_person(row) for row in connection.execute(_SELECTED.order_by(_people.name))]


def find_person(connection: Connection, name: str) -> Person | None:
    """Return a person, or None."""
    row = connection.execute(_SELECTED.where(_people.name == name)).first()
    return None if row is None else _person(row)


def known_person(connection: Connection, name: str) -> Person:
    """Return a person. Raises `PersonRefused` where there is none."""
    person = find_person(connection, name)
    if person is None:
        raise PersonRefused(
            "unknown_person", f"Nobody here is called {name!r}.", f"Add them by: change-executor user add {name}"
        )
    return person


def store_password(writing: Writing, name: str, password_hash: str, *, rehash: bool = False) -> None:
    """Keep the argon2id hash of a person's password; `rehash` where only its parameters changed."""
    _set_hash(writing, name, password_hash)
    writing.append("person:password_rehashed" if rehash else "person:password_set", name, f"person:{name}")


def forget_password(writing: Writing, name: str) -> None:
    """Remove a person's password; what else lets them in stays."""
    _set_hash(writing, name, None)
    writing.append("person:password_forgotten", name, f"person:{name}")


def password_hash(journal: Journal, name: str) -> str | None:
    """Return the stored hash of a person's password, or None: unknown names and people without one look alike."""
    with journal.reading() as connection:
        stored: str | None = connection.execute(
            select(_people.password_hash).where(_people.name == name)
        ).scalar_one_or_none()
    return stored


# The columns of a `Person`, for whoever joins them to something else.
PERSON_COLUMNS: Final = (
    _people.name,
    _people.role,
    _people.password_hash.is_not(None).label("has_password"),
    exists().where(schema.passkeys.c.person == _people.name).label("has_passkey"),
)
_SELECTED: Final = select(*PERSON_COLUMNS)


def person_of(name: str, role: str, has_password: object, has_passkey: object) -> Person:
    """Return the person that `PERSON_COLUMNS` hold."""
    return Person(name, Role(role), has_password=bool(has_password), has_passkey=bool(has_passkey))


def _person(row: Row[tuple[str, str, bool, bool]]) -> Person:
    return person_of(row.name, row.role, row.has_password, row.has_passkey)


def _set_hash(writing: Writing, name: str, hashed: str | None) -> None:
    writing.connection.execute(update(schema.people).where(_people.name == name).values(password_hash=hashed))


def _leave_an_administrator(connection: Connection, leaving: Person) -> None:
    others = select(func.count()).where(_people.role == Role.ADMINISTRATOR.value, _people.name != leaving.name)
    if leaving.is_administrator and connection.execute(others).scalar_one() == 0:
        raise PersonRefused(
            "last_administrator",
            f"{leaving.name} is the only administrator.",
            "Make somebody else an administrator first.",
        )

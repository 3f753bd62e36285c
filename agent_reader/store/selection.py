"""A question about Emails as a value: words, mailboxes, keywords, dates, sizes and headers, and what joins them.

User text arrives as folded words: letters, digits and spaces.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from agent_reader.store.search import Column


@dataclass(frozen=True, slots=True)
class Words:
    """A folded phrase (one word or several in a row) in any of the columns."""

    phrase: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class InMailbox:
    """In the mailbox with this key."""

    mailbox_key: int


@dataclass(frozen=True, slots=True)
class HasKeyword:
    """With this keyword, in lower case."""

    keyword: str


@dataclass(frozen=True, slots=True)
class HasAttachment:
    """With an attachment (RFC 8621 §4.1.4 hasAttachment)."""


@dataclass(frozen=True, slots=True)
class Received:
    """Received from `at` (inclusive) until `before` (exclusive), seconds since 1970; None for no bound."""

    at: int | None = None
    before: int | None = None


@dataclass(frozen=True, slots=True)
class Size:
    """Of at least `at_least` and less than `below` octets; None for no bound."""

    at_least: int | None = None
    below: int | None = None


@dataclass(frozen=True, slots=True)
class All:
    """Each of these; all Emails if there is none."""

    of: "tuple[Selection, ...]"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of these; no Email if there is none."""

    of: "tuple[Selection, ...]"


@dataclass(frozen=True, slots=True)
class Not:
    """Not this."""

    of: "Selection"


class ThreadShare(StrEnum):
    """How many Emails of a Thread."""

    ALL = "all"
    SOME = "some"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ThreadHasKeyword:
    """Of a Thread of which so many Emails, wherever they lie, have this keyword, in lower case."""

    share: ThreadShare
    keyword: str


@dataclass(frozen=True, slots=True)
class HasHeader:
    """With a header field of this name, in lower case, that contains this text (`header_search.folded`) if any."""

    name: str
    text: str | None


Selection: TypeAlias = (
    Words | InMailbox | HasKeyword | HasAttachment | Received | Size | ThreadHasKeyword | HasHeader | All | AnyOf | Not
)


def asks_for_bodies(selection: Selection) -> bool:
    """Whether some part of it can be told by the text of bodies alone."""
    match selection:
        case Words(_, columns):
            return columns == (Column.BODY,)
        case All(of) | AnyOf(of):
            return any(map(asks_for_bodies, of))
        case Not(of):
            return asks_for_bodies(of)
        case _:
            return False


def looks_into_bodies(selection: Selection) -> bool:
    """Whether words are looked for in bodies too, besides other places or alone."""
    match selection:
        case Words(_, columns):
            return Column.BODY in columns
        case All(of) | AnyOf(of):
            return any(map(looks_into_bodies, of))
        case Not(of):
            return looks_into_bodies(of)
        case _:
            return False


def without_bodies(selection: Selection) -> Selection:
    """Return the selection with no word looked for in a body; what asks for bodies alone selects nothing."""
    match selection:
        case Words(phrase, columns):
            others = tuple(column for column in columns if column is not Column.BODY)
            return Words(phrase, others) if others else AnyOf(())
        case All(of):
            return All(tuple(map(without_bodies, of)))
        case AnyOf(of):
            return AnyOf(tuple(map(without_bodies, of)))
        case Not(of):
            return Not(without_bodies(of))
        case _:
            return selection

"""Finding proposals by what they say and whose they are: a person's filters, as conditions with parameters.

Letters are compared as people compare them (any case, any width); SQLite knows that of ASCII only, so the comparison
is a function of ours that its connection is given.
"""

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlencode

from sqlalchemy import ColumnElement, Connection, LargeBinary, and_, case, cast, false, func, or_, select

from change_executor.journal import schema
from shared.proposal import State

# Nobody types more; what is searched for must not cost more than what is searched.
_MAX_CHARACTERS: Final = 100
_MAX_WORDS: Final = 8

_SENDER_KEY: Final = '"sender":'
_DECODER: Final = json.JSONDecoder()

_columns = schema.proposals.c
_texts = schema.texts.c


class Grouping(StrEnum):
    """How the list is laid out when asked; without it, oldest first."""

    DESTINATION = "destination"
    SENDER = "sender"


@dataclass(frozen=True, slots=True)
class Filters:
    """What a person asked for; empty fields ask for nothing."""

    text: str = ""
    agent: str = ""
    queue: str = ""
    to_role: str = ""
    sender: str = ""
    state: State | None = None
    group: Grouping | None = None

    @property
    def is_narrow(self) -> bool:
        """Whether anything is left out of the list."""
        return bool(self.text or self.agent or self.queue or self.to_role or self.sender or self.state)

    def query(self, **more: str) -> str:
        """Return the query string that asks for the same, and `more`; empty where that is nothing."""
        fields = {
            "q": self.text,
            "agent": self.agent,
            "queue": self.queue,
            "to": self.to_role,
            "sender": self.sender,
            "state": self.state.value if self.state else "",
            "group": self.group.value if self.group else "",
        } | more
        asked = {name: value for name, value in fields.items() if value}
        return f"?{urlencode(asked)}" if asked else ""


def filters_from(untrusted: Mapping[str, str]) -> Filters:
    """Return the filters of a query string; what is no state and no grouping asks for nothing."""

    def text(name: str) -> str:
        return untrusted.get(name, "").strip()[:_MAX_CHARACTERS]

    state, group = text("state"), text("group")
    return Filters(
        text=text("q"),
        agent=text("agent"),
        queue=text("queue"),
        to_role=text("to"),
        sender=text("sender"),
        state=State(state) if state in set(State) else None,
        group=Grouping(group) if group in set(Grouping) else None,
    )


def prepare(connection: Connection) -> None:
    """Give this connection the functions that the conditions use."""
    driver = connection.connection.driver_connection
    assert driver is not None, "a connection that is in use has its driver's"
    driver.create_function("says", 3, _says, deterministic=True)
    driver.create_function("sender_of", 1, _sender_of, deterministic=True)


def conditions(filters: Filters) -> list[ColumnElement[bool]]:
    """Return the conditions on `proposals` for all filters but the state; `prepare` the connection first."""
    asked = [
        column == value
        for column, value in (
            (_columns.agent, filters.agent),
            (_columns.queue, filters.queue),
            (_columns.to_role, filters.to_role),
        )
        if value
    ]
    if filters.sender:
        asked.append(_one_text(("reading",), "sender", filters.sender))
    if filters.text:
        asked.append(text_condition(filters.text))
    return asked


def text_condition(words: str) -> ColumnElement[bool]:
    """Return the condition that a proposal's kept texts hold all these words, or that it has this id."""
    exact = or_(_columns.id == words, _columns.email_id == words)
    return or_(exact, _one_text(("reading", "reason", "decision_reason"), "all", words))


def first_line(reading_text: str | None, field: str) -> str | None:
    """Return the subject or first sender of a kept reading, None where it is not kept or has none."""
    value = _reading(reading_text).get(field)
    if isinstance(value, list):
        return str(value[0]) if value else None
    return str(value) if value else None


def sender_key() -> ColumnElement[Any]:
    """Return the first sender of a proposal's reading, as rows of one sender share it; empty for none."""
    reading = select(_texts.text).where(_texts.proposal == _columns.id, _texts.kind == "reading").scalar_subquery()
    return func.sender_of(reading)


def _one_text(kinds: tuple[str, ...], field: str, words: str) -> ColumnElement[bool]:
    needles = [_folded(word) for word in words.split()[:_MAX_WORDS]]
    if not needles:
        return false()
    found = and_(*(_holds(field, needle) for needle in needles))
    # As a value the kind is no part of the index: one look for all texts of a proposal costs less than three.
    of_kind = _texts.kind.concat("").in_(kinds)
    return select(_texts.proposal).where(_texts.proposal == _columns.id, of_kind, found).exists()


def _holds(field: str, needle: str) -> ColumnElement[bool]:
    """Whether a text says this word; most do not hold its letters at all, which SQLite itself sees of plain ones."""
    says = func.says(_texts.text, field, needle) == 1
    # Letters that are not ASCII may fold to ones that are, so a text with such letters is looked at in any case. In
    # this order: a condition of the database's own costs a tenth of a call of ours.
    is_ascii = func.length(_texts.text) == func.length(cast(_texts.text, LargeBinary))
    if not needle.isascii():
        return case((is_ascii, false()), else_=says)
    # What JSON writes otherwise than it is, and what LIKE takes for a pattern.
    if set(needle) & set('"\\%_'):
        return says
    may_hold = _texts.text.like(f"%{needle}%")
    return case((may_hold, says), (is_ascii, false()), else_=says)


def _folded(text: str) -> str:
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def _reading(text: object) -> dict[str, Any]:
    if not isinstance(text, str):
        return {}
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _says(text: object, field: str, needle: str) -> int:
    if not isinstance(text, str):
        return 0
    if field == "sender":
        return int(needle in _folded("\n".join(map(str, _senders(text)))))
    # Of a reading, what a person sees of it; other texts are no objects.
    reading = _reading(text)
    if not reading:
        return int(needle in _folded(text))
    parts = [reading.get(name) for name in ("subject", "sender", "recipients", "text")]
    said = "\n".join("\n".join(map(str, part)) if isinstance(part, list) else str(part) for part in parts)
    return int(needle in _folded(said))


def _sender_of(text: object) -> str:
    sender = _senders(text) if isinstance(text, str) else []
    return str(sender[0]) if sender else ""


def _senders(reading_text: str) -> list[Any]:
    """The senders of a kept reading without taking all of it apart.

    Readings are kept as canonical JSON, in which the name of a key with its two quotes stands nowhere but as the key.
    """
    at = reading_text.find(_SENDER_KEY)
    if at < 0:
        return []
    try:
        value, _ = _DECODER.raw_decode(reading_text, at + len(_SENDER_KEY))
    except ValueError:
        return []
    return value if isinstance(value, list) else []

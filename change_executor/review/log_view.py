"""The log: every event of the chain, newest first, by who, about what, when, and by the words that are still kept."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlencode

from sqlalchemy import ColumnElement, Connection, or_, select

from change_executor.journal import schema
from change_executor.journal.chain import event_details
from change_executor.journal.journal import Journal, Proposal
from change_executor.records import export_events
from change_executor.review.case import read_texts
from change_executor.review.searching import first_line, prepare, text_condition
from shared.proposal import PROPOSAL_ID

PAGE_EVENTS: Final = 100
_MAX_CHARACTERS: Final = 100
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_SEQ: Final = re.compile(r"[0-9]{1,15}", re.ASCII)

_events = schema.events.c
_proposals = schema.proposals.c


class What(StrEnum):
    """A kind of event that people look for."""

    PROPOSED = "proposed"
    DECIDED = "decided"
    MOVED = "moved"
    ACCESS = "access"
    EVERYTHING = "everything"


_KINDS: Final[dict[What, tuple[str, ...]]] = {
    What.PROPOSED: ("proposal:propose", "proposal:withdraw", "intake:%"),
    What.DECIDED: (
        "proposal:approve",
        "proposal:reject",
        "proposal:undo",
        "undo:ask",
        "proposal:settle%",
        "proposal:expire",
    ),
    What.MOVED: (
        "proposal:moved",
        "proposal:refused",
        "proposal:absent",
        "proposal:changed",
        "proposal:doubt",
        "proposal:found%",
        "move:%",
    ),
    What.ACCESS: ("session:%", "person:%", "link:%", "token:%", "agent:%", "passkey:%", "stop:%"),
    What.EVERYTHING: ("%",),
}

# Each goes with the event beside it, and tells a person nothing that that one does not.
_LEFT_OUT: Final = ("text:keep",)


@dataclass(frozen=True, slots=True)
class LogFilters:
    """What a person looks for; empty fields ask for nothing. `about`: a proposal's or message's id; days are UTC."""

    text: str = ""
    agent: str = ""
    person: str = ""
    about: str = ""
    what: What | None = None
    since: str = ""
    until: str = ""
    before: int | None = None

    def query(self, **more: str) -> str:
        """Return the query string that asks for the same, and `more`; empty where that is nothing."""
        fields = {
            "q": self.text,
            "agent": self.agent,
            "person": self.person,
            "about": self.about,
            "what": self.what.value if self.what else "",
            "since": self.since,
            "until": self.until,
        } | more
        asked = {name: value for name, value in fields.items() if value}
        return f"?{urlencode(asked)}" if asked else ""


@dataclass(frozen=True, slots=True)
class Line:
    """One event, with the proposal that it is about and the subject of its message where they are known."""

    seq: int
    at: datetime
    kind: str
    actor: str
    subject: str
    details: dict[str, Any]
    proposal: Proposal | None
    message_subject: str | None


@dataclass(frozen=True, slots=True)
class LogPage:
    """Events, newest first; `before` leads to the next page. `head` is the chain's last event: number and hash."""

    lines: list[Line]
    before: int | None
    head: tuple[int, str]


def log_filters_from(untrusted: Mapping[str, str]) -> LogFilters:
    """Return the filters of a query string; what is malformed asks for nothing."""

    def text(name: str) -> str:
        return untrusted.get(name, "").strip()[:_MAX_CHARACTERS]

    def day(name: str) -> str:
        return text(name) if _day(text(name)) is not None else ""

    what, before = text("what"), text("before")
    return LogFilters(
        text=text("q"),
        agent=text("agent"),
        person=text("person"),
        about=text("about"),
        what=What(what) if what in set(What) else None,
        since=day("since"),
        until=day("until"),
        before=int(before) if _SEQ.fullmatch(before) else None,
    )


def read_log(connection: Connection, filters: LogFilters) -> LogPage:
    """Return a page of the log in this transaction."""
    prepare(connection)
    rows = connection.execute(
        select(schema.events)
        .where(*_conditions(filters), *([] if filters.what else [_events.kind.not_in(_LEFT_OUT)]))
        .order_by(_events.seq.desc())
        .limit(PAGE_EVENTS + 1)
    ).all()
    shown = rows[:PAGE_EVENTS]
    ids = list({row.subject for row in shown if PROPOSAL_ID.fullmatch(row.subject)})
    found = connection.execute(select(schema.proposals).where(_proposals.id.in_(ids))).mappings()
    proposals = {row["id"]: Proposal.from_row(row) for row in found}
    texts = read_texts(connection, ids, ("reading",))
    lines = [
        Line(
            seq=row.seq,
            at=row.at,
            kind=row.kind,
            actor=row.actor,
            subject=row.subject,
            details=event_details(row.details),
            proposal=proposals.get(row.subject),
            message_subject=first_line(texts.get(row.subject, {}).get("reading"), "subject"),
        )
        for row in shown
    ]
    return LogPage(lines, shown[-1].seq if len(rows) > PAGE_EVENTS else None, read_head(connection))


def read_head(connection: Connection) -> tuple[int, str]:
    """Return the number and the hash of the chain's last event; 0 and nothing for an empty one."""
    row = connection.execute(select(_events.seq, _events.hash).order_by(_events.seq.desc()).limit(1)).first()
    return (0, "") if row is None else (row.seq, row.hash)


def exported(journal: Journal, filters: LogFilters) -> Iterator[list[str]]:
    """Yield the events that the filters let through as lines of JSON, oldest first, in pieces."""

    @contextmanager
    def reading() -> Iterator[Connection]:
        with journal.reading() as connection:
            prepare(connection)
            yield connection

    return export_events(reading, which=_conditions(replace(filters, before=None)))


def read_about(connection: Connection, email_id: str) -> list[Proposal]:
    """Return every proposal about a message, newest first."""
    rows = connection.execute(
        select(schema.proposals)
        .where(_proposals.email_id == email_id)
        .order_by(_proposals.created_at.desc())
        .limit(PAGE_EVENTS)
    ).mappings()
    return [Proposal.from_row(row) for row in rows]


def _conditions(filters: LogFilters) -> list[ColumnElement[bool]]:
    asked: list[ColumnElement[bool]] = []
    if filters.agent:
        asked.append(or_(_events.actor == f"agent:{filters.agent}", _about(_proposals.agent == filters.agent)))
    if filters.person:
        asked.append(_events.actor == f"person:{filters.person}")
    if filters.about:
        asked.append(or_(_events.subject == filters.about, _about(_proposals.email_id == filters.about)))
    if filters.text:
        asked.append(_about(text_condition(filters.text)))
    if filters.what is not None:
        asked.append(or_(*(_events.kind.like(pattern) for pattern in _KINDS[filters.what])))
    since, until = _day(filters.since), _day(filters.until)
    if since is not None:
        asked.append(_events.at >= since)
    if until is not None:
        asked.append(_events.at < until + timedelta(days=1))
    if filters.before is not None:
        asked.append(_events.seq < filters.before)
    return asked


def _about(which: ColumnElement[bool]) -> ColumnElement[bool]:
    return _events.subject.in_(select(_proposals.id).where(which))


def _day(text: str) -> datetime | None:
    if _DAY.fullmatch(text) is None:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return None

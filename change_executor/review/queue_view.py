"""The queue: what waits for a decision, what needs a look, what is under way, and what ended lately."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, func, literal, select, text, tuple_

from change_executor.config import ExecutorSettings
from change_executor.journal import schema
from change_executor.journal.journal import Proposal
from change_executor.lifecycle import OPEN
from change_executor.policy import policy_version
from change_executor.review.case import (
    TakingBack,
    checked_reading,
    evidence_of,
    mailboxes_of,
    read_texts,
    taking_back,
    undo_is_offered,
)
from change_executor.review.cautions import warnings
from change_executor.review.searching import Filters, Grouping, conditions, prepare, sender_key
from change_executor.shown import Mailboxes, shown_digest
from shared.proposal import State

# People stop reading and start clicking past some fifty rows.
PAGE_ROWS: Final = 50
ENDED_ROWS: Final = 20

_DOUBTS: Final = (State.DOUBTFUL, State.UNDO_DOUBTFUL)
# Decided, and the mail server has not answered yet.
UNDER_WAY: Final = (State.APPROVED, State.APPLYING, State.UNDOING)

_columns = schema.proposals.c


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the list; `subject` is None before the executor has read the message, or after it was forgotten.

    `shown` is the digest that taking it back from the list carries; both are None where that is not offered.
    """

    proposal: Proposal
    mailboxes: Mailboxes | None
    subject: str | None
    sender: str
    warnings: int
    copies: int
    taking_back: TakingBack | None
    shown: str | None


@dataclass(frozen=True, slots=True)
class Group:
    """Rows under one heading; `name` is None for the one list that is not grouped."""

    name: str | None
    rows: list[Row]


@dataclass(frozen=True, slots=True)
class QueueView:
    """What a page of the queue shows; `more_after` leads to the next rows. `found` instead of the rest, by state."""

    waiting: list[Group]
    waiting_count: int
    more_after: str | None
    doubtful: list[Row]
    under_way: list[Row]
    ended: list[Row]
    found: list[Row] | None


@dataclass(frozen=True, slots=True)
class After:
    """The last row of a page: where the next one begins."""

    created_at: datetime
    proposal_id: str


def read_queue(connection: Connection, settings: ExecutorSettings, filters: Filters, after: After | None) -> QueueView:
    """Return the queue in this transaction; rows that wait come oldest first, from `after` on."""
    prepare(connection)
    narrowed = select(schema.proposals).where(*conditions(filters))
    if filters.state not in {None, State.PENDING}:
        found, more = _in_state(connection, narrowed, filters.state, after)
        found_rows = read_rows(connection, settings, found)
        return QueueView([], count_waiting(connection), more, [], [], [], found_rows)
    waiting, more = _waiting(connection, filters, after)
    only_waiting = filters.state is State.PENDING or after is not None
    doubtful, under_way, ended = (
        ([], [], [])
        if only_waiting
        else (
            _in_states(connection, narrowed, _DOUBTS),
            _in_states(connection, narrowed, UNDER_WAY),
            _ended(connection, narrowed),
        )
    )
    rows = {
        row.proposal.id: row
        for row in read_rows(connection, settings, [*(each for _, each in waiting), *doubtful, *under_way, *ended])
    }
    return QueueView(
        waiting=_groups([(name, rows[proposal.id]) for name, proposal in waiting], grouped=filters.group is not None),
        waiting_count=count_waiting(connection),
        more_after=more,
        doubtful=[rows[proposal.id] for proposal in doubtful],
        under_way=[rows[proposal.id] for proposal in under_way],
        ended=[rows[proposal.id] for proposal in ended],
        found=None,
    )


def read_matching(connection: Connection, filters: Filters, proposal_ids: Sequence[str]) -> list[Proposal]:
    """Return those of these proposals that the filters let through, oldest first."""
    prepare(connection)
    wanted = select(schema.proposals).where(_columns.id.in_(proposal_ids), *conditions(filters))
    return _proposals(connection, wanted.order_by(_columns.created_at, _columns.id))


def read_next(connection: Connection, filters: Filters, decided: Proposal) -> str | None:
    """Return the proposal that a person who works through this list comes to after `decided`, None at its end.

    One that the executor has not looked at yet cannot be approved, and is passed over.
    """
    if filters.state not in {None, State.PENDING}:
        return None
    prepare(connection)
    after = After(decided.created_at, decided.id)
    page = _page(connection, filters, after).where(_columns.evidence.is_not(None))
    return connection.execute(page.limit(1)).scalars().first()


def count_waiting(connection: Connection) -> int:
    """Return how many proposals wait for a decision."""
    return connection.execute(
        select(func.count()).select_from(schema.proposals).where(_columns.state == State.PENDING.value)
    ).scalar_one()


def read_rows(connection: Connection, settings: ExecutorSettings, proposals: list[Proposal]) -> list[Row]:
    """Return the lines of these proposals, in their order."""
    texts = read_texts(connection, [proposal.id for proposal in proposals], ("reading",))
    evidence = evidence_of(connection, proposals)
    versions = {queue.id: policy_version(settings, queue) for queue in settings.queues}
    rows = []
    for proposal in proposals:
        seen = evidence.get(proposal.id)
        reading = checked_reading(texts.get(proposal.id, {}).get("reading"), seen)
        mailboxes = mailboxes_of(settings, proposal)
        undo_offered = proposal.state is State.APPLIED and undo_is_offered(connection, settings, proposal)
        way_back = taking_back(proposal, undo_offered=undo_offered)
        rows.append(
            Row(
                proposal=proposal,
                mailboxes=mailboxes,
                subject=None if reading is None else reading.subject,
                sender=", ".join(reading.sender[:2]) if reading is not None else "",
                warnings=0 if reading is None else len(warnings(reading)),
                copies=1 if seen is None else seen.copies,
                taking_back=way_back,
                shown=shown_digest(
                    proposal, mailboxes or Mailboxes("", ""), seen, reading, versions.get(proposal.queue, "")
                )
                if way_back is not None
                else None,
            )
        )
    return rows


def _waiting(
    connection: Connection, filters: Filters, after: After | None
) -> tuple[list[tuple[str, Proposal]], str | None]:
    """The rows of one page with the name of each one's group, and where the next page begins."""
    page = _page(connection, filters, after).limit(PAGE_ROWS + 1)
    names = {row.id: row.name for row in connection.execute(page)}
    found = {
        proposal.id: proposal
        for proposal in _proposals(connection, select(schema.proposals).where(_columns.id.in_(list(names))))
    }
    pairs = [(name, found[proposal_id]) for proposal_id, name in names.items()]
    more = _cursor(pairs[PAGE_ROWS - 1][1]) if len(pairs) > PAGE_ROWS else None
    return pairs[:PAGE_ROWS], more


def _page(connection: Connection, filters: Filters, after: After | None) -> Select[Any]:
    """What waits after a place in the list's order: the id of each, and the name of its group."""
    key = _group_key(filters.group)
    place = (key, _columns.created_at, _columns.id) if filters.group else (_columns.created_at, _columns.id)
    name = key.label("name")
    order = (name, *place[1:]) if filters.group else place
    page = select(_columns.id, name).where(_columns.state == State.PENDING.value, *conditions(filters))
    if after is not None:
        page = page.where(tuple_(*place) > _place_after(connection, key, filters.group, after))
    return page.order_by(*order)


def _place_after(
    connection: Connection, key: ColumnElement[Any], group: Grouping | None, after: After
) -> ColumnElement[Any]:
    moment = schema.to_microseconds(after.created_at)
    if group is None:
        return tuple_(literal(moment), literal(after.proposal_id))
    # The row that the page ended with still tells its own group, decided or not.
    name = connection.execute(select(key).where(_columns.id == after.proposal_id)).scalar_one_or_none()
    return tuple_(literal(name or ""), literal(moment), literal(after.proposal_id))


def _group_key(group: Grouping | None) -> ColumnElement[Any]:
    if group is Grouping.DESTINATION:
        return _columns.to_role
    return literal("") if group is None else sender_key()


def _groups(rows: list[tuple[str, Row]], *, grouped: bool) -> list[Group]:
    if not grouped:
        return [Group(None, [row for _, row in rows])] if rows else []
    groups: list[Group] = []
    for name, row in rows:
        if not groups or groups[-1].name != name:
            groups.append(Group(name, []))
        groups[-1].rows.append(row)
    return groups


def _in_state(
    connection: Connection, narrowed: Select[Any], state: State | None, after: After | None
) -> tuple[list[Proposal], str | None]:
    assert state is not None, "asked for by the caller"
    wanted = narrowed.where(_columns.state == state.value)
    place = tuple_(_columns.created_at, _columns.id)
    ascending = state in OPEN
    if after is not None:
        last = tuple_(literal(schema.to_microseconds(after.created_at)), literal(after.proposal_id))
        wanted = wanted.where(place > last if ascending else place < last)
    order = (_columns.created_at, _columns.id) if ascending else (_columns.created_at.desc(), _columns.id.desc())
    found = _proposals(connection, wanted.order_by(*order).limit(PAGE_ROWS + 1))
    return found[:PAGE_ROWS], _cursor(found[PAGE_ROWS - 1]) if len(found) > PAGE_ROWS else None


def _in_states(connection: Connection, narrowed: Select[Any], states: Sequence[State]) -> list[Proposal]:
    return _proposals(
        connection,
        narrowed.where(_columns.state.in_([state.value for state in states]))
        .order_by(_columns.created_at, _columns.id)
        .limit(PAGE_ROWS),
    )


def _ended(connection: Connection, narrowed: Select[Any]) -> list[Proposal]:
    return _proposals(
        connection,
        # An agent that makes up ids must not fill the list: what was never there is in the log.
        narrowed.where(text(schema.FOUND_AND_ENDED))
        .order_by(_columns.ended_at.desc(), _columns.id.desc())
        .limit(ENDED_ROWS),
    )


def _cursor(proposal: Proposal) -> str:
    return f"{schema.to_microseconds(proposal.created_at)}.{proposal.id}"


def _proposals(connection: Connection, query: Select[Any]) -> list[Proposal]:
    return [Proposal.from_row(row) for row in connection.execute(query).mappings()]

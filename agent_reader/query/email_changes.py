"""Email/queryChanges: how the results of a query differ from those of an earlier state (RFC 8620 §5.6, RFC 8621 §4.5).

What the results were is not kept; what changed is. So every Email that may have come, gone or moved is taken out, and
those that are in the results now are put in where they are. With threads in the filter, the sort or the collapsing, an
Email may move because another of its Thread changed: then all Emails of each Thread that changed are taken.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from agent_reader.query import arguments
from agent_reader.query.changes import QueryChanges, cannot_calculate, too_many_changes
from agent_reader.query.emails import EmailQueryArguments, all_results, parse_email_query
from agent_reader.query.filters import Every, Filter, InMailboxOtherThan, InMailboxWithId, Neither, Some
from agent_reader.store.change_log import CannotCalculateChanges, ChangeList
from agent_reader.store.changes import DataType
from agent_reader.store.selection import HasKeyword, ThreadHasKeyword
from agent_reader.store.snapshot import Snapshot, TimeIsUp
from agent_reader.store.statements import OrderBy
from shared.message import JSON

# More than this and asking anew is less work for both.
_MOST_CHANGED: Final = 10_000

_OF_QUERY: Final = frozenset({"accountId", "filter", "sort", "calculateTotal", "collapseThreads"})
_ARGUMENTS: Final = _OF_QUERY | {"sinceQueryState", "maxChanges", "upToId"}

_THREAD_ORDERS: Final = frozenset({OrderBy.ALL_IN_THREAD_HAVE_KEYWORD, OrderBy.SOME_IN_THREAD_HAVE_KEYWORD})


@dataclass(frozen=True, slots=True)
class EmailQueryChangesArguments:
    """The arguments of Email/queryChanges but accountId."""

    query: EmailQueryArguments
    since_query_state: str
    max_changes: int | None = None
    up_to_id: str | None = None


def parse_email_query_changes(untrusted: Mapping[str, JSON]) -> EmailQueryChangesArguments:
    """Return the arguments, or raise `QueryRefused` naming the one that is wrong."""
    arguments.known_only(untrusted, _ARGUMENTS)
    most, up_to = untrusted.get("maxChanges"), untrusted.get("upToId")
    return EmailQueryChangesArguments(
        query=parse_email_query({name: value for name, value in untrusted.items() if name in _OF_QUERY}),
        since_query_state=arguments.string_value("sinceQueryState", untrusted.get("sinceQueryState")),
        max_changes=None if most is None else arguments.unsigned_value("maxChanges", most),
        up_to_id=None if up_to is None else arguments.id_value("upToId", up_to),
    )


def email_query_changes(
    snapshot: Snapshot, asked: EmailQueryChangesArguments, is_over: Callable[[], bool] = lambda: False
) -> QueryChanges:
    """Answer Email/queryChanges from a snapshot. Raises `QueryRefused`.

    RFC 8620 §5.6: `removed` may name Emails that were not in the results; whoever keeps a list takes no notice.
    """
    emails = _all_changes(snapshot, DataType.EMAIL, asked.since_query_state)
    moved = set(emails.updated)
    if _looks_at_threads(asked.query):
        threads = _all_changes(snapshot, DataType.THREAD, asked.since_query_state)
        moved |= _of_changed_threads(snapshot, emails, threads)
    moved -= set(emails.created)
    try:
        with snapshot.time_limited(is_over):
            added, total = _places(snapshot, asked, moved | set(emails.created))
    except TimeIsUp:
        raise cannot_calculate("sinceQueryState") from None
    removed = tuple(sorted(moved | set(emails.destroyed)))
    if asked.max_changes is not None and len(removed) + len(added) > asked.max_changes:
        raise too_many_changes()
    return QueryChanges(
        old_query_state=asked.since_query_state,
        new_query_state=snapshot.state,
        removed=removed,
        added=added,
        total=total if asked.query.calculate_total else None,
    )


def _all_changes(snapshot: Snapshot, data_type: DataType, since_state: str) -> ChangeList:
    try:
        found = snapshot.changes(data_type, since_state, _MOST_CHANGED)
    except CannotCalculateChanges:
        raise cannot_calculate("sinceQueryState") from None
    if found.has_more:
        raise cannot_calculate("sinceQueryState")
    return found


def _of_changed_threads(snapshot: Snapshot, emails: ChangeList, threads: ChangeList) -> set[str]:
    """Every Email that is shown of the Threads that changed: by a member that came or went, or by one's keywords."""
    changed = snapshot.thread_ids((*emails.created, *emails.updated))
    members = snapshot.thread_emails(changed.union(threads.created, threads.updated))
    return {email_id for email_ids in members.values() for email_id in email_ids}


def _places(
    snapshot: Snapshot, asked: EmailQueryChangesArguments, wanted: set[str]
) -> tuple[tuple[tuple[str, int], ...], int]:
    """Where these are in the results now, and how many results there are."""
    added, total, last = list[tuple[str, int]](), 0, None
    for index, email_id in enumerate(all_results(snapshot, asked.query)):
        if email_id in wanted:
            added.append((email_id, index))
        if email_id == asked.up_to_id:
            last = index
        total = index + 1
    # What went and came back may be elsewhere: then it ends no list that anybody has.
    if last is not None and asked.up_to_id not in wanted and not _is_mutable(asked.query):
        added = [(email_id, index) for email_id, index in added if index <= last]
    return tuple(added), total


def _looks_at_threads(query: EmailQueryArguments) -> bool:
    return (
        query.collapse_threads
        or any(order.by in _THREAD_ORDERS for order in query.sort)
        or any(isinstance(each, ThreadHasKeyword) for each in _conditions(query.filter))
    )


def _is_mutable(query: EmailQueryArguments) -> bool:
    """Whether an Email's place follows from what may change: its mailboxes, keywords or Thread."""
    changing = (InMailboxWithId, InMailboxOtherThan, HasKeyword, ThreadHasKeyword)
    return (
        query.collapse_threads
        or any(order.keyword is not None for order in query.sort)
        or any(isinstance(each, changing) for each in _conditions(query.filter))
    )


def _conditions(asked: Filter) -> Iterable[Filter]:
    if isinstance(asked, Every | Some | Neither):
        for each in asked.of:
            yield from _conditions(each)
    else:
        yield asked

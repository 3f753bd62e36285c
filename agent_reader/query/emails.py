"""Email/query: which messages, in what order, from where on (RFC 8620 §5.5, RFC 8621 §4.4).

The default order is newest received first. Sorting by sentAt takes a message without a date by when it was received.
Ties go newest first, those of one second by a digest: the same on every page.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from agent_reader.query import arguments
from agent_reader.query.errors import QueryRefused, invalid, too_slow
from agent_reader.query.filters import EVERYTHING, Filter, keyword_value, parse_filter, resolve
from agent_reader.query.results import QueryResult
from agent_reader.scope import Depth
from agent_reader.store import status
from agent_reader.store.selection import Selection, asks_for_bodies, looks_into_bodies
from agent_reader.store.snapshot import Snapshot, TimeIsUp
from agent_reader.store.statements import Order, OrderBy
from shared.message import JSON

# As many as Email/get gives at once, so that one page of a query can be read by one call.
MAX_LIMIT: Final = 500

# More comparators than there are properties to sort by say nothing new, keywords aside.
_MAX_COMPARATORS: Final = 9

# RFC 8621 §4.4.2; the session lists the same names (emailQuerySortOptions).
SORT_OPTIONS: Final[Mapping[str, OrderBy]] = {
    "receivedAt": OrderBy.RECEIVED_AT,
    "sentAt": OrderBy.SENT_AT,
    "size": OrderBy.SIZE,
    "from": OrderBy.FROM,
    "to": OrderBy.TO,
    "subject": OrderBy.SUBJECT,
    "hasKeyword": OrderBy.HAS_KEYWORD,
    "allInThreadHaveKeyword": OrderBy.ALL_IN_THREAD_HAVE_KEYWORD,
    "someInThreadHaveKeyword": OrderBy.SOME_IN_THREAD_HAVE_KEYWORD,
}

_BY_KEYWORD: Final = frozenset(
    {OrderBy.HAS_KEYWORD, OrderBy.ALL_IN_THREAD_HAVE_KEYWORD, OrderBy.SOME_IN_THREAD_HAVE_KEYWORD}
)

# RFC 8620 §5.5: strings are compared by Unicode, letter case aside, unless asked otherwise; this name asks for that.
COLLATIONS: Final = ("i;unicode-casemap",)

_ARGUMENTS: Final = frozenset(
    {
        "accountId",
        "filter",
        "sort",
        "position",
        "anchor",
        "anchorOffset",
        "limit",
        "calculateTotal",
        "collapseThreads",
    }
)


@dataclass(frozen=True, slots=True)
class EmailQueryArguments:
    """The arguments of Email/query but accountId."""

    filter: Filter = EVERYTHING
    sort: tuple[Order, ...] = ()
    position: int = 0
    anchor: str | None = None
    anchor_offset: int = 0
    limit: int | None = None
    calculate_total: bool = False
    collapse_threads: bool = False


def parse_email_query(untrusted: Mapping[str, JSON]) -> EmailQueryArguments:
    """Return the arguments, or raise `QueryRefused` naming the one that is wrong."""
    arguments.known_only(untrusted, _ARGUMENTS)
    given = untrusted.get
    anchor, limit = given("anchor"), given("limit")
    return EmailQueryArguments(
        filter=parse_filter(given("filter")),
        sort=_parse_sort(given("sort")),
        position=arguments.int_value("position", given("position", 0)),
        anchor=None if anchor is None else arguments.id_value("anchor", anchor),
        anchor_offset=arguments.int_value("anchorOffset", given("anchorOffset", 0)),
        limit=None if limit is None else arguments.unsigned_value("limit", limit),
        calculate_total=arguments.boolean_value("calculateTotal", given("calculateTotal", False)),
        collapse_threads=arguments.boolean_value("collapseThreads", given("collapseThreads", False)),
    )


def leaves_texts_out(snapshot: Snapshot, is_over: Callable[[], bool] = lambda: False) -> bool:
    """Return whether words find some Email that is shown by its header alone: its text is not kept, or not shown.

    So, too, where `is_over` comes before it is known.
    """
    if snapshot.scope.depth is Depth.HEADERS:
        return True
    try:
        with snapshot.time_limited(is_over):
            return status.leaves_texts_out(snapshot.connection)
    except TimeIsUp:
        return True


def email_query(
    snapshot: Snapshot,
    arguments: EmailQueryArguments,
    *,
    max_limit: int = MAX_LIMIT,
    is_over: Callable[[], bool] = lambda: False,
) -> QueryResult:
    """Answer Email/query from a snapshot. Raises `QueryRefused`; an answer is whole, never a part.

    Once `is_over`, a question without its ids is refused; one that lacks the total alone is answered without it, and
    says so (`total_not_computed`).
    """
    selection = _selection(snapshot, arguments)
    limit = max_limit if arguments.limit is None else min(arguments.limit, max_limit)
    from_the_end = arguments.position < 0 and arguments.anchor is None
    try:
        with snapshot.time_limited(is_over):
            total = _total(snapshot, selection, arguments) if from_the_end else None
            position = _position(snapshot, selection, arguments, total)
            ids = _window(snapshot, selection, arguments, position, limit)
    except TimeIsUp:
        raise too_slow() from None
    if arguments.calculate_total and total is None and len(ids) < limit and (ids or not position):
        # The list ended before the page did: it has been counted already.
        total = position + len(ids)
    if arguments.calculate_total and total is None:
        try:
            with snapshot.time_limited(is_over):
                total = _total(snapshot, selection, arguments)
        except TimeIsUp:
            pass
    return QueryResult(
        ids=ids,
        position=position,
        total=total if arguments.calculate_total else None,
        query_state=snapshot.state,
        limit=None if limit == arguments.limit else limit,
        can_calculate_changes=True,
        total_not_computed=arguments.calculate_total and total is None,
        texts_left_out=looks_into_bodies(selection) and leaves_texts_out(snapshot, is_over),
    )


def all_results(snapshot: Snapshot, arguments: EmailQueryArguments) -> Iterator[str]:
    """Yield the ids of all results, in order; positions and limits aside. Raises `QueryRefused`."""
    yield from _results(snapshot, _selection(snapshot, arguments), arguments)


def _selection(snapshot: Snapshot, asked: EmailQueryArguments) -> Selection:
    selection = resolve(asked.filter, snapshot)
    if snapshot.scope.depth is Depth.HEADERS and asks_for_bodies(selection):
        # The store would find nothing for it; an empty list would read as if there were nothing.
        raise QueryRefused(
            "unsupportedFilter", "filter: this token sees headers only, and `body` asks for more.", ("filter",)
        )
    return selection


def _total(snapshot: Snapshot, selection: Selection, asked: EmailQueryArguments) -> int:
    return snapshot.count(selection, by_thread=asked.collapse_threads)


def _parse_sort(untrusted: JSON) -> tuple[Order, ...]:
    if untrusted is None:
        return ()
    comparators = arguments.list_value("sort", untrusted)
    if len(comparators) > _MAX_COMPARATORS:
        raise QueryRefused("unsupportedSort", f"sort: has more than {_MAX_COMPARATORS} comparators.", ("sort",))
    return tuple(_parse_comparator(arguments.comparator_value(each)) for each in comparators)


def _parse_comparator(untrusted: Mapping[str, JSON]) -> Order:
    if "property" not in untrusted:
        raise invalid("sort", "a comparator needs property.")
    name = arguments.string_value("sort", untrusted["property"])
    if name not in SORT_OPTIONS:
        raise QueryRefused("unsupportedSort", f"sort: property must be one of {', '.join(SORT_OPTIONS)}.", ("sort",))
    by = SORT_OPTIONS[name]
    needed = {"keyword"} if by in _BY_KEYWORD else set[str]()
    if not needed <= untrusted.keys() <= {"property", "isAscending", "collation"} | needed:
        raise invalid(
            "sort",
            "a comparator has property, isAscending and collation, and keyword where that is sorted by; nothing else.",
        )
    collation = untrusted.get("collation")
    if collation is not None and arguments.string_value("sort", collation) not in COLLATIONS:
        raise QueryRefused("unsupportedSort", f"sort: collation must be one of {', '.join(COLLATIONS)}.", ("sort",))
    is_ascending = arguments.boolean_value("sort", untrusted.get("isAscending", True))
    return Order(by, is_ascending, keyword_value("sort", untrusted["keyword"]) if needed else None)


def _position(snapshot: Snapshot, selection: Selection, asked: EmailQueryArguments, total: int | None) -> int:
    """The index of the first result to give (RFC 8620 §5.5): of the anchor, from the start, or from the end."""
    if asked.anchor is not None:
        for index, email_id in enumerate(_results(snapshot, selection, asked)):
            if email_id == asked.anchor:
                return min(max(0, index + asked.anchor_offset), arguments.MAX_INT)
        raise QueryRefused("anchorNotFound", "anchor: is not among the results.", ("anchor",))
    if asked.position < 0:
        return max(0, (total or 0) + asked.position)
    return asked.position


def _window(
    snapshot: Snapshot, selection: Selection, asked: EmailQueryArguments, position: int, limit: int
) -> tuple[str, ...]:
    if not asked.collapse_threads:
        return tuple(snapshot.ids(selection, asked.sort, limit=limit, offset=position))
    return tuple(islice(_results(snapshot, selection, asked), position, position + limit))


def _results(snapshot: Snapshot, selection: Selection, asked: EmailQueryArguments) -> Iterator[str]:
    """The whole list of results, collapsed if so asked: the first Email of each Thread (RFC 8621 §4.4.3)."""
    if not asked.collapse_threads:
        yield from snapshot.ids(selection, asked.sort)
        return
    seen: set[int] = set()
    for email_id, thread_key in snapshot.ids_and_threads(selection, asked.sort):
        if thread_key not in seen:
            seen.add(thread_key)
            yield email_id

"""Mailbox/query and Mailbox/queryChanges (RFC 8621 §2.3, §2.4): few enough to be filtered and sorted in memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from agent_reader.query import arguments
from agent_reader.query.changes import QueryChanges, cannot_calculate, too_many_changes
from agent_reader.query.emails import COLLATIONS, MAX_LIMIT
from agent_reader.query.errors import QueryRefused, invalid
from agent_reader.query.filters import MAX_CONDITIONS, MAX_DEPTH
from agent_reader.query.mailboxes import in_order, mailbox_places, sort_order_of
from agent_reader.query.results import QueryResult
from agent_reader.store.change_log import CannotCalculateChanges
from agent_reader.store.changes import DataType
from agent_reader.store.fold import sort_order
from agent_reader.store.snapshot import Snapshot
from shared.message import JSON

_MAX_COMPARATORS: Final = 4

_OF_QUERY: Final = frozenset({"accountId", "filter", "sort", "sortAsTree", "filterAsTree", "calculateTotal"})
_ARGUMENTS: Final = _OF_QUERY | {"position", "anchor", "anchorOffset", "limit"}
_CHANGES_ARGUMENTS: Final = _OF_QUERY | {"sinceQueryState", "maxChanges", "upToId"}


@dataclass(frozen=True, slots=True)
class _Mailbox:
    """What a Mailbox is filtered and sorted by."""

    id: str
    name: str
    parent_id: str | None
    role: str | None
    sort_order: int
    is_subscribed: bool


Condition: TypeAlias = Callable[[_Mailbox], bool]
SortKey: TypeAlias = Callable[[_Mailbox], int | str]


@dataclass(frozen=True, slots=True)
class _Comparator:
    key: SortKey
    is_ascending: bool


@dataclass(frozen=True, slots=True)
class MailboxQueryArguments:
    """The arguments of Mailbox/query but accountId."""

    matches: Condition
    sort: tuple[_Comparator, ...]
    sort_as_tree: bool
    filter_as_tree: bool
    calculate_total: bool
    position: int = 0
    anchor: str | None = None
    anchor_offset: int = 0
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class MailboxQueryChangesArguments:
    """The arguments of Mailbox/queryChanges but accountId."""

    query: MailboxQueryArguments
    since_query_state: str
    max_changes: int | None = None


def parse_mailbox_query(untrusted: Mapping[str, JSON]) -> MailboxQueryArguments:
    """Return the arguments, or raise `QueryRefused` naming the one that is wrong."""
    arguments.known_only(untrusted, _ARGUMENTS)
    return _parse(untrusted)


def parse_mailbox_query_changes(untrusted: Mapping[str, JSON]) -> MailboxQueryChangesArguments:
    """Return the arguments, or raise `QueryRefused` naming the one that is wrong."""
    arguments.known_only(untrusted, _CHANGES_ARGUMENTS)
    most = untrusted.get("maxChanges")
    if untrusted.get("upToId") is not None:
        arguments.id_value("upToId", untrusted["upToId"])
    return MailboxQueryChangesArguments(
        query=_parse({name: value for name, value in untrusted.items() if name in _OF_QUERY}),
        since_query_state=arguments.string_value("sinceQueryState", untrusted.get("sinceQueryState")),
        max_changes=None if most is None else arguments.unsigned_value("maxChanges", most),
    )


def mailbox_query(snapshot: Snapshot, asked: MailboxQueryArguments, *, max_limit: int = MAX_LIMIT) -> QueryResult:
    """Answer Mailbox/query from a snapshot. Raises `QueryRefused`."""
    ids = _results(snapshot, asked)
    position = _position(ids, asked)
    limit = max_limit if asked.limit is None else min(asked.limit, max_limit)
    return QueryResult(
        ids=ids[position : position + limit],
        position=position,
        total=len(ids) if asked.calculate_total else None,
        query_state=snapshot.state,
        limit=None if limit == asked.limit else limit,
        can_calculate_changes=True,
    )


def mailbox_query_changes(snapshot: Snapshot, asked: MailboxQueryChangesArguments) -> QueryChanges:
    """Answer Mailbox/queryChanges from a snapshot. Raises `QueryRefused`.

    Every name, parent or role may follow from another Mailbox's, so where more than counts changed each Mailbox may
    have moved: all are taken out, and the results put in where they are now (RFC 8620 §5.6 has `removed` name those
    too). `upToId` is for what cannot move.
    """
    try:
        changed = snapshot.changes(DataType.MAILBOX, asked.since_query_state, _MOST_CHANGED)
    except CannotCalculateChanges:
        raise cannot_calculate("sinceQueryState") from None
    if changed.has_more:
        raise cannot_calculate("sinceQueryState")
    ids = _results(snapshot, asked.query)
    removed, added = tuple[str, ...](), tuple[tuple[str, int], ...]()
    if changed.created or changed.destroyed or (changed.updated and not changed.counts_only):
        shown = {mailbox.id for mailbox in snapshot.mailboxes()}
        removed = tuple(sorted(shown.difference(changed.created).union(changed.destroyed)))
        added = tuple((mailbox_id, index) for index, mailbox_id in enumerate(ids))
    if asked.max_changes is not None and len(removed) + len(added) > asked.max_changes:
        raise too_many_changes()
    return QueryChanges(
        old_query_state=asked.since_query_state,
        new_query_state=snapshot.state,
        removed=removed,
        added=added,
        total=len(ids) if asked.query.calculate_total else None,
    )


# More Mailboxes than any account has.
_MOST_CHANGED: Final = 10_000


def _parse(untrusted: Mapping[str, JSON]) -> MailboxQueryArguments:
    asked, anchor, limit = untrusted.get("filter"), untrusted.get("anchor"), untrusted.get("limit")
    return MailboxQueryArguments(
        matches=_everything if asked is None else _Parser().parse(asked, 1),
        sort=_parse_sort(untrusted.get("sort")),
        sort_as_tree=arguments.boolean_value("sortAsTree", untrusted.get("sortAsTree", False)),
        filter_as_tree=arguments.boolean_value("filterAsTree", untrusted.get("filterAsTree", False)),
        calculate_total=arguments.boolean_value("calculateTotal", untrusted.get("calculateTotal", False)),
        position=arguments.int_value("position", untrusted.get("position", 0)),
        anchor=None if anchor is None else arguments.id_value("anchor", anchor),
        anchor_offset=arguments.int_value("anchorOffset", untrusted.get("anchorOffset", 0)),
        limit=None if limit is None else arguments.unsigned_value("limit", limit),
    )


def _everything(_mailbox: _Mailbox) -> bool:
    return True


class _Parser:
    def __init__(self) -> None:
        self._conditions = 0

    def parse(self, untrusted: JSON, depth: int) -> Condition:
        whole = arguments.object_value("filter", untrusted)
        self._conditions += 1
        if depth > MAX_DEPTH or self._conditions > MAX_CONDITIONS:
            raise _unsupported(f"is deeper than {MAX_DEPTH} levels or has more than {MAX_CONDITIONS} conditions.")
        if "operator" in whole:
            return self._operator(whole, depth)
        conditions = [_field(name, value) for name, value in whole.items()]
        return lambda mailbox: all(holds(mailbox) for holds in conditions)

    def _operator(self, untrusted: Mapping[str, JSON], depth: int) -> Condition:
        if set(untrusted) != {"operator", "conditions"}:
            raise invalid("filter", "a FilterOperator has operator and conditions, and nothing else.")
        conditions = [self.parse(each, depth + 1) for each in arguments.list_value("filter", untrusted["conditions"])]
        match untrusted["operator"]:
            case "AND":
                return lambda mailbox: all(holds(mailbox) for holds in conditions)
            case "OR":
                return lambda mailbox: any(holds(mailbox) for holds in conditions)
            case "NOT":
                return lambda mailbox: not any(holds(mailbox) for holds in conditions)
            case _:
                raise invalid("filter", "operator must be AND, OR or NOT.")


def _field(name: str, value: JSON) -> Condition:
    match name:
        case "parentId":
            parent_id = None if value is None else arguments.id_value(name, value)
            return lambda mailbox: mailbox.parent_id == parent_id
        case "name":
            part = sort_order(arguments.string_value(name, value))
            return lambda mailbox: part in sort_order(mailbox.name)
        case "role":
            role = None if value is None else arguments.string_value(name, value)
            return lambda mailbox: mailbox.role == role
        case "hasAnyRole":
            has_role = arguments.boolean_value(name, value)
            return lambda mailbox: (mailbox.role is not None) is has_role
        case "isSubscribed":
            is_subscribed = arguments.boolean_value(name, value)
            return lambda mailbox: mailbox.is_subscribed is is_subscribed
        case _:
            raise _unsupported("there are parentId, name, role, hasAnyRole and isSubscribed, and no other conditions.")


def _unsupported(what: str) -> QueryRefused:
    return QueryRefused("unsupportedFilter", f"filter: {what}", ("filter",))


_SORT_KEYS: Final[Mapping[str, SortKey]] = {
    "sortOrder": lambda mailbox: mailbox.sort_order,
    "name": lambda mailbox: sort_order(mailbox.name),
}


def _parse_sort(untrusted: JSON) -> tuple[_Comparator, ...]:
    comparators = () if untrusted is None else arguments.list_value("sort", untrusted)
    if len(comparators) > _MAX_COMPARATORS:
        raise QueryRefused("unsupportedSort", f"sort: has more than {_MAX_COMPARATORS} comparators.", ("sort",))
    return tuple(_parse_comparator(arguments.comparator_value(each)) for each in comparators)


def _parse_comparator(untrusted: Mapping[str, JSON]) -> _Comparator:
    if "property" not in untrusted:
        raise invalid("sort", "a comparator needs property.")
    name, collation = arguments.string_value("sort", untrusted["property"]), untrusted.get("collation")
    if name not in _SORT_KEYS:
        raise QueryRefused("unsupportedSort", f"sort: property must be one of {', '.join(_SORT_KEYS)}.", ("sort",))
    if not untrusted.keys() <= {"property", "isAscending", "collation"}:
        raise invalid("sort", "a comparator has property, isAscending and collation, and nothing else.")
    if collation is not None and arguments.string_value("sort", collation) not in COLLATIONS:
        raise QueryRefused("unsupportedSort", f"sort: collation must be one of {', '.join(COLLATIONS)}.", ("sort",))
    is_ascending = arguments.boolean_value("sort", untrusted.get("isAscending", True))
    return _Comparator(_SORT_KEYS[name], is_ascending)


def _results(snapshot: Snapshot, asked: MailboxQueryArguments) -> tuple[str, ...]:
    mailboxes = _sorted(_mailboxes(snapshot), asked.sort)
    if asked.sort_as_tree:
        mailboxes = _as_tree(mailboxes)
    kept = {mailbox.id for mailbox in mailboxes if asked.matches(mailbox)}
    if asked.filter_as_tree:
        parents = {mailbox.id: mailbox.parent_id for mailbox in mailboxes}
        kept = {each for each in kept if _ancestors_are_kept(each, parents, kept)}
    return tuple(mailbox.id for mailbox in mailboxes if mailbox.id in kept)


def _mailboxes(snapshot: Snapshot) -> list[_Mailbox]:
    stored = snapshot.mailboxes()
    places = mailbox_places(stored)
    return [
        _Mailbox(
            id=mailbox.id,
            name=places[mailbox.key].name,
            parent_id=places[mailbox.key].parent_id,
            role=places[mailbox.key].role,
            sort_order=sort_order_of(places[mailbox.key].role),
            is_subscribed=mailbox.subscribed,
        )
        for mailbox in in_order(stored, places)
    ]


def _sorted(mailboxes: Sequence[_Mailbox], comparators: Sequence[_Comparator]) -> list[_Mailbox]:
    """Sorted by the last comparator first: Python's sort keeps the order of what is equal."""
    mailboxes = list(mailboxes)
    for comparator in reversed(comparators):
        mailboxes.sort(key=comparator.key, reverse=not comparator.is_ascending)
    return mailboxes


def _as_tree(mailboxes: Sequence[_Mailbox]) -> list[_Mailbox]:
    """Each Mailbox, then what hangs from it; siblings in the order given (RFC 8621 §2.3 sortAsTree)."""
    children: dict[str | None, list[_Mailbox]] = {}
    for mailbox in mailboxes:
        children.setdefault(mailbox.parent_id, []).append(mailbox)
    walked: list[_Mailbox] = []
    waiting = children.get(None, [])[::-1]
    while waiting:
        mailbox = waiting.pop()
        walked.append(mailbox)
        waiting.extend(reversed(children.get(mailbox.id, [])))
    return walked


def _ancestors_are_kept(mailbox_id: str, parents: Mapping[str, str | None], kept: set[str]) -> bool:
    parent_id = parents[mailbox_id]
    while parent_id is not None:
        if parent_id not in kept:
            return False
        parent_id = parents[parent_id]
    return True


def _position(ids: Sequence[str], asked: MailboxQueryArguments) -> int:
    if asked.anchor is not None:
        if asked.anchor not in ids:
            raise QueryRefused("anchorNotFound", "anchor: is not among the results.", ("anchor",))
        return min(max(0, ids.index(asked.anchor) + asked.anchor_offset), arguments.MAX_INT)
    return asked.position if asked.position >= 0 else max(0, len(ids) + asked.position)

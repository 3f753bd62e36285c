"""The filter of Email/query: from untrusted JSON to a selection of the store (RFC 8620 §5.5, RFC 8621 §4.4.1)."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from agent_reader.query import arguments
from agent_reader.query.errors import QueryRefused, invalid
from agent_reader.query.words import MAX_TEXT_CHARACTERS, phrases
from agent_reader.store import header_search
from agent_reader.store.search import Column
from agent_reader.store.selection import (
    All,
    AnyOf,
    HasAttachment,
    HasHeader,
    HasKeyword,
    InMailbox,
    Not,
    Received,
    Selection,
    Size,
    ThreadHasKeyword,
    ThreadShare,
    Words,
)
from agent_reader.store.snapshot import StoredMailbox
from shared.message import JSON

# People and agents nest two or three operators; past 16 only a machine that tries the limits remains.
MAX_DEPTH: Final = 16
MAX_CONDITIONS: Final = 200

# Each word of each text costs a walk over the index; a question of 200 words is no question.
MAX_PHRASES: Final = 200

# RFC 8621 §4.1.1: what a keyword may be.
_KEYWORD: Final = re.compile(r"[!#$&'+,\-./0-9:;<=>?@A-Z\[^_`a-z|}~]{1,255}", re.ASCII)

# RFC 5322 §2.2: what the name of a header field may be.
_FIELD_NAME: Final = re.compile(r"[!-9;-~]{1,255}", re.ASCII)


@dataclass(frozen=True, slots=True)
class InMailboxWithId:
    """`inMailbox`, before the mailbox is looked up."""

    mailbox_id: str


@dataclass(frozen=True, slots=True)
class InMailboxOtherThan:
    """`inMailboxOtherThan`, before the mailboxes are looked up."""

    mailbox_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Every:
    """All of these hold."""

    of: "tuple[Filter, ...]"


@dataclass(frozen=True, slots=True)
class Some:
    """One of these holds at least."""

    of: "tuple[Filter, ...]"


@dataclass(frozen=True, slots=True)
class Neither:
    """None of these holds."""

    of: "tuple[Filter, ...]"


Filter: TypeAlias = InMailboxWithId | InMailboxOtherThan | Every | Some | Neither | Selection

EVERYTHING: Final = Every(())


def parse_filter(untrusted: JSON) -> Filter:
    """Return the filter; null and {} select everything. Raises `QueryRefused`."""
    if untrusted is None:
        return EVERYTHING
    return _Parser().parse(untrusted, 1)


class Mailboxes(Protocol):
    """What is asked about mailboxes to resolve a filter; a `Snapshot` answers it."""

    def mailboxes(self) -> Sequence[StoredMailbox]:
        """Return every mailbox that is shown."""

    def mailbox_key(self, mailbox_id: str) -> int | None:
        """Return the key of one."""


def resolve(asked: Filter, mailboxes: Mailboxes) -> Selection:
    """Return the selection, with mailboxes looked up where it names some. Raises `QueryRefused` for an unknown one."""
    match asked:
        case InMailboxWithId(mailbox_id):
            key = mailboxes.mailbox_key(mailbox_id)
            if key is None:
                raise _unknown_mailbox("inMailbox")
            return InMailbox(key)
        case InMailboxOtherThan(mailbox_ids):
            shown, left_out = mailboxes.mailboxes(), frozenset(mailbox_ids)
            if not left_out <= {each.id for each in shown}:
                raise _unknown_mailbox("inMailboxOtherThan")
            return AnyOf(tuple(InMailbox(each.key) for each in shown if each.id not in left_out))
        case Every(of):
            return All(tuple(resolve(each, mailboxes) for each in of))
        case Some(of):
            return AnyOf(tuple(resolve(each, mailboxes) for each in of))
        case Neither(of):
            return Not(AnyOf(tuple(resolve(each, mailboxes) for each in of)))
        case _:
            return asked


def _unknown_mailbox(field: str) -> QueryRefused:
    return invalid("filter", f"{field} names a mailbox that does not exist; Mailbox/get lists those that do.")


@dataclass(slots=True)
class _Parser:
    conditions: int = 0
    phrases: int = 0

    def parse(self, untrusted: JSON, depth: int) -> Filter:
        # Asked in this order: nearly always it is a dict, and whether it is another Mapping takes long to tell.
        if not isinstance(untrusted, dict) and not isinstance(untrusted, Mapping):
            raise invalid("filter", "must be an object: a FilterCondition or a FilterOperator.")
        if depth > MAX_DEPTH:
            raise _refused(f"is nested deeper than {MAX_DEPTH} levels.")
        self.conditions += 1
        if self.conditions > MAX_CONDITIONS:
            raise _refused(f"has more than {MAX_CONDITIONS} conditions.")
        if "operator" in untrusted:
            return self._operator(untrusted, depth)
        conditions = [self._field(name, value) for name, value in untrusted.items()]
        return conditions[0] if len(conditions) == 1 else Every(tuple(conditions))

    def _field(self, name: str, value: JSON) -> Filter:
        reader = _FIELDS.get(name)
        if reader is None:
            raise _refused(f"there is no such condition here; there are {', '.join(_FIELDS)}.")
        condition = reader(name, value)
        if isinstance(condition, Words):
            self.phrases += 1
        elif isinstance(condition, Every):
            self.phrases += len(condition.of)
        if self.phrases > MAX_PHRASES:
            raise _refused(f"has more than {MAX_PHRASES} words.")
        return condition

    def _operator(self, untrusted: Mapping[str, JSON], depth: int) -> Filter:
        if set(untrusted) != {"operator", "conditions"}:
            raise invalid("filter", "a FilterOperator has operator and conditions, and nothing else.")
        conditions = arguments.list_value("filter", untrusted["conditions"])
        parsed = tuple(self.parse(each, depth + 1) for each in conditions)
        match untrusted["operator"]:
            case "AND":
                return Every(parsed)
            case "OR":
                return Some(parsed)
            case "NOT":
                return Neither(parsed)
            case _:
                raise invalid("filter", "operator must be AND, OR or NOT.")


def _refused(what: str) -> QueryRefused:
    return QueryRefused("unsupportedFilter", f"filter: {what}", ("filter",))


def _in_mailbox(name: str, value: JSON) -> Filter:
    return InMailboxWithId(arguments.id_value(name, value))


def _in_mailbox_other_than(name: str, value: JSON) -> Filter:
    return InMailboxOtherThan(tuple(arguments.id_value(name, each) for each in arguments.list_value(name, value)))


def _before(name: str, value: JSON) -> Filter:
    return Received(before=arguments.utc_date_value(name, value))


def _after(name: str, value: JSON) -> Filter:
    return Received(at=arguments.utc_date_value(name, value))


def _min_size(name: str, value: JSON) -> Filter:
    return Size(at_least=arguments.unsigned_value(name, value))


def _max_size(name: str, value: JSON) -> Filter:
    return Size(below=arguments.unsigned_value(name, value))


def keyword_value(name: str, value: JSON) -> str:
    """Return a keyword in lower case, as it is kept. Raises `QueryRefused`."""
    keyword = arguments.string_value(name, value)
    if _KEYWORD.fullmatch(keyword) is None:
        raise invalid(name, "is no keyword (RFC 8621 section 4.1.1).")
    return keyword.lower()


def _has_keyword(name: str, value: JSON) -> Filter:
    return HasKeyword(keyword_value(name, value))


def _in_thread(share: ThreadShare) -> "Callable[[str, JSON], Filter]":
    return lambda name, value: ThreadHasKeyword(share, keyword_value(name, value))


def _header(name: str, value: JSON) -> Filter:
    given = [arguments.string_value(name, each) for each in arguments.list_value(name, value)]
    if not 1 <= len(given) <= 2:  # noqa: PLR2004 - RFC 8621 §4.4.1: a name, and a text if it is to contain one
        raise invalid(name, "must hold the name of a header field, and a text if it is to contain one.")
    field, text = given[0], given[1] if len(given) > 1 else None
    if text is not None and len(text) > MAX_TEXT_CHARACTERS:
        raise invalid(name, f"has a text of more than {MAX_TEXT_CHARACTERS} characters.")
    if _FIELD_NAME.fullmatch(field) is None:
        raise invalid(name, "begins with what is no name of a header field.")
    return HasHeader(field.lower(), None if text is None else header_search.folded(text))


def _not_keyword(name: str, value: JSON) -> Filter:
    return Neither((_has_keyword(name, value),))


def _has_attachment(name: str, value: JSON) -> Filter:
    return HasAttachment() if arguments.boolean_value(name, value) else Neither((HasAttachment(),))


def _text_in(*columns: Column) -> "Callable[[str, JSON], Filter]":
    def read(name: str, value: JSON) -> Filter:
        found = phrases(name, arguments.string_value(name, value))
        if len(found) == 1:
            return Words(found[0], columns)
        return Every(tuple(Words(phrase, columns) for phrase in found))

    return read


# RFC 8621 §4.4.1. What is not here is refused by name, never ignored.
_FIELDS: Final[Mapping[str, Callable[[str, JSON], Filter]]] = {
    "inMailbox": _in_mailbox,
    "inMailboxOtherThan": _in_mailbox_other_than,
    "before": _before,
    "after": _after,
    "minSize": _min_size,
    "maxSize": _max_size,
    "hasKeyword": _has_keyword,
    "notKeyword": _not_keyword,
    "allInThreadHaveKeyword": _in_thread(ThreadShare.ALL),
    "someInThreadHaveKeyword": _in_thread(ThreadShare.SOME),
    "noneInThreadHaveKeyword": _in_thread(ThreadShare.NONE),
    "hasAttachment": _has_attachment,
    "header": _header,
    "text": _text_in(*Column),
    "from": _text_in(Column.FROM),
    "to": _text_in(Column.TO),
    "cc": _text_in(Column.CC),
    "bcc": _text_in(Column.BCC),
    "subject": _text_in(Column.SUBJECT),
    "body": _text_in(Column.BODY),
}

"""The statement that answers a question about Emails.

What tokens can say becomes one FTS5 expression, which FTS5 intersects itself; sizes and dates become conditions on
columns. A tree that mixes both below OR or NOT becomes conditions with one sub-select for each text part. Each word is
quoted; parameters carry everything.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias, assert_never

from agent_reader.store import header_search, tokens
from agent_reader.store.emails import KEY_SHIFT
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
from agent_reader.store.thread_pages import Chunk

Parameter: TypeAlias = str | int | bytes | None


# An Email's keywords are a JSON array of ASCII without quotes inside, so a quoted one is found as it stands.
_HAS_KEYWORD: Final = "instr({table}.keywords, ?) > 0"
_ANOTHER_OF_THE_THREAD: Final = "SELECT 1 FROM emails x WHERE x.thread_key = e.thread_key AND x.visible AND "
_SOME_HAVE: Final = f"EXISTS ({_ANOTHER_OF_THE_THREAD}{_HAS_KEYWORD.format(table='x')})"
_ALL_HAVE: Final = f"NOT EXISTS ({_ANOTHER_OF_THE_THREAD}NOT {_HAS_KEYWORD.format(table='x')})"


# The rowid of the search table, which goes backwards in time, and the place of the first Email from a key on.
_PLACE: Final = "search.rowid"
_FIRST_PLACE: Final = "(SELECT p.place FROM email_places p WHERE p.key >= ? ORDER BY p.key LIMIT 1)"
_LEAST_ROWID: Final = -(2**63)


_ALL_COLUMNS: Final = tuple(Column)


class OrderBy(StrEnum):
    """What Emails can be sorted by; the value is the expression, with a parameter for a keyword. RFC 8621 §4.4.2."""

    RECEIVED_AT = "e.received_at"
    SENT_AT = "coalesce(e.sent_at, e.received_at)"
    SIZE = "e.size"
    FROM = "e.from_order"
    TO = "e.to_order"
    SUBJECT = "e.subject_order"
    HAS_KEYWORD = _HAS_KEYWORD.format(table="e")
    ALL_IN_THREAD_HAVE_KEYWORD = _ALL_HAVE
    SOME_IN_THREAD_HAVE_KEYWORD = _SOME_HAVE


@dataclass(frozen=True, slots=True)
class Order:
    """One comparator; `keyword`, in lower case, where it is sorted by one."""

    by: OrderBy
    ascending: bool
    keyword: str | None = None


class Statement(NamedTuple):
    """SQL and its parameters. A NamedTuple, since each question makes several."""

    sql: str
    parameters: tuple[Parameter, ...]


def rows_statement(
    selection: Selection, order: Sequence[Order], *, by_thread: bool = False, limit: int | None = None, offset: int = 0
) -> Statement:
    """Return the statement for rows of Email ids, or (`by_thread`) of Email ids and Thread keys, in order.

    Without an order newest first. Ties go newest first too, and those of one second by a digest: always the same.
    """
    by_date = not order or (len(order) == 1 and order[0].by is OrderBy.RECEIVED_AT)
    source = _source(selection, needs_emails=True)
    columns = "e.id, e.thread_key" if by_thread else "e.id"
    if by_date:
        order_sql = source.oldest_first if order and order[0].ascending else source.newest_first
    else:
        comparators = [f"{each.by.value} {'ASC' if each.ascending else 'DESC'}" for each in order]
        order_sql = ", ".join((*comparators, source.newest_first))
    keywords = tuple(_quoted(each.keyword) for each in order if each.keyword is not None) if order else ()
    sql, parameters = f"SELECT {columns} FROM {source.sql} ORDER BY {order_sql}", source.parameters + keywords  # noqa: S608 - closed words only
    if limit is not None or offset:
        sql += " LIMIT ? OFFSET ?"
        parameters += (-1 if limit is None else limit, offset)
    return Statement(sql, parameters)


def count_statement(selection: Selection, *, by_thread: bool) -> Statement:
    """Return the statement for the number of Emails, or of Threads."""
    if by_thread and not _conjuncts(selection):
        # An Email is shown while it has a mailbox, and the index of those by Thread is the smaller walk.
        return Statement("SELECT count(DISTINCT thread_key) FROM email_mailboxes", ())
    source = _source(selection, needs_emails=by_thread)
    if by_thread:
        # Sorted and then counted: to look each one up among those that were counted takes half as long again.
        groups = f"SELECT 1 FROM {source.sql} GROUP BY e.thread_key"  # noqa: S608 - closed words only
        return Statement(f"SELECT count(*) FROM ({groups})", source.parameters)  # noqa: S608 - closed words only
    return Statement(f"SELECT count(*) FROM {source.sql}", source.parameters)  # noqa: S608 - closed words only


class Hits(NamedTuple):
    """What follows FROM for hits that the search table tells alone."""

    sql: str
    parameters: tuple[Parameter, ...]

    def are_more_than(self, count: int) -> Statement:
        """Return the statement that has a row if they are."""
        return Statement(f"SELECT 1 FROM {self.sql} LIMIT 1 OFFSET ?", (*self.parameters, count))  # noqa: S608 - closed words only

    def threads_of(self, chunk: Chunk, *, is_first: bool, is_last: bool) -> Statement:
        """Return the statement for the keys of their Threads, four octets each, of those at the places of a chunk."""
        # SQLite looks at a bound for each hit once more: none where there is nothing beyond.
        bounds, parameters = "", [chunk.threads, 1 - 4 * chunk.first, *self.parameters]
        if not is_first:
            bounds += f" AND {_PLACE} >= ?"
            parameters.append(chunk.first)
        if not is_last:
            bounds += f" AND {_PLACE} <= ?"
            parameters.append(chunk.last)
        keys = f"group_concat(substr(?, {_PLACE} * 4 + ?, 4), '')"
        return Statement(f"SELECT CAST({keys} AS BLOB) FROM {self.sql}{bounds}", tuple(parameters))  # noqa: S608 - closed words only


def hits_of(selection: Selection) -> Hits | None:
    """Return the hits of a selection, None where the search table does not tell all of it."""
    source = _source(selection, needs_emails=False)
    return Hits(source.sql, source.parameters) if source.sql.startswith("search WHERE ") else None


class _Source(NamedTuple):
    """What follows FROM, and the column in it by which Emails are in the order of dates."""

    sql: str
    parameters: tuple[Parameter, ...]
    column: str

    @property
    def newest_first(self) -> str:
        return self.column if self.column == _PLACE else f"{self.column} DESC"

    @property
    def oldest_first(self) -> str:
        return f"{self.column} DESC" if self.column == _PLACE else self.column


def _source(selection: Selection, *, needs_emails: bool) -> _Source:
    matches, ranges, others = list[Selection](), list[Received](), list[Statement]()
    for each in _conjuncts(selection):
        if isinstance(each, Received):
            ranges.append(each)
        elif _is_match(each):
            matches.append(each)
        else:
            is_narrowed = _is_narrowed_by_tokens(each)
            if is_narrowed:
                matches.append(each)
            others.append(_in_header(each) if is_narrowed and isinstance(each, HasHeader) else _condition(each))
    needs_emails = needs_emails or bool(others)
    match matches:
        case []:
            table, column, emails = "emails e", "e.key", ""
            first = Statement("e.visible", ())
        case [InMailbox(mailbox_key)]:
            # Mailbox and date alone need no search: the table of mailboxes is in the order of keys.
            table, column, emails = "email_mailboxes b", "b.email_key", "e.key = b.email_key"
            first = Statement("b.mailbox_key = ?", (mailbox_key,))
        case _:
            table, column, emails = "search", _PLACE, f"e.place = {_PLACE}"
            first = Statement("search MATCH ?", (_match_all(matches),))
    if needs_emails and emails:
        # CROSS keeps the order of the loops: hits first, in the order of dates, and an Email for each.
        table += f" CROSS JOIN emails e ON {emails}"
    if not ranges and not others:
        return _Source(f"{table} WHERE {first.sql}", first.parameters, column)
    where = _joined(" AND ", [first, *(_range(each, column) for each in ranges), *others])
    return _Source(f"{table} WHERE {where.sql}", where.parameters, column)


def _conjuncts(selection: Selection) -> list[Selection]:
    found, left = list[Selection](), [selection]
    while left:
        each = left.pop()
        if isinstance(each, All):
            left += reversed(each.of)
        else:
            found.append(each)
    return found


def _is_match(selection: Selection) -> bool:
    """Whether tokens and words say all of it."""
    match selection:
        case Words() | InMailbox() | HasKeyword() | HasAttachment():
            return True
        case HasHeader(name, text):
            return tokens.of_header(name, text) is not None and tokens.tells_all_of_header(name, text)
        case Received() | Size() | ThreadHasKeyword():
            return False
        case All(of) | AnyOf(of):
            return all(_is_match(each) for each in of)
        case Not(of):
            return _is_match(of)
        case _:
            assert_never(selection)


def _is_narrowed_by_tokens(selection: Selection) -> bool:
    """Whether tokens say what it needs, so that few Emails are left to be looked into."""
    match selection:
        case HasHeader(name, text):
            return tokens.of_header(name, text) is not None
        case All(of) | AnyOf(of):
            return all(_is_match(each) or _is_narrowed_by_tokens(each) for each in of)
        case _:
            return False


def _match(selection: Selection) -> str:
    """The FTS5 expression; its NOT has two sides, so what stands alone is taken from everything."""
    match selection:
        case Words(phrase, columns):
            return _words(phrase, columns)
        case InMailbox(mailbox_key):
            return _token(tokens.of_mailbox(mailbox_key))
        case HasKeyword(keyword):
            return _token(tokens.of_keyword(keyword))
        case HasAttachment():
            return _token(tokens.ATTACHMENT)
        case All():
            return _match_all(_conjuncts(selection))
        case AnyOf(of):
            return " OR ".join(f"({_match(each)})" for each in of) if of else f"{_EVERYTHING} NOT {_EVERYTHING}"
        case Not(of):
            return f"{_EVERYTHING} NOT ({_match(of)})"
        case HasHeader(name, text):
            return " AND ".join(map(_token, tokens.of_header(name, text) or ()))
        case Received() | Size() | ThreadHasKeyword():
            raise AssertionError("columns say this, not words")
        case _:
            assert_never(selection)


def _match_all(conjuncts: list[Selection]) -> str:
    asked, refused, mailboxes, is_unseen = list[str](), list[str](), list[int](), False
    for each in conjuncts:
        if isinstance(each, InMailbox):
            mailboxes.append(each.mailbox_key)
        elif not isinstance(each, Not):
            asked.append(f"({_match(each)})")
        elif each.of in _IS_SEEN:
            is_unseen = True
        else:
            refused.append(f"({_match(each.of)})")
    if is_unseen and not mailboxes:
        asked.append(_token(tokens.UNSEEN))
    asked += [_token((tokens.of_unseen_in if is_unseen else tokens.of_mailbox)(key)) for key in mailboxes]
    expression = " AND ".join(asked) or _EVERYTHING
    return f"({expression}) NOT ({' OR '.join(refused)})" if refused else expression


def _words(phrase: str, columns: tuple[Column, ...]) -> str:
    if columns == (Column.FROM,):
        return _token(tokens.of_from_words(phrase))
    # A word of a text is none of our tokens, so that what may stand anywhere needs no look at where it stands.
    return f'"{phrase}"' if columns == _ALL_COLUMNS else f'{{{" ".join(columns)}}} : "{phrase}"'


def _token(token: str) -> str:
    # No word of any text is one of our tokens, so that the column needs no look.
    return f'"{token}"'


_SEEN: Final = HasKeyword(tokens.SEEN)
_IS_SEEN: Final = (_SEEN, AnyOf((_SEEN,)))

_EVERYTHING: Final = f'("{tokens.ORDINARY}" OR "{tokens.SIGN_IN}")'


def _range(received: Received, column: str) -> Statement:
    """A range of dates as one of keys; or of places, from that of the first Email at or after a date on."""
    since, until = f"{column} >= ?", f"{column} < ?"
    if column == _PLACE:
        since, until = f"{column} <= {_FIRST_PLACE}", f"{column} > coalesce({_FIRST_PLACE}, {_LEAST_ROWID})"
    conditions, parameters = ["1"], list[Parameter]()
    if received.at is not None:
        conditions.append(since)
        parameters.append(received.at << KEY_SHIFT)
    if received.before is not None:
        conditions.append(until)
        parameters.append(received.before << KEY_SHIFT)
    return Statement(" AND ".join(conditions), tuple(parameters))


def _condition(selection: Selection) -> Statement:
    if _is_match(selection):
        return _found(selection)
    match selection:
        case Received():
            return _range(selection, "e.key")
        case Size(at_least, below):
            return _size(at_least, below)
        case ThreadHasKeyword(share, keyword):
            return _of_the_thread(share, keyword)
        case HasHeader():
            looked = _in_header(selection)
            # What has no such token needs no look, be it that NOT asks for all of those.
            return _joined(" AND ", [_found(selection), looked]) if _is_narrowed_by_tokens(selection) else looked
        case All(of):
            return _joined(" AND ", list(map(_condition, of)))
        case AnyOf(of):
            return _joined(" OR ", list(map(_condition, of)))
        case Not(of):
            inner = _condition(of)
            return Statement(f"NOT ({inner.sql})", inner.parameters)
        case _:
            raise AssertionError("words say this, not columns")


def _found(selection: Selection) -> Statement:
    return Statement("e.place IN (SELECT rowid FROM search WHERE search MATCH ?)", (_match(selection),))


def _in_header(asked: HasHeader) -> Statement:
    kept = "(SELECT t.document FROM email_texts t WHERE t.key = e.key)"
    return Statement(f"{header_search.FUNCTION}({kept}, ?, ?)", (asked.name, asked.text))


def _of_the_thread(share: ThreadShare, keyword: str) -> Statement:
    match share:
        case ThreadShare.ALL:
            return Statement(_ALL_HAVE, (_quoted(keyword),))
        case ThreadShare.SOME:
            return Statement(_SOME_HAVE, (_quoted(keyword),))
        case ThreadShare.NONE:
            return Statement(f"NOT {_SOME_HAVE}", (_quoted(keyword),))
        case _:
            assert_never(share)


def _quoted(keyword: str) -> str:
    return f'"{keyword}"'


def _size(at_least: int | None, below: int | None) -> Statement:
    conditions, parameters = ["1"], list[Parameter]()
    if at_least is not None:
        conditions.append("e.size >= ?")
        parameters.append(at_least)
    if below is not None:
        conditions.append("e.size < ?")
        parameters.append(below)
    return Statement(" AND ".join(conditions), tuple(parameters))


def _joined(word: str, conditions: Sequence[Statement]) -> Statement:
    sql = word.join([f"({condition.sql})" for condition in conditions])
    return Statement(sql, tuple([parameter for condition in conditions for parameter in condition.parameters]))

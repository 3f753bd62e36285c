"""What a server's answers say: pure parsing, by name and never by position.

imaplib gives one flat list of records in which a literal splits a response; here it is put together again first.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Any, Final

from imapclient import imap_utf7
from imapclient.datetime_util import parse_to_datetime
from imapclient.exceptions import ProtocolError
from imapclient.response_parser import parse_fetch_response, parse_response

from agent_reader.imap.uid_ranges import UidRanges
from agent_reader.imap.values import MailboxStatus, MessageState, canonical_name

# A line of a response, or the line up to a literal together with the literal.
Record = bytes | tuple[bytes, bytes]

_FETCH_BEGINS: Final = re.compile(rb"[0-9]+ \(")
# Octets of a mailbox name; no server makes longer ones, and a command line must be able to carry it.
_LONGEST_NAME: Final = 4_096
# Some hundred octets each.
_REMEMBERED_LINES: Final = 2_048
_LIST_BEGINS: Final = re.compile(rb"\(")
# Every record of STATUS but the rest of a response after a literal, which begins with a blank.
_STATUS_BEGINS: Final = re.compile(rb"[^ ]")
_ESEARCH_ALL: Final = re.compile(rb"(?:^|[ )])ALL ([0-9:,]+)", re.IGNORECASE)
# The answer to FLAGS and MODSEQ, read without the lexer: a look at a mailbox of 20,000 costs 0.2 s and not 1.
_PLAIN_STATE: Final = re.compile(
    rb"[0-9]+ \((?:UID (?P<uid>[0-9]{1,10})|FLAGS \((?P<flags>[^()\"{]*)\)|MODSEQ \((?P<modseq>[0-9]{1,19})\)| )+\)",
    re.IGNORECASE,
)
# The answer to most of what is asked of messages, with a literal or without, read without the lexer: it takes as long
# for one message as everything else that the mirror does with its octets.
_PLAIN_ITEMS: Final = re.compile(
    rb"[0-9]+ \((?:UID (?P<uid>[0-9]{1,10})|FLAGS \((?P<flags>[^()\"{]*)\)|MODSEQ \((?P<modseq>[0-9]{1,19})\)"
    rb"|RFC822\.SIZE (?P<size>[0-9]{1,19})|INTERNALDATE \"(?P<date>[^\"\\]{1,40})\"| )+"
    rb"(?:\)|(?P<body>BODY\[[A-Z. ()-]*\](?:<[0-9]{1,10}>)?) \{[0-9]{1,10}\+?\})",
    re.IGNORECASE,
)
# RFC 9051 §9, date-time; the library takes as long for it as for all else of a header's answer.
_DATE_TIME: Final = re.compile(
    rb"( [0-9]|[0-9]{2})-([A-Za-z]{3})-([12][0-9]{3}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) ([+-][0-9]{4})"
)
_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        (b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec"), start=1
    )
}
# What can stand beside a body in an answer.
_ITEMS: Final = frozenset(
    {b"SEQ", b"UID", b"FLAGS", b"INTERNALDATE", b"RFC822.SIZE", b"MODSEQ", b"X-GM-MSGID", b"EMAILID"}
)
# RFC 9051 §7.3.1, RFC 5258, RFC 6154: servers differ in case, and everybody after this compares one spelling.
_ATTRIBUTES: Final = {
    name.lower(): name
    for name in (
        "\\Noselect", "\\NonExistent", "\\Noinferiors", "\\HasChildren", "\\HasNoChildren", "\\Marked", "\\Unmarked",
        "\\Subscribed", "\\Remote", "\\All", "\\Archive", "\\Drafts", "\\Flagged", "\\Junk", "\\Sent", "\\Trash",
        "\\Important",
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ListLine:
    """One LIST or LSUB response. `wire` is the name as it travels, `name` decoded from modified UTF-7."""

    name: str
    wire: str
    delimiter: str | None
    attributes: frozenset[str]


def list_lines(records: Iterable[Record | None]) -> Iterator[ListLine]:
    """Read LIST responses; a line that cannot be read, or a name that no command can carry, is left out."""
    for response in _responses(records, _LIST_BEGINS):
        if (line := _list_line(tuple(response))) is not None:
            yield line


# From round to round a server says the same, and reading it is most of what a round without news costs.
@lru_cache(maxsize=_REMEMBERED_LINES)
def _list_line(response: tuple[Record, ...]) -> ListLine | None:
    try:
        attributes, delimiter, name = parse_response(list(response))[:3]
        wire = _octets(name).decode("ascii")
        decoded = _decoded_name(wire)
    except (ProtocolError, ValueError, TypeError, IndexError):
        return None
    if not wire.isprintable() or len(wire) > _LONGEST_NAME:
        return None
    spelled = frozenset(_octets(attribute).decode("ascii", "replace") for attribute in attributes or ())
    return ListLine(
        decoded,
        wire,
        _octets(delimiter).decode("ascii", "replace") if delimiter is not None else None,
        frozenset(_ATTRIBUTES.get(attribute.lower(), attribute) for attribute in spelled),
    )


def _decoded_name(wire: str) -> str:
    # RFC 9051 §A.1. Some servers list names that are no modified UTF-7 (`R&D`); those are shown as they travel.
    try:
        decoded: str = imap_utf7.decode(wire.encode("ascii"))
        if imap_utf7.encode(decoded) != wire.encode("ascii"):
            decoded = wire
    except ValueError:
        decoded = wire
    return canonical_name(decoded)


def fetched(records: Iterable[Record | None]) -> dict[int, dict[bytes, Any]]:
    """Read FETCH responses by UID.

    A response without UID was not asked for and is left out: its sequence number says nothing certain. Raises
    ProtocolError for a response that is no IMAP.
    """
    by_uid: dict[int, dict[bytes, Any]] = {}
    for response in _responses(records, _FETCH_BEGINS):
        plain = _plain_items(response)
        if plain is not None:
            by_uid.setdefault(plain[0], {}).update(plain[1])
            continue
        for items in parse_fetch_response(response, normalise_times=False, uid_is_key=False).values():
            # After a literal that lied about its length, the rest of a letter would be read as items.
            others = {item for item in items if not item.startswith(b"BODY[")}
            if len(others) < len(items) and not others <= _ITEMS:
                raise ProtocolError("a FETCH response with an item that was never asked for")
            uid = items.get(b"UID")
            if isinstance(uid, int):
                by_uid.setdefault(uid, {}).update(items)
    return by_uid


def _plain_items(response: list[Record]) -> tuple[int, dict[bytes, Any]] | None:
    """The UID and the items of a response of the usual form; None for any other."""
    first, *rest = response
    line, literal = (first, None) if isinstance(first, bytes) else first
    if rest != ([] if literal is None else [b")"]):
        return None
    found = _PLAIN_ITEMS.fullmatch(line)
    if found is None or found["uid"] is None or (found["body"] is None) != (literal is None):
        return None
    items: dict[bytes, Any] = {}
    if found["flags"] is not None:
        items[b"FLAGS"] = tuple(found["flags"].split())
    if found["modseq"] is not None:
        items[b"MODSEQ"] = (int(found["modseq"]),)
    if found["size"] is not None:
        items[b"RFC822.SIZE"] = int(found["size"])
    if found["date"] is not None:
        items[b"INTERNALDATE"] = _moment(found["date"])
    if literal is not None:
        items[found["body"].upper()] = literal
    return int(found["uid"]), items


def _moment(date: bytes) -> datetime | None:
    found = _DATE_TIME.fullmatch(date)
    try:
        if found is not None:
            day, month, year, hour, minute, second, zone = found.groups()
            return datetime(
                int(year), _MONTHS[month.lower()], int(day), int(hour), int(minute), int(second), tzinfo=_zone(zone)
            )
        moment: datetime = parse_to_datetime(date, normalise=False)
    except (ValueError, KeyError):
        return None
    return moment


# A mailbox has a few dozen zones at most, and ten thousands of dates.
@lru_cache(maxsize=1_024)
def _zone(offset: bytes) -> timezone:
    minutes = int(offset[1:3]) * 60 + int(offset[3:])
    return timezone(timedelta(minutes=-minutes if offset.startswith(b"-") else minutes))


def states(records: Iterable[Record | None]) -> dict[int, MessageState]:
    """Read FETCH responses with FLAGS (and MODSEQ) by UID."""
    by_uid: dict[int, MessageState] = {}
    others: list[Record] = []
    for record in records:
        plain = _PLAIN_STATE.fullmatch(record) if isinstance(record, bytes) else None
        if plain is None:
            if record is not None:
                others.append(record)
        elif plain["uid"] is not None and plain["flags"] is not None:
            by_uid[int(plain["uid"])] = MessageState(
                _flags(plain["flags"].split()), int(plain["modseq"]) if plain["modseq"] is not None else None
            )
    for uid, items in fetched(others).items():
        if b"FLAGS" in items:
            by_uid[uid] = state_of(items)
    return by_uid


def state_of(items: Mapping[bytes, Any]) -> MessageState:
    """Return the flags and MODSEQ among the items of one message."""
    modseq = items.get(b"MODSEQ")
    return MessageState(
        _flags(items.get(b"FLAGS") or ()),
        modseq[0] if isinstance(modseq, tuple) and modseq and isinstance(modseq[0], int) else None,
    )


def internaldate_of(items: Mapping[bytes, Any]) -> datetime | None:
    """Return INTERNALDATE in UTC, or None; a date without a zone (`-0000`) is UTC."""
    date = items.get(b"INTERNALDATE")
    if not isinstance(date, datetime):
        return None
    try:
        return date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)
    except (OverflowError, ValueError):
        return None


def esearch_uids(records: Iterable[Record | None]) -> UidRanges | None:
    """Return the UIDs of `UID SEARCH RETURN (ALL)` (RFC 4731 §3.1), or None where no ESEARCH came.

    Raises ValueError for UIDs that cannot be.
    """
    lines = [record for record in records if isinstance(record, bytes)]
    if not lines:
        return None
    return UidRanges.parsed(found[1] for line in lines if (found := _ESEARCH_ALL.search(line)))


def search_uids(records: Iterable[Record | None]) -> list[int]:
    """Return the UIDs of plain SEARCH responses; blanks at the end and MODSEQ are left out."""
    lines = (record.partition(b"(")[0] for record in records if isinstance(record, bytes))
    return [int(word) for line in lines for word in line.split() if word.isdigit()]


def namespace_prefixes(records: Iterable[Record | None]) -> list[str]:
    """Return the prefixes of a NAMESPACE answer (RFC 2342), decoded; the empty prefix is left out."""
    try:
        namespaces = parse_response([record for record in records if record is not None])
        described = [space for kind in namespaces if isinstance(kind, tuple) for space in kind]
        prefixes = [_decoded_name(_octets(space[0]).decode("ascii")) for space in described if isinstance(space, tuple)]
    except (ProtocolError, ValueError, TypeError, IndexError):
        return []
    return [prefix for prefix in dict.fromkeys(prefixes) if prefix and prefix.isprintable()]


def status_names(records: Iterable[Record | None]) -> list[str | None]:
    """Return the mailbox names of STATUS responses; None for one that cannot be read."""
    names: list[str | None] = []
    for response in _responses(records, _STATUS_BEGINS):
        try:
            names.append(_status_name(parse_response(response)[0]))
        except (ProtocolError, ValueError, TypeError, IndexError):
            names.append(None)
    return names


def statuses(records: Iterable[Record | None]) -> dict[str, MailboxStatus]:
    """Read STATUS responses by mailbox name; one that does not tell everything, or two of one name, are left out."""
    found: dict[str, MailboxStatus | None] = {}
    for response in _responses(records, _STATUS_BEGINS):
        if (read := _status(tuple(response))) is not None:
            name, status = read
            found[name] = status if name not in found else None
    return {name: status for name, status in found.items() if status is not None}


@lru_cache(maxsize=_REMEMBERED_LINES)
def _status(response: tuple[Record, ...]) -> tuple[str, MailboxStatus | None] | None:
    try:
        name, items = parse_response(list(response))
        told = {item.upper(): number for item, number in zip(items[::2], items[1::2], strict=True)}
        return _status_name(name), _status_of(told)
    except (ProtocolError, ValueError, TypeError, AttributeError):
        return None


def _status_of(told: Mapping[bytes, object]) -> MailboxStatus | None:
    numbers = [told.get(item) for item in (b"UIDVALIDITY", b"UIDNEXT", b"MESSAGES", b"HIGHESTMODSEQ")]
    match numbers:
        # RFC 7162 §3.1.7: 0 where a mailbox has no mod-sequences. The first two are never 0.
        case [int() as uidvalidity, int() as uidnext, int() as messages, int() as highestmodseq] if (
            uidvalidity and uidnext and highestmodseq
        ):
            return MailboxStatus(uidvalidity, uidnext, messages, highestmodseq)
    return None


def _status_name(untrusted_name: object) -> str:
    name = _octets(untrusted_name)
    # Dovecot 2.3 writes a name here as it is, and not as it travels elsewhere.
    return _decoded_name(name.decode("ascii")) if name.isascii() else name.decode("utf-8")


def identity_of(token: object) -> str | None:
    """Return X-GM-MSGID (a number) or EMAILID (in parentheses, RFC 8474 §5.1) as text; None for anything else."""
    match token:
        case bool():
            return None
        case int():
            return str(token)
        case (bytes() as email_id,):
            return email_id.decode("ascii", "replace")
        case _:
            return None


def status_number(records: Iterable[Record | None], item: bytes) -> int | None:
    """Return one number of a STATUS answer."""
    for record in records:
        line = record if isinstance(record, bytes) else b""
        if found := re.search(rb"[( ]" + item + rb" ([0-9]{1,20})[ )]", line, re.IGNORECASE):
            return int(found[1])
    return None


def leading_number(records: Iterable[Record | None]) -> int | None:
    """Return the number that the last record begins with: EXISTS, UIDNEXT, UIDVALIDITY, HIGHESTMODSEQ."""
    last = list(records)[-1:]
    found = re.match(rb"[0-9]{1,20}", last[0]) if last and isinstance(last[0], bytes) else None
    return int(found[0]) if found else None


def uid_sets(uids: Iterable[int], most_octets: int) -> Iterator[str]:
    """Write UIDs as sets that name just these, each at most so long; numbers in a row become a range."""
    parts: list[str] = []
    length = 0
    for part in _ranges(sorted(set(uids))):
        if parts and length + len(part) + 1 > most_octets:
            yield ",".join(parts)
            parts, length = [], 0
        parts.append(part)
        length += len(part) + 1
    if parts:
        yield ",".join(parts)


def _ranges(ascending: list[int]) -> Iterator[str]:
    begin = 0
    for index, uid in enumerate(ascending):
        if index + 1 == len(ascending) or ascending[index + 1] != uid + 1:
            first = ascending[begin]
            yield str(uid) if first == uid else f"{first}:{uid}"
            begin = index + 1


def _responses(records: Iterable[Record | None], begins: re.Pattern[bytes]) -> Iterator[list[Record]]:
    response: list[Record] = []
    for record in records:
        if record is None:
            continue
        if begins.match(record if isinstance(record, bytes) else record[0]) and response:
            yield response
            response = []
        response.append(record)
    if response:
        yield response


def _flags(untrusted_flags: Iterable[Any]) -> frozenset[str]:
    spelled = {_octets(flag).decode("utf-8", "replace") for flag in untrusted_flags}
    return frozenset(flag for flag in spelled if flag.lower() != "\\recent")


def _octets(token: object) -> bytes:
    # The parser makes numbers and NIL of atoms that are a name or a flag here.
    if token is None:
        return b"NIL"
    return token if isinstance(token, bytes) else str(token).encode()

"""Email/get: what an Email looks like, from what the store keeps of it (RFC 8621 §4.2)."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, Final

import msgspec

from agent_reader.query import arguments
from agent_reader.query.errors import invalid
from agent_reader.query.results import GetResult
from agent_reader.query.shown_email import ShownEmail, parts_of, shows_text
from agent_reader.store.document import StoredPart
from agent_reader.store.snapshot import Snapshot, StoredEmail
from agent_reader.store.written import Written
from shared.message import (
    DEFAULT_BODY_PROPERTIES,
    DEFAULT_EMAIL_PROPERTIES,
    JSON,
    BadHeaderProperty,
    Message,
    UnknownProperty,
    check_properties,
    email_json,
)

# More names than RFC 8621 has properties several times over, header fields included.
_MAX_PROPERTIES: Final = 200

_ARGUMENTS: Final = frozenset(
    {
        "accountId",
        "ids",
        "properties",
        "bodyProperties",
        "fetchTextBodyValues",
        "fetchHTMLBodyValues",
        "fetchAllBodyValues",
        "maxBodyValueBytes",
    }
)


_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class EmailGetArguments:
    """The arguments of Email/get but accountId; `ids` is None for all."""

    ids: tuple[str, ...] | None
    properties: tuple[str, ...] | None = None
    body_properties: tuple[str, ...] | None = None
    fetch_text: bool = False
    fetch_html: bool = False
    fetch_all: bool = False
    max_body_value_bytes: int = 0


def parse_email_get(untrusted: Mapping[str, JSON]) -> EmailGetArguments:
    """Return the arguments, or raise `QueryRefused` naming the one that is wrong."""
    arguments.known_only(untrusted, _ARGUMENTS)
    parsed = EmailGetArguments(
        ids=_strings("ids", untrusted.get("ids")),
        properties=_strings("properties", untrusted.get("properties")),
        body_properties=_strings("bodyProperties", untrusted.get("bodyProperties")),
        fetch_text=_flag(untrusted, "fetchTextBodyValues"),
        fetch_html=_flag(untrusted, "fetchHTMLBodyValues"),
        fetch_all=_flag(untrusted, "fetchAllBodyValues"),
        max_body_value_bytes=arguments.unsigned_value("maxBodyValueBytes", untrusted.get("maxBodyValueBytes", 0)),
    )
    _check(parsed.properties or (), parsed.body_properties or ())
    return parsed


def email_get(
    snapshot: Snapshot,
    ids: Iterable[str],
    *,
    properties: Sequence[str] | None = None,
    body_properties: Sequence[str] | None = None,
    fetch_text: bool = False,
    fetch_html: bool = False,
    fetch_all: bool = False,
    max_body_value_bytes: int = 0,
) -> GetResult:
    """Answer Email/get from a snapshot, however large the answer.

    `properties` None for the RFC's default; `max_body_value_bytes` octets of UTF-8, 0 for no limit. Raises
    `QueryRefused` for a property that does not exist.
    """
    asked = EmailGetArguments(
        ids=tuple(ids),
        properties=None if properties is None else tuple(properties),
        body_properties=None if body_properties is None else tuple(body_properties),
        fetch_text=fetch_text,
        fetch_html=fetch_html,
        fetch_all=fetch_all,
        max_body_value_bytes=max_body_value_bytes,
    )
    _check(asked.properties or (), asked.body_properties or ())
    answers: list[dict[str, JSON]] = []
    not_found = email_get_as_asked(snapshot, asked, lambda email, _: answers.append(msgspec.json.decode(email)))
    return GetResult(tuple(answers), not_found, snapshot.state)


# Takes the JSON of an Email, and what of it the read log is to know.
Put = Callable[[bytes, ShownEmail], None]


def email_get_as_asked(
    snapshot: Snapshot, asked: EmailGetArguments, put: Put, go_on: Callable[[], None] = lambda: None
) -> tuple[str, ...]:
    """Give each Email that was asked for to `put`, in order, and return the ids that are not found.

    One message is in memory at a time; `put` writes it down, or raises where there is no room for it. How many ids may
    be named is the caller's business. `go_on` is called before each message and raises where nobody waits for the rest.
    """
    missing = dict.fromkeys(asked.ids or ())
    ids, row, question = list(missing), row_asked(asked), digest_of(replace(asked, ids=None))
    has_to_read = reads_messages(asked)
    with closing(snapshot.each_email(ids, with_documents=has_to_read)) as emails:
        for email in emails:
            go_on()
            del missing[email.id]
            known = snapshot.written.find(email.id, question, email.source)
            if known is not None:
                put(*joined(email, row, known))
                continue
            with snapshot.room.place(email.size, go_on) if has_to_read else nullcontext():
                written = written_once(content_as_asked(email, asked, partial(snapshot.message_of, email)))
                put(*joined(email, row, written))
            if is_whole(email, has_to_read=has_to_read):
                snapshot.written.keep(email.id, question, email.source, written)
            # Not while the next one waits for room: it may be as long as an answer.
            del written
    return tuple(missing)


def digest_of(question: object) -> bytes:
    """Return a digest of a question, a value whose repr says all of it: what was written for it is found by that."""
    return hashlib.sha256(repr(question).encode("utf-8", "surrogatepass")).digest()


def reads_messages(asked: EmailGetArguments) -> bool:
    """Whether a property is asked for that is not in the row or the summary of an Email."""
    return not _IN_ROW_OR_SUMMARY.issuperset(_wanted(asked.properties))


def is_whole(email: StoredEmail, *, has_to_read: bool) -> bool:
    """Whether all that an answer is made from came with the Email: a large document did not."""
    return email.source[1] is not None or not has_to_read


# Properties that are asked for and may change, and what tells each of an Email: they are never kept.
Row = Sequence[tuple[str, Callable[[StoredEmail], Any]]]


def row_asked(asked: EmailGetArguments) -> Row:
    """Return the properties that are asked for and may change."""
    return [(name, _ROW[name]) for name in _wanted(asked.properties) if name in _FROM_ROW]


def written_once(content: Mapping[str, JSON], cut: Iterable[JSON] = ()) -> Written:
    """Return what an answer says of an Email's content, and which of its texts go on."""
    members = msgspec.json.encode(content)[1:-1]
    return Written(members, parts_of(content), shows_text(content), tuple(map(msgspec.json.encode, cut)))


def joined(email: StoredEmail, row: Row, written: Written) -> tuple[bytes, ShownEmail]:
    """Return the JSON of an Email, and what of it the read log is to know."""
    octets = row_of(email, row)
    if written.members:
        octets = b"%b,%b}" % (octets[:-1], written.members)
    return octets, ShownEmail(email.id, written.has_text, written.parts)


def row_of(email: StoredEmail, row: Row) -> bytes:
    """Return the JSON of those properties of an Email that may change."""
    return _encode({name: value_of(email) for name, value_of in row})


def content_as_asked(
    email: StoredEmail, asked: EmailGetArguments, read_message: Callable[[], Message]
) -> dict[str, JSON]:
    """Return those properties of one Email that are asked for and never change."""
    wanted = tuple(name for name in _wanted(asked.properties) if name not in _FROM_ROW)
    of_message = tuple(name for name in wanted if name not in _IN_SUMMARY)
    content: Mapping[str, JSON] = {}
    if of_message:
        message = read_message()
        content = _content(
            message,
            email_json(
                message,
                properties=of_message,
                body_properties=DEFAULT_BODY_PROPERTIES if asked.body_properties is None else asked.body_properties,
                fetch_text=asked.fetch_text,
                fetch_html=asked.fetch_html,
                fetch_all=asked.fetch_all,
                max_body_value_octets=asked.max_body_value_bytes,
            ),
        )
    return {name: email.summary[name] if name in _IN_SUMMARY else content[name] for name in wanted}


# The properties that the mail server and the store tell (RFC 8621 §4.1.1); they may change.
_ROW: Final[Mapping[str, Callable[[StoredEmail], Any]]] = {
    "id": attrgetter("id"),
    "threadId": attrgetter("thread_id"),
    "mailboxIds": lambda email: dict.fromkeys(email.mailbox_ids, True),
    "keywords": lambda email: dict.fromkeys(email.keywords, True),
    # msgspec writes it as a UTCDate (RFC 8620 §1.4).
    "receivedAt": attrgetter("received_at"),
}
_FROM_ROW: Final = frozenset(_ROW)
_IN_SUMMARY: Final = frozenset(
    {
        "blobId",
        "size",
        "hasAttachment",
        "messageId",
        "inReplyTo",
        "references",
        "sender",
        "from",
        "to",
        "cc",
        "bcc",
        "replyTo",
        "subject",
        "sentAt",
        "preview",
    }
)

_IN_ROW_OR_SUMMARY: Final = _FROM_ROW | _IN_SUMMARY


def _strings(name: str, untrusted: JSON) -> tuple[str, ...] | None:
    if untrusted is None:
        return None
    found = arguments.list_value(name, untrusted)
    if {str}.issuperset(map(type, found)):
        return tuple(found)  # type: ignore[arg-type]  # as was just seen, in one step where a page of ids is named
    return tuple(arguments.string_value(name, each) for each in found)


def _flag(untrusted: Mapping[str, JSON], name: str) -> bool:
    return arguments.boolean_value(name, untrusted.get(name, False))


def _wanted(properties: Sequence[str] | None) -> tuple[str, ...]:
    if properties is None:
        return DEFAULT_EMAIL_PROPERTIES
    return tuple(dict.fromkeys(("id", *properties)))  # RFC 8620 §5.1: the id is always there


def _check(properties: Sequence[str], body_properties: Sequence[str]) -> None:
    for name, spelled in (("properties", properties), ("bodyProperties", body_properties)):
        if len(spelled) > _MAX_PROPERTIES:
            raise invalid(name, f"has more than {_MAX_PROPERTIES} names.")
    try:
        check_properties(properties, ())
    except (UnknownProperty, BadHeaderProperty) as error:
        raise invalid("properties", f"{str(error)[:300]}.") from None
    try:
        check_properties((), body_properties)
    except (UnknownProperty, BadHeaderProperty) as error:
        raise invalid("bodyProperties", f"{str(error)[:300]}.") from None


def _content(message: Message, answer: dict[str, JSON]) -> dict[str, JSON]:
    """A text that was not kept is no empty text: it is cut, to nothing (RFC 8621 §4.1.4 isTruncated)."""
    values = answer.get("bodyValues")
    if isinstance(values, Mapping):
        answer["bodyValues"] = {
            part_id: value
            if _is_kept(message, part_id) or not isinstance(value, Mapping)
            else {**value, "isTruncated": True}
            for part_id, value in values.items()
        }
    return answer


def _is_kept(message: Message, part_id: str) -> bool:
    part = message.part(part_id)
    return isinstance(part, StoredPart) and part.is_kept

"""Email/get: what an Email looks like, from what the store keeps of it (RFC 8621 §4.2)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Final

from agent_reader.query import arguments
from agent_reader.query.errors import invalid
from agent_reader.query.results import GetResult
from agent_reader.store.document import StoredPart
from agent_reader.store.snapshot import Snapshot, StoredEmail
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
    not_found = email_get_as_asked(snapshot, asked, answers.append)
    return GetResult(tuple(answers), not_found, snapshot.state)


def email_get_as_asked(
    snapshot: Snapshot,
    asked: EmailGetArguments,
    put: Callable[[dict[str, JSON]], None],
    go_on: Callable[[], None] = lambda: None,
) -> tuple[str, ...]:
    """Give each Email that was asked for to `put`, in order, and return the ids that are not found.

    One message is in memory at a time; `put` writes it down, or raises where there is no room for it. How many ids may
    be named is the caller's business. `go_on` is called before each message and raises where nobody waits for the rest.
    """
    ids = tuple(dict.fromkeys(asked.ids or ()))
    found = snapshot.emails(ids)
    has_to_read = reads_messages(asked)
    for email in found.values():
        go_on()
        with snapshot.room.place(email.size, go_on) if has_to_read else nullcontext():
            put(email_as_asked(email, asked, partial(snapshot.message, email.key)))
    return tuple(each for each in ids if each not in found)


def reads_messages(asked: EmailGetArguments) -> bool:
    """Whether a property is asked for that is not in the row or the summary of an Email."""
    return not _IN_ROW_OR_SUMMARY.issuperset(_wanted(asked.properties))


def email_as_asked(
    email: StoredEmail, asked: EmailGetArguments, read_message: Callable[[], Message]
) -> dict[str, JSON]:
    """Return one Email with the properties that are asked for; its message is read only where one needs it."""
    wanted = _wanted(asked.properties)
    of_content = tuple(name for name in wanted if name not in _IN_ROW_OR_SUMMARY)
    content: Mapping[str, JSON] = {}
    if of_content:
        message = read_message()
        content = _content(
            message,
            email_json(
                message,
                properties=of_content,
                body_properties=DEFAULT_BODY_PROPERTIES if asked.body_properties is None else asked.body_properties,
                fetch_text=asked.fetch_text,
                fetch_html=asked.fetch_html,
                fetch_all=asked.fetch_all,
                max_body_value_octets=asked.max_body_value_bytes,
            ),
        )
    return {name: _value(name, email, content) for name in wanted}


def email_property(email: StoredEmail, name: str) -> JSON:
    """Return one of the properties that the mail server and the store tell (RFC 8621 §4.1.1)."""
    match name:
        case "id":
            return email.id
        case "threadId":
            return email.thread_id
        case "mailboxIds":
            return dict.fromkeys(email.mailbox_ids, True)
        case "keywords":
            return dict.fromkeys(email.keywords, True)
        case "receivedAt":
            return email.received_at.replace(tzinfo=None).isoformat() + "Z"
        case _:
            raise AssertionError(name)


_FROM_ROW: Final = frozenset({"id", "threadId", "mailboxIds", "keywords", "receivedAt"})
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
    return tuple(arguments.string_value(name, each) for each in arguments.list_value(name, untrusted))


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


def _value(name: str, email: StoredEmail, content: Mapping[str, JSON]) -> JSON:
    if name in _FROM_ROW:
        return email_property(email, name)
    return email.summary[name] if name in _IN_SUMMARY else content[name]


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

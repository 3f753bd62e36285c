"""RFC 8621 §4.2: the properties of an Email that follow from its octets alone, as JSON."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from shared.identity import blob_id, message_digest
from shared.message.bodies import BodyLists, body_lists, body_value
from shared.message.fields import JSON, HeaderField
from shared.message.headers import HeaderForm, parse_header_property, raw
from shared.message.model import Message, Part
from shared.message.text import preview

_Forms = Mapping[str, tuple[str, HeaderForm]]

# RFC 8621 §4.1.3: the convenience properties and the header form each is short for.
_HEADER_PROPERTIES: Final[_Forms] = {
    "messageId": ("Message-ID", HeaderForm.MESSAGE_IDS),
    "inReplyTo": ("In-Reply-To", HeaderForm.MESSAGE_IDS),
    "references": ("References", HeaderForm.MESSAGE_IDS),
    "sender": ("Sender", HeaderForm.ADDRESSES),
    "from": ("From", HeaderForm.ADDRESSES),
    "to": ("To", HeaderForm.ADDRESSES),
    "cc": ("Cc", HeaderForm.ADDRESSES),
    "bcc": ("Bcc", HeaderForm.ADDRESSES),
    "replyTo": ("Reply-To", HeaderForm.ADDRESSES),
    "subject": ("Subject", HeaderForm.TEXT),
    "sentAt": ("Date", HeaderForm.DATE),
}

_BODY_LIST_PROPERTIES: Final = frozenset({"textBody", "htmlBody", "attachments"})

# What the octets alone do not tell: the mail server and the store do (RFC 8621 §4.1.1).
SERVER_PROPERTIES: Final = frozenset({"id", "threadId", "mailboxIds", "keywords", "receivedAt"})

CONTENT_PROPERTIES: Final = frozenset(
    {*_HEADER_PROPERTIES, *_BODY_LIST_PROPERTIES}
    | {"blobId", "size", "headers", "bodyStructure", "bodyValues", "hasAttachment", "preview"}
)

_EMAIL_PROPERTIES: Final = CONTENT_PROPERTIES | SERVER_PROPERTIES

# RFC 8621 §4.2: what Email/get answers if nothing is asked for.
DEFAULT_PROPERTIES: Final = (
    "id blobId threadId mailboxIds keywords size receivedAt messageId inReplyTo references sender from to cc bcc "
    "replyTo subject sentAt hasAttachment preview bodyValues textBody htmlBody attachments"
)
DEFAULT_EMAIL_PROPERTIES: Final = tuple(DEFAULT_PROPERTIES.split())
DEFAULT_BODY_PROPERTIES: Final = (
    "partId",
    "blobId",
    "size",
    "name",
    "type",
    "charset",
    "disposition",
    "cid",
    "language",
    "location",
)


class UnknownProperty(ValueError):  # noqa: N818 - the name is the finding
    """A property that RFC 8621 §4.1 does not know; `spelled` is what was asked."""

    def __init__(self, spelled: str) -> None:
        super().__init__(f"{spelled!r} is no property")
        self.spelled = spelled


def _headers_json(fields: Iterable[HeaderField]) -> JSON:
    return [{"name": field.name, "value": raw(field)} for field in fields]


# What a part is known by, its header and its subparts aside.
LEAF_PROPERTIES: Final[Mapping[str, Callable[[Any], JSON]]] = {
    "partId": attrgetter("part_id"),
    "blobId": attrgetter("blob_id"),
    "size": attrgetter("size"),
    "name": attrgetter("name"),
    "type": attrgetter("type"),
    "charset": attrgetter("charset"),
    "disposition": attrgetter("disposition"),
    "cid": attrgetter("cid"),
    "language": lambda part: list(part.language) if part.language is not None else None,
    "location": attrgetter("location"),
}

_PART_PROPERTIES: Final[Mapping[str, Callable[[Part], JSON]]] = {
    **LEAF_PROPERTIES,
    "headers": lambda part: _headers_json(part.fields),
}

BODY_PROPERTIES: Final = frozenset({*_PART_PROPERTIES, "subParts"})


def check_properties(properties: Iterable[str], body_properties: Iterable[str]) -> None:
    """Raise `UnknownProperty` or `BadHeaderProperty` for the first name that Email/get must refuse."""
    for spelled in properties:
        _check(spelled, _EMAIL_PROPERTIES)
    for spelled in body_properties:
        _check(spelled, BODY_PROPERTIES)


def _check(spelled: str, known: frozenset[str]) -> None:
    if spelled.startswith("header:"):
        parse_header_property(spelled)
    elif spelled not in known:
        raise UnknownProperty(spelled)


class _PartWriter:
    """Writes parts with the properties asked for; a leaf that stands in several lists is worked out once."""

    def __init__(self, body_properties: Sequence[str]) -> None:
        self.with_subparts = "subParts" in body_properties
        self.readers = _part_readers(tuple(body_properties))
        self.written: dict[str | None, dict[str, JSON]] = {}

    def json(self, part: Part, *, with_subparts: bool = False) -> dict[str, JSON]:
        """Return an EmailBodyPart (RFC 8621 §4.1.4).

        `subParts` comes where it was asked for, of a part that has none as an empty list, and of a multipart where
        `with_subparts` says so.
        """
        written = self.written.get(part.part_id)
        if written is None:
            written = {spelled: read(part) for spelled, read in self.readers}
            if not part.is_multipart:
                self.written[part.part_id] = written
        if self.with_subparts or (part.is_multipart and with_subparts):
            return {**written, "subParts": [self.json(child, with_subparts=True) for child in part.subparts]}
        return dict(written)


# A page of messages asks for the same of each.
@lru_cache(maxsize=64)
def _part_readers(body_properties: tuple[str, ...]) -> tuple[tuple[str, Callable[[Part], JSON]], ...]:
    return tuple((spelled, _part_reader(spelled)) for spelled in body_properties if spelled != "subParts")


def _part_reader(spelled: str) -> Callable[[Part], JSON]:
    if spelled.startswith("header:"):
        wanted = parse_header_property(spelled)
        return lambda part: part.header(wanted.name, wanted.form, all_instances=wanted.all_instances)
    if spelled not in _PART_PROPERTIES:
        raise UnknownProperty(spelled)
    return _PART_PROPERTIES[spelled]


def email_json(
    message: Message,
    *,
    properties: Sequence[str],
    body_properties: Sequence[str] = DEFAULT_BODY_PROPERTIES,
    fetch_text: bool = False,
    fetch_html: bool = False,
    fetch_all: bool = False,
    max_body_value_octets: int = 0,
) -> dict[str, JSON]:
    """Return the Email properties asked for that follow from the octets; those of `SERVER_PROPERTIES` are left out.

    `max_body_value_octets`: octets of UTF-8 per body value, 0 for no limit. Raises `UnknownProperty` and
    `BadHeaderProperty`. RFC 8621 §4.2.
    """
    lists = body_lists(message)
    writer = _PartWriter(body_properties)
    answer: dict[str, JSON] = {}
    for spelled in properties:
        if spelled in SERVER_PROPERTIES:
            continue
        if spelled.startswith("header:"):
            wanted = parse_header_property(spelled)
            answer[spelled] = message.header(wanted.name, wanted.form, all_instances=wanted.all_instances)
        elif spelled == "bodyValues":
            fetched = _fetched(message, lists, fetch_text=fetch_text, fetch_html=fetch_html, fetch_all=fetch_all)
            answer[spelled] = {
                part.part_id: body_value_json(part, max_body_value_octets) for part in fetched if part.part_id
            }
        elif spelled in _BODY_LIST_PROPERTIES:
            answer[spelled] = [writer.json(part) for part in _list(lists, spelled)]
        elif spelled == "hasAttachment":
            answer[spelled] = lists.has_attachment
        elif spelled == "bodyStructure":
            answer[spelled] = writer.json(message.root, with_subparts=True)
        else:
            answer[spelled] = _message_property(message, spelled)
    return answer


def _list(lists: BodyLists, spelled: str) -> tuple[Part, ...]:
    return {"textBody": lists.text_body, "htmlBody": lists.html_body}.get(spelled, lists.attachments)


def _message_property(message: Message, spelled: str) -> JSON:
    if spelled in _HEADER_PROPERTIES:
        name, form = _HEADER_PROPERTIES[spelled]
        return message.header(name, form)
    match spelled:
        case "blobId":
            return blob_id(message_digest(message.octets))
        case "size":
            return len(message.octets)
        case "headers":
            return _headers_json(message.fields)
        case "preview":
            return preview(message)
        case _:
            raise UnknownProperty(spelled)


def body_value_json(part: Part, max_octets: int) -> dict[str, JSON]:
    """Return a part's EmailBodyValue."""
    value = body_value(part, max_octets)
    return {
        "value": value.value,
        "isEncodingProblem": value.is_encoding_problem,
        "isTruncated": value.is_truncated,
    }


def _fetched(
    message: Message, lists: BodyLists, *, fetch_text: bool, fetch_html: bool, fetch_all: bool
) -> Iterable[Part]:
    """Each text part that one of the flags asks for, once."""
    chosen: dict[str | None, Part] = {}
    if fetch_all:
        chosen |= {part.part_id: part for part in message.root.walk() if not part.is_multipart}
    if fetch_text:
        chosen |= {part.part_id: part for part in lists.text_body}
    if fetch_html:
        chosen |= {part.part_id: part for part in lists.html_body}
    return [part for part in chosen.values() if part.type.startswith("text/")]

"""Email/parse: messages that are attached to others, read like any (RFC 8621 §4.9)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from agent_reader.query import arguments
from agent_reader.query.blobs import FoundBlob
from agent_reader.query.email_get import EmailGetArguments, parse_email_get
from agent_reader.query.errors import invalid, too_large
from agent_reader.query.results import json_octets
from shared.message import DEFAULT_BODY_PROPERTIES, JSON, SERVER_PROPERTIES, Message, email_json, parse

# RFC 8621 §4.9: what Email/parse answers if nothing is asked for.
DEFAULT_PROPERTIES: Final = (
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
    "hasAttachment",
    "preview",
    "bodyValues",
    "textBody",
    "htmlBody",
    "attachments",
)

# RFC 5322 §3.6 and RFC 2045: a message has one of these at least. The parser itself takes any octets for one.
_FIELDS_OF_A_MESSAGE: Final = frozenset(
    {"from", "sender", "to", "cc", "date", "subject", "message-id", "received", "return-path", "mime-version"}
)

# Gives the octets of a blob, or None where it is gone.
ReadBlob = Callable[[FoundBlob], bytes | None]


@dataclass(frozen=True, slots=True)
class EmailParseArguments:
    """The arguments of Email/parse but accountId; `shape` is what Email/get has too."""

    blob_ids: tuple[str, ...]
    shape: EmailGetArguments


@dataclass(frozen=True, slots=True)
class Parsed:
    """RFC 8621 §4.9: an Email for each blob, blobs that hold no message, and those that are not there."""

    parsed: Mapping[str, dict[str, JSON]]
    not_parsable: tuple[str, ...]
    not_found: tuple[str, ...]


def parse_email_parse(untrusted: Mapping[str, JSON]) -> EmailParseArguments:
    """Return the arguments, or raise `QueryRefused` naming the one that is wrong."""
    arguments.known_only(untrusted, _ARGUMENTS)
    if "blobIds" not in untrusted:
        raise invalid("blobIds", "is missing.")
    blob_ids = arguments.list_value("blobIds", untrusted["blobIds"])
    shape = {name: value for name, value in untrusted.items() if name in _OF_GET}
    return EmailParseArguments(
        tuple(dict.fromkeys(arguments.string_value("blobIds", each) for each in blob_ids)), parse_email_get(shape)
    )


_OF_GET: Final = frozenset(
    {
        "accountId",
        "properties",
        "bodyProperties",
        "fetchTextBodyValues",
        "fetchHTMLBodyValues",
        "fetchAllBodyValues",
        "maxBodyValueBytes",
    }
)
_ARGUMENTS: Final = _OF_GET | {"blobIds"}


def email_parse(
    found: Mapping[str, FoundBlob],
    asked: EmailParseArguments,
    read_blob: ReadBlob,
    max_octets: int,
    is_over: Callable[[], bool] = lambda: False,
) -> Parsed:
    """Answer Email/parse from the blobs that were found, by id. Raises `QueryRefused`.

    One message is in memory at a time. `max_octets` is what the texts of all may come to; once `is_over`, no further
    message is fetched and the call is refused: whoever asks for fewer gets on.
    """
    parsed: dict[str, dict[str, JSON]] = {}
    not_parsable, not_found = list[str](), list[str]()
    left = max_octets
    for number, blob_id in enumerate(asked.blob_ids):
        if number and is_over():
            raise too_large()
        octets = read_blob(found[blob_id]) if blob_id in found else None
        if octets is None:
            not_found.append(blob_id)
            continue
        message = parse(octets)
        if not is_message(message):
            not_parsable.append(blob_id)
            continue
        parsed[blob_id] = _email(message, asked.shape)
        left -= json_octets(parsed[blob_id])
        if left < 0:
            raise too_large()
    return Parsed(parsed, tuple(not_parsable), tuple(not_found))


def is_message(message: Message) -> bool:
    """Whether these octets are a message and not something else that has colons in its first lines."""
    return any(field.name.lower() in _FIELDS_OF_A_MESSAGE for field in message.fields)


def _email(message: Message, shape: EmailGetArguments) -> dict[str, JSON]:
    wanted = DEFAULT_PROPERTIES if shape.properties is None else tuple(dict.fromkeys(shape.properties))
    content = email_json(
        message,
        properties=wanted,
        body_properties=DEFAULT_BODY_PROPERTIES if shape.body_properties is None else shape.body_properties,
        fetch_text=shape.fetch_text,
        fetch_html=shape.fetch_html,
        fetch_all=shape.fetch_all,
        max_body_value_octets=shape.max_body_value_bytes,
    )
    # RFC 8621 §4.9: what only a mailbox gives a message is null here.
    return {name: None if name in SERVER_PROPERTIES else content[name] for name in wanted}

"""Email/parse: messages that are attached to others, read like any (RFC 8621 §4.9)."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Final

from agent_reader.query import arguments
from agent_reader.query.blobs import FoundBlob
from agent_reader.query.email_get_arguments import WHAT_IS_SHOWN, EmailGetArguments, parse_email_get
from agent_reader.query.errors import invalid
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

# RFC 5322 §3.6 and RFC 2045 §3: a message has one of these at least; one that was attached by hand perhaps has no other
# than its type. The parser itself takes any octets for one.
_FIELDS_OF_A_MESSAGE: Final = frozenset(
    {"from", "sender", "reply-to", "to", "cc", "bcc", "date", "subject", "comments", "keywords", "message-id"}
    | {"in-reply-to", "references", "received", "return-path", "mime-version", "content-type"}
)

# Gives the octets of a blob, for as long as the block runs.
ReadBlob = Callable[[FoundBlob], AbstractContextManager[bytes]]


@dataclass(frozen=True, slots=True)
class EmailParseArguments:
    """The arguments of Email/parse but accountId; `shape` is what Email/get has too."""

    blob_ids: tuple[str, ...]
    shape: EmailGetArguments


@dataclass(frozen=True, slots=True)
class Parsed:
    """RFC 8621 §4.9: blobs that hold no message, and those that are not there."""

    not_parsable: tuple[str, ...]
    not_found: tuple[str, ...]


def parse_email_parse(untrusted: Mapping[str, JSON]) -> EmailParseArguments:
    """Return the arguments, or raise `QueryRefused` naming the one that is wrong."""
    arguments.known_only(untrusted, _ARGUMENTS)
    shape = {name: value for name, value in untrusted.items() if name != BLOB_IDS}
    return EmailParseArguments(parse_blob_ids(untrusted), parse_email_get(shape))


def parse_blob_ids(untrusted: Mapping[str, JSON]) -> tuple[str, ...]:
    """Return the blobs that are to be parsed, each once, or raise `QueryRefused`."""
    if BLOB_IDS not in untrusted:
        raise invalid(BLOB_IDS, "is missing.")
    blob_ids = arguments.list_value(BLOB_IDS, untrusted[BLOB_IDS])
    return tuple(dict.fromkeys(arguments.string_value(BLOB_IDS, each) for each in blob_ids))


BLOB_IDS: Final = "blobIds"
_ARGUMENTS: Final = frozenset({"accountId", BLOB_IDS, *WHAT_IS_SHOWN})


def email_parse(
    found: Mapping[str, FoundBlob],
    asked: EmailParseArguments,
    read_blob: ReadBlob,
    put: Callable[[str, dict[str, JSON]], None],
    go_on: Callable[[], None] = lambda: None,
) -> Parsed:
    """Give the Email in each of the blobs that were found to `put`, with the blob's id. Raises `QueryRefused`.

    One message is in memory at a time; `put` writes it down, or raises where there is no room for it. `go_on` is called
    before each and raises where nobody waits for the rest: whoever asks for fewer gets on.
    """
    not_parsable, not_found = list[str](), list[str]()
    for blob_id in asked.blob_ids:
        go_on()
        if blob_id not in found:
            not_found.append(blob_id)
        elif not with_message(found[blob_id], read_blob, partial(_give, blob_id, asked.shape, put)):
            not_parsable.append(blob_id)
    return Parsed(tuple(not_parsable), tuple(not_found))


def _give(
    blob_id: str, shape: EmailGetArguments, put: Callable[[str, dict[str, JSON]], None], message: Message
) -> None:
    put(blob_id, parsed_email(message, shape))


def with_message(blob: FoundBlob, read_blob: ReadBlob, work: Callable[[Message], None]) -> bool:
    """Work with the message in a blob, or say that there is none; nothing of it is held afterwards.

    Whoever goes on waits for room for the next one.
    """
    with read_blob(blob) as octets:
        message = parse(octets)
        if not is_message(message):
            return False
        work(message)
        return True


def is_message(message: Message) -> bool:
    """Whether these octets are a message and not something else that has colons in its first lines."""
    return any(field.name.lower() in _FIELDS_OF_A_MESSAGE for field in message.fields)


def parsed_email(message: Message, shape: EmailGetArguments) -> dict[str, JSON]:
    """Return the Email that a blob holds, with the properties that are asked for."""
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

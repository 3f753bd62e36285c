"""Which parts of a message its Email in an answer shows, in words for the read log."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

# What says nothing of the content: where a message lies, and what the server calls it.
_PLACE: Final = frozenset({"id", "blobId", "threadId", "mailboxIds", "keywords", "size", "receivedAt"})
_HEADER: Final = frozenset(
    {
        *("messageId", "inReplyTo", "references", "sender", "from", "to", "cc", "bcc", "replyTo", "subject", "sentAt"),
        "headers",
    }
)
_STRUCTURE: Final = frozenset({"bodyStructure", "textBody", "htmlBody", "attachments", "hasAttachment"})


class ShownEmail(NamedTuple):
    """What an answer shows of an Email: `parts` in words, and whether text of its body is among them."""

    id: str
    has_text: bool
    parts: tuple[str, ...]


def shows_text(email: Mapping[str, Any]) -> bool:
    """Whether text of a body is there; a part that was cut to nothing shows none, an empty one all that it has."""
    parts = [*email.get("bodyValues", {}).values(), *([email["newText"]] if "newText" in email else ())]
    return any(part["value"] or not part["isTruncated"] for part in parts)


def parts_of(email: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the parts that an Email, or a SearchSnippet, of an answer shows: header, text/1, ..."""
    return tuple(dict.fromkeys(_parts(email)))


def _parts(email: Mapping[str, Any]) -> Iterator[str]:
    if "emailId" in email:
        # A SearchSnippet: what is null shows nothing.
        yield from (f"snippet of {name}" for name in ("subject", "preview") if email[name] is not None)
        return
    for name, value in email.items():
        if name == "bodyValues" and isinstance(value, Mapping):
            yield from (f"text/{part_id}" for part_id in value)
        elif name == "textOfAttachment" and isinstance(value, Mapping):
            yield from (f"attachment/{part_id}" for part_id, each in value.items() if "value" in each)
        elif name in _HEADER or name.startswith("header:"):
            yield "header"
        elif name in _STRUCTURE:
            yield "structure"
        elif name not in _PLACE:
            yield name

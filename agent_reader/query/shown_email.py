"""Which parts of a message its Email in an answer shows, in words for the read log."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from agent_reader.store.reading import SUMMARY_PROPERTIES

# What says nothing of the content: where a message lies, and what the server calls it.
_PLACE: Final = frozenset({"id", "blobId", "threadId", "mailboxIds", "keywords", "size", "receivedAt"})
_HEADER: Final = frozenset({*SUMMARY_PROPERTIES, "headers"})
_STRUCTURE: Final = frozenset({"bodyStructure", "textBody", "htmlBody", "attachments", "hasAttachment"})


class ShownEmail(NamedTuple):
    """What an answer shows of an Email: `parts` in words, and whether text of its body is among them."""

    id: str
    has_text: bool
    parts: tuple[str, ...]


class PartsShown:
    """Names the parts that the Emails of one answer show, all of which have the same properties."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[str, ...]] = {}

    def of(self, names: Iterable[str], texts: tuple[str, ...], attachments: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return what `parts_of` does, worked out once for Emails whose texts are in the same parts."""
        known = self._known.get((texts, attachments))
        if known is None:
            known = tuple(dict.fromkeys(_parts(names, texts, attachments)))
            self._known[texts, attachments] = known
        return known


def shows_text(email: Mapping[str, Any]) -> bool:
    """Whether text of a body is there; a part that was cut to nothing shows none, an empty one all that it has."""
    for part in email.get("bodyValues", {}).values():
        if part["value"] or not part["isTruncated"]:
            return True
    new_text = email.get("newText")
    return new_text is not None and bool(new_text["value"] or not new_text["isTruncated"])


def parts_of(email: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the parts that an Email, or a SearchSnippet, of an answer shows: header, text/1, ..."""
    if "emailId" in email:
        # A SearchSnippet: what is null shows nothing.
        return tuple(f"snippet of {name}" for name in ("subject", "preview") if email[name] is not None)
    return tuple(dict.fromkeys(_parts(email, texts_of(email), attachments_of(email))))


def texts_of(email: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ids of the parts whose text is in an Email's bodyValues."""
    return tuple(email.get("bodyValues", ()))


def attachments_of(email: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ids of the attachments whose text an Email of the extension shows."""
    return tuple([part_id for part_id, each in email.get("textOfAttachment", {}).items() if "value" in each])


def _parts(names: Iterable[str], texts: tuple[str, ...], attachments: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        if name == "bodyValues":
            yield from (f"text/{part_id}" for part_id in texts)
        elif name == "textOfAttachment":
            yield from (f"attachment/{part_id}" for part_id in attachments)
        elif name in _HEADER or name.startswith("header:"):
            yield "header"
        elif name in _STRUCTURE:
            yield "structure"
        elif name not in _PLACE:
            yield name

"""From a fetched message to all that the store keeps of it. Pure: no database here, so it runs before the lock."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import msgspec

from agent_reader.identity import Identity, names_of
from agent_reader.keep import Keep
from agent_reader.store import blobs, document, packing, search, tokens
from agent_reader.store.fold import fold, sort_order
from agent_reader.store.thread_subject import thread_subject
from agent_reader.sync.mirror import FetchedMessage
from shared.message import (
    JSON,
    BodyChoice,
    HeaderForm,
    Message,
    ReadableText,
    TextSource,
    base_subject,
    body_lists,
    body_value,
    email_json,
    has_attachment,
    parse,
    preview_of,
    readable_text,
)
from shared.message.addresses import Address, parse_groups
from shared.message.headers import unfolded
from shared.message.html import html_to_text
from shared.message.reading import Link
from shared.message.sign_in import is_sign_in_mail

# The metadata properties that follow from the header (RFC 8621 §4.1), ready as JSON for lists of messages.
SUMMARY_PROPERTIES: Final = (
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
)

# Where Message-IDs stand that join a Thread; the message's own last.
_LINKING: Final = ("references", "inReplyTo", "messageId")

# Plain text that the HTML was taken instead of, and that has words of its own.
_STUB_WITH_WORDS: Final = frozenset({BodyChoice.PLAIN_OFFERS_BROWSER, BodyChoice.PLAIN_IS_SHORT})

# Raised whenever a message is read in another way: what could not be read before is then tried again, as after each
# release.
_SHAPE: Final = 1

# A thread of thousands is a machine's. Ids past this only cost; the newest references stand last and count most.
_MAX_LINKS: Final = 200

# As the readable text of HTML shows where a link leads, behind what it says.
_TARGET: Final = re.compile(r" ?<([^<>\s]++)>")

_AS_WRITTEN: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])

# Sorting compares no further than a person does.
_MAX_ORDER_CHARACTERS: Final = 100


@dataclass(frozen=True, slots=True)
class Reading:
    """What the store keeps of one message. Times are seconds since 1970; texts are as their columns keep them."""

    id: str
    size: int
    received_at: int
    sent_at: int | None
    has_attachment: bool
    from_order: str
    to_order: str
    subject_order: str
    summary: bytes
    document: bytes
    words: tuple[str, ...]
    kept: Keep
    message_ids: tuple[str, ...]
    thread_subject: str
    blob_handles: tuple[int, ...]
    sender: str
    sender_domain: str
    signs_in: bool


@cache
def reading_version() -> str:
    """Return what tells this way of reading from those of other releases."""
    try:
        release = version("mailwarrant")
    except PackageNotFoundError:
        release = "checkout"
    return f"{release}/{_SHAPE}"


def read(
    fetched: FetchedMessage,
    mailbox_handle: str,
    uidvalidity: int,
    keep: Callable[[int], Keep] = lambda _: Keep.EVERYTHING,
    identity: Identity = Identity.OCTETS,
) -> Reading:
    """Read a fetched message. Above the largest size only its header is read.

    `keep` tells what is kept of a message that was received then, in seconds since 1970; `identity` what names it.
    """
    received_at = int(fetched.internaldate.timestamp())
    kept = keep(received_at)
    octets = fetched.octets
    message = parse(fetched.header if octets is None else octets)
    names = names_of(identity, octets, fetched.header, mailbox_handle, uidvalidity, fetched.uid)
    summary = email_json(message, properties=SUMMARY_PROPERTIES)
    attached = octets is not None and has_attachment(message)
    size = fetched.size if octets is None else len(octets)
    readable = readable_text(message)
    texts = tuple(_texts(message, readable))
    preview = "" if kept is Keep.METADATA else preview_of(readable)
    summary |= {"preview": preview, "blobId": names.blob_id, "size": size, "hasAttachment": attached}
    subject = _text(message, "Subject")
    sender, sender_domain = sender_of(summary["from"], sum(field.name.lower() == "from" for field in message.fields))
    return Reading(
        id=names.email_id,
        size=size,
        received_at=received_at,
        sent_at=_seconds(summary["sentAt"]),
        has_attachment=attached,
        from_order=_first_name(summary["from"]),
        to_order=_first_name(summary["to"]),
        subject_order=sort_order(base_subject(subject))[:_MAX_ORDER_CHARACTERS],
        summary=pack_summary(summary),
        document=_document(message, kept, has_body=octets is not None),
        words=_words(message, subject, () if kept is Keep.METADATA else _searched(texts)),
        kept=kept,
        message_ids=_linking_ids(summary),
        thread_subject=thread_subject(subject),
        # Of a message known by its header alone nothing is known of its parts.
        blob_handles=blobs.handles_of(message) if octets is not None else (),
        sender=sender,
        sender_domain=sender_domain,
        signs_in=_signs_in(subject, readable, texts),
    )


def sender_of(addresses: JSON, from_fields: int = 1) -> tuple[str, str]:
    """Return the one address of From and its domain, in lower case; empty where there is none, or more than one.

    A message that names several senders is nobody's: whoever wrote it chose all of them. So is one with several From
    fields, of which one program shows the first and another the last.
    """
    match addresses:
        case [{"email": str(email)}] if "@" in email and from_fields == 1:
            return email.lower(), email.lower().rpartition("@")[2]
        case _:
            return "", ""


def words_of(message: Message) -> tuple[str, ...]:
    """Return the folded words of a message, kept or whole, and the tokens of its header; of the body what was kept."""
    return _words(message, _text(message, "Subject"), tuple(searched_texts(message, readable_text(message))))


def signs_in(message: Message) -> bool:
    """Whether a message, kept or whole, holds what signs somebody in."""
    readable = readable_text(message)
    return _signs_in(_text(message, "Subject"), readable, tuple(_texts(message, readable)))


def _signs_in(subject: str, readable: ReadableText, texts: Sequence["_Text"]) -> bool:
    # The alternative that is not the readable one is shown by JMAP all the same; where its links lead stands in it.
    links = [link.target for link in readable.links]
    return any(is_sign_in_mail(subject, each.text, () if number else links) for number, each in enumerate(texts))


def threading_of(header: bytes) -> tuple[tuple[str, ...], str]:
    """Return Message-IDs and thread subject of a message, of which only the header fields that hold them are here."""
    message = parse(header)
    return _linking_ids(email_json(message, properties=_LINKING)), thread_subject(_text(message, "Subject"))


def pack_summary(summary: dict[str, JSON]) -> bytes:
    """Return metadata properties as they are kept."""
    return packing.pack(msgspec.json.encode(summary))


def unpack_summary(packed: bytes) -> dict[str, JSON]:
    """Return the metadata properties that were kept. Raises `MessageDamaged`."""
    summary: dict[str, JSON] = msgspec.json.decode(packing.unpack(packed))
    return summary


def unpack_summary_as_written(packed: bytes) -> dict[str, msgspec.Raw]:
    """Return the same, each as the octets of its JSON."""
    return _AS_WRITTEN.decode(packing.unpack(packed))


def _text(message: Message, name: str) -> str:
    text = message.header(name, HeaderForm.TEXT)
    return text if isinstance(text, str) else ""


def _seconds(date: JSON) -> int | None:
    if not isinstance(date, str):
        return None
    try:
        moment = datetime.fromisoformat(date)
        return int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp())
    except (ValueError, OverflowError):
        return None


def _first_name(addresses: JSON) -> str:
    """RFC 8621 §4.4.2: the name, else the email, of the first address."""
    match addresses:
        case [{"name": name, "email": email}, *_]:
            return sort_order(str(name or email or ""))[:_MAX_ORDER_CHARACTERS]
        case _:
            return ""


def _linking_ids(summary: dict[str, JSON]) -> tuple[str, ...]:
    return tuple(_message_ids(summary))[-_MAX_LINKS:]


def _message_ids(summary: dict[str, JSON]) -> Iterator[str]:
    for name in _LINKING:
        match summary[name]:
            case [*ids]:
                yield from (str(each) for each in ids)
            case _:
                pass


def _document(message: Message, kept: Keep, *, has_body: bool) -> bytes:
    packed = document.pack(message, has_body=has_body)
    return packed if kept is Keep.EVERYTHING else document.narrow(packed, kept)


def _words(message: Message, subject: str, searched: Sequence[str]) -> tuple[str, ...]:
    by_column = {
        search.Column.FROM: _address_words(message, "from"),
        search.Column.TO: _address_words(message, "to"),
        search.Column.CC: _address_words(message, "cc"),
        search.Column.BCC: _address_words(message, "bcc"),
        search.Column.SUBJECT: fold(subject),
        search.Column.BODY: _body_words(searched),
    }
    return (*(by_column[column] for column in search.Column), tokens.header_tokens(message.fields))


def _address_words(message: Message, name: str) -> str:
    """Names, also of groups, and addresses of every field of that name."""
    fields = [field for field in message.fields if field.name.lower() == name]
    groups = [group for field in fields for group in parse_groups(unfolded(field))]
    texts = [text for group in groups for text in (group.name or "", *map(_address_text, group.addresses))]
    return fold(" ".join(texts))


def _address_text(address: Address) -> str:
    return f"{address.name or ''} {address.email}"


@dataclass(frozen=True, slots=True)
class _Text:
    """A text that somebody reads, and the links of it whose targets it shows."""

    text: str
    links: tuple[Link, ...] = ()

    def as_searched(self) -> str:
        """The text without what its sender did not write as text (RFC 8621 §4.4.1).

        That is where links lead, an attribute of HTML, and the word for a picture, which is ours.
        """
        targets = {link.target for link in self.links}
        text = _TARGET.sub(lambda found: " " if found[1] in targets else found[0], self.text) if targets else self.text
        return text.replace("[image: ", "[")


def searched_texts(message: Message, readable: ReadableText) -> Iterator[str]:
    """Yield what a search in the body looks through: the readable text, the other alternative's, and HTML's titles."""
    return (each.as_searched() for each in _texts(message, readable))


def _searched(texts: Iterable[_Text]) -> tuple[str, ...]:
    return tuple(each.as_searched() for each in texts)


def _texts(message: Message, readable: ReadableText) -> Iterator[_Text]:
    yield _Text(readable.text, readable.links)
    titles = list(readable.titles)
    if readable.choice in _STUB_WITH_WORDS:
        plain_parts = [part for part in body_lists(message).text_body if part.type == "text/plain"]
        yield _Text("\n".join(body_value(part).value for part in plain_parts))
    if readable.source is TextSource.PLAIN:
        html_parts = [part for part in body_lists(message).html_body if part.type == "text/html"]
        others = [html_to_text(body_value(part).value) for part in html_parts]
        yield _Text("\n".join(each.text for each in others), tuple(link for each in others for link in each.links))
        titles += (title for each in others for title in each.titles)
    if titles:
        yield _Text("\n".join(titles))


def _body_words(searched: Sequence[str]) -> str:
    """The readable text; and the other alternative's where that says something else: either is found."""
    words, *others = map(fold, searched or ("",))
    others = [each for each in others if each != words]
    if not others:
        return words
    known = set(words.split())
    told_apart = (words, *(each for each in others if not set(each.split()) <= known))
    return f" {tokens.BETWEEN_TEXTS} ".join(told_apart)

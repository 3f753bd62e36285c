"""What a message is once read: fields, parts and what was wrong with it. Immutable; the octets stay the truth."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from shared.identity import blob_id
from shared.message.charset import Decoded
from shared.message.defects import Defect
from shared.message.fields import JSON, FieldsByName, HeaderField, by_name
from shared.message.headers import HeaderForm, KnownGroups, read_header
from shared.message.transfer import decode_transfer


@dataclass(slots=True)
class Once:
    """What several properties of a part are made of, worked out once."""

    by_name: FieldsByName | None = None
    headers: dict[tuple[str, HeaderForm, bool], JSON] = field(default_factory=dict)
    groups: KnownGroups = field(default_factory=dict)
    content: bytes | None = None
    text: Decoded | None = None
    is_known: bool = True
    blob_id: str = ""


# RFC 2046 §5.2.1, RFC 6532 §3.7.
_MESSAGE_TYPES: Final = frozenset({"message/rfc822", "message/global"})

# Decoded content up to this size is kept, since size, blob id and text all ask for it; larger is decoded each time.
_KEPT_CONTENT: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """RFC 8621 §4.1.4 EmailBodyPart over its slice of the message's octets.

    `part_id` is the part's position among the leaves, depth first, or None for a multipart. `type` is in lower case
    and never empty; `parameters` are those of Content-Type. `start` and `end` bound the body as it stands encoded.
    """

    part_id: str | None
    type: str
    parameters: Mapping[str, str]
    charset: str | None
    disposition: str | None
    name: str | None
    cid: str | None
    language: tuple[str, ...] | None
    location: str | None
    transfer_encoding: str
    fields: tuple[HeaderField, ...]
    subparts: "tuple[Part, ...]"
    start: int
    end: int
    octets: bytes = field(repr=False, compare=False)
    once: Once = field(default_factory=Once, repr=False, compare=False)

    @property
    def is_multipart(self) -> bool:
        """Whether the part has parts instead of content."""
        return self.part_id is None

    @property
    def is_message(self) -> bool:
        """Whether the content is a message of its own, which is read like any (RFC 8621 §4.9)."""
        return self.type in _MESSAGE_TYPES

    def content(self) -> bytes:
        """Return the octets after transfer decoding; those of a multipart as they stand."""
        kept = self.once.content
        if kept is not None:
            return kept
        encoded = self.octets[self.start : self.end]
        decoded = encoded if self.is_multipart else decode_transfer(encoded, self.transfer_encoding)
        if decoded is None:
            self.once.is_known = False
            decoded = encoded
        if len(decoded) <= _KEPT_CONTENT:
            self.once.content = decoded
        return decoded

    @property
    def has_known_encoding(self) -> bool:
        """Whether the transfer encoding is one that `content` could undo (RFC 8621 §4.1.4 isEncodingProblem)."""
        self.content()
        return self.once.is_known

    @property
    def size(self) -> int:
        """Octets after transfer decoding and before charset decoding."""
        return len(self.content())

    @property
    def blob_id(self) -> str | None:
        """The blob id of the decoded content; None for a multipart (RFC 8621 §4.1.4)."""
        if self.is_multipart:
            return None
        if not self.once.blob_id:
            self.once.blob_id = blob_id(hashlib.sha256(self.content()).digest())
        return self.once.blob_id

    def walk(self) -> "Iterator[Part]":
        """Yield this part and all below it, depth first."""
        waiting = [self]
        while waiting:
            part = waiting.pop()
            yield part
            waiting.extend(reversed(part.subparts))

    def header(self, name: str, form: HeaderForm = HeaderForm.RAW, *, all_instances: bool = False) -> JSON:
        """Return one of the part's own header fields in a form, as `Message.header` does."""
        asked = (name.lower(), form, all_instances)
        if asked not in self.once.headers:
            self.once.headers[asked] = read_header(
                self.named(name), form, self.once.groups, all_instances=all_instances
            )
        return self.once.headers[asked]

    def named(self, name: str) -> Sequence[HeaderField]:
        """Return the part's own header fields of a name, in message order; names match without letter case."""
        fields = self.once.by_name
        if fields is None:
            fields = self.once.by_name = by_name(self.fields)
        return fields.get(name.lower(), ())


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A whole message: its octets, its header fields in order, its tree of parts, and what was wrong with it."""

    octets: bytes = field(repr=False)
    fields: tuple[HeaderField, ...]
    root: Part
    defects: tuple[Defect, ...]

    def header(self, name: str, form: HeaderForm = HeaderForm.RAW, *, all_instances: bool = False) -> JSON:
        """Return a header field in a form: the last instance's value, or None where there is none.

        With `all_instances` a list in message order, empty where there is none. Names match without letter case.
        RFC 8621 §4.1.2, §4.1.3; whether the field may be read in that form is `parse_header_property`'s business.
        """
        return self.root.header(name, form, all_instances=all_instances)

    def part(self, part_id: str) -> Part | None:
        """Return the leaf with that id."""
        return next((part for part in self.root.walk() if part.part_id == part_id), None)

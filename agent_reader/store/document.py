"""What is kept of a message so that Email/get needs no octets: its headers, its structure and its texts.

A kept message comes back as a `shared.message` Message whose parts answer size, blob id and text as the original did.
Attachments' octets are not kept; a text attachment is, up to a limit, since fetchAllBodyValues asks for it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, assert_never, cast

import msgspec

from agent_reader.keep import Keep
from agent_reader.scope import Depth
from agent_reader.store import packing
from agent_reader.store.body_places import with_places, without_places
from shared.message import LEAF_PROPERTIES, BodyLists, HeaderField, Message, Part, body_lists

# A text attachment up to this is worth its place; a larger one (a log, an export) is fetched as a blob.
_MAX_KEPT_ATTACHMENT: Final = 1024 * 1024


class _KeptPart(msgspec.Struct, array_like=True, frozen=True):
    part_id: str | None
    type: str
    parameters: dict[str, str]
    charset: str | None
    disposition: str | None
    name: str | None
    cid: str | None
    language: tuple[str, ...] | None
    location: str | None
    transfer_encoding: str
    fields: tuple[HeaderField, ...]
    subparts: tuple["_KeptPart", ...]
    size: int
    blob_id: str | None
    is_known_encoding: bool
    content: bytes | None


# A message seen by its header alone has one part, of which nothing is known.
_NO_CONTENT: Final[dict[str, Any]] = {
    "part_id": "1",
    "type": "text/plain",
    "parameters": {},
    "charset": None,
    "disposition": None,
    "name": None,
    "cid": None,
    "language": None,
    "location": None,
    "transfer_encoding": "7bit",
    "subparts": (),
    "kept": None,
    "kept_size": 0,
    "kept_blob_id": None,
}

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(_KeptPart)
_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class StoredPart(Part):
    """A part as it was kept: `content` is empty where it was not kept (`is_kept` says so), size and blob id are right.

    The fields' offsets are 0: the octets are on the mail server.
    """

    kept: bytes | None = None
    kept_size: int = 0
    kept_blob_id: str | None = None
    kept_known_encoding: bool = True

    @property
    def is_kept(self) -> bool:
        """Whether the content is here."""
        return self.kept is not None

    def content(self) -> bytes:
        """Return the octets after transfer decoding, or none where they were not kept."""
        return self.kept or b""

    @property
    def has_known_encoding(self) -> bool:
        """Whether the transfer encoding could be undone."""
        return self.kept_known_encoding

    @property
    def size(self) -> int:
        """Octets after transfer decoding, kept or not."""
        return self.kept_size

    @property
    def blob_id(self) -> str | None:
        """The blob id of the decoded content."""
        return self.kept_blob_id


def pack(message: Message, *, has_body: bool = True) -> bytes:
    """Return a message as it is kept: zlib over msgpack, and behind it where the body's texts lie in that.

    Without a body its texts count as not kept.
    """
    lists = body_lists(message)
    body = {id(part) for part in (*lists.text_body, *lists.html_body)} if has_body else None
    return _packed(_keep(message.root, body), lists if has_body else None)


def narrow(packed: bytes, keep: Keep) -> bytes:
    """Return a kept message with the texts of its body alone, or with none; its structure stays."""
    message = unpack(packed)
    lists = body_lists(message)
    texts = {id(part) for part in (*lists.text_body, *lists.html_body)} if keep is Keep.TEXT else set[int]()
    root = message.root if keep is Keep.EVERYTHING else _with_texts_only(message.root, texts)
    return _packed(_keep(root, None), None if keep is Keep.METADATA else lists)


def unpack(packed: bytes) -> Message:
    """Return the message that `pack` kept. Its `octets` are empty, its `defects` not kept. Raises `MessageDamaged`."""
    root = _restore(_DECODER.decode(packing.unpack(packed)))
    return Message(b"", root.fields, root, ())


def leaf_json(kept: bytes, names: Iterable[str]) -> bytes:
    """Return the JSON of an EmailBodyPart from the octets that it is kept in; `names` are of `LEAF_PROPERTIES`."""
    leaf = _DECODER.decode(kept)
    return _encode({name: LEAF_PROPERTIES[name](leaf) for name in names})


def as_deep_as(message: Message, depth: Depth) -> Message:
    """Return a kept message without what lies deeper: attachments' content, or all but the header."""
    match depth:
        case Depth.FULL:
            return message
        case Depth.TEXT:
            lists = body_lists(message)
            root = _with_texts_only(message.root, {id(part) for part in (*lists.text_body, *lists.html_body)})
        case Depth.HEADERS:
            root = replace(message.root, **_NO_CONTENT)
        case _:
            assert_never(depth)
    return Message(b"", message.fields, root, ())


def _packed(root: _KeptPart, lists: BodyLists | None) -> bytes:
    unpacked = _ENCODER.encode(root)
    packed = packing.pack(unpacked)
    if lists is None or not _has_texts(lists):
        return without_places(packed)
    kept = {part.part_id: part for part in _walk(root)}
    return with_places(packed, unpacked, lists, lambda leaf: _ENCODER.encode(kept[leaf.part_id]))


def _walk(part: _KeptPart) -> Iterator[_KeptPart]:
    yield part
    for child in part.subparts:
        yield from _walk(child)


def _has_texts(lists: BodyLists) -> bool:
    """Whether each text of the body is here: a message that was known by its header alone is kept without any."""
    parts = (part for part in (*lists.text_body, *lists.html_body) if part.type.startswith("text/"))
    return all(part.is_kept for part in parts if isinstance(part, StoredPart))


def _with_texts_only(part: Part, texts: set[int]) -> Part:
    assert isinstance(part, StoredPart)
    if id(part) in texts:
        return part
    return replace(part, kept=None, subparts=tuple(_with_texts_only(child, texts) for child in part.subparts))


def _keep(part: Part, body: set[int] | None) -> _KeptPart:
    """Recurses once a level of multiparts, of which the parser allows 100."""
    return _KeptPart(
        part_id=part.part_id,
        type=part.type,
        parameters=dict(part.parameters),
        charset=part.charset,
        disposition=part.disposition,
        name=part.name,
        cid=part.cid,
        language=part.language,
        location=part.location,
        transfer_encoding=part.transfer_encoding,
        # In pairs, without places in octets that are not here; they are read back as fields at once.
        fields=cast("tuple[HeaderField, ...]", tuple(field[:2] for field in part.fields)),
        subparts=tuple(_keep(child, body) for child in part.subparts),
        size=part.size,
        blob_id=part.blob_id,
        is_known_encoding=part.has_known_encoding,
        content=_kept_content(part, body),
    )


def _kept_content(part: Part, body: set[int] | None) -> bytes | None:
    if isinstance(part, StoredPart):
        return part.kept
    is_text = body is not None and part.type.startswith("text/")
    is_kept = is_text and (id(part) in (body or ()) or part.size <= _MAX_KEPT_ATTACHMENT)
    return part.content() if is_kept else None


def _restore(kept: _KeptPart) -> StoredPart:
    return StoredPart(
        part_id=kept.part_id,
        type=kept.type,
        parameters=kept.parameters,
        charset=kept.charset,
        disposition=kept.disposition,
        name=kept.name,
        cid=kept.cid,
        language=kept.language,
        location=kept.location,
        transfer_encoding=kept.transfer_encoding,
        fields=kept.fields,
        subparts=tuple(_restore(child) for child in kept.subparts),
        start=0,
        end=0,
        octets=b"",
        kept=kept.content,
        kept_size=kept.size,
        kept_blob_id=kept.blob_id,
        kept_known_encoding=kept.is_known_encoding,
    )

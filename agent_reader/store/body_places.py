"""Where the body lies in what is kept of a message: its texts and parts are read without taking apart the rest.

Whoever asks for messages wants their texts, as a rule, and what parts those are, and of the rest no more than the
summary has. The places stand after the end of the packed document, where whoever unpacks the whole does not look, older
releases among them. A document that one of those packed has no places, and texts that need more than decoding have
none: there the message is taken apart as before.

The checksum of a document is that of the whole, so each text and part has one of its own: where it tells of damage, the
message is taken apart, and the other tells too.
"""

import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec

from shared.message import BodyLists, Part, body_value
from shared.message.charset import codec_of

# What is unpacked for a message stays in memory beside what others read: the few that are longer take a place in the
# reading room, as everything does that is taken apart.
MOST_OCTETS: Final = 256 * 1024

# The end of every document that is packed now. An older one ends in a checksum, and by chance in this once in 2**64, or
# in a mark of its own: its parts have no checksums.
_MARK: Final = b"\x00texts\x02\n"
_LENGTH_OCTETS: Final = 2
_CHECK_OCTETS: Final = 4
# A message has two texts, as a rule; of one with hundreds it is no loss that it is read as a whole.
_MOST_PARTS: Final = 32


class BodyText(NamedTuple):
    """A text of a body as RFC 8621 §4.1.4 has it, whole and free of encoding problems; `json` is a string of JSON."""

    part_id: str
    is_html: bool
    json: bytes


class Body(NamedTuple):
    """What was asked of a body: texts, each once, and lists of parts, each in the octets that it is kept in."""

    texts: Sequence[BodyText]
    lists: Sequence[Sequence[bytes]]


class _Span(msgspec.Struct, array_like=True, frozen=True):
    """`start` and `end` in the unpacked document; `check` is the CRC-32 of what lies there."""

    start: int
    end: int
    check: int


class _Place(msgspec.Struct, array_like=True, frozen=True):
    """`start`, `end` and `check` as in a span; `has_pairs`: there are CRs, each before an LF.

    `charset` is None where the octets are UTF-8 with nothing in it that JSON escapes but what `_escaped` does.
    """

    part_id: str
    is_html: bool
    start: int
    end: int
    check: int
    charset: str | None
    has_pairs: bool


class _Places(msgspec.Struct, array_like=True, frozen=True):
    """`lists` in the order of `LISTS`; where texts or lists do not lie there simply, there is None."""

    text_body: tuple[_Place, ...] | None
    html_body: tuple[_Place, ...] | None
    lists: tuple[tuple[_Span, ...], tuple[_Span, ...], tuple[_Span, ...]] | None = None


# RFC 8621 §4.1.4.
LISTS: Final = ("textBody", "htmlBody", "attachments")

_DECODER: Final = msgspec.msgpack.Decoder(_Places)
_encode: Final = msgspec.json.Encoder().encode


def with_places(packed: bytes, unpacked: bytes, lists: BodyLists, kept: Callable[[Part], bytes]) -> bytes:
    """Return a packed document with the places of its body, whose texts are all kept in it, as far as it has any.

    `kept` gives the octets that a part is kept in.
    """
    text_body = html_body = spans = None
    with suppress(_NotPlain):
        text_body, html_body = _places(unpacked, lists.text_body), _places(unpacked, lists.html_body)
    with suppress(_NotPlain):
        spans = (
            _spans(unpacked, lists.text_body, kept),
            _spans(unpacked, lists.html_body, kept),
            _spans(unpacked, lists.attachments, kept),
        )
    if text_body is None and spans is None:
        return without_places(packed)
    return _closed(packed, msgspec.msgpack.encode(_Places(text_body, html_body, spans)))


def without_places(packed: bytes) -> bytes:
    """Return a packed document that says that it has no places: whoever wrote the message has no say in how it ends."""
    return _closed(packed, b"")


def _closed(packed: bytes, places: bytes) -> bytes:
    check = zlib.crc32(places).to_bytes(_CHECK_OCTETS)
    return b"%b%b%b%b%b" % (packed, places, check, len(places).to_bytes(_LENGTH_OCTETS), _MARK)


def read_body(packed: bytes, *, of_text: bool, of_html: bool, lists: Sequence[str] = ()) -> Body | None:
    """Return the texts of textBody, of htmlBody, or of both, and the lists of these names.

    None where the document does not have the places of all that, or is damaged there.
    """
    if not packed.endswith(_MARK):
        return None
    behind = len(packed) - len(_MARK) - _LENGTH_OCTETS
    end = behind - _CHECK_OCTETS
    known = packed[end - int.from_bytes(packed[behind : behind + _LENGTH_OCTETS]) : end]
    if zlib.crc32(known) != int.from_bytes(packed[end:behind]):
        return None
    try:
        found = _DECODER.decode(known)
        places = _texts_asked(found, of_text=of_text, of_html=of_html)
        spans = _lists_asked(found, lists)
        # No further than to the end of the last: the HTML beside a text stands behind it, and is often ten times as
        # long.
        ends = [place.end for place in places] + [span.end for each in spans for span in each]
        needed = max(ends, default=0)
        unpacked = zlib.decompressobj().decompress(packed, needed) if needed else b""
        if len(unpacked) < needed:
            return None
        return Body(
            [BodyText(place.part_id, place.is_html, _json(unpacked, place)) for place in places],
            [[_undamaged(unpacked, span) for span in each] for each in spans],
        )
    except (_NotPlain, msgspec.MsgspecError, UnicodeError, zlib.error):
        return None


def _texts_asked(found: _Places, *, of_text: bool, of_html: bool) -> tuple[_Place, ...]:
    if not (of_text or of_html):
        return ()
    if found.text_body is None or found.html_body is None:
        raise _NotPlain
    places = found.text_body if of_text else ()
    if of_html:
        places += tuple([place for place in found.html_body if place not in places])
    return places


def _lists_asked(found: _Places, names: Sequence[str]) -> list[tuple[_Span, ...]]:
    if not names:
        return []
    if found.lists is None:
        raise _NotPlain
    return [found.lists[LISTS.index(name)] for name in names]


def _json(unpacked: bytes, place: _Place) -> bytes:
    octets = _undamaged(unpacked, place)
    if place.has_pairs:
        # To take one octet out is ten times as fast as to look for two.
        octets = octets.replace(b"\r", b"")
    if place.charset is None:
        return _escaped(octets)
    return _encode(octets.decode(codec_of(place.charset) or "utf_8"))


def _undamaged(unpacked: bytes, span: _Span | _Place) -> bytes:
    octets = unpacked[span.start : span.end]
    if zlib.crc32(octets) != span.check:
        raise _NotPlain
    return octets


def _escaped(octets: bytes) -> bytes:
    """A string of JSON, in a third of the time that a detour by characters takes where not all are ASCII's."""
    octets = octets.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n").replace(b"\t", b"\\t")
    return b'"%b"' % octets


class _NotPlain(Exception):  # noqa: N818 - names the finding
    """What does not lie there simply to be read."""


def _found(unpacked: bytes, octets: bytes) -> int:
    # Where the same octets stand earlier for something else, they are as good.
    start = unpacked.find(octets, 0, MOST_OCTETS)
    if start < 0:
        raise _NotPlain
    return start


def _spans(unpacked: bytes, parts: Sequence[Part], kept: Callable[[Part], bytes]) -> tuple[_Span, ...]:
    if len(parts) > _MOST_PARTS:
        raise _NotPlain
    spans: list[_Span] = []
    for part in parts:
        octets = kept(part)
        start = _found(unpacked, octets)
        spans.append(_Span(start, start + len(octets), zlib.crc32(octets)))
    return tuple(spans)


def _places(unpacked: bytes, parts: Iterable[Part]) -> tuple[_Place, ...]:
    texts = [part for part in parts if part.type.startswith("text/")]
    if len(texts) > _MOST_PARTS:
        raise _NotPlain
    return tuple(map(_place, [unpacked] * len(texts), texts))


def _place(unpacked: bytes, part: Part) -> _Place:
    content = part.content()
    start = _found(unpacked, content)
    if part.part_id is None:
        raise _NotPlain
    value = body_value(part)
    if value.is_encoding_problem:
        raise _NotPlain
    json = _encode(value.value)
    for charset in (None, part.charset or "utf-8"):
        place = _Place(
            part.part_id,
            part.type == "text/html",
            start,
            start + len(content),
            zlib.crc32(content),
            charset,
            b"\r" in content,
        )
        with suppress(UnicodeError):
            if _json(unpacked, place) == json:
                return place
    raise _NotPlain
